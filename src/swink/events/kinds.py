"""What the loop says: the events of a run, in this order.

AgentStart
├── MessageStart MessageEnd                          each prompt, steering or follow-up message that enters
├── ContextCompacted*                                a transformer dropped something
├── TurnStart
│   ├── MessageStart("assistant")
│   │   ├── MessageUpdate*                           live deltas; ToolCallStart before those of a call
│   │   ├── CustomEvent("prompt_progress")*          a model that takes a while to read says how far it is
│   │   ├── RetryScheduled* ModelFallback*           MessageDiscarded first, if deltas had been shown
│   │   └── ContextCompacted*                        overflow recovery
│   ├── MessageEnd
│   ├── ApprovalRequested ApprovalResolved           per call that needs one, in call order; not if deferred
│   ├── ToolExecutionStart ToolExecutionUpdate* ToolExecutionEnd   per call; one never started only ends;
│   │                                                those of calls that a call makes itself between its own
│   ├── MessageStart("tool_result") MessageEnd       each result, in call order
│   ├── StateChanged?
│   └── TurnEnd
└── AgentEnd

Every start has exactly one end, properly nested, in every outcome.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import force_setattr

from swink.messages import (
    AssistantMessage,
    Cost,
    Message,
    StopReason,
    ToolResult,
    ToolResultMessage,
    TurnEndReason,
    Usage,
)
from swink.messages.jsondata import encode, read
from swink.stream import BlockAdded as BlockAdded
from swink.stream import TextDelta as TextDelta
from swink.stream import ThinkingDelta as ThinkingDelta
from swink.stream import ToolCallDelta as ToolCallDelta
from swink.stream import ToolCallStart as ToolCallStart
from swink.stream import Update


class AgentStart(Struct, frozen=True, gc=False, tag="agent_start", tag_field="type"):
    """The first event of every run."""


class AgentEnd(Struct, frozen=True, tag="agent_end", tag_field="type"):
    """A run ended; `messages` are all it added to the history.

    Args:
        stop_reason: how the last reply ended
        reason: why a policy or a limit stopped it
    """

    messages: tuple[Message, ...]
    stop_reason: StopReason = "stop"
    reason: str | None = None


class TurnStart(Struct, frozen=True, gc=False, tag="turn_start", tag_field="type"):
    """A turn begins: one reply and its tool calls."""

    turn: int


class TurnEnd(Struct, frozen=True, tag="turn_end", tag_field="type"):
    """The reply of a turn with its tool results, and why the turn ended.

    Args:
        message: the reply
        tool_results: the results of its calls
        reason: why the turn ended
    """

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    reason: TurnEndReason


class MessageStart(Struct, frozen=True, gc=False, tag="message_start", tag_field="type"):
    """A message of this role begins; `MessageEnd` carries it whole."""

    role: str


class MessageUpdate(Struct, frozen=True, gc=False, tag="message_update", tag_field="type"):
    """More of the reply, as it arrives: a delta, the name and id of a tool call, or a whole block."""

    delta: Update


class MessageDiscarded(Struct, frozen=True, gc=False, tag="message_discarded", tag_field="type"):
    """The attempt failed after deltas were shown: drop them, another attempt follows.

    Args:
        reason: what failed
    """

    attempt: int
    reason: str


class MessageEnd(Struct, frozen=True, tag="message_end", tag_field="type"):
    """A message is complete and in the history."""

    message: Message


class ToolExecutionStart(Struct, frozen=True, tag="tool_execution_start", tag_field="type"):
    """A tool begins to run.

    Args:
        call_id: the call
        name: its tool
        arguments: what it is called with
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    outer: str | UnsetType = UNSET
    """The id of the call inside of which it was made, if one made it."""


class ToolExecutionUpdate(Struct, frozen=True, tag="tool_execution_update", tag_field="type"):
    """Progress from a running tool.

    Args:
        call_id: the call
        name: its tool
        update: what the tool reports
        outer: the call around it
    """

    call_id: str
    name: str
    update: Any
    outer: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        match self.update:
            case {"type": "nested_event"}:
                with suppress(msgspec.ValidationError):
                    force_setattr(self, "update", msgspec.convert(self.update, NestedEvent))
            case _:
                pass


class ToolExecutionEnd(Struct, frozen=True, tag="tool_execution_end", tag_field="type"):
    """A call is settled, whether or not it ever ran.

    Args:
        call_id: the call
        name: its tool
        result: what the model is told
        is_error: whether it failed
        outer: the call around it
    """

    call_id: str
    name: str
    result: ToolResult
    is_error: bool = False
    outer: str | UnsetType = UNSET


class ApprovalRequested(Struct, frozen=True, tag="approval_requested", tag_field="type"):
    """The user is asked whether a call may run; `shown` are its arguments without secrets.

    Args:
        call_id: the call
        name: its tool
        outer: the call around it, for a call that a tool made
    """

    call_id: str
    name: str
    shown: dict[str, Any]
    outer: str | UnsetType = UNSET


class ApprovalResolved(Struct, frozen=True, gc=False, tag="approval_resolved", tag_field="type"):
    """What was answered when a call asked for approval.

    Args:
        call_id: the call
        name: its tool
        approved: the answer
        reason: the words given with it
        outer: the call around it
    """

    call_id: str
    name: str
    approved: bool
    reason: str | None = None
    outer: str | UnsetType = UNSET


class CompactionReport(Struct, frozen=True, gc=False):
    """What a transformer left out of the context, with estimated tokens.

    `pruned` results were cut short. `usage` and `cost` are those of a summary, and part of the run's own.

    Args:
        dropped: messages that were left out
        tokens_before: what the history would have taken
        tokens_after: what is sent
        overflow: whether the provider had refused the request as too long
    """

    dropped: int
    tokens_before: int
    tokens_after: int
    overflow: bool = False
    pruned: int = 0
    usage: Usage = Usage()
    cost: Cost | None = Cost()


class ContextCompacted(Struct, frozen=True, gc=False, tag="context_compacted", tag_field="type"):
    """A transformer sent less than the whole history; the report says how much."""

    report: CompactionReport


class RetryScheduled(Struct, frozen=True, gc=False, tag="retry_scheduled", tag_field="type"):
    """The attempt failed; another follows after `delay` seconds.

    Args:
        error: what failed
    """

    attempt: int
    delay: float
    error: str


class ModelFallback(Struct, frozen=True, gc=False, tag="model_fallback", tag_field="type"):
    """A model's retries are used up; the next one is tried.

    Args:
        from_model: the model that failed
        to_model: the one that is asked next
    """

    from_model: str
    to_model: str


class StateChanged(Struct, frozen=True, tag="state_changed", tag_field="type"):
    """What a turn changed in the session state.

    Args:
        delta: keys with their new values
        removed: keys that are gone
    """

    delta: dict[str, Any]
    removed: tuple[str, ...] = ()


class CustomEvent(Struct, frozen=True, tag="custom_event", tag_field="type"):
    """An event of the application's own.

    Args:
        name: what the application calls it
        data: whatever it says
    """

    name: str
    data: Any = field(default=None)


PROMPT_PROGRESS = "prompt_progress"
"""The name of the event that tells how many tokens of the prompt, `done` of `total`, a model has read."""

AgentEvent = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageDiscarded
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | ApprovalRequested
    | ApprovalResolved
    | ContextCompacted
    | RetryScheduled
    | ModelFallback
    | StateChanged
    | CustomEvent
)


class NestedEvent(Struct, frozen=True, tag="nested_event", tag_field="type"):
    """An event of an agent inside another one, and whose it is: `path` names the agents from the outside in.

    `calls` has, for each of them, the id of the tool call that started it, or nothing where no call did.
    """

    path: tuple[str, ...]
    event: AgentEvent
    calls: tuple[str, ...] = ()


def encode_agent_event(event: AgentEvent) -> bytes:
    """An event as JSON, which `decode_agent_event` reads back."""
    return encode(event)


def decode_agent_event(data: bytes | str) -> AgentEvent:
    """An event from JSON `data`; an unknown type is an `InvalidInput` that names it."""
    return read(_decoder, data, "an event")


def final_text(messages: Sequence[Message]) -> str:
    """The text of the last assistant message of `messages`, or nothing."""
    return next((message.text for message in reversed(messages) if isinstance(message, AssistantMessage)), "")


_decoder: msgspec.json.Decoder[AgentEvent] = msgspec.json.Decoder(AgentEvent)
