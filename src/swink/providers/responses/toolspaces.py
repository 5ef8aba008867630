"""OpenAI's own tool search: deferred functions in namespaces, of which a model sees the names until it looks.

    tool_search_call(arguments={"paths": ["github"]})
    tool_search_output(tools=[…])
    function_call(name="github_create_issue", namespace="github")

The items go back as they came. Tools that share the first word of their names, as those of an MCP server do,
are one namespace.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swink.messages import ModelSpec
from swink.providers.convert import function_tool
from swink.providers.thinking import gpt_version
from swink.stream import ToolSpec
from swink.system.shorten import clip

_SINCE = (5, 4)
_LONGEST = 1_000


def searches_tools(model: ModelSpec) -> bool:
    """Whether the model can search tools."""
    return gpt_version(model.model_id) >= _SINCE


def function(tool: ToolSpec) -> dict[str, Any]:
    """A tool as a function; strict schemas are the default here, and refuse optional parameters."""
    return {"type": "function", **function_tool(tool)["function"], "strict": False}


def deferred_functions(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """What says that tools are to be loaded when they are found; nothing if there are none."""
    spaces: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        spaces.setdefault(tool.name.partition("_")[0], []).append(tool)
    told = [entry for name, members in spaces.items() for entry in _space(name, members)]
    return [*told, {"type": "tool_search"}] if told else []


def without_open_search(items: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The items of a reply that was cut off, without a search whose result never came."""
    kinds = [item.get("type") for item in items]
    is_open = kinds.count("tool_search_call") > kinds.count("tool_search_output")
    last = max((at for at, kind in enumerate(kinds) if kind == "tool_search_call"), default=-1)
    return [item for at, item in enumerate(items) if not (is_open and at == last)]


def _space(name: str, members: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    functions = [{**function(tool), "defer_loading": True} for tool in members]
    if len(members) == 1 or not name:
        return functions
    names = ", ".join(tool.name for tool in members)
    return [{"type": "namespace", "name": name, "description": clip(names, _LONGEST), "tools": functions}]
