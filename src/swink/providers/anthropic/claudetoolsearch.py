"""Anthropic's own tool search: deferred tools are sent with the others, and loaded as they are found.

    server_tool_use(name="tool_search_tool_bm25", input={"query": …})
    tool_search_tool_result(content={"tool_references": [{"type": "tool_reference", "tool_name": …}, …]})
    tool_use(name=…)

The blocks go back as they came. The API refuses a reference to a tool that is no longer there, so it is left
out then.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from swink.messages import ModelSpec
from swink.messages.jsondata import list_of, object_of
from swink.providers.claude import claude_version

SEARCH_TOOL = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
_RESULT = "tool_search_tool_result"
_SINCE = (4, 5)


def searches_tools(model: ModelSpec) -> bool:
    """Whether Anthropic searches tools for this model; Haiku takes no references to tools."""
    name = model.model_id.lower()
    return model.provider == "anthropic" and claude_version(name) >= _SINCE and "haiku" not in name


def found_tools(block: Mapping[str, Any]) -> set[str]:
    """The names of the tools that a block refers to."""
    if block.get("type") != _RESULT:
        return set()
    references = list_of(object_of(block.get("content")).get("tool_references"))
    return {name for found in references if isinstance(name := object_of(found).get("tool_name"), str)}


def with_references(
    messages: Sequence[Any], references: Collection[str], tools: Sequence[Mapping[str, Any]]
) -> Sequence[Any]:
    """The turns with references to tools of this request alone; the same ones if all are there."""
    names = {tool.get("name") for tool in tools}
    if names.issuperset(references):
        return messages
    turns: list[Any] = []
    for item in messages:
        # What is kept as JSON may hold several turns.
        turns += msgspec.json.decode(b"[" + bytes(item) + b"]") if type(item) is Raw else [item]
    return [_turn(turn, names) for turn in turns]


def _turn(turn: Mapping[str, Any], names: Collection[Any]) -> Mapping[str, Any]:
    blocks: list[Any] = list_of(turn.get("content"))
    if not any(object_of(block).get("type") == _RESULT for block in blocks):
        return turn
    return {**turn, "content": [_block(block, names) for block in blocks]}


def _block(block: Any, names: Collection[Any]) -> Any:
    match block:
        case {"type": "tool_search_tool_result", "content": {"tool_references": [*found]}}:
            kept = [reference for reference in found if object_of(reference).get("tool_name") in names]
            return {**block, "content": {**block["content"], "tool_references": kept}}
        case _:
            return block
