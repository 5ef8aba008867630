"""Commands about MCP servers: how they stand, and the prompts and resources that they offer."""

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import islice
from weakref import WeakKeyDictionary

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.servermentions import (
    command_of,
    fill_in_prompt,
    find_prompt,
    listed_resources,
    usage_of,
)
from swink.app.assistant.servers import Servers, ServerState
from swink.app.tui.commands.commandtable import COMMANDS, CommandContext, command
from swink.app.tui.conversationdriver import ConversationDriver
from swink.app.tui.editor.offers import CommandWord
from swink.errors import MisuseError
from swink.events.transcript.blockkinds import counted
from swink.system.shorten import clip_list

_MOST_NAMES = 200
"""Tools and prompts of a server that are listed."""
_MOST_WORDS = 1_000
"""Resources that completion looks through."""
_values: WeakKeyDictionary[Servers, dict[tuple[str, str], list[str]]] = WeakKeyDictionary()
"""What the first argument of a prompt may be, as its server said when it was first typed."""


@command("/mcp", "[restart NAME | login NAME]", choices=lambda at: _server_choices(at))
async def mcp(context: CommandContext, rest: str) -> None:
    """MCP servers: how they stand, and what they offer"""
    if context.environment is None:
        raise MisuseError("there is no environment in this conversation")
    servers = context.environment.servers
    word, _, name = rest.partition(" ")
    if word in ("restart", "login"):
        if (name := name.strip()) not in [state.name for state in servers.states]:
            raise MisuseError(f"there is no MCP server {name!r}; /mcp lists them")
        await (servers.login if word == "login" else servers.restart)(name)
        context.say(f"starting the MCP server {name} again")
        return
    if rest:
        raise MisuseError("write /mcp, /mcp restart NAME or /mcp login NAME")
    if not servers.states:
        none = "no MCP servers; .mcp.json of a trusted project or [mcp.NAME] in config.toml names them"
        context.say(none if servers.is_known else "which servers there are is still being read; ask again")
    for state in await servers.check():
        context.say("\n".join(describe_state(state, servers)))


def describe_state(state: ServerState, servers: Servers) -> list[str]:
    """How a server stands, what it offers, and what to do if it does not work."""
    failed = f": {state.error}" if state.error else ""
    lines = [f"{state.name} ({state.source}) is {state.state}{failed}"]
    if state.tools:
        lines.append(
            f"    {counted(len(state.tools), 'tool')}: {', '.join(clip_list(state.tools, _MOST_NAMES))}"
        )
    resources = [one for one in servers.resources if one.server == state.name]
    if resources:
        lines.append(f"    {counted(len(resources), 'resource')}: @{state.name}: names them in a prompt")
    found = [prompt for prompt in servers.prompts if prompt.server == state.name]
    if commands := [name for prompt in found if (name := command_of(prompt)) is not None]:
        lines.append(f"    {counted(len(commands), 'prompt')}: {', '.join(clip_list(commands, _MOST_NAMES))}")
    lines += [f"    {note}" for note in state.notes]
    if mend := how_to_mend(state):
        lines.append(f"    {mend}")
    return lines


def how_to_mend(state: ServerState) -> str:
    """What to do about a server that does not work; empty if it works."""
    again = f"/mcp restart {state.name}"
    match state.state:
        case "failed" if "needs a login" in state.error or "needs more rights" in state.error:
            return f"/mcp login {state.name} opens your browser"
        case "failed" if "there is no command" in state.error:
            return f"install it, or give its whole path as `command` in {state.source}; then /reload"
        case "failed" if "no answer within" in state.error:
            return f"{again} tries again; a slow one wants a longer connect_timeout in {state.source}"
        case "failed":
            return f"{again} tries again; after a change in {state.source}, /reload"
        case "stopped" | "silent":
            return f"{again} starts it anew; so does the next call of its tools, once it is gone"
        case "off":
            return f"disabled = false in {state.source} switches it on; then /reload"
        case "starting" | "ready":
            return ""


async def use_prompt(
    driver: ConversationDriver, environment: AgentEnvironment | None, name: str, rest: str
) -> bool:
    """Send a prompt of a server, if a command stands for one; whether it does."""
    if environment is None or ":" not in name or name in COMMANDS:
        return False
    prompt = find_prompt(name, environment.servers.prompts)
    if prompt is None:
        return False
    driver.send(await fill_in_prompt(prompt, rest, environment.servers))
    return True


def server_words(servers: Servers) -> Iterator[CommandWord]:
    """The prompts of servers as commands, and their resources as mentions."""
    for prompt in servers.prompts:
        if (name := command_of(prompt)) is not None and name not in COMMANDS:
            values = partial(_first_values, servers, prompt.server, prompt.name)
            choices = values if prompt.arguments else None
            yield CommandWord(name, usage_of(prompt), prompt.description, choices)
    for resource in islice(listed_resources(servers.resources), _MOST_WORDS):
        yield CommandWord(f"@{resource.mention}", "", resource.description or resource.name)


def _first_values(servers: Servers, server: str, prompt: str) -> list[str]:
    """What the first argument may be; the server is asked once, and its answer is there a moment later."""
    known = _values.setdefault(servers, {})
    if (server, prompt) not in known:
        known[server, prompt] = []
        task = asyncio.create_task(_ask_values(servers, server, prompt), name="swink-mcp-complete")
        _asking.add(task)
        task.add_done_callback(_asking.discard)
    return known[server, prompt]


_asking: set[asyncio.Task[None]] = set()


async def _ask_values(servers: Servers, server: str, prompt: str) -> None:
    found = next((one for one in servers.prompts if (one.server, one.name) == (server, prompt)), None)
    if found is not None and found.arguments:
        values = await servers.complete(server, prompt, found.arguments[0].name, "")
        _values.setdefault(servers, {})[server, prompt] = [value for value in values if value.strip()]


def _server_choices(context: CommandContext) -> list[str]:
    servers = [] if context.environment is None else context.environment.servers.states
    return [f"{word} {state.name}" for state in servers for word in ("restart", "login")]
