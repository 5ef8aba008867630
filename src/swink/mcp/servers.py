"""Which MCP servers there are, and what they may do."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct, field

from swink.errors import AgentError, MisuseError
from swink.hosts import is_loopback, is_secret_header


class McpError(AgentError):
    """An MCP server cannot be reached or used."""


class _Server(Struct, frozen=True, kw_only=True):
    """What both kinds have in common."""

    timeout: float | None = 60.0
    """Seconds a call may take; None for no limit."""
    connect_timeout: float = 30.0
    requires_approval: bool = True
    trusted: Sequence[str] = ()
    """Names (or globs) of tools that run without approval."""
    tools: Sequence[str] = ("*",)
    """Names (or globs) of the tools to use."""
    required: bool = True
    """Whether to give up if the server cannot be reached at the start; otherwise it is reported and left out."""

    def offers(self, tool: str) -> bool:
        """Whether a tool of the server is wanted."""
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def asks(self, tool: str) -> bool:
        """Whether a tool of the server needs approval."""
        return self.requires_approval and not any(fnmatchcase(tool, pattern) for pattern in self.trusted)


class StdioServer(_Server, frozen=True):
    """A server to start as a process; its environment is PATH and `env`, nothing else."""

    name: str
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not show in a text."""
        return tuple(self.env.values())

    def __repr__(self) -> str:
        return f"StdioServer({self.name!r}, {self.command!r}, env={sorted(self.env)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("command", self.command), ("env", sorted(self.env))]


class HttpServer(_Server, frozen=True):
    """A server behind a URL, spoken to with streamable HTTP; `headers` go with every request."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    allow_http: bool = False
    """Whether a header with a secret may go to another machine over plain http."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        secret = next(
            (name for name, value in self.headers.items() if value and is_secret_header(name)), None
        )
        if (
            parts.scheme == "http"
            and secret
            and not self.allow_http
            and not is_loopback(parts.hostname or "")
        ):
            raise MisuseError(
                f"MCP server {self.name!r}: the header {secret!r} would travel to {parts.hostname} in clear text; "
                "use https, or allow_http=True if you trust the network"
            )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not show in a text."""
        return tuple(self.headers.values())

    def __repr__(self) -> str:
        return f"HttpServer({self.name!r}, headers={sorted(self.headers)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("headers", sorted(self.headers))]


Server = StdioServer | HttpServer


def servers_from(config: Mapping[str, Any]) -> list[Server]:
    """Servers from the usual JSON: `{"mcpServers": {"name": {"command": …} or {"url": …}}}`; our own fields work too."""
    listed: Mapping[str, Any] = config.get("mcpServers", config)
    servers: list[Server] = []
    for name, item in listed.items():
        match item:
            case {"command": str()}:
                kind: type[Server] = StdioServer
            case {"url": str()}:
                kind = HttpServer
            case _:
                raise MisuseError(f"MCP server {name!r} needs a command or a url")
        known = {
            key: value
            for key, value in cast("dict[str, Any]", item).items()
            if key in kind.__struct_fields__ and key != "name"
        }
        servers.append(kind(name, **known))
    return servers
