"""`swink hooks`: the hooks of a directory are listed, and tried."""

import json
from pathlib import Path

import pytest
from command_line import Place


@pytest.fixture
def project(place: Place) -> Path:
    block = {"type": "command", "command": "grep -q 'rm -rf' && { echo not that >&2; exit 2; }; exit 0"}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [block]}]}
    (place.here / ".claude").mkdir()
    (place.here / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    return place.here


def test_a_folder_without_trust_has_no_hooks_and_trust_shows_their_commands(place: Place, project: Path):
    done = place.swink("hooks")
    assert "no hooks" in done.err
    assert "hook .claude/settings.json" in done.err
    shown = place.swink("trust", "--yes").out
    assert "hook  .claude/settings.json: PreToolUse(Bash) runs grep -q 'rm -rf'" in shown


def test_hooks_are_listed_and_tried(place: Place, project: Path):
    place.swink("trust", "--yes")
    listed = place.swink("hooks", "list").out
    assert listed.splitlines()[0].split() == ["EVENT", "MATCHER", "FROM", "COMMAND"]
    assert "PreToolUse  Bash" in listed
    asked = ("hooks", "test", "PreToolUse", "--tool", "bash", "--input")
    done = place.swink(*asked, '{"command": "rm -rf /"}')
    assert done.code == 1
    assert "blocks: not that" in done.out
    done = place.swink(*asked, '{"command": "ls"}')
    assert done.code == 0
    assert "has no objection" in done.out
    assert "no hook here is for Stop" in place.swink("hooks", "test", "Stop").err


def test_what_cannot_be_tried_is_refused(place: Place):
    assert place.swink("hooks", "test", "PreToolUse").code == 2
    assert "--input is no JSON" in place.swink("hooks", "test", "Stop", "--input", "{").err
    assert "--input is nested too deeply" in place.swink("hooks", "test", "Stop", "--input", "[" * 50_000).err
    assert place.swink("hooks", "test", "BeforeTool").code == 2
