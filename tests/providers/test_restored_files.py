"""What comes from elsewhere (a checkpoint, a session, a cassette, an export) names no file that is read here."""

import base64
import pickle
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from adapters import ADAPTERS, EVERY, KEY, AdapterCase
from hypothesis import given
from hypothesis import strategies as st
from loopback import LoopbackServer, MemoryClient, read
from tests.counts import tried

from swink import Agent, InvalidInput
from swink.memory import FileCheckpoints, JsonlStore, MemoryStore, SqliteStore, export, read_export
from swink.messages import Message
from swink.messages.codec import decode_messages, encode_messages, messages_from_builtins
from swink.messages.records import Conversation, decode_records
from swink.stream import Done, StreamOptions
from swink.stream.wrappers import recorded

SECRET = b"\x89PNG\r\n\x1a\n what only this machine should know"
CASE = ADAPTERS["openai"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file that every adapter would take for an image."""
    found = tmp_path / "private.png"
    found.write_bytes(SECRET)
    return str(found)


def blocks(path: str) -> list[dict[str, Any]]:
    """Every way in which a block may name a file."""
    sources: list[dict[str, Any]] = [
        {"type": "file", "path": path},
        {"type": "file", "path": path, "media_type": "image/png"},
        {"type": "file", "path": f"{Path(path).parent}/../{Path(path).parent.name}/private.png"},
        {"type": "url", "url": f"file://{path}"},
        {"type": "url", "url": f"FILE://localhost{path}"},
        {"type": "url", "url": path},
    ]
    return [{"type": kind, "source": source} for source in sources for kind in ("image", "document", "audio")]


def history(path: str) -> list[dict[str, Any]]:
    """A conversation whose user, model and tool all name the file."""
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}
    ours = {"provider": CASE.model.provider, "model": CASE.model.model_id}
    result = {"role": "tool_result", "tool_call_id": "c1", "tool_name": "look", "content": blocks(path)}
    return [
        {"role": "user", "content": [{"type": "text", "text": "look"}, *blocks(path)]},
        {"role": "assistant", "content": [*blocks(path), call], "stop_reason": "tool_use", **ours},
        result,
        {"role": "assistant", "content": [{"type": "text", "text": "seen"}], **ours},
    ]


def decoded(path: str) -> list[Message]:
    return decode_messages(msgspec.json.encode(history(path)))


def saved_agent(path: str) -> dict[str, Any]:
    """A checkpoint with the file in its history, its queues and the turn that was left open."""
    messages = history(path)
    reply = {**messages[1], "content": [{**messages[1]["content"][-1], "id": "c2"}]}
    turn = {"reply": reply, "started": ["c2"], "results": {"c2": {"content": blocks(path)}}, "pending": {}}
    model = msgspec.to_builtins(CASE.model)
    given = {"messages": messages, "steering": messages[:1], "follow_up": messages[:1], "open": turn}
    return {"version": 2, "model": model, "state": {}, **given}


async def _decoded(path: str, here: Path, fn: Any) -> Agent:
    return Agent(CASE.model, stream_fn=fn, messages=decoded(path))


async def _from_builtins(path: str, here: Path, fn: Any) -> Agent:
    return Agent(CASE.model, stream_fn=fn, messages=messages_from_builtins(history(path)))


async def _pickled(path: str, here: Path, fn: Any) -> Agent:
    return Agent(CASE.model, stream_fn=fn, messages=pickle.loads(pickle.dumps(decoded(path))))


async def _assigned(path: str, here: Path, fn: Any) -> Agent:
    agent = Agent(CASE.model, stream_fn=fn)
    agent.messages = decoded(path)
    return agent


async def _appended(path: str, here: Path, fn: Any) -> Agent:
    agent = Agent(CASE.model, stream_fn=fn)
    agent.append_messages(decoded(path))
    return agent


async def _prompted(path: str, here: Path, fn: Any) -> Agent:
    agent = Agent(CASE.model, stream_fn=fn)
    await agent.run(decoded(path)[:1])
    return agent


async def _queued(path: str, here: Path, fn: Any) -> Agent:
    agent = Agent(CASE.model, stream_fn=fn)
    agent.steer(decoded(path)[:1])
    agent.follow_up(decoded(path)[:1])
    return agent


async def _restored(path: str, here: Path, fn: Any) -> Agent:
    return Agent.restore(saved_agent(path), stream_fn=fn)


async def _checkpoint_file(path: str, here: Path, fn: Any) -> Agent:
    checkpoints = FileCheckpoints(here / "checkpoints")
    await checkpoints.save(saved_agent(path))
    found = await checkpoints.newest()
    assert found is not None
    return Agent.restore(found, stream_fn=fn)


def _session_of(make: Callable[[Path], Any]) -> Callable[[str, Path, Any], Awaitable[Agent]]:
    async def door(path: str, here: Path, fn: Any) -> Agent:
        store = make(here)
        session = await store.create()
        await Agent(CASE.model, stream_fn=fn, messages=decoded(path), session=session).run("keep this")
        return Agent(CASE.model, stream_fn=fn, session=await store.open(session.id))

    return door


async def _session_file(path: str, here: Path, fn: Any) -> Agent:
    """A session file that somebody else wrote: the place of every message in it names the file."""
    store = JsonlStore(here / "sessions")
    session = await store.create()
    await Agent(CASE.model, stream_fn=fn, session=session).run("hello")
    queue = {"type": "queue", "steering": history(path)[:1], "follow_up": history(path)[:1]}
    kept = {"type": "compaction", "kept": history(path), "reason": "replaced"}
    lines = [{"type": "message", "message": message} for message in history(path)]
    (file,) = (here / "sessions").glob(f"*{session.id}*.jsonl")
    written = re.sub(rb',"crc":"\w+"', b"", file.read_bytes())
    planted = b"".join(msgspec.json.encode(line) + b"\n" for line in (*lines, kept, queue))
    before, commit, after = written.rpartition(b'{"type":"commit"')
    file.write_bytes(before + planted + commit + after)
    return Agent(CASE.model, stream_fn=fn, session=await store.open(session.id))


async def _exported(path: str, here: Path, fn: Any) -> Agent:
    session = await MemoryStore().create()
    await Agent(CASE.model, stream_fn=fn, messages=decoded(path), session=session).run("keep this")
    again = Conversation(read_export(export(session, "json")).records)
    return Agent(CASE.model, stream_fn=fn, messages=again.messages)


DOORS: dict[str, Callable[[str, Path, Any], Awaitable[Agent]]] = {
    "decoded": _decoded,
    "from builtins": _from_builtins,
    "pickled": _pickled,
    "assigned": _assigned,
    "appended": _appended,
    "prompted": _prompted,
    "queued": _queued,
    "restored": _restored,
    "checkpoint file": _checkpoint_file,
    "memory store": _session_of(lambda here: MemoryStore()),
    "jsonl store": _session_of(lambda here: JsonlStore(here / "sessions")),
    "sqlite store": _session_of(lambda here: SqliteStore(here / "sessions.db")),
    "session file": _session_file,
    "exported": _exported,
}


def assert_unread(server: LoopbackServer) -> None:
    assert server.requests
    for request in server.requests:
        assert SECRET not in request.body
        assert base64.b64encode(SECRET) not in request.body
        assert b"file:///" not in request.body.replace(b"not shown: file:///", b"")


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
async def test_a_file_that_restored_data_names_is_not_sent(
    door: Callable[[str, Path, Any], Awaitable[Agent]], path: str, tmp_path: Path, server: LoopbackServer
):
    server.reply(b"".join(CASE.text))
    agent = await door(path, tmp_path, CASE.make(server.url, KEY))
    result = await agent.run("go on")
    assert result.stop_reason == "stop", result.error
    assert b"not shown" in server.requests[-1].body
    assert_unread(server)


@pytest.mark.parametrize("target", EVERY.values(), ids=EVERY)
async def test_no_adapter_reads_or_passes_on_what_restored_data_names(target: AdapterCase, path: str):
    messages: list[Any] = decoded(path)
    client = MemoryClient(b"".join(target.text), headers={"content-type": target.media_type})
    fn = target.make("https://p.example", KEY)
    got = await read(fn, target.model, messages, options=StreamOptions(http=client))
    assert isinstance(got.terminal, Done), got.terminal
    body = client.requests[0].body or b""
    assert base64.b64encode(SECRET) not in body
    assert b"not shown" in body
    assert b'"file:///' not in body


async def test_a_cassette_names_no_file(path: str, tmp_path: Path, server: LoopbackServer):
    server.reply(b"".join(CASE.text))
    tape = tmp_path / "tape.jsonl"
    agent = Agent(CASE.model, stream_fn=recorded(CASE.make(server.url, KEY), tape), messages=decoded(path))
    await agent.run("go on")
    assert base64.b64encode(SECRET) not in tape.read_bytes()
    assert_unread(server)


def test_what_is_restored_is_saved_as_it_was(path: str):
    messages = decoded(path)
    assert decode_messages(encode_messages(messages)) == messages


SCRIPT = """
import asyncio, sys
from pathlib import Path
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
sys.path[:0] = sys.argv[2:4]
import test_restored_files as doors
from loopback import LoopbackServer

async def main():
    for name, door in doors.DOORS.items():
        async with LoopbackServer() as server:
            server.reply(b"".join(doors.CASE.text))
            here = Path(sys.argv[1]).parent / name
            here.mkdir()
            agent = await door(sys.argv[1], here, doors.CASE.make(server.url, doors.KEY))
            await agent.run("go on")
            assert len(server.requests) >= 1

asyncio.run(main())
print(sum("private.png" in name for name in opened), len(opened) > 100)
"""


def test_no_way_in_opens_the_file(path: str):
    here = Path(__file__).parent
    command = [sys.executable, "-c", SCRIPT, path, str(here), str(here.parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.stdout.split() == ["0", "True"], done.stderr


SOURCES = st.fixed_dictionaries(
    {"type": st.sampled_from(["file", "url", "base64"])},
    optional={name: st.text(max_size=20) for name in ("path", "url", "data", "media_type")},
)
BLOCKS = st.fixed_dictionaries({"type": st.sampled_from(["image", "document", "audio"]), "source": SOURCES})


@tried(100, 1_000)
@given(st.lists(BLOCKS, max_size=3))
def test_nothing_decoded_is_a_file_to_read(content: list[dict[str, Any]]):
    saved = msgspec.json.encode([{"role": "user", "content": content}])
    try:
        (message,) = decode_messages(saved)
    except InvalidInput:
        return
    records = decode_records(b'{"type":"message","message":' + saved[1:-1] + b"}\n")
    for block in (*message.content, *records[0].message.content):  # pyright: ignore
        assert type(block.source).__name__ in ("Base64Source", "UrlSource", "NamedFile")  # pyright: ignore
