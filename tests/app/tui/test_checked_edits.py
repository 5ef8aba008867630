"""Checked edits and web search in a real terminal: what the model is sent, and what the person is told."""

import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Call, Place, Provider
from terminal import Terminal
from tests.counts import left_to_more

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")
CHECKER = '#!/bin/sh\nfor file; do :; done\ngrep -nH BAD "$file"\ntrue\n'


@pytest.fixture
def project(place: Place) -> Place:
    """A project that configures ruff and brings one along, which finds BAD."""
    place.write("main.py", "x = 1\n")
    place.write("ruff.toml", "")
    program = place.here / ".venv" / "bin" / "ruff"
    program.parent.mkdir(parents=True)
    program.write_text(CHECKER)
    program.chmod(0o755)
    return place


def results(request: dict[str, Any]) -> str:
    return str([message for message in request["messages"] if message["role"] == "tool"])


def edit(place: Place, provider: Provider, *, is_trusted: bool = True) -> str:
    """Let the agent edit a file; what it was told."""
    change = Call("edit_file", path="main.py", edits=[{"old": "x = 1", "new": "x = BAD"}])
    provider.replies = [[change], ["Done."]]
    with Terminal(
        place,
        "--model",
        "openai:m",
        "--approve",
        "off",
        env=provider.env,
        size=(100, 30),
        is_trusted=is_trusted,
    ) as terminal:
        if not is_trusted:
            terminal.wait_for("trust")
            terminal.pause(0.4)
            terminal.press("n")
        terminal.wait_for("idle", "Execute")
        terminal.type("change it\r")
        terminal.wait_for("Done.", "idle")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert terminal.left_behind() == []
    assert (place.here / "main.py").read_text() == "x = BAD\n"
    return results(provider.requests[-1])


def test_what_a_checker_of_a_trusted_project_finds_anew_is_told_with_the_edit(
    project: Place, provider: Provider
):
    assert "- ruff: main.py:1: x = BAD" in edit(project, provider)


@left_to_more
def test_in_a_folder_that_is_not_trusted_nothing_of_it_is_run(project: Place, provider: Provider):
    canary = project.home / "canary"
    (project.here / ".venv/bin/ruff").write_text(f"#!/bin/sh\ntouch {canary}\necho main.py:1: BAD\n")
    assert "ruff" not in edit(project, provider, is_trusted=False)
    assert not canary.exists()


@left_to_more
def test_switched_off_it_checks_nothing(project: Place, provider: Provider):
    project.configure("diagnostics = false\n")
    assert "ruff" not in edit(project, provider)


def test_of_a_model_without_search_the_person_is_told(place: Place, provider: Provider):
    place.configure("web_search = true\n")
    with Terminal(place, "--model", "openai:m", env=provider.env, size=(120, 30)) as terminal:
        terminal.wait_for("idle", "Execute")
        for _ in range(2):
            terminal.type("hi\r")
            terminal.wait_for("Hello there.", "idle")
        terminal.wait_for("web_search is set, but openai:m has no search of its own")
        assert terminal.shown.count("web_search is set") == 1
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
    assert not any("web_search" in str(request.get("tools", "")) for request in provider.requests)


def test_the_pages_say_which_checkers_there_are():
    from swink.app.assistant.checkers import CHECKERS

    page = (Path(__file__).parents[3] / "docs" / "coding-agent" / "environment.md").read_text("utf-8")
    assert all(f"`{checker.name}" in page for checker in CHECKERS)
