"""Tool sets: tools of any source under other names, fewer of them, or as each turn wants them.

    prefixed(tools, "x_")  renamed(tools, {"old": "new"})  filtered(tools, wanted)  prepared(tools, change)

They take whatever an agent takes (functions, tools, sources, other sets, alone or in a list) and McpServers,
and give a source of tools. What a tool checks, asks for and limits stays as it is: only its name and whether
it is there change, and with `prepared` what the function changes.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from msgspec.structs import replace

from swink.errors import InvalidInput, InvalidTool
from swink.tools.definition import Tool, as_tool, check_names, is_tool_name
from swink.tools.toolsource import TurnContext

log = logging.getLogger("swink.tool")

_Change = Callable[[TurnContext, Sequence[Tool]], Sequence[Tool]]


class ToolSet:
    """Tools that are changed on their way to an agent; it is a `ToolSource`.

    Args:
        source: tools, or a source of tools
        change: makes a tool of a tool, or None
        what: the change in words, for errors
        is_changing: whether it may differ from turn to turn
    """

    def __init__(self, source: Any, change: _Change, what: str, is_changing: bool = True) -> None:
        self._source = source
        self._change = change
        self._what = what
        self.is_changing = is_changing
        """Whether its tools are not known before a turn asks for them."""

    def __repr__(self) -> str:
        return self._what

    def tools(self) -> Sequence[Tool]:
        """The tools as they are without a turn."""
        return self.tools_for(TurnContext())

    def tools_for(self, context: TurnContext) -> Sequence[Tool]:
        """The tools of the turn that `context` is of."""
        found = list(_members(self._source, context))
        try:
            check_names(found)
            changed = self._change(context, found)
            check_names(changed)
        except InvalidTool as error:
            raise InvalidTool(f"{self._what}: {error}") from error
        return changed


def prefixed(tools: Any, prefix: str) -> ToolSet:
    """The tools with a prefix before their names."""
    if not isinstance(prefix, str) or not (prefix == "" or is_tool_name(prefix)):
        raise InvalidInput(f"the prefix is {prefix!r}; pass ASCII letters, digits, '_' or '-'")
    return _made(
        tools, lambda _, found: [_named(tool, prefix + tool.name) for tool in found], f"prefixed({prefix!r})"
    )


def filtered(tools: Any, wanted: Callable[[Tool], bool]) -> ToolSet:
    """The tools that `wanted` says True to."""
    if not callable(wanted):
        raise InvalidInput(f"filtered() takes a function of a tool, not {wanted!r:.80}")
    return _made(tools, lambda _, found: [tool for tool in found if wanted(tool)], "filtered(...)")


def renamed(tools: Any, names: Mapping[str, str]) -> ToolSet:
    """The tools, some under other names: `renamed(tools, {"old": "new"})`.

    A name that no tool has is refused; of tools that come and go it is told once, and the rest applies.
    """
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in (*names, *names.values())):
        raise InvalidInput(f"renamed() takes a dict of old names to new ones, not {names!r:.80}")
    new, told = dict(names), set[str]()

    def rename(_: TurnContext, found: Sequence[Tool]) -> list[Tool]:
        _check_known(new, found, told if _is_changing(tools) else None)
        return [_named(tool, new.get(tool.name, tool.name)) for tool in found]

    return _made(tools, rename, "renamed(...)")


def prepared(tools: Any, prepare: Callable[[TurnContext, Tool], Tool | None]) -> ToolSet:
    """The tools as `prepare` makes them for each turn; None leaves one out.

    It is called in a worker thread, with what is known at the start of the turn: its dependencies, the state
    and the messages.
    """
    if not callable(prepare):
        raise InvalidInput(f"prepared() takes a function of the turn and a tool, not {prepare!r:.80}")

    def change(context: TurnContext, found: Sequence[Tool]) -> list[Tool]:
        made = [prepare(context, tool) for tool in found]
        return [as_tool(tool) for tool in made if tool is not None]

    return ToolSet(tools, change, "prepared(...)")


def _made(tools: Any, change: _Change, what: str) -> ToolSet:
    """A set; mistakes in one whose tools are known are told at once."""
    made = ToolSet(tools, change, what, _is_changing(tools))
    if not made.is_changing:
        made.tools()
    return made


def _members(source: Any, context: TurnContext) -> Iterator[Tool]:
    """The tools of anything that an agent takes, as they are now."""
    if isinstance(source, Tool):
        yield source
    elif (asked := getattr(source, "tools_for", None)) is not None:
        yield from asked(context)
    elif (offers := _offers(source)) is not None:
        for offer in offers:
            yield as_tool(offer)
    elif isinstance(source, Sequence) and not isinstance(source, str):
        for item in cast("Sequence[Any]", source):
            yield from _members(item, context)
    else:
        yield as_tool(source)


def _offers(source: Any) -> Sequence[Any] | None:
    """What a source offers, which `McpServers` has as a property; None for anything else."""
    offers: Any = getattr(source, "tools", None)
    return cast("Any", offers()) if callable(offers) else offers


def _is_changing(source: Any) -> bool:
    """Whether there are tools in it that are not known before a turn asks for them."""
    if isinstance(source, Tool):
        return False
    if isinstance(source, ToolSet):
        return source.is_changing
    if isinstance(source, Sequence) and not isinstance(source, str):
        return any(map(_is_changing, cast("Sequence[Any]", source)))
    return hasattr(source, "tools")


def _named(tool: Tool, name: str) -> Tool:
    return tool if name == tool.name else replace(tool, name=name)


def _check_known(names: Mapping[str, str], found: Sequence[Tool], told: set[str] | None) -> None:
    """Refuse to rename what is not there, or log it once."""
    have = [tool.name for tool in found]
    for name in names:
        if name in have or (told is not None and name in told):
            continue
        near = get_close_matches(name, have, 3, 0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(have) or 'none'}"
        text = f"there is no tool named {name!r} to rename{hint}"
        if told is None:
            raise InvalidTool(text)
        told.add(name)
        log.warning("renamed(): %s", text)
