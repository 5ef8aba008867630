"""Tools: typed functions that a model may call; coding, skills and code mode are imported when asked for."""

from typing import TYPE_CHECKING, Any

from swink.messages import ToolResult
from swink.messages.pruning import full_text
from swink.tools.definition import (
    FINAL_OUTPUT,
    FIND_TOOLS,
    Inside,
    Tool,
    as_tool,
    as_tools,
    call_off_loop,
    is_tool_name,
    tool,
)
from swink.tools.schema import copy_json
from swink.tools.toolcontext import CallWaits, DepsT, ToolContext, WantsT
from swink.tools.toolresult import InvalidArguments, ToolError, Transfer, as_result, cut_result, failure
from swink.tools.toolsource import GONE, ToolSource, TurnContext, as_offers, narrowed, offered_tools

if TYPE_CHECKING:
    from swink.tools.codemode import CodeLimits, code_mode
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
    from swink.tools.skills import BadSkill, InvalidSkill, Skill, check_skill, read_skills, skill_tools
    from swink.tools.toolsets import ToolSet, filtered, prefixed, prepared, renamed

__all__ = [
    "FINAL_OUTPUT",
    "FIND_TOOLS",
    "GONE",
    "Background",
    "BadScript",
    "BadSkill",
    "CallWaits",
    "CodeLimits",
    "DepsT",
    "Inside",
    "InvalidArguments",
    "InvalidSkill",
    "Job",
    "Level",
    "Limits",
    "PathRefused",
    "Sandbox",
    "SandboxUnavailable",
    "ScriptTools",
    "Skill",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolSet",
    "ToolSource",
    "Transfer",
    "TurnContext",
    "WantsT",
    "Workspace",
    "as_offers",
    "as_result",
    "as_tool",
    "as_tools",
    "bash_tools",
    "call_off_loop",
    "check_skill",
    "code_mode",
    "coding_tools",
    "copy_json",
    "cut_result",
    "failure",
    "fetch_tools",
    "filtered",
    "full_text",
    "is_tool_name",
    "list_tools",
    "narrowed",
    "offered_tools",
    "prefixed",
    "prepared",
    "read_skills",
    "read_tools",
    "renamed",
    "script_tools",
    "search_tools",
    "skill_tools",
    "todo_tools",
    "tool",
    "write_tools",
]


_PLACES = {
    **dict.fromkeys(("ToolSet", "filtered", "prefixed", "prepared", "renamed"), "toolsets"),
    **dict.fromkeys(("CodeLimits", "code_mode"), "codemode"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    place = _PLACES.get(name) or ("skills" if "skill" in name.lower() else "coding")
    return getattr(import_module(f"swink.tools.{place}"), name)
