"""A scene with an editor: the server of `swink acp` over two pipes, a scripted model, each frame judged by the schema."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from swink.app.acp import Connection, EditorServer, OpenedConversation
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.cli.acp_command import ConversationOpening
from swink.app.cli.commands import parse_arguments
from swink.messages import ModelSpec, Usage
from swink.models import catalog
from swink.system.linepipes import LinePipes
from swink.testing import ScriptedModel

MODEL = "scripted:large"
LARGE = ModelSpec("scripted", "large", context_window=200_000)
SDK = Path(sys.prefix, "node", "node_modules", "@agentclientprotocol", "sdk")
USAGE = Usage(input=100, output=10)
EVERYTHING: dict[str, Any] = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "session": {"notices": {}, "compaction": {}},
    "elicitation": {"form": {}},
}
RESPONSES = {
    "initialize": "InitializeResponse",
    "authenticate": "AuthenticateResponse",
    "logout": "LogoutResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/fork": "ForkSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/delete": "DeleteSessionResponse",
    "session/close": "CloseSessionResponse",
    "session/prompt": "PromptResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}
REQUESTS = {
    "session/request_permission": "RequestPermissionRequest",
    "session/update": "SessionNotification",
    "elicitation/create": "CreateElicitationRequest",
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "terminal/create": "CreateTerminalRequest",
    "terminal/output": "TerminalOutputRequest",
    "terminal/wait_for_exit": "WaitForTerminalExitRequest",
    "terminal/kill": "KillTerminalRequest",
    "terminal/release": "ReleaseTerminalRequest",
    "$/cancel_request": "CancelRequestNotification",
}


class Refused(Exception):
    """An error of the agent's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@cache
def judge(name: str) -> Callable[[Any], None]:
    """What the published schema says of a definition; without npm's package nothing is said."""
    path = SDK / "schema" / "v1" / "schema.unstable.json"
    if not path.exists():
        return lambda value: None
    from jsonschema import Draft202012Validator

    whole = json.loads(path.read_text("utf-8"))
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}).validate


class Editor:
    """The other end: sends requests, answers those of the agent, keeps all frames."""

    knows_everything = True

    def __init__(self, reader: asyncio.StreamReader, send: Callable[[bytes], None]) -> None:
        self._reader, self._send = reader, send
        self.frames: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {}
        """By the method of the agent's request: gives the result, which may have to be awaited."""
        self.heard: Callable[[dict[str, Any]], None] = lambda frame: None
        self._waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_over = False
        self.leave: Callable[[], None] = lambda: None
        self.opened: list[OpenedConversation] = []

    def send(self, message: Mapping[str, Any]) -> None:
        self._send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def begin(self, method: str, **parameters: Any) -> "asyncio.Future[Any]":
        self._count += 1
        answer = asyncio.get_running_loop().create_future()
        self._waiting[self._count] = method, answer
        self.send({"id": self._count, "method": method, "params": parameters})
        return answer

    async def ask(self, method: str, **parameters: Any) -> Any:
        return await self.begin(method, **parameters)

    def tell(self, method: str, **parameters: Any) -> None:
        self.send({"method": method, "params": parameters})

    async def initialize(self, abilities: Mapping[str, Any] = EVERYTHING) -> Any:
        return await self.ask("initialize", protocolVersion=1, clientCapabilities=abilities)

    async def new(self, directory: Path, **more: Any) -> str:
        found = await self.ask("session/new", **{"cwd": str(directory), "mcpServers": [], **more})
        return found["sessionId"]

    async def prompt(self, session: str, text: str) -> Any:
        return await self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def cancel(self, session: str) -> None:
        self.tell("session/cancel", sessionId=session)

    def updates(self, kind: str | None = None) -> list[dict[str, Any]]:
        found = [
            frame["params"]["update"] for frame in self.frames if frame.get("method") == "session/update"
        ]
        return [update for update in found if kind is None or update["sessionUpdate"] == kind]

    def words(self, kind: str = "agent_message_chunk") -> str:
        return "".join(each["content"].get("text", "") for each in self.updates(kind))

    async def listen(self) -> None:
        """Take frames until the agent ends."""
        while line := await self._reader.readline():
            frame = json.loads(line)
            assert frame["jsonrpc"] == "2.0"
            self.frames.append(frame)
            self._take(frame)
            self.heard(frame)
        self.is_over = True
        for _, answer in self._waiting.values():
            answer.cancel()

    def _take(self, frame: dict[str, Any]) -> None:
        if "method" in frame:
            judge(REQUESTS[frame["method"]])(frame["params"])
            if "id" in frame:
                task = asyncio.create_task(self._answer(frame))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            return
        if frame["id"] is None:
            return
        method, answer = self._waiting.pop(frame["id"], ("", None))
        if answer is None or answer.done():
            return
        if "error" in frame:
            judge("Error")(frame["error"])
            answer.set_exception(Refused(frame["error"]["code"], frame["error"]["message"]))
        else:
            judge(RESPONSES[method])(frame["result"])
            answer.set_result(frame["result"])

    async def _answer(self, frame: dict[str, Any]) -> None:
        result = self.answers[frame["method"]](frame["params"])
        if isinstance(result, Awaitable):
            result = await result
        if result is not None:
            self.send({"id": frame["id"], "result": result})


def chosen(option: str) -> Callable[[Any], Any]:
    """Answers every question with an option."""
    return lambda parameters: {"outcome": {"outcome": "selected", "optionId": option}}


class ScriptedOpening(ConversationOpening):
    """Opens conversations as the command does, with a model whose window is known."""

    def __init__(self, model: ScriptedModel, *arguments: str) -> None:
        catalog.register_provider("scripted", lambda: model)
        super().__init__(parse_arguments(["acp", "-m", MODEL, *arguments]))
        self.opened: list[OpenedConversation] = []

    def __call__(self, directory: Path, saved: SavedConversation | None, *more: Any, **others: Any) -> Any:
        opened = super().__call__(directory, saved, *more, **others)
        opened.agent.model = LARGE
        self.opened.append(opened)
        return opened


@asynccontextmanager
async def at_work(
    model: ScriptedModel | Iterable[Any], *arguments: str
) -> AsyncIterator[tuple[int, int, list[OpenedConversation]]]:
    """A server in this process, which ends with its pipes: where to read, where to write, what it opened."""
    scripted = model if isinstance(model, ScriptedModel) else ScriptedModel(model, usage=USAGE)
    to_agent, to_editor = os.pipe(), os.pipe()
    opening = ScriptedOpening(scripted, *arguments)
    connection = Connection(LinePipes(to_agent[0], to_editor[1]))
    server = EditorServer(connection, opening, open_store(), opening.check_login)
    serving = asyncio.create_task(server.serve())
    serving.add_done_callback(lambda task: os.close(to_editor[1]))
    try:
        yield to_editor[0], to_agent[1], opening.opened
    finally:
        os.close(to_agent[1])
        await serving
        os.close(to_agent[0])
        os.close(to_editor[0])


@asynccontextmanager
async def serving(model: ScriptedModel | Iterable[Any], *arguments: str) -> AsyncIterator[Editor]:
    """An editor that talks to a server in this process; nothing is left at the end."""
    async with at_work(model, *arguments) as (source, sink, opened):
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=1 << 27)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(source), "rb")
        )
        outlet, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(os.dup(sink), "wb"))
        editor = Editor(reader, outlet.write)
        editor.opened, editor.leave = opened, outlet.close
        listening = asyncio.create_task(editor.listen())
        try:
            yield editor
        finally:
            outlet.close()
            transport.close()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
