"""Sources of tools: objects among an agent's tools that are asked for theirs at the start of every turn."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, Protocol, cast, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from swink.errors import InvalidInput, InvalidTool
from swink.messages import Message
from swink.messages.checks import check_list
from swink.tools.definition import Tool, as_tool, as_tools, check_names
from swink.tools.workers import Abandoned, run_in_thread

log = logging.getLogger("swink.tool")

GONE = "No longer available. Do not call it."
"""The description of a placeholder, which makes way for the tool as soon as a source offers it."""


@runtime_checkable
class ToolSource(Protocol):
    """Tools that may change, such as the scripts of a folder: `Agent(tools=[add, source])`."""

    def tools(self) -> Sequence[Any]:
        """The tools as they are now. Called in a worker thread, so it may read a disk."""
        ...


class Offers(tuple[Tool | ToolSource, ...]):
    """Tools and sources of tools that were checked together."""

    __slots__ = ()


def as_offers(values: Sequence[Any]) -> Offers:
    """All `values` as tools, except sources, which stay what they are; two tools of one name are refused.

    A sequence that is a source itself is the only one.
    """
    kind: Any = type(values)
    if kind is Offers:
        return cast(Offers, values)
    if kind is not list and kind is not tuple and _is_source(values):
        return Offers((cast(ToolSource, values),))
    offers: list[Any] = []
    for value in check_list("tools", values, "tools"):
        if type(value) is not Tool and (type(value) is FunctionType or not _is_source(value)):
            value = as_tool(value)
        offers.append(value)
    check_names(offers)
    return Offers(offers)


class TurnContext(Struct, frozen=True):
    """What is known at the start of a turn, for what decides about its tools.

    Args:
        deps: the dependencies of the run
        state: the session's state
        messages: the history so far
    """

    deps: Any = None
    state: Mapping[str, Any] = {}
    messages: Sequence[Message] = ()

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("state", self.state), ("messages", self.messages)]  # never the dependencies

    def __repr__(self) -> str:
        return f"TurnContext(state={self.state!r}, messages={self.messages!r})"


def narrowed(tools: Iterable[Tool], keep: Callable[[Tool], bool]) -> list[Tool]:
    """The tools that `keep` says True to; one with tools inside is made anew with those of them that are
    kept.
    """
    found: list[Tool] = []
    for tool in tools:
        if (inside := tool.inside) is not None:
            kept = [inner for inner in inside.tools if keep(inner)]
            if not kept:
                continue
            if len(kept) < len(inside.tools):
                made = inside.remake(kept)
                tool = replace(
                    tool,
                    description=made.description,
                    body=made.body,
                    read_only=made.read_only,
                    sequential=made.sequential,
                    inside=made.inside,
                )
        if keep(tool):
            found.append(tool)
    return found


async def offered_tools(
    offers: Sequence[Tool | ToolSource],
    reserved: Sequence[Tool],
    warned: list[str],
    context: TurnContext | None = None,
) -> tuple[Tool, ...]:
    """The tools of a turn's `offers`, each source asked once. Of two with one name the one named by itself
    stays.

    A name of the `reserved` ones, which the run adds, is left out. `warned` remembers the names of tools left
    out, so that each is told once. A source may have `tools_for(context)` instead of `tools()`.
    """
    gone = [offer for offer in offers if isinstance(offer, Tool) and offer.description == GONE]
    offers = [offer for offer in offers if offer not in gone]
    taken = {tool.name for tool in (*offers, *reserved) if isinstance(tool, Tool)}
    tools: list[Tool] = []
    for offer in offers:
        if isinstance(offer, Tool):
            tools.append(offer)
            continue
        for tool in await _ask(offer, context or TurnContext()):
            if tool.name not in taken:
                taken.add(tool.name)
                tools.append(tool)
            elif tool.name not in warned:
                warned.append(tool.name)
                log.warning("%s: there is another tool named %r; rename one", _name(offer), tool.name)
    return (*tools, *[tool for tool in gone if tool.name not in taken])


async def _ask(source: ToolSource, context: TurnContext) -> tuple[Tool, ...]:
    asked: Any = getattr(source, "tools_for", None)
    given = {} if asked is None else {"context": context}
    try:
        return as_tools(await run_in_thread(asked or source.tools, given, _name(source), lambda: None))
    except Abandoned:
        raise asyncio.CancelledError from None
    except (InvalidInput, InvalidTool) as error:
        raise InvalidTool(f"{_name(source)}.tools(): {error}") from error


def _is_source(value: Any) -> bool:
    return hasattr(value, "tools") and callable(value.tools) and not isinstance(value, type | Tool)


def _name(source: ToolSource) -> str:
    return type(source).__name__
