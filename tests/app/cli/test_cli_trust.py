"""`swink trust`, and what runs without a person say they have skipped."""

import json
import os
from pathlib import Path

import pytest
from command_line import KEY, Place, Provider, Screen
from tests.counts import MORE

SERVER = {"command": "npx", "args": ["-y", "files", f"--key={KEY}"], "disabled": True}


@pytest.fixture
def project(place: Place) -> Path:
    """The directory, with one of everything that is used only with trust."""
    for name, text in {
        "AGENTS.md": "Speak like a pirate.",
        ".mcp.json": json.dumps({"mcpServers": {"files": SERVER}}),
        ".swink/tools/count.toml": 'description = "x"\ncommand = ["wc", "-l"]\n',
        ".swink/commands/ship.md": "Ship it.",
    }.items():
        path = place.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Path(os.path.realpath(place.here))


def decided(place: Place) -> dict[str, bool]:
    """What is remembered."""
    path = place.config / "trust.json"
    entries = json.loads(path.read_text()) if path.exists() else {}
    return {name: entry["trusted"] for name, entry in entries.items()}


def test_yes_prints_what_the_folder_brings_along_and_remembers_it(place: Place, project: Path):
    done = place.swink("trust", "--yes")
    assert done.code == 0
    assert done.out.splitlines() == [
        str(project),
        "  instructions  AGENTS.md",
        "  server        files: npx -y files --key=[redacted] (runs whatever `npx files` finds or fetches)",
        "  script        .swink/tools/count.toml: wc -l",
        "  command       /ship: .swink/commands/ship.md",
    ]
    assert decided(place) == {str(project): True}
    again = place.swink("trust")
    assert again.code == 0
    assert "it is trusted as it is now" in again.err
    (project / ".swink" / "commands" / "new.md").write_text("New.")
    assert "new: .swink/commands/new.md" in place.swink("trust", "--yes").out
    assert "it is trusted as it is now" in place.swink("trust", "--yes").err


def test_without_a_terminal_and_a_yes_nothing_is_remembered(place: Place, project: Path):
    done = place.swink("trust")
    assert done.code == 2
    assert "server        files" in done.out
    assert "no terminal to ask on; swink trust --yes" in done.err
    assert decided(place) == {}


@pytest.mark.parametrize(
    ("typed", "code", "remembered"), [("y\n", 0, True), ("n\n", 1, False), ("\n", 1, None), ("\x04", 1, None)]
)
def test_the_question_is_answered_on_the_terminal(
    place: Place, project: Path, typed: str, code: int, remembered: bool | None
):
    screen = Screen(place, "trust", trusts=False)
    screen.wait_for("npx -y files")
    screen.wait_for("trust it? [y/a/n] ")
    screen.type(typed)
    assert screen.end() == code
    assert decided(place) == ({} if remembered is None else {str(project): remembered})


def test_another_folder_is_named_listed_and_forgotten(place: Place, project: Path):
    assert place.swink("trust", "--list").err == "swink: no folder was asked about yet\n"
    (project / "other").mkdir()
    place.swink("trust", "other", "--yes")
    place.swink("trust", "--yes")
    (project / "other").rmdir()
    listed = place.swink("trust", "--list").out.splitlines()
    assert [line.split(maxsplit=1) for line in listed] == [
        ["FOLDER", "IS"],
        [str(project), "trusted"],
        [str(project / "other"), "trusted (gone)"],
    ]
    assert "swink asks about" in place.swink("trust", "--forget", "other").err
    assert decided(place) == {str(project): True}
    assert place.swink("trust", "--forget", "other").code == 2
    assert place.swink("trust", "--forget").code == 0
    assert decided(place) == {}


def test_a_folder_below_one_that_is_trusted_with_them_is_not_forgotten_silently(place: Place, project: Path):
    (project / "below").mkdir()
    place.swink("trust", "below", "--yes")
    entries = json.loads((place.config / "trust.json").read_text())
    entries[str(project)] = {"trusted": True, "below": True}
    (place.config / "trust.json").write_text(json.dumps(entries))
    assert "is still trusted, by an answer for every project below" in (
        place.swink("trust", "--forget", "below").err
    )


@pytest.mark.parametrize(
    ("where", "said"), [("nowhere", "there is no directory"), ("~", "is never trusted as a whole")]
)
def test_what_cannot_be_trusted_is_refused(place: Place, where: str, said: str):
    done = place.swink("trust", "--yes", str(place.home) if where == "~" else where)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert decided(place) == {}


@pytest.mark.more
@pytest.mark.parametrize("refused", [False, True])
def test_a_run_without_a_person_names_once_what_it_skips_and_how_to_allow_it(
    place: Place, project: Path, provider: Provider, refused: bool
):
    if refused:
        place.config.mkdir(parents=True)
        (place.config / "trust.json").write_text(json.dumps({str(project): {"trusted": False}}))
    told = (
        f"swink: {project} is not trusted, so this in it is not used: AGENTS.md, server files, "
        "script .swink/tools/count.toml, command /ship; "
        "swink trust shows it and asks, swink trust --yes allows it\n"
    )
    ways = (["-p", "hi"], ["hi"], ["run", "--coding", "hi"])
    for words in ways[:1] if refused and not MORE else ways:
        done = place.swink(*words, "-m", "openai:m", env=provider.env)
        assert (done.code, done.out, done.err) == (0, "Hello there.\n", told)
    listed = place.swink("mcp", "list", env=provider.env)
    assert told.removeprefix("swink: ") in listed.err
    assert listed.err.count("swink trust --yes") == 1
    place.swink("trust", "--yes")
    done = place.swink("-p", "-m", "openai:m", "hi", env=provider.env)
    assert (done.code, done.err) == (0, "")
    assert "pirate" in provider.requests[-1]["messages"][0]["content"]


def test_a_folder_that_brings_nothing_along_is_not_spoken_of(place: Place, provider: Provider):
    place.write("main.py", "print(42)\n")
    assert place.swink("-p", "-m", "openai:m", "hi", env=provider.env).err == ""
