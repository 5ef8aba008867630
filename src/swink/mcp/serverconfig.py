"""Which MCP servers there are, and what they may do."""

import logging
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Annotated, Any, NoReturn, cast, get_type_hints
from urllib.parse import urlsplit

from msgspec import Meta, Struct, ValidationError, convert, field

from swink.errors import AgentError, InvalidInput, InvalidTool, MisuseError
from swink.stream.urls import is_loopback, is_secret_header
from swink.system.places import config_dir

log = logging.getLogger("swink.mcp")


class McpError(AgentError):
    """An MCP server cannot be reached or used."""


class _Server(Struct, frozen=True, kw_only=True):
    """The options of both kinds of servers."""

    timeout: Annotated[float, Meta(gt=0)] | None = 60.0
    """Seconds a call may take; None for no limit."""
    connect_timeout: Annotated[float, Meta(gt=0)] = 30.0
    requires_approval: bool = True
    trusted: bool | Sequence[str] = ()
    """Names (or globs) of tools that run without approval. True trusts what the server says about its tools:
    those with `readOnlyHint` are `read_only`; whether they need approval does not change."""
    tools: Sequence[str] = ("*",)
    """Names (or globs) of the tools to use."""
    required: bool = True
    """Whether a server that cannot be reached at the start is an error; otherwise it is left out."""

    disabled: bool = False
    """Whether it is neither started nor connected to."""

    @property
    def __swink_tool__(self) -> NoReturn:
        """A server among `tools=[…]` is refused with the way to have its tools there."""
        raise InvalidTool(
            f"{self!r} is an MCP server, not a tool: open it with `async with McpServers([…]) as servers:` "
            "(swink.mcp) and pass tools=servers.tools"
        )

    def offers(self, tool: str) -> bool:
        """Whether a tool of the server is wanted."""
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def asks(self, tool: str) -> bool:
        """Whether a tool of the server needs approval."""
        trusted = () if isinstance(self.trusted, bool) else self.trusted
        return self.requires_approval and not any(fnmatchcase(tool, pattern) for pattern in trusted)


class StdioServer(_Server, frozen=True):
    """A server to start as a process; its environment is PATH and `env`, nothing else.

    Args:
        name: what its tools' names begin with
        command: the program
        args: its arguments
        cwd: where it is started
        connect_timeout: seconds to connect in
        requires_approval: whether its calls are asked about
    """

    name: str
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None

    def __post_init__(self) -> None:
        _check_types(self)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in a log or an error."""
        return tuple(self.env.values())

    def __repr__(self) -> str:
        return f"StdioServer({self.name!r}, {self.command!r}, env={sorted(self.env)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("command", self.command), ("env", sorted(self.env))]


class HttpServer(_Server, frozen=True):
    """A server behind a URL, spoken to with streamable HTTP; `headers` go with every request.

    Args:
        name: what its tools' names begin with
        url: where it is
        client_secret: the secret of a registered client, with its `client_id`
        connect_timeout: seconds to connect in
        requires_approval: whether its calls are asked about
    """

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    allow_http: bool = False
    """Whether a header with a secret, or a login's token, may go to another machine over plain http."""
    client_id: str | None = None
    """The OAuth client that you have registered, or the https URL of a document that describes it; without
    one swink registers itself."""
    client_secret: str | None = None
    redirect_port: Annotated[int, Meta(ge=0, le=65_535)] = 0
    """The port of this machine that a login comes back to, if it must be registered; 0 takes a free one."""

    def __post_init__(self) -> None:
        _check_types(self)
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"MCP server {self.name!r}: url begins with https:// (or http://) and a host")
        if self.allow_http or parts.scheme != "http" or is_loopback(parts.hostname or ""):
            return
        for name, value in self.headers.items():
            if value and is_secret_header(name):
                raise MisuseError(
                    f"MCP server {self.name!r}: the header {name!r} would go to {parts.hostname} in clear "
                    "text; use https, or allow_http=True if you trust the network"
                )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in a log or an error."""
        return (*self.headers.values(), *filter(None, [self.client_secret]))

    @property
    def logs_in(self) -> bool:
        """Whether a login may be used: not beside a header that says who we are."""
        return not any(name.lower() == "authorization" for name in self.headers)

    def __repr__(self) -> str:
        return f"HttpServer({self.name!r}, headers={sorted(self.headers)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("headers", sorted(self.headers))]


Server = StdioServer | HttpServer


def own_directory(server: str) -> str:
    """The directory of one server alone, for those that name none; it is made when the server starts."""
    return str(config_dir() / "servers" / (re.sub(r"[^\w-]", "_", server)[:64] or "_"))


_FOREIGN = ("name", "type", "transport", "description")
"""Fields of other programs that say nothing a server does not say by itself."""


def servers_from(config: Mapping[str, Any]) -> list[Server]:
    """Servers from the usual JSON as `config`, `{"mcpServers": {name: {"command": …}}}`; with our fields."""
    listed = config.get("mcpServers", config) if isinstance(config, Mapping) else None
    if not isinstance(listed, Mapping):
        example = '{"mcpServers": {"files": {"command": "npx"}}}'
        raise InvalidInput(f"servers_from() takes a dict such as {example}")
    servers: list[Server] = []
    for name, item in cast("Mapping[str, Any]", listed).items():
        match item:
            case {"command": str()}:
                kind: type[Server] = StdioServer
            case {"url": str()}:
                kind = HttpServer
            case _:
                given = map(str, cast("Mapping[Any, Any]", item)) if isinstance(item, Mapping) else ()
                kinds = ("command", "url")
                near = [
                    (key, found)
                    for key in given
                    for found in get_close_matches(key, kinds, 1)
                    if key != found
                ]
                where = 'in a JSON file the servers stand under "mcpServers", by name'
                hint = f"{near[0][0]!r} means nothing; did you mean {near[0][1]!r}?" if near else where
                raise MisuseError(f"MCP server {name!r} needs a command or a url, each a string; {hint}")
        fields = [key for key in kind.__struct_fields__ if key != "name"]
        known = {key: value for key, value in cast("dict[str, Any]", item).items() if key in fields}
        _report_unknown(name, [key for key in item if key not in known and key not in _FOREIGN], kind)
        servers.append(kind(name, **known))
    return servers


def _report_unknown(server: str, keys: Sequence[str], kind: type[Server]) -> None:
    """Files are shared with other programs, so fields of theirs are no error; a typo must not be silent."""
    for key in keys:
        near = get_close_matches(key, kind.__struct_fields__, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        log.warning("MCP server %r: %r means nothing here and is ignored%s", server, key, hint)


def _check_types(server: Server) -> None:
    """Refuse values of the wrong type: a string in place of a list of globs would be a list of characters."""
    for name, kind in get_type_hints(type(server), include_extras=True).items():
        try:
            convert(getattr(server, name), kind)
        except ValidationError as error:
            raise InvalidInput(f"MCP server {server.name!r}: {name}: {error}") from None
