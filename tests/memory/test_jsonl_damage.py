"""Damaged session files: what is sound is read, `check` says what is lost, `repair` takes it out."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import MORE, tried

from swink import AssistantMessage, UserMessage
from swink.errors import SessionNotFound, SessionUnreadable
from swink.memory import JsonlStore, SyncStore
from swink.memory.jsonlfile import scan
from swink.memory.meta import MIGRATIONS, VERSION
from swink.messages.records import UnknownRecord

FILES = Path(__file__).parent / "files"
TURNS = 4


@pytest.fixture
def store(tmp_path: Path) -> SyncStore:
    return JsonlStore(tmp_path).sync


@cache
def written(turns: int) -> tuple[bytes, list[int]]:
    """A session's file, and where each of its transactions ends."""
    with TemporaryDirectory() as folder:
        session, path = JsonlStore(folder).sync.create(id="s"), Path(folder, "s.jsonl")
        ends = [path.stat().st_size]
        for number in range(turns):
            session.state["n"] = number
            question, answer = f"frage {number} …ü🎈", f"antwort {number}"
            session.append([UserMessage(question), AssistantMessage(answer, "test", "m")])
            ends.append(path.stat().st_size)
        return path.read_bytes(), ends


def saved(store: SyncStore, turns: int = TURNS) -> tuple[Path, list[int]]:
    data, ends = written(turns)
    store.create(id="s")
    path = Path(store.check("s")[0].path or "")
    path.write_bytes(data)
    return path, ends


def numbers(store: SyncStore) -> list[int]:
    """The turns that are there, each as a whole."""
    messages = store.open("s").messages
    turns = [int(message.text.split()[1]) for message in messages]
    assert turns == [number for number in dict.fromkeys(turns) for _ in range(2)]
    return turns[::2]


def goes_on(store: SyncStore, expected: list[int]) -> None:
    session = store.open("s")
    session.append([UserMessage("frage 99"), AssistantMessage("antwort 99", "test", "m")])
    assert numbers(store) == [*expected, 99]


@pytest.mark.more
def test_a_file_that_was_cut_has_everything_before_the_cut(store: SyncStore):
    path, ends = saved(store)
    data = path.read_bytes()
    every = range(ends[0] - 1, len(data) + 1)
    # Around the ends of lines in any case.
    some = {place + step for place in every if data[place - 1 : place] == b"\n" for step in (-2, -1, 0, 1)}
    for cut in every if MORE else sorted(some & {*every} | {*every[::23]}):
        path.write_bytes(data[:cut])
        # The last byte of a transaction is the end of its line, which it does not need.
        complete = [number for number in range(TURNS) if ends[number + 1] - 1 <= cut]
        assert numbers(store) == complete, cut
        goes_on(store, complete)


@tried(60, 1_000)
@given(st.data())
def test_changed_bytes_cost_their_transaction_alone(tmp_path_factory: pytest.TempPathFactory, data: Any):
    folder = tmp_path_factory.mktemp("s")
    store = JsonlStore(folder).sync
    whole, ends = written(TURNS)
    content = bytearray(whole)
    hit = data.draw(st.integers(0, TURNS))
    start, end = (0, ends[0]) if hit == 0 else (ends[hit - 1], ends[hit])
    for _ in range(data.draw(st.integers(1, 3))):
        content[start + data.draw(st.integers(0, 1 << 16)) % (end - start)] ^= data.draw(st.integers(1, 255))
    (folder / "s.jsonl").write_bytes(content)
    there = numbers(store)
    assert there in [list(range(TURNS)), [number for number in range(TURNS) if number != hit - 1]]
    if hit:
        assert store.check("s")[0].sound == (there == list(range(TURNS)))
    goes_on(store, there)


def test_check_says_what_is_lost_and_repair_takes_it_out(store: SyncStore):
    path, ends = saved(store)
    assert store.check() == store.check("s")
    assert store.check("s")[0].sound
    assert store.repair("s").damaged is None
    damaged = (
        path.read_bytes().replace(b"frage 1", b"FRAGE 1") + b'{"type":"begin","tx":5}\n{"type":"mess\xc3'
    )
    path.write_bytes(damaged)
    (check,) = store.check()
    assert not check.sound
    middle, tail = check.losses
    assert (middle.offset, middle.bytes) == (ends[1], ends[2] - ends[1] - 1)
    assert (middle.line, "was changed" in middle.problem) == (7, True)
    assert (tail.offset, "no commit" in tail.problem) == (ends[-1], True)
    writer = store.open("s")
    repair = store.repair("s")
    assert repair.losses == check.losses
    assert Path(repair.damaged or "").read_bytes() == damaged
    assert store.check("s")[0].sound
    assert path.stat().st_mode & 0o777 == 0o600
    assert numbers(store) == [0, 2, 3]
    assert [meta.id for meta in store.list()] == ["s"]
    writer.append([UserMessage("frage 99"), AssistantMessage("antwort 99", "test", "m")])
    assert numbers(store) == [0, 2, 3, 99]


def test_the_line_of_a_loss_is_the_one_an_editor_shows(store: SyncStore):
    path, _ = saved(store)
    path.write_bytes(b"\n" + path.read_bytes().replace(b"frage 1", b"FRAGE 1"))
    lines = path.read_bytes().split(b"\n")
    loss = store.check("s")[0].losses[-1]
    assert b"FRAGE 1" in b"".join(lines[loss.line : loss.line + 4])
    assert lines[loss.line - 1].startswith(b'{"type":"begin"')


def test_a_second_repair_keeps_both_damaged_files(store: SyncStore):
    path, _ = saved(store)
    for _ in range(2):
        path.write_bytes(path.read_bytes()[:-5])
        assert store.repair("s").damaged
    assert sorted(file.name for file in path.parent.glob("s.*")) == [
        "s.jsonl",
        "s.jsonl.damaged",
        "s.jsonl.damaged2",
    ]


def test_a_damaged_first_line_costs_nothing(store: SyncStore):
    path, _ = saved(store)
    path.write_bytes(b"nonsense\n" + path.read_bytes().partition(b"\n")[2])
    assert numbers(store) == list(range(TURNS))
    store.repair("s")
    assert path.read_bytes().startswith(b'{"type":"session",')
    assert store.check("s")[0].sound


def test_check_names_what_is_no_session(store: SyncStore, tmp_path: Path):
    (tmp_path / "foreign.jsonl").write_text("hello\n", "utf-8")
    (check,) = store.check()
    assert (check.id, check.sound) == ("foreign", False)
    assert "no session of swink" in (check.error or "")
    with pytest.raises(SessionUnreadable):
        store.repair("foreign")
    assert (tmp_path / "foreign.jsonl").read_text("utf-8") == "hello\n"
    with pytest.raises(SessionNotFound):
        store.check("gone")


def test_an_edited_transaction_counts_without_its_checksum(store: SyncStore):
    path, _ = saved(store, 1)
    text = path.read_bytes().replace(b"antwort 0", b"answer 0")
    path.write_bytes(text)
    assert numbers(store) == []
    crc = text.rindex(b',"crc":"')
    path.write_bytes(text[:crc] + b"}\n")
    assert [message.text for message in store.open("s").messages][1] == "answer 0"


def test_a_record_may_be_named_like_a_line_of_the_file(store: SyncStore):
    session = store.create()
    records = [UnknownRecord(name, {"type": name, "tx": 1}) for name in ("session", "begin", "commit")]
    session.append([UserMessage("hi")], records=records)
    assert store.load(session.id)[1:] == records


def test_a_newer_version_is_refused_and_left_alone(store: SyncStore):
    path, _ = saved(store)
    for part in (b'"version":1,"sequence":4', b'"version":1'):
        newer = path.read_bytes().replace(part, part.replace(b'"version":1', b'"version":2'))
        crc_free = b"\n".join(
            line.partition(b',"crc"')[0] + b"}" if b"crc" in line else line for line in newer.split(b"\n")
        )
        path.write_bytes(crc_free)
        for refused in (lambda: store.open("s"), lambda: store.rename("s", "x"), lambda: store.repair("s")):
            with pytest.raises(SessionUnreadable, match="newer release"):
                refused()
        assert path.read_bytes() == crc_free
        assert store.list() == []
        assert "newer release" in (store.check()[0].error or "")


def test_files_of_every_version_are_read(store: SyncStore, tmp_path: Path):
    for kept in sorted(FILES.glob("*.jsonl")):
        contents = scan(kept.read_bytes(), kept.name)
        assert contents.losses == []
        assert len(contents.records) >= 9
        (tmp_path / kept.name).write_bytes(kept.read_bytes())
        session = store.open(kept.stem)
        assert session.state == {"city": "Paris", "visits": 2}
        assert [message.role for message in session.messages][:2] == ["user", "assistant"]
        assert session.model is not None
        assert session.model.model_id == "claude-sonnet-4-5"
        session.append([UserMessage("and on")])
        assert store.open(kept.stem).messages[-1].text == "and on"


def test_migrations_lead_up_to_this_version(
    store: SyncStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def step(data: dict[str, Any]) -> dict[str, Any]:
        if data["type"] == "session":
            return {**data, "title": data.pop("name"), "version": 1}
        if data["type"] == "said":
            return {"type": "message", "message": data["what"], "number": data["n"]}
        return data

    old = (
        b'{"type":"session","version":0,"id":"s","name":"Old","created":1,"updated":1}\n'
        b'{"type":"begin","tx":1}\n'
        b'{"type":"said","n":0,"what":{"role":"user","content":[{"type":"text","text":"frage danube"}]}}\n'
        b'{"type":"commit","tx":1,"meta":{"id":"s","version":0,"name":"Old","created":1,"updated":2,'
        b'"sequence":1,"messages":1}}\n'
    )
    (tmp_path / "s.jsonl").write_bytes(old)
    with pytest.raises(SessionUnreadable, match="version 0"):
        store.open("s")
    monkeypatch.setitem(MIGRATIONS, 0, step)
    session = store.open("s")
    assert (session.meta.title, session.meta.updated, session.messages[0].text) == ("Old", 2, "frage danube")
    assert store.list()[0].title == "Old"
    assert store.search("danube")[0].snippet == "frage «danube»"
    session.append([UserMessage("new")])
    assert (tmp_path / "s.jsonl").read_bytes().startswith(old)
    assert [message.text for message in store.open("s").messages] == ["frage danube", "new"]
    assert store.open("s").meta.version == VERSION
