"""`swink mcp`: the MCP servers of this directory, and logins at those behind a URL."""

import argparse
from difflib import get_close_matches
from typing import TYPE_CHECKING

from swink.app.assistant.servers import Configured, find_servers
from swink.app.assistant.settings import load_settings
from swink.app.cli.directory import trust_without_person
from swink.app.cli.terminal import say, table
from swink.errors import MisuseError
from swink.events.transcript.blockkinds import counted
from swink.system.interrupts import raise_interrupts
from swink.system.threads import run_to_end

if TYPE_CHECKING:
    from swink.mcp.serverconfig import HttpServer


def list_command(arguments: argparse.Namespace) -> int:
    """`swink mcp list`: the servers of this directory, and where the user is logged in."""
    configured = _configured()
    if not configured.servers:
        say("no MCP servers; .mcp.json of a trusted project or [mcp.NAME] in config.toml names them")
        return 0
    from swink.mcp.logins import Logins
    from swink.mcp.serverconfig import HttpServer

    rows: list[tuple[str, ...]] = [("NAME", "FROM", "KIND", "LOGIN")]
    for server in configured.servers:
        kind, login = "process", ""
        if isinstance(server, HttpServer):
            kind, login = "HTTP", "none" if server.logs_in else "by its headers"
            if Logins(server.url).exists():
                login = "stored"
        rows.append((server.name, configured.sources[server.name], "off" if server.disabled else kind, login))
    print(table(rows))
    return 0


def login_command(arguments: argparse.Namespace) -> int:
    """`swink mcp login`: log in to a server in the browser."""
    server = _server(arguments.name)
    if not server.logs_in:
        raise MisuseError(f"{server.name} has an Authorization header in its settings, and needs no login")
    raise_interrupts()
    tools = run_to_end(_log_in(server, with_browser=not arguments.no_browser))
    did = f"logged in to {server.name}; it has {counted(tools or 0, 'tool')}"
    say(f"{server.name} works without a login" if tools is None else did)
    return 0


def logout_command(arguments: argparse.Namespace) -> int:
    """`swink mcp logout`: delete the stored login at a server."""
    server = _server(arguments.name)
    from swink.mcp.logins import Logins

    if not Logins(server.url).remove():
        raise MisuseError(f"there is no login at {server.name}")
    say(f"the login at {server.name} is deleted; what you have allowed there can be withdrawn there")
    return 0


async def _log_in(server: "HttpServer", *, with_browser: bool) -> int | None:
    """How many tools the server has; None if no login was needed."""
    from swink.mcp.connection import ServerConnection
    from swink.mcp.sdk import load_sdk
    from swink.mcp.webaddress import open_browser

    asked = False

    async def show(name: str, url: str) -> None:
        nonlocal asked
        asked = True
        opened = with_browser and open_browser(url)
        say(f"log in in your browser{'; if no page opens, it is at' if opened else ', at'}\n{url}")
        say("waiting for the browser to come back; Ctrl-C gives up")

    connection = ServerConnection(server, await load_sdk(), on_login=show, fresh_login=True)
    try:
        session = await connection.connected()
        return len(session.lists.tools) if asked else None
    finally:
        await connection.close()


def _configured() -> Configured:
    settings, trust = load_settings(), trust_without_person()
    for problem in settings.problems:
        say(problem, "warning")
    brought = trust.brought if trust.is_trusted else None
    found = find_servers(settings.mcp, brought)
    untold = [trust.notice] if trust.notice else [] if brought is None else brought.notices
    for notice in [*untold, *found.notices]:
        say(notice, "warning")
    return found


def _server(name: str) -> "HttpServer":
    """The server of this name, if it is one to log in to."""
    servers = {server.name: server for server in _configured().servers}
    if name not in servers:
        near = get_close_matches(name, servers, 1)
        hint = f"; did you mean {near[0]}?" if near else "; swink mcp list shows which there are"
        raise MisuseError(f"there is no MCP server {name!r} here{hint}")
    from swink.mcp.serverconfig import HttpServer

    server = servers[name]
    if not isinstance(server, HttpServer):
        raise MisuseError(f"{name} is a process on this machine: it takes no login, only what its env says")
    return server
