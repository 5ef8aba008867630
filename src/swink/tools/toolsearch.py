"""Deferred tools: kept out of what a model is sent, found when they are needed, and called.

    provider with a tool search of its own    it is sent all tools, and loads deferred ones as they are found
    any other                                 find_tools(query) → schemas, call_tool(name, arguments)

Definitions stand before the messages, and a provider caches a request from its beginning: loading one would
lose the cache of the whole conversation. `find_tools` and `call_tool` are the same in every request instead.
A call of `call_tool` becomes a call of the tool that it names before anybody sees it; only the message of the
model keeps it as it was made.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from copy import copy
from functools import cached_property, lru_cache
from typing import Any

from msgspec.structs import force_setattr, replace

from swink.messages import CALL_TOOL, ModelSpec, ToolCall
from swink.messages.jsondata import encode
from swink.messages.tokens import overhead_tokens
from swink.tools.bm25 import Described, WordIndex, described, words_of
from swink.tools.definition import FIND_TOOLS, Tool, call_off_loop
from swink.tools.toolcontext import ToolContext
from swink.tools.toolresult import ToolError

log = logging.getLogger("swink.tool")

BEST = 5
"""How many tools a search gives."""
DEFAULT_WINDOW = 128_000
AUTO_SHARE = 20
"""Tools that say "auto" are deferred if they take more than the window divided by this."""
_FEW = 30
"""How many names an error lists."""
_NEAREST = 500
"""How many names are compared letter by letter."""

_FIND = """Search for more tools, which are not in your list of tools. Search before you say that something \
cannot be done: what other programs and services offer is found here. Gives the best matches with their \
parameters; call them with call_tool."""
_QUERY = "What the tool should do, in a few words, such as 'create an issue in a repository'."
_CALL = "Call a tool that find_tools has found. It runs as if it were called by its own name."
_SELF = f"error: {CALL_TOOL} calls other tools, not itself; name one that {FIND_TOOLS} has found"


class ToolSearch:
    """The tools of a turn, some of them deferred."""

    def __init__(self, tools: Sequence[Tool], own: Sequence[Tool]) -> None:
        """`tools` are the agent's, which may be found and called; `own` are those of the run alone."""
        self._known = {tool.name: tool for tool in tools}
        self._deferred = [tool for tool in tools if tool.deferred]
        plain = [tool for tool in tools if not tool.deferred]
        fixed = _find_tool(self), _call_tool(self)
        self.tools = (*tools, *fixed, *own)
        """All that may be called."""
        self._fixed = (*plain, *fixed, *own)
        self._native = (*plain, *self._deferred, *own)

    def offered(self, model: ModelSpec, stream_fn: Any) -> tuple[Tool, ...]:
        """What a model is sent: the deferred tools only to a provider that searches them itself."""
        native: Callable[[ModelSpec], bool] | None = getattr(stream_fn, "native_search", None)
        return self._native if native is not None and native(model) else self._fixed

    def find(self, query: str) -> list[Tool]:
        """The deferred tools that fit a query best; one that it names comes first."""
        found = [self._deferred[place] for place in self._index.search(query, BEST)]
        named = self._known.get(query.strip())
        if named is None or not named.deferred:
            return found
        return [named, *[tool for tool in found if tool is not named]][:BEST]

    def describe(self, query: str) -> str:
        """What a model is told of the tools that fit a query."""
        found = self.find(query)
        if not found:
            return f"No tool fits; there are {len(self._deferred)}. Use other words for what it should do."
        return "\n".join(encode(_told(tool)).decode() for tool in found)

    def redirect(self, call: ToolCall, tool: Tool) -> tuple[ToolCall, Tool | None]:
        """The call that a call of `call_tool` makes, and its tool if it is known."""
        made = call.resolved
        return (call, tool) if made is call else (made, self._known.get(made.name))

    @cached_property
    def _index(self) -> WordIndex:
        return WordIndex(map(search_words, self._deferred))


def tool_search(
    tools: Sequence[Tool], own: Sequence[Tool], window: int | None, warned: list[str]
) -> ToolSearch | None:
    """The search over the agent's tools for a model with this window; None if none of them is deferred."""
    if not any(tool.deferred for tool in tools):
        return None
    settled = _settled(tools, window or DEFAULT_WINDOW)
    if not any(tool.deferred for tool in settled):
        return None
    kept = [tool for tool in settled if tool.name not in (FIND_TOOLS, CALL_TOOL)]
    for tool in settled:
        if tool not in kept and tool.name not in warned:
            warned.append(tool.name)
            log.warning("a tool named %r is left out: that name is for deferred tools; rename it", tool.name)
    return ToolSearch(kept, own)


def search_words(tool: Tool) -> Described:
    """What a tool is found by: its name, its description, the names of its parameters."""
    return described(tool.name, tool.description, tool.parameters_schema.get("properties", {}))


def describe_unknown(name: str, tools: Sequence[Tool]) -> str:
    """What a model is told that calls a tool which is not there."""
    names = [tool.name for tool in tools]
    text = f"error: there is no tool named {name!r}"
    if len(names) <= _FEW:
        return f"{text}; available: {', '.join(names) or 'none'}"
    from difflib import get_close_matches  # only messages need it

    near = get_close_matches(name, _alike(name, names), BEST, 0.4)
    hint = f"; the nearest are {', '.join(near)}" if near else ""
    return f"{text}{hint}; {FIND_TOOLS} searches all of them" if FIND_TOOLS in names else text + hint


def _alike(name: str, names: Sequence[str]) -> Collection[str]:
    """The names to compare: all, or of very many those that share the most words."""
    if len(names) <= _NEAREST:
        return names
    words = {*words_of(name)}
    shared = {other: len(words.intersection(words_of(other))) for other in names}
    return sorted((other for other in names if shared[other]), key=shared.__getitem__, reverse=True)[
        :_NEAREST
    ]


def _settled(tools: Sequence[Tool], window: int) -> list[Tool]:
    """The tools, each deferred or not; the size of those that leave it open decides about them."""
    unsettled = [tool for tool in tools if tool.deferred == "auto"]
    if not unsettled:
        return [*tools]
    is_much = overhead_tokens("", unsettled) > window // AUTO_SHARE
    return [_with_deferred(tool, is_much) if tool.deferred == "auto" else tool for tool in tools]


def _with_deferred(tool: Tool, deferred: bool) -> Tool:
    settled = copy(tool)  # checked already, unlike what `replace` makes
    force_setattr(settled, "deferred", deferred)
    return settled


def _told(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters_schema}


def _find_tool(search: ToolSearch) -> Tool:
    async def body(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
        return await call_off_loop(search.describe, arguments["query"], name=FIND_TOOLS, cancel=ctx.cancel)

    return replace(_plain_tools()[0], body=body)


def _call_tool(search: ToolSearch) -> Tool:
    def redirect(call: ToolCall) -> tuple[ToolCall, Tool | None]:
        return search.redirect(call, made)

    made = replace(_plain_tools()[1], redirect=redirect)
    return made


@lru_cache(1)
def _plain_tools() -> tuple[Tool, Tool]:
    """The two tools as a model is told of them."""
    find = _schema({"query": {"type": "string", "description": _QUERY}})
    name = {"type": "string", "description": "The name of the tool."}
    arguments = {"type": "object", "description": "Its arguments, as its parameters say."}
    call = _schema({"name": name, "arguments": arguments})
    return (
        Tool.raw(FIND_TOOLS, _FIND, find, _refuse, label="find tools", read_only=True),
        Tool.raw(CALL_TOOL, _CALL, call, _refuse, label="call a tool", read_only=True),
    )


def _schema(properties: dict[str, Any]) -> dict[str, Any]:
    required = [next(iter(properties))]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


async def _refuse(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> None:
    raise ToolError(_SELF)
