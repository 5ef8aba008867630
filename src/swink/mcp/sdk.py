"""The official SDK, imported when a server is first opened: that takes more than a second."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, cast

from swink.mcp.oauth import OAuth
from swink.mcp.serverconfig import McpError
from swink.mcp.taskrequests import TaskRequests
from swink.system.extras import install_command
from swink.system.threads import in_thread

_MOST_TO_OPEN = 3


class Sdk:
    """The few names of the SDK that are used here."""

    def __init__(self) -> None:
        mcp = import_module("mcp")
        types = import_module("mcp_types")
        anyio = import_module("anyio")
        self.httpx: Any = import_module("httpx2")
        self.oauth = OAuth()
        self.tasks = TaskRequests()
        self._certificates: Any = self.httpx.create_ssl_context()  # once, in a thread: it is slow
        self.Client: Any = mcp.Client
        self.McpFailure: type[Exception] = mcp.MCPError
        self._parameters: Any = mcp.StdioServerParameters
        self._types = types
        self._session_message: Any = import_module("mcp.shared.message").SessionMessage
        self.Implementation: Any = types.Implementation
        self.stdio_client: Any = mcp.stdio_client
        self.http_client: Any = import_module("mcp.client.streamable_http").streamable_http_client
        self._context: Any = import_module("opentelemetry.context")
        self._baggage: Any = import_module("opentelemetry.baggage")
        self.inherited: tuple[str, ...] = tuple(import_module("mcp.client.stdio").DEFAULT_INHERITED_ENV_VARS)
        logging.getLogger("mcp.client.stdio").addFilter(_is_no_chatter)
        self.modern_versions: tuple[str, ...] = import_module("mcp_types.version").MODERN_PROTOCOL_VERSIONS
        self.CLOSED: int = types.CONNECTION_CLOSED
        self.TIMED_OUT: int = types.REQUEST_TIMEOUT
        # What the SDK, its transports and the operating system raise; pydantic's errors are ValueErrors.
        ours = (OSError, ValueError, RuntimeError, ExceptionGroup, *self.oauth.failures)
        lost = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
        self.failures: tuple[type[BaseException], ...] = (mcp.MCPError, self.httpx.HTTPError, *lost, *ours)

    def http(self, connect_timeout: float, read_timeout: float | None, headers: dict[str, str]) -> Any:
        limits = self.httpx.Timeout(connect_timeout, read=read_timeout)
        return self.httpx.AsyncClient(headers=headers, timeout=limits, verify=self._certificates)

    def parameters(self, command: str, args: list[str], env: dict[str, str], cwd: str | None) -> Any:
        """How to start a stdio server; bytes of its that are no UTF-8 arrive as lone surrogates."""
        parameters = self._parameters(command=command, args=args, env=env, cwd=cwd)
        parameters.encoding_error_handler = "surrogateescape"
        return parameters

    @contextmanager
    def without_baggage(self) -> Generator[None]:
        """A block whose requests carry the trace context alone: the SDK would pass on baggage too."""
        token = self._context.attach(self._baggage.clear())
        try:
            yield
        finally:
            self._context.detach(token)

    def to_open(self, error: BaseException) -> list[Any]:
        """The addresses that a server wants opened before it does what it refused."""
        if getattr(error, "code", None) != self._types.URL_ELICITATION_REQUIRED:
            return []
        try:
            data = self._types.ElicitationRequiredErrorData.model_validate(cast(Any, error).error.data)
        except ValueError:
            return []
        return data.elicitations[:_MOST_TO_OPEN]

    def elicited(self, action: str, content: dict[str, Any] | None = None) -> Any:
        """The person's answer to what a server asked."""
        return self._types.ElicitResult(action=action, content=content)

    def prompt_reference(self, name: str) -> Any:
        """A prompt, as a server is asked about it."""
        return self._types.PromptReference(name=name)

    def invalid(self, text: str) -> Any:
        """Our answer to a request that makes no sense."""
        return self._types.ErrorData(code=self._types.INVALID_PARAMS, message=text)

    def error_reply(self, call_id: int | str, text: str) -> Any:
        """A server's answer that a request failed."""
        return self._failed(call_id, self._types.ErrorData(code=self._types.PARSE_ERROR, message=text))

    def wrong_version(self, call_id: int | str, supported: list[str]) -> Any:
        """A server's answer that it speaks other versions of the protocol."""
        code, data = self._types.UNSUPPORTED_PROTOCOL_VERSION, {"supported": supported, "requested": ""}
        return self._failed(call_id, self._types.ErrorData(code=code, message="another version", data=data))

    def _failed(self, call_id: int | str, error: Any) -> Any:
        return self._session_message(self._types.JSONRPCError(jsonrpc="2.0", id=call_id, error=error))


_sdk = cache(Sdk)


async def load_sdk() -> Sdk:
    """The SDK, imported in a thread so that the event loop is not blocked."""
    try:
        return await in_thread(_sdk)
    except ImportError as error:
        how = f"install it with: {install_command('mcp')}"
        raise McpError(f"MCP servers need the SDK ({error}); {how}") from error


def first_error(error: BaseException) -> BaseException:
    """The first real error inside the groups that task groups wrap around it."""
    inner: Any = error
    while isinstance(inner, BaseExceptionGroup):
        inner = cast(Any, inner).exceptions[0]
    return inner


def _is_no_chatter(record: logging.LogRecord) -> bool:
    """Not the traceback for each line of a server's that is no message: `Connection` judges those."""
    return not str(record.msg).startswith("Failed to parse JSONRPC message")
