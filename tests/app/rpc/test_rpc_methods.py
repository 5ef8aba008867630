"""`swink rpc`: its methods over two pipes, in good order and in bad."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import rpc_agents

from swink import Agent
from swink.app.acp.connection import Connection
from swink.app.rpc import ClientPerson, RpcServer
from swink.memory import MemoryStore
from swink.serve.hosting import Caller, Host
from swink.system.linepipes import LONGEST, LinePipes


class Program:
    """The program at the other end: sends requests and reads lines."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.BaseTransport, sink: int) -> None:
        self.reader, self.transport, self.sink = reader, transport, sink
        self.events: list[dict[str, Any]] = []

    def send(self, line: str | bytes) -> None:
        os.write(self.sink, (line.encode() if isinstance(line, str) else line) + b"\n")

    async def ask(self, method: str, **params: Any) -> Any:
        """The answer to a request: its result, or its error's code."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
        return await self.answer()

    async def answer(self) -> Any:
        while "method" in (message := await self.read()):
            pass
        return message["error"]["code"] if "error" in message else message["result"]

    async def read(self) -> Any:
        message = json.loads(await self.reader.readline())
        if message.get("method") == "event":
            self.events.append(message["params"])
        return message

    async def until(self, kind: str) -> dict[str, Any]:
        """The next event of the type, which may have been read already."""
        while not (found := [one for one in self.events if one["event"]["type"] == kind]):
            await self.read()
        self.events.remove(found[0])
        return found[0]["event"]


@asynccontextmanager
async def serving(
    factory: Callable[[], Agent], store: Any = None, longest: int = LONGEST
) -> AsyncGenerator[Program]:
    (source, into), (out, sink) = os.pipe(), os.pipe()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out, "rb")
    )
    host = Host(lambda request: factory(), store or MemoryStore())
    server = RpcServer(
        Connection(LinePipes(source, sink, longest=longest)), host, Caller("test"), ClientPerson()
    )
    task = asyncio.create_task(server.serve())
    program = Program(reader, transport, into)
    try:
        yield program
    finally:
        os.close(program.sink)
        await task
        transport.close()
        for descriptor in (source, sink):
            os.close(descriptor)
        assert not [one for one in asyncio.all_tasks() if one.get_name().startswith("swink-")]


async def test_a_run_is_answered_at_once_and_told_in_numbered_events_to_its_result():
    async with serving(rpc_agents.greeter) as program:
        started = await program.ask("run", input="Hi.")
        while not program.events or program.events[-1]["event"]["type"] != "result":
            await program.read()
    numbers = [event["number"] for event in program.events]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {(event["run_id"], event["session"]) for event in program.events} == {tuple(started.values())}
    last = program.events[-1]["event"]
    assert (last["text"], last["session"], last["error"]) == ("Hello, world.", started["session"], None)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"half a li', -32700),
        (b"\xff\xfe", -32700),
        ("[]", -32600),
        ("{}", -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "no"}', -32601),
        ('{"jsonrpc": "2.0", "id": 1, "method": "run", "params": {"inptu": "Hi."}}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "run", "params": [1]}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "run"}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "abort"}', -32001),
        (
            '{"jsonrpc": "2.0", "id": 1, "method": "approve", "params": {"call_id": "1", "approved": true}}',
            -32001,
        ),
        ('{"jsonrpc": "2.0", "id": 1, "method": "sessions.open", "params": {"session": "../etc"}}', -32002),
    ],
)
async def test_a_wrong_line_gets_an_error_and_the_next_one_works(line: str | bytes, code: int):
    async with serving(rpc_agents.greeter) as program:
        program.send(line)
        assert await program.answer() == code
        assert await program.ask("sessions.list") == {"sessions": []}


WRONG: dict[str, list[Any]] = {
    "run": [
        {"input": 7},
        {"input": [{"type": "film"}]},
        {"input": "Hi.", "session": 7},
        {"input": ""},
        [],
        "Hi.",
    ],
    "abort": [{"session": 7}, {"run_id": "1"}, []],
    "steer": [{}, {"message": None}, {"message": {"text": "x"}}, {"input": "x"}, 7],
    "follow_up": [{}, {"message": 7}, {"message": "x", "session": []}],
    "approve": [
        *({}, {"call_id": "1"}, {"call_id": 1, "approved": True}, {"call_id": "1", "approved": "yes"}),
        *({"approved": True}, {"call_id": "1", "approved": True, "arguments": []}),
    ],
    "sessions.list": [{"limit": "many"}, {"limit": 1.5}, {"search": 7}, {"after": "x"}],
    "sessions.open": [{}, {"session": None}, {"session": 7}, {"session": "x", "at": 1}],
    "sessions.fork": [{}, {"session": "x", "at": "1"}, {"session": 7}],
    "shutdown": [{"now": True}, [1]],
}
"""Params that fit no method, by the method."""


async def test_params_that_do_not_fit_are_refused_by_every_method_and_start_nothing():
    async with serving(rpc_agents.greeter) as program:
        server = RpcServer(None, None, None, None)  # type: ignore[arg-type]
        assert WRONG.keys() == server._methods.keys()
        for method, wrong in WRONG.items():
            for params in wrong:
                program.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
                assert await program.answer() == -32602, (method, params)
        assert await program.ask("sessions.list") == {"sessions": []}
        assert program.events == []


@pytest.mark.parametrize("id", [0, -1, 2**60, "a", "", "ünïcode \n"])
async def test_an_id_comes_back_as_it_was(id: Any):
    async with serving(rpc_agents.greeter) as program:
        program.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "sessions.list"}))
        assert (await program.read())["id"] == id


@pytest.mark.parametrize("id", [1.5, True, [1], {"a": 1}])
async def test_an_id_that_is_none_is_refused_and_the_next_line_works(id: Any):
    async with serving(rpc_agents.greeter) as program:
        program.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "sessions.list"}))
        assert await program.answer() == -32600
        assert await program.ask("sessions.list") == {"sessions": []}


async def test_a_session_that_there_is_not_is_refused_in_the_words_of_the_methods():
    async with serving(rpc_agents.greeter) as program:
        for method, params in (("run", {"input": "x"}), ("sessions.open", {}), ("sessions.fork", {})):
            asked = {"id": 1, "method": method, "params": {**params, "session": "nowhere"}}
            program.send(json.dumps({"jsonrpc": "2.0", **asked}))
            assert "there is no such session" in (await program.read())["error"]["message"]


async def test_a_request_without_an_id_is_neither_answered_nor_done():
    async with serving(rpc_agents.greeter) as program:
        program.send('{"jsonrpc": "2.0", "method": "run", "params": {"input": "Hi."}}')
        assert await program.ask("sessions.list") == {"sessions": []}


async def test_a_line_past_the_limit_gets_an_error_and_the_next_one_works():
    async with serving(rpc_agents.greeter, longest=10_000) as program:
        program.send(b"x" * 10_001)
        assert await program.answer() == -32600
        assert await program.ask("sessions.list") == {"sessions": []}


async def test_a_line_that_never_ends_is_no_request():
    async with serving(rpc_agents.greeter, longest=10_000) as program:
        assert await program.ask("sessions.list") == {"sessions": []}
        for _ in range(100):
            await asyncio.to_thread(_write_all, program.sink, b'{"jsonrpc": "2.0", "id": 1, ' * 100)


async def test_a_call_waits_for_the_approval_of_the_program():
    async with serving(rpc_agents.asker) as program:
        await program.ask("run", input="Delete a.")
        asked = await program.until("approval_requested")
        assert await program.ask("approve", call_id="another", approved=True) == -32001
        await program.ask("approve", call_id=asked["call_id"], approved=False, reason="keep it")
        resolved = await program.until("approval_resolved")
        await program.until("result")
    assert (asked["name"], asked["shown"]) == ("delete", {"path": "a"})
    assert (resolved["approved"], resolved["reason"]) == (False, "keep it")


async def test_a_run_is_steered_and_followed_up_while_it_works():
    async with serving(rpc_agents.listener) as program:
        await program.ask("run", input="Delete a.")
        asked = await program.until("approval_requested")
        await program.ask("steer", message="Be careful.")
        await program.ask("follow_up", message="And now?")
        await program.ask("approve", call_id=asked["call_id"], approved=True)
        end = await program.until("agent_end")
        await program.until("result")
        assert await program.ask("follow_up", message="More?") == -32001
    said = [message["content"] for message in end["messages"] if message["role"] == "user"]
    assert "Be careful." in str(said[1])
    assert "And now?" in str(said[2])


async def test_an_aborted_run_ends_with_a_result_that_says_so():
    async with serving(rpc_agents.waiter) as program:
        await program.ask("run", input="Wait.")
        await program.until("tool_execution_start")
        await program.ask("abort")
        assert (await program.until("result"))["stop_reason"] == "aborted"


async def test_a_second_run_of_a_session_is_refused_and_one_of_another_is_not():
    async with serving(rpc_agents.waiter) as program:
        first = await program.ask("run", input="Wait.")
        assert await program.ask("run", input="Again.", session=first["session"]) == -32001
        second = await program.ask("run", input="Wait too.")
        assert await program.ask("abort") == -32602
        assert (await program.ask("abort", session=second["session"])) == second


async def test_sessions_are_listed_opened_forked_and_gone_on_with():
    async with serving(rpc_agents.greeter) as program:
        session = (await program.ask("run", input="Hi there."))["session"]
        await program.until("result")
        [listed] = (await program.ask("sessions.list"))["sessions"]
        assert (listed["id"], listed["title"]) == (session, "Hi there.")
        shown = await program.ask("sessions.open", session=session)
        assert [message["role"] for message in shown["messages"]] == [
            "user",
            "assistant",
            "tool_result",
            "assistant",
        ]
        fork = (await program.ask("sessions.fork", session=session, at=1))["session"]
        assert len((await program.ask("sessions.open", session=fork))["messages"]) == 1
        assert (await program.ask("run", input="Again.", session=session))["session"] == session


async def test_a_program_that_dies_ends_its_run_which_is_saved():
    store = MemoryStore()
    async with serving(rpc_agents.waiter, store) as program:
        session = (await program.ask("run", input="Wait."))["session"]
        await program.until("tool_execution_start")
        os.write(program.sink, b'{"half a line')
    messages = (await store.open(session)).messages
    assert [message.role for message in messages] == ["user", "assistant", "tool_result"]


async def test_a_program_that_reads_no_more_holds_nothing_up():
    store = MemoryStore()
    async with serving(rpc_agents.greeter, store) as program:
        session = (await program.ask("run", input="Hi."))["session"]
        program.transport.close()
        while len((await store.open(session)).messages) < 4:
            await asyncio.sleep(0.01)


async def test_shutdown_is_answered_and_ends_the_program():
    async with serving(rpc_agents.waiter) as program:
        await program.ask("run", input="Wait.")
        assert await program.ask("shutdown") == {}


async def test_a_very_long_line_is_taken_whole():
    async with serving(rpc_agents.greeter) as program:
        text = "x" * 3_000_000
        line = (
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "run", "params": {"input": text}}).encode()
            + b"\n"
        )
        await asyncio.to_thread(_write_all, program.sink, line)
        await program.answer()
        await program.until("result")


def _write_all(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]
