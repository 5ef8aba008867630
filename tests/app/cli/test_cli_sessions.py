"""`swink sessions`: what is listed, shown, found, forked and deleted, and what is said about mistakes."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import Place, Screen, call, without_styles

from swink.app.assistant.sessionfacts import format_age, format_cost, short_ids
from swink.app.cli.session_lines import list_lines
from swink.errors import InvalidInput, MisuseError, SessionError, SessionNotFound
from swink.memory.jsonl import JsonlStore
from swink.memory.meta import SessionMeta, new_id
from swink.memory.store import SyncStore
from swink.messages import AssistantMessage, Cost, ToolCall, ToolResultMessage, Usage, UserMessage

SECRET = "sk-ant-api03-" + "x" * 40


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SyncStore:
    """The store that the commands use."""
    monkeypatch.setenv("SWINK_SESSIONS_DIR", str(tmp_path / "sessions"))
    monkeypatch.chdir(tmp_path)
    return JsonlStore(tmp_path / "sessions").sync


def add(store: SyncStore, prompt: str, reply: str = "Yes.", cost: Cost | None = None, **options: str) -> str:
    session = store.create(**options)
    usage = Usage(input=10, output=5)
    session.append([UserMessage(prompt), AssistantMessage(reply, usage=usage, cost=cost)])
    return session.id


def meta(id: str = "a", **fields: Any) -> SessionMeta:
    return SessionMeta(id=id, created=1.0, updated=1.0, version=1, **fields)


def test_the_list_says_what_each_session_is(
    store: SyncStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    old = add(store, "What is the sea?", directory="/elsewhere/there")
    new = add(store, f"Keep {SECRET} for me", cost=Cost(input=0.02), directory=str(tmp_path))
    assert call("sessions") == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["TITLE", "AGE", "TURNS", "COST", "DIRECTORY", "ID"]
    assert first.split()[-5:] == ["s", "1", "$0.0200", ".", short_ids([old, new])[new]]
    assert first.startswith("Keep [redacted]")
    assert second.split()[-3:] == ["?", "/elsewhere/there", short_ids([old, new])[old]]
    assert call("sessions", "list", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert [(one["id"], one["cost"], one["unpriced"]) for one in data] == [
        (new, 0.02, False),
        (old, None, True),
    ]
    assert SECRET not in json.dumps(data)


def test_no_session_is_no_error(store: SyncStore, capsys: pytest.CaptureFixture[str]):
    assert call("sessions", "list") == 0
    assert "no sessions yet" in capsys.readouterr().err
    assert call("sessions", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_an_unknown_cost_is_never_nothing():
    assert format_cost(meta()) == "$0"
    assert format_cost(meta(unpriced=True)) == "?"
    assert format_cost(meta(unpriced=True, cost=0.5)) == "$0.5000+?"
    assert format_cost(meta(cost=0.000001)) == "<$0.0001"
    assert format_cost(meta(cost=12.345)) == "$12.35"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_list_fits_the_terminal(width: int):
    metas = [
        meta(new_id(number), title=title, directory="/a/long/way/" + "down/" * 30)
        for number, title in enumerate(["short", "very " * 30, "海海海" * 30, "\x1b[31m\u202eevil\n" * 9])
    ]
    for line in list_lines(metas, width).splitlines():
        assert len(line) + sum(char == "海" for char in line) <= width, line
        assert line.isprintable(), line


def test_ages_are_told_in_words():
    ages = [0, 59, 60, 3600, 86_400, 8 * 86_400, 400 * 86_400]
    assert [format_age(age) for age in ages] == ["0 s", "59 s", "1 min", "1 h", "1 d", "1 w", "1 y"]


def test_a_short_id_is_a_part_that_no_other_id_has():
    alike = "20260101_000000_abcdef"
    ids = [alike + "0" * 26, alike + "1" * 26, "20260101_000000_" + "f" * 32, "mine", "mine-too"]
    short = short_ids(ids)
    assert short == dict(zip(ids, ["abcdef0", "abcdef1", "ffffff", "mine", "mine-too"], strict=True))


def test_a_session_is_shown_whole(store: SyncStore, capsys: pytest.CaptureFixture[str]):
    session = store.create("Files")
    call_ = ToolCall(id="1", name="read", arguments={"path": "a.txt"})
    session.append(
        [
            UserMessage("Read a.txt\nplease"),
            AssistantMessage([call_]),
            ToolResultMessage("1", "read", f"{SECRET} \x1b[2Jline"),
            AssistantMessage("It is\na key."),
            UserMessage("Thanks"),
        ]
    )
    assert call("sessions", "show", session.id[-8:]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == "Files"
    assert shown.splitlines()[3:] == [
        "#0 > Read a.txt",
        "please",
        '→ read(path="a.txt")',
        "← [redacted] [2Jline",
        "It is",
        "a key.",
        "#4 > Thanks",
    ]


def test_what_is_found_stands_out(store: SyncStore, capsys: pytest.CaptureFixture[str]):
    id = add(store, "How deep is the Mariana trench?")
    assert call("sessions", "search", "mariana", "trench") == 0
    shown = capsys.readouterr().out
    assert "«Mariana»" in shown
    assert id[-32:-26] in shown
    assert call("sessions", "search", "mariana", "--json") == 0
    [hit] = json.loads(capsys.readouterr().out)
    assert (hit["session"], hit["number"], hit["role"]) == (id, 0, "user")
    assert call("sessions", "search", "volcano") == 1
    assert "nothing found" in capsys.readouterr().err


def test_a_fork_is_in_the_family_of_its_parent(store: SyncStore, capsys: pytest.CaptureFixture[str]):
    id = add(store, "First")
    add(store, "Alone")
    assert call("sessions", "fork", id, "--at", "1") == 0
    shown = capsys.readouterr()
    fork = shown.out.strip()
    assert "swink --resume " in shown.err
    assert [message.text for message in store.open(fork).messages] == ["First"]
    assert call("sessions", "tree", fork) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("First  ")
    assert lines[1].startswith("└─ First  ")
    assert lines[1].endswith("(1 message, forked after message 1) ←")
    assert call("sessions", "tree", fork, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["depth"], one["id"], one["parent"]) for one in told] == [(0, id, None), (1, fork, id)]
    assert call("sessions", "tree") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    store.delete(id)
    assert call("sessions", "tree", fork) == 0
    assert f"of {id}, which was deleted" in capsys.readouterr().out


def test_a_session_gets_another_title(store: SyncStore, capsys: pytest.CaptureFixture[str]):
    id = add(store, "First")
    assert call("sessions", "rename", id, "Much", "better") == 0
    assert [one.title for one in store.list()] == ["Much better"]
    with pytest.raises(MisuseError, match="rename ID TITLE"):
        call("sessions", "rename", id)


def test_sessions_are_deleted_by_id_or_by_age(
    store: SyncStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    ids = [add(store, f"Number {number}") for number in range(3)]
    assert call("sessions", "rm", ids[0][-9:]) == 0
    assert "deleted: Number 0" in capsys.readouterr().err
    assert call("sessions", "rm", "--older-than", "1h") == 0
    assert "no session is that old" in capsys.readouterr().err
    later = time.time() + 31 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    with pytest.raises(MisuseError, match="2 sessions would be deleted, and there is no terminal"):
        call("sessions", "rm", "--older-than", "30d")
    assert len(store.list()) == 2
    assert call("sessions", "rm", "--older-than", "30d", "--yes") == 0
    assert store.list() == []
    for wrong in (["rm"], ["rm", ids[1], "--older-than", "1d"]):
        with pytest.raises(MisuseError, match="rm --older-than 30d"):
            call("sessions", *wrong)
    with pytest.raises(SystemExit):
        call("sessions", "rm", "--older-than", "soon")
    assert "write e.g. 30d" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "fork", "tree", "rm", "rename"])
def test_a_wrong_id_names_the_nearest_and_changes_nothing(store: SyncStore, command: str):
    ids = [add(store, "One"), add(store, "Two")]
    rest = ["Title"] if command == "rename" else []
    with pytest.raises(SessionNotFound, match=f"the nearest is {ids[1]}"):
        call("sessions", command, ids[1][:-2] + "zz", *rest)
    with pytest.raises(InvalidInput, match="is part of 2 session ids"):
        call("sessions", command, "_", *rest)
    with pytest.raises(InvalidInput, match="no session id"):
        call("sessions", command, "../etc", *rest)
    assert sorted(one.id for one in store.list()) == sorted(ids)
    assert {one.title for one in store.list()} == {"One", "Two"}


def test_the_list_fits_a_real_terminal(place: Place):
    store = JsonlStore(place.sessions).sync
    id = add(store, "What is the sea, and why is it so much larger than the land around it?")
    screen = Screen(place, "sessions", env={"COLUMNS": "70"})
    assert screen.end() == 0
    assert all(len(line) <= 70 for line in without_styles(screen.text).splitlines())
    assert short_ids([id])[id] in screen.text


@pytest.mark.parametrize("format", ["md", "html", "json"])
def test_an_export_on_the_screen_does_not_steer_the_terminal(
    store: SyncStore, capsys: pytest.CaptureFixture[str], format: str
):
    id = add(store, "Read it.", "Here:\x1b]52;c;cm0gLXJm\x07 \x9b2J done.")
    assert call("sessions", "export", id, "--format", format) == 0
    out = capsys.readouterr().out
    assert not set(out) & {"\x1b", "\x07", "\x9b"}
    assert "done." in out


def test_a_session_is_exported_and_no_file_is_overwritten(
    store: SyncStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    id = add(store, f"Keep {SECRET} for me", "# Title\n\nI *will*.")
    assert call("sessions", "export", id) == 0
    assert "I *will*." in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert call("sessions", "export", id, "-o", str(page)) == 0
    assert f"2 messages written to {page}" in capsys.readouterr().err
    written = page.read_text("utf-8")
    assert "<html" in written
    assert SECRET not in written
    with pytest.raises(MisuseError, match="--force overwrites it"):
        call("sessions", "export", id, "-o", str(page), "--format", "json")
    assert page.read_text("utf-8") == written
    assert call("sessions", "export", id, "-o", str(page), "--format", "json", "--force") == 0
    json.loads(page.read_text("utf-8"))
    with pytest.raises(SessionError, match="cannot be written"):
        call("sessions", "export", id, "-o", str(page / "below.md"))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    capsys.readouterr()
    assert call("sessions", "export", id, "-o", "/dev/stdout", "--force") == 0


def test_damage_is_told_and_repaired(store: SyncStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sound, torn = add(store, "Sound"), add(store, "Torn")
    store.open(torn).append([UserMessage("And then?"), AssistantMessage("This.")])
    path = tmp_path / "sessions" / f"{torn}.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    foreign = tmp_path / "sessions" / "foreign.jsonl"
    foreign.write_text("my diary\n")
    assert call("sessions", "check") == 1
    shown = capsys.readouterr()
    assert f"{torn}: 2 messages can be read; lost: line " in shown.out
    assert "foreign: " in shown.out
    assert sound not in shown.out
    assert "2 of 3 sessions damaged" in shown.err
    assert call("sessions", "check", torn[-6:], "--repair") == 0
    assert f"{torn} is repaired: 2 messages; the damaged file is " in capsys.readouterr().err
    assert call("sessions", "check", torn) == 0
    assert "1 session checked, all sound" in capsys.readouterr().err
    assert [message.text for message in store.open(torn).messages] == ["Torn", "Yes."]
    assert call("sessions", "check", "--repair") == 1
    assert foreign.read_text() == "my diary\n"
    assert call("sessions", "rm", "foreign") == 0
    assert call("sessions", "check") == 0
    with pytest.raises(SessionNotFound):
        call("sessions", "check", "nope")
