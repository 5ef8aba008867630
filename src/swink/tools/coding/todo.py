"""todo: the agent's own list of what is left to do."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from swink.messages import Text
from swink.tools import Tool, ToolContext, ToolResult, tool

STATE_KEY = "todo"
"""Where the list is in the session's state, for an interface to show."""
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


class Task(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to do."""

    text: Annotated[
        str, Meta(min_length=1, max_length=500, description="What is to be done, in a few words.")
    ]
    status: Annotated[
        Literal["pending", "in_progress", "done"], Meta(description="At most one task should be in_progress.")
    ] = "pending"


def todo_tools() -> list[Tool]:
    """todo; the list lives in the session's state."""

    @tool(idempotent=True, sequential=True)
    async def todo(ctx: ToolContext, tasks: list[Task] | None = None) -> ToolResult:
        """Keep a list of tasks for work of several steps: pass the whole list to change it, or read it.

        Args:
            tasks: The whole new list, in order; leave it out to read the list.
        """
        if tasks is not None:
            ctx.state[STATE_KEY] = msgspec.to_builtins(tasks)
        kept: list[dict[str, Any]] = ctx.state.get(STATE_KEY, [])
        lines = [f"{_MARKS.get(task['status'], '[ ]')} {task['text']}" for task in kept]
        return ToolResult((Text("\n".join(lines) or "[no tasks]"),), {"tasks": kept})

    return [todo]
