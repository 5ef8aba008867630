"""Client tools: tools that the program on the other side runs.

A call of one is asked about like any call that needs approval, is put off, and so ends the run. What the
client brings with the next start is the approval, and the result of the call.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from swink.errors import MisuseError
from swink.messages import ToolResult
from swink.serve.wire import Refused
from swink.tools import Tool, ToolContext, ToolError


class ClientTool(Struct, frozen=True):
    """A tool that the client runs: a call of it ends the run, and its result comes with the next start."""

    name: str
    description: str = ""
    parameters_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


def tools_of(tools: Sequence[ClientTool], results: Mapping[str, ToolResult]) -> list[Tool[Any]]:
    """The tools as an agent takes them; a call whose result the client has brought ends with it."""

    async def bring(call_id: str, arguments: dict[str, Any], ctx: ToolContext[Any]) -> ToolResult:
        result = results.get(call_id)
        if result is None:
            raise ToolError("the result that the client brought was lost; call again")
        return result

    try:
        return [
            Tool.raw(
                tool.name,
                tool.description or tool.name,
                tool.parameters_schema,
                bring,
                requires_approval=True,
                idempotent=True,
            )
            for tool in tools
        ]
    except MisuseError as error:
        raise Refused(400, str(error)) from None
