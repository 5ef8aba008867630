"""`swink review`: findings as lines and as JSON, and how it ends."""

import json
import signal
import subprocess

import pytest
from command_line import STALL, Call, Place, Provider

from swink.tools import FINAL_OUTPUT

FINDINGS = [
    {"file": "notes.txt", "line": 2, "severity": "low", "text": "A number\nis no word."},
    {"file": "notes.txt", "line": 0, "severity": "high", "text": "It is lost."},
]


@pytest.fixture
def project(place: Place) -> Place:
    subprocess.run(["git", "init", "-q", "."], cwd=place.here, check=True)
    place.write("notes.txt", "one\n2\n")
    return place


def test_without_a_repository_or_with_an_unknown_branch_it_exits_with_2(place: Place, provider: Provider):
    done = place.swink("review", "-m", "openai:m", env=provider.env)
    assert done.code == 2
    assert "not a git repository" in done.err
    subprocess.run(["git", "init", "-q", "."], cwd=place.here, check=True)
    done = place.swink("review", "nowhere", "-m", "openai:m", env=provider.env)
    assert done.code == 2
    assert "no branch or commit 'nowhere'" in done.err
    assert provider.requests == []


def test_findings_are_lines_or_one_json_document(project: Place, provider: Provider):
    provider.replies = [[Call(FINAL_OUTPUT, findings=FINDINGS)]]
    done = project.swink("review", "-m", "openai:m", env=provider.env)
    assert done.code == 0, done
    assert done.out == "high      notes.txt  It is lost.\nlow       notes.txt:2  A number is no word.\n"
    assert "reviewing the working tree, 1 file" in done.err
    names = {tool["function"]["name"] for tool in provider.requests[0]["tools"]}
    assert "read_file" in names
    assert not names & {"bash", "write_file", "edit_file"}
    done = project.swink("review", "--json", "-m", "openai:m", env=provider.env)
    told = json.loads(done.out)
    assert [one["line"] for one in told["findings"]] == [0, 2]
    assert told["what"] == "the working tree"


def test_a_model_that_fails_exits_with_1(project: Place, provider: Provider):
    provider.replies = [["I would rather talk."]]
    done = project.swink("review", "-m", "openai:m", env=provider.env)
    assert (done.code, done.out) == (1, "")


def test_ctrl_c_ends_it(project: Place, provider: Provider):
    provider.replies = [[STALL]]
    process = project.start("review", "-m", "openai:m", env=provider.env)
    assert process.stderr is not None
    while b"reviewing" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
