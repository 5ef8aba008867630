"""A connection with an editor: JSON-RPC 2.0, a message a line, requests from both sides.

a request of theirs      `answer` is awaited in a task of its own, begun in the order in which they came
a notification of theirs `hear` is called at once, in order
a request of ours        `ask`; one that is cancelled tells the editor that it need not answer
a wrong line             gets an error, and the next one works
the pipe ends            requests of ours fail with `EditorGone`, those of theirs are cancelled
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from swink.errors import AgentError, MissingKey
from swink.messages.redact import redact_text
from swink.system.aio import start_task, started
from swink.system.linepipes import LinePipes
from swink.system.oneline import shorten

log = logging.getLogger("swink.acp")

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMETERS = -32700, -32600, -32601, -32602
INTERNAL_ERROR, CANCELLED, NEEDS_KEY, NOT_FOUND = -32603, -32800, -32000, -32002
"""The codes of JSON-RPC and of the protocol."""
CANCEL_REQUEST = "$/cancel_request"
MOST_REQUESTS = 100
"""Requests of the editor that are answered at once."""
T = TypeVar("T")
_NO_PARAMETERS = Raw(b"{}")


class RequestRefused(AgentError):
    """A request cannot be answered: by us, which the editor is told, or by the editor."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class EditorGone(AgentError):
    """The editor ended the connection, so nobody answers."""


class _Message(Struct, frozen=True):
    """Any message: a request has a method and an id, a notification no id, an answer no method."""

    jsonrpc: str = ""
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Any = UNSET


class _RequestId(Struct, frozen=True, rename="camel"):
    request_id: int | str | None


class Methods(Protocol):
    """What answers the requests of an editor."""

    async def answer(self, method: str, parameters: Raw) -> Mapping[str, Any]:
        """The result of a request; raises `RequestRefused`."""
        ...

    def hear(self, method: str, parameters: Raw) -> None:
        """Take a notification, which gets no answer."""
        ...


class Connection:
    """One editor, from `serve` until it leaves; made in the event loop."""

    def __init__(self, pipes: LinePipes) -> None:
        self._pipes = pipes
        self._decoder = msgspec.json.Decoder(_Message)
        self._encoder = msgspec.json.Encoder(enc_hook=repr)
        self._asked: dict[int, asyncio.Future[Raw]] = {}
        self._answering: dict[int | str | None, asyncio.Task[None]] = {}
        self._count = 0
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def serve(self, methods: Methods) -> None:
        """Answer until the editor leaves; then end what it had asked for."""
        self._methods = methods
        self._pipes.start(self._take_line, self.end)
        try:
            await self._over
        finally:
            self.end()
            for task in (tasks := list(self._answering.values())):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def end(self) -> None:
        """The editor has left, or is left: nobody answers any more."""
        if not self._over.done():
            self._over.set_result(None)
        self._pipes.hurry()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(EditorGone("the editor has left"))

    async def aclose(self) -> None:
        """Write what is left to write."""
        await self._pipes.aclose()

    @property
    def is_over(self) -> bool:
        return self._over.done() or self._pipes.is_gone

    def tell(self, method: str, parameters: Mapping[str, Any]) -> None:
        """Send a notification, for which no answer comes."""
        self._send({"jsonrpc": "2.0", "method": method, "params": parameters})

    async def drained(self) -> None:
        """Return when the editor has taken most of what was sent."""
        await self._pipes.drained()

    async def ask(self, method: str, parameters: Mapping[str, Any], kind: type[T]) -> T:
        """What the editor answers; raises `RequestRefused` or `EditorGone`."""
        if self.is_over:
            raise EditorGone("the editor has left")
        self._count += 1
        number = self._count
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})
        try:
            raw = await answer
        except asyncio.CancelledError:
            self.tell(CANCEL_REQUEST, {"requestId": number})
            raise
        finally:
            del self._asked[number]
        try:
            # Editors also answer null where nothing is to be said.
            return msgspec.json.decode(_NO_PARAMETERS if bytes(raw) == b"null" else raw, type=kind)
        except msgspec.DecodeError as error:
            raise RequestRefused(INVALID_PARAMETERS, f"the editor's answer to {method}: {error}") from error

    def _take_line(self, line: bytes | None) -> None:
        if self._over.done():
            return
        if line is None:
            self._refuse(None, INVALID_REQUEST, "the message is too long")
            return
        try:
            message = self._decoder.decode(line)
        except msgspec.ValidationError as error:
            self._refuse(None, INVALID_REQUEST, f"this is no message of JSON-RPC 2.0: {error}")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._refuse(None, PARSE_ERROR, f"this is no JSON: {error}")
        else:
            self._take(message)

    def _take(self, message: _Message) -> None:
        parameters = _NO_PARAMETERS if message.params is UNSET else message.params
        if bytes(parameters) == b"null":
            parameters = _NO_PARAMETERS
        match message:
            case _Message(method=str() as method, id=id) if not isinstance(id, UnsetType):
                self._begin_answer(id, method, parameters)
            case _Message(method=str() as method):
                self._hear(method, parameters)
            case _Message(id=int() as id) if id in self._asked:
                self._settle(self._asked[id], message)
            case _Message(id=int() | str()):
                log.info("an answer to a request that waits no more")
            case _:
                self._refuse(None, INVALID_REQUEST, "a message has a method, or answers a request")

    def _settle(self, answer: "asyncio.Future[Raw]", message: _Message) -> None:
        if answer.done():
            return
        if isinstance(message.result, Raw):
            answer.set_result(message.result)
            return
        match message.error:
            case {"code": int() as code, "message": str() as text}:
                answer.set_exception(RequestRefused(code, shorten(redact_text(text), 500)))
            case _:
                answer.set_exception(RequestRefused(INTERNAL_ERROR, "the editor refused without a reason"))

    def _hear(self, method: str, parameters: Raw) -> None:
        try:
            if method == CANCEL_REQUEST:
                asked = msgspec.json.decode(parameters, type=_RequestId)
                if (task := self._answering.get(asked.request_id)) is not None:
                    task.cancel()
            else:
                self._methods.hear(method, parameters)
        except msgspec.DecodeError as error:
            log.warning("a notification that is not understood (%s): %s", shorten(method, 60), error)

    def _begin_answer(self, id: int | str | None, method: str, parameters: Raw) -> None:
        if id in self._answering:
            self._refuse(id, INVALID_REQUEST, "a request with this id is still being answered")
        elif len(self._answering) >= MOST_REQUESTS:
            self._refuse(id, INVALID_REQUEST, f"{MOST_REQUESTS} requests are being answered; wait for one")
        else:
            loop, body = asyncio.get_running_loop(), self._answer(id, method, parameters)
            self._answering[id] = start_task(loop, body, "swink-acp")

    async def _answer(self, id: int | str | None, method: str, parameters: Raw) -> None:
        try:
            await started()
            result = await self._methods.answer(method, parameters)
        except RequestRefused as error:
            self._refuse(id, error.code, str(error))
        except msgspec.DecodeError as error:
            self._refuse(id, INVALID_PARAMETERS, f"{method}: {error}")
        except MissingKey as error:
            self._refuse(id, NEEDS_KEY, str(error))
        except AgentError as error:
            self._refuse(id, INTERNAL_ERROR, str(error))
        except asyncio.CancelledError:
            self._refuse(id, CANCELLED, "cancelled")
        except Exception as error:  # whatever it is: the editor waits for an answer, and other requests work
            log.exception("%s failed", method)
            self._refuse(id, INTERNAL_ERROR, f"this should not happen: {type(error).__name__}: {error}")
        else:
            self._send({"jsonrpc": "2.0", "id": id, "result": result})
        finally:
            self._answering.pop(id, None)

    def _refuse(self, id: int | str | None, code: int, message: str) -> None:
        error = {"code": code, "message": redact_text(message)}
        self._send({"jsonrpc": "2.0", "id": id, "error": error})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._pipes.send(self._encoder.encode(message))
