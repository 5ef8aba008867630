"""`swink adopt`: a list, a question, and only after a yes anything is written."""

import json
from pathlib import Path

import pytest
from command_line import KEY, Place, Screen, without_styles


@pytest.fixture
def theirs(place: Place) -> Place:
    """The place of somebody who has used Claude Code."""
    for name, content in {
        ".claude.json": {"mcpServers": {"files": {"command": "npx", "env": {"FILES_KEY": KEY}}}},
        ".claude/settings.json": {"permissions": {"allow": ["Bash(git status:*)", "Bash(git * x)"]}},
        ".codex/config.toml": 'model = "gpt-5.2"\n',
    }.items():
        path = place.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return place


def ours(place: Place) -> dict[str, str]:
    """What is written of ours."""
    files = sorted(path for path in place.config.rglob("*") if path.is_file())
    return {path.name: path.read_text() for path in files if not path.name.endswith(".lock")}


def test_what_there_is_is_listed_with_what_it_becomes_and_written_after_a_yes(theirs: Place):
    done = theirs.swink("adopt", "--dry-run")
    assert (done.code, ours(theirs)) == (0, {})
    lines = done.out.splitlines()
    head, state, server, kept, allowed, refused, codex, config, model, opencode, legend = lines
    assert (head, codex, opencode) == ("claude", "codex", "opencode: nothing found")
    assert (state, kept, config) == (
        "  ~/.claude.json",
        "  ~/.claude/settings.json",
        "  ~/.codex/config.toml",
    )
    assert server.startswith("  + server        files ")
    assert "becomes [mcp.files] in config.toml; set FILES_KEY in the environment" in server
    assert "becomes allow bash(git status *) (everywhere)" in allowed
    assert refused.startswith("  - rule ")
    assert 'becomes default_model = "openai:gpt-5.2"' in model
    assert legend.startswith("+ is written after a yes")
    assert KEY not in done.out + done.err
    assert theirs.swink("adopt", "--yes").err == "swink: 3 things written\n"
    written = ours(theirs)
    assert 'FILES_KEY = "${FILES_KEY}"' in written["config.toml"]
    assert "allow bash(git status *)" in written["permissions"]
    again = theirs.swink("adopt", "--yes")
    assert (again.code, again.err) == (0, "swink: there is nothing to write\n")
    assert ours(theirs) == written


def test_one_program_alone(theirs: Place):
    done = theirs.swink("adopt", "codex", "--yes")
    assert done.code == 0
    assert "claude" not in done.out
    assert [*ours(theirs)] == ["config.toml"]


def test_without_a_terminal_and_a_yes_nothing_is_written(theirs: Place):
    done = theirs.swink("adopt")
    assert done.code == 1
    assert "--yes writes what is listed, --dry-run only lists" in done.err
    assert ours(theirs) == {}


@pytest.mark.parametrize(("typed", "code"), [("\n", 1), ("n\n", 1), ("\x04", 1), ("\x03", 130), ("y\n", 0)])
def test_the_question_is_answered_on_the_terminal(theirs: Place, typed: str, code: int):
    screen = Screen(theirs, "adopt", trusts=False)
    shown = without_styles(screen.wait_for("write 3 things marked +"))
    assert "becomes [mcp.files]" in shown
    assert max(map(len, shown.splitlines())) <= 80
    screen.wait_for("[y/N] ")
    if typed == "\x03":
        screen.press_until_it_ends(typed)  # readline hears one that comes before it waits at the next key
    else:
        screen.type(typed)
    assert screen.end() == code
    assert bool(ours(theirs)) == (code == 0)


def test_what_cannot_be_written_is_told_and_the_rest_goes_on(theirs: Place):
    theirs.config.mkdir(parents=True)
    (theirs.config / "config.toml").write_text("mcp = {}\n")
    done = theirs.swink("adopt", "claude", "--yes")
    assert done.code == 1
    assert "config.toml could not be changed" in done.err
    assert done.err.endswith("swink: 1 thing written, 1 not\n")
    assert ours(theirs)["config.toml"] == "mcp = {}\n"
    assert "git status" in ours(theirs)["permissions"]


def test_nothing_to_adopt_is_said(place: Place):
    done = place.swink("adopt")
    assert done.out.splitlines() == [f"{name}: nothing found" for name in ("claude", "codex", "opencode")]
    assert (done.code, done.err) == (0, "swink: there is nothing to write\n")


def test_names_of_theirs_cannot_write_to_the_terminal(place: Place):
    servers = {"mcpServers": {"\x1b[2Jx\nfake": {"command": "npx"}, KEY: {"command": "y"}}}
    Path(place.home / ".claude.json").write_text(json.dumps(servers))
    done = place.swink("adopt", "claude", "--dry-run")
    assert "\x1b" not in done.out
    assert KEY not in done.out
    assert len(done.out.splitlines()) == 5
