"""Tools: typed functions a model may call."""

from swink.messages import ToolResult
from swink.pruning import full_text
from swink.schema import copy_json
from swink.tool.definition import (
    FINAL_OUTPUT,
    Tool,
    as_tool,
    as_tools,
    call_off_loop,
    is_tool_name,
    tool,
)
from swink.tool.source import GONE, ToolSource, as_offers, offered_tools
from swink.tool.toolcontext import DepsT, ToolContext
from swink.tool.toolresult import (
    InvalidArguments,
    ToolError,
    Transfer,
    as_result,
    cut_result,
    failure,
)

__all__ = [
    "FINAL_OUTPUT",
    "GONE",
    "DepsT",
    "InvalidArguments",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolSource",
    "Transfer",
    "as_offers",
    "as_result",
    "as_tool",
    "as_tools",
    "call_off_loop",
    "copy_json",
    "cut_result",
    "failure",
    "full_text",
    "is_tool_name",
    "offered_tools",
    "tool",
]
