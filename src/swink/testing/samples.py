"""What the conformance kit asks: two prompts, a tool, and a conversation that another provider left."""

from typing import Any

from msgspec import Struct

from swink.messages.blocks import Text, Thinking, ToolCall
from swink.messages.message import AssistantMessage, LlmMessage, ToolResultMessage, UserMessage

TEXT_PROMPT = "Say hello."
TOOL_PROMPT = "What is the weather in Oslo? Use the tool."


class ToolOnOffer(Struct, frozen=True):
    """What the model is told about the tool.

    Args:
        name: what the model calls
        description: what it is for
        parameters_schema: the JSON Schema of its arguments
    """

    name: str
    description: str
    parameters_schema: dict[str, Any]


_CITY = {"type": "string", "description": "Name of the city."}
_PARAMETERS = {"type": "object", "properties": {"city": _CITY}, "required": ["city"]}
TOOL = ToolOnOffer("weather", "Current weather.", _PARAMETERS)
"""The tool that the function is asked to call."""
HISTORY: tuple[LlmMessage, ...] = (
    UserMessage("What is the weather in Oslo and in Bergen?"),
    AssistantMessage(
        (
            Thinking("Two cities.", "c2lnbmVk"),
            Text("Let me look."),
            ToolCall("call:1|" + "x" * 80, "weather", {"city": "Oslo"}),
            ToolCall("call:2", "weather", {"city": "Bergen"}),
        ),
        "another-provider",
        "another-model",
        "tool_use",
    ),
    ToolResultMessage("call:1|" + "x" * 80, "weather", (Text("18 degrees"),)),
    ToolResultMessage("call:2", "weather", (Text("no such city"),), True),
    AssistantMessage((), "another-provider", "another-model", "aborted"),
    UserMessage(TEXT_PROMPT),
)
"""Another provider's conversation: thinking, two calls in a turn, odd ids, a failed call, an aborted turn."""
