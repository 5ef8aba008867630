"""read_result: a tool with which a model reads on in a result that was cut short.

A result is in the history in full, however much of it the model is sent: a tool's limit keeps the whole text
beside what is shown, and pruning changes only what is sent. So it is in the session's file too, and a session
that is opened again still has it.
"""

from typing import Annotated

from msgspec import Meta

from swink.messages import ToolResultMessage
from swink.messages.pruning import READ_RESULT
from swink.tools import ToolContext, ToolError, full_text, tool

MOST = 20_000
"""Characters of a result that one call gives at most."""


@tool(name=READ_RESULT, read_only=True, max_result=2 * MOST)
async def read_result(
    ctx: ToolContext,
    result: str,
    start: Annotated[int, Meta(ge=0)] = 0,
    length: Annotated[int, Meta(ge=1, le=MOST)] = 8_000,
) -> str:
    """Read a part of an earlier tool result that was cut short.

    Args:
        result: The id in the note about what was left out, or the name of a tool for its newest result.
        start: The first character, counted from 0.
        length: How many characters.
    """
    found = _find(ctx, result)
    if found is None:
        known = dict.fromkeys(item.tool_name for item in ctx.messages if isinstance(item, ToolResultMessage))
        hint = f"; there are results of {', '.join(known)}" if known else ""
        raise ToolError(f"there is no result {result!r:.80} in this conversation{hint}")
    text = full_text(found) or found.text
    part = text[start : start + length]
    end = start + len(part)
    more = f"; {len(text) - end} more follow" if end < len(text) else ""
    return f"[characters {start} to {end} of {len(text)}{more}]\n{part}"


def _find(ctx: ToolContext, result: str) -> ToolResultMessage | None:
    """The result of the call with this id, else the newest of the tool of this name."""
    results = [item for item in reversed(ctx.messages) if isinstance(item, ToolResultMessage)]
    by_id = next((item for item in results if item.tool_call_id == result), None)
    named = (item for item in results if item.tool_name == result != READ_RESULT)
    return by_id or next(named, None)
