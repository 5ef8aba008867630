"""Short ways to ask a model in tests."""

from collections.abc import Sequence
from typing import Any

from swink.local import LocalStreamFn
from swink.messages import AssistantMessage, LlmMessage, ModelSpec, ToolResultMessage, UserMessage
from swink.stream import Assembly, AssistantMessageEvent, Done, Error, LlmContext, StreamOptions

SMOL = ModelSpec("local", "smollm2-135m")


class Spec:
    """A tool as a model sees it."""

    def __init__(
        self, name: str, description: str, properties: dict[str, Any] | None = None, **schema: Any
    ) -> None:
        self.name = name
        self.description = description
        self.parameters_schema: dict[str, Any] = {
            "type": "object",
            "properties": properties or {},
            "required": list(properties or {}),
            "additionalProperties": False,
            **schema,
        }


WEATHER = Spec("weather", "Current weather of a city.", {"city": {"type": "string", "maxLength": 40}})
CALCULATE = Spec("calculate", "Work out arithmetic.", {"expression": {"type": "string", "maxLength": 40}})


async def events_of(
    model: LocalStreamFn,
    messages: str | Sequence[LlmMessage],
    *,
    system: str = "",
    tools: Sequence[Spec] = (),
    spec: ModelSpec = SMOL,
    **options: Any,
) -> list[AssistantMessageEvent]:
    """Every event of one reply."""
    history = [UserMessage(messages)] if isinstance(messages, str) else messages
    return [
        event async for event in model(spec, LlmContext(system, history, tools), StreamOptions(**options))
    ]


async def ask(
    model: LocalStreamFn, messages: str | Sequence[LlmMessage], **options: Any
) -> tuple[AssistantMessage, Done | Error]:
    """One reply as a message, with its terminal; a breach of the protocol raises."""
    assembly = Assembly()
    for event in await events_of(model, messages, **options):
        assembly.feed(event)
    assert assembly.terminal is not None
    terminal = assembly.terminal
    reason = terminal.stop_reason if isinstance(terminal, Done) else "error"
    return assembly.message(SMOL, reason, usage=terminal.usage), terminal


def answered(message: AssistantMessage, text: str) -> list[LlmMessage]:
    """The message, and the same result for each of its calls."""
    return [message, *(ToolResultMessage(call.id, call.name, text) for call in message.tool_calls)]
