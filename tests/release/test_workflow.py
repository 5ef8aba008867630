"""The workflow for GitHub: what it may do, what it uses, and that its commands are those that run here."""

import re
import shlex
import subprocess
from typing import Any

import pytest
import yaml
from tests.pages import ROOT

from tools import interpreters, pythons

TEXT = (ROOT / ".github/workflows/tests.yml").read_text("utf-8")
JOBS: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]
COMMANDS = [
    shlex.split(line.replace("${{ matrix.python }}", version))
    for job in JOBS.values()
    for version in job.get("strategy", {}).get("matrix", {}).get("python", [interpreters.VERSIONS[0]])
    for step in job["steps"]
    for line in step.get("run", "").splitlines()
]
OURS = sorted({shlex.join(command) for command in COMMANDS if command[0] != "sudo"})


def test_the_workflow_has_no_secret_and_may_only_read():
    assert "secrets." not in TEXT
    assert TEXT.count("permissions:") == 1
    assert "permissions:\n  contents: read\n" in TEXT
    assert TEXT.count("actions/checkout") == TEXT.count("persist-credentials: false")


def test_every_action_is_pinned_to_a_commit_and_names_its_version():
    used = re.findall(r"uses: *(.*)", TEXT)
    assert used
    assert [
        each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)
    ] == []


@pytest.mark.parametrize("job", ["library", "windows"])
def test_every_supported_python_is_tried(job: str):
    assert JOBS[job]["strategy"]["matrix"]["python"] == list(interpreters.VERSIONS)


def test_every_command_is_one_of_ours_or_prepares_the_system():
    assert {words[0] for words in COMMANDS} == {"make", "python", "sudo"}


@pytest.mark.parametrize("command", [command for command in OURS if command.startswith("make ")])
def test_make_knows_the_target(command: str):
    done = subprocess.run([*command.split(), "-n"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("command", [command for command in OURS if command.startswith("python ")])
def test_the_tool_for_other_pythons_understands_its_options(command: str):
    script, *words = command.split()[1:]
    assert script == "tools/pythons.py"
    assert pythons.options_of(words).only[0] in interpreters.VERSIONS
