"""Tools: typed functions that a model may call; those for coding are imported when first asked for."""

from typing import TYPE_CHECKING, Any

from swink.messages import ToolResult
from swink.messages.pruning import full_text
from swink.tools.definition import FINAL_OUTPUT, Tool, as_tool, as_tools, call_off_loop, is_tool_name, tool
from swink.tools.schema import copy_json
from swink.tools.toolcontext import DepsT, ToolContext, WantsT
from swink.tools.toolresult import InvalidArguments, ToolError, Transfer, as_result, cut_result, failure
from swink.tools.toolsource import GONE, ToolSource, as_offers, offered_tools

if TYPE_CHECKING:
    from swink.tools.coding import (
        Background,
        BadScript,
        Job,
        Level,
        Limits,
        PathRefused,
        Sandbox,
        SandboxUnavailable,
        ScriptTools,
        Workspace,
        bash_tools,
        coding_tools,
        fetch_tools,
        list_tools,
        read_tools,
        script_tools,
        search_tools,
        todo_tools,
        write_tools,
    )

__all__ = [
    "FINAL_OUTPUT",
    "GONE",
    "Background",
    "BadScript",
    "DepsT",
    "InvalidArguments",
    "Job",
    "Level",
    "Limits",
    "PathRefused",
    "Sandbox",
    "SandboxUnavailable",
    "ScriptTools",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolSource",
    "Transfer",
    "WantsT",
    "Workspace",
    "as_offers",
    "as_result",
    "as_tool",
    "as_tools",
    "bash_tools",
    "call_off_loop",
    "coding_tools",
    "copy_json",
    "cut_result",
    "failure",
    "fetch_tools",
    "full_text",
    "is_tool_name",
    "list_tools",
    "offered_tools",
    "read_tools",
    "script_tools",
    "search_tools",
    "todo_tools",
    "tool",
    "write_tools",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from swink.tools import coding

    return getattr(coding, name)
