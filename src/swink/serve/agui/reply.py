"""One run of an agent as the events of AG-UI.

RUN_STARTED STATE_SNAPSHOT MESSAGES_SNAPSHOT?
├── STEP_STARTED
│   ├── REASONING_START … REASONING_END   TEXT_MESSAGE_START … TEXT_MESSAGE_END
│   ├── TOOL_CALL_START TOOL_CALL_ARGS* TOOL_CALL_END   TOOL_CALL_RESULT
│   ├── SUBAGENT_STARTED, all of this with its id, SUBAGENT_FINISHED | SUBAGENT_ERROR
│   └── STATE_DELTA
├── STEP_FINISHED
└── RUN_FINISHED (success, interrupt or cancelled) | RUN_ERROR
"""

from collections.abc import Mapping, Sequence
from typing import Any

from swink.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    CustomEvent,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    NestedEvent,
    StateChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from swink.messages import AssistantMessage, Message, Usage, UserMessage
from swink.messages.jsondata import as_data
from swink.messages.records import PendingApproval
from swink.serve.agui.shapes import messages_of
from swink.serve.agui.speaker import Event, Speaker
from swink.serve.agui.subagents import SubagentSpeakers
from swink.serve.webrun import Before, RunEnd

_ANSWER = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


class AguiReply:
    """Writes the events of one run, in the order of the agent's."""

    def __init__(self, thread_id: str, run_id: str, before: Before) -> None:
        self._run = {"threadId": thread_id, "runId": run_id}
        self._shown = before.news.calls
        self._waited = before.waiting
        self._brought = frozenset(before.news.results)
        self._messages: list[tuple[str, Message]] = [
            (before.news.ids.get(index) or _id(index), message) for index, message in enumerate(before.stored)
        ]
        self._is_behind = not before.news.is_whole
        # Ids of ours where the client gets a snapshot: it puts what is new to it behind what it has.
        given = () if self._is_behind else before.news.new_ids
        self._fresh = [
            ("".join(given[index : index + 1]) or _id(len(before.stored) + index), message)
            for index, message in enumerate(before.news.messages)
        ]
        self._speaker = Speaker("message-", len(before.stored))
        self._subagents = SubagentSpeakers()
        self._usage: dict[tuple[str, str], Usage] = {}

    def begin(self, state: Mapping[str, Any]) -> list[Event]:
        """The events before the agent's first; a client that has not all that is stored gets it."""
        snapshot = [self._snapshot()] if self._is_behind else []
        return [
            {"type": "RUN_STARTED", **self._run, "protocolVersion": "1.0"},
            {"type": "STATE_SNAPSHOT", "snapshot": as_data(dict(state))},
            *snapshot,
        ]

    def add(self, event: AgentEvent) -> list[Event]:
        """The events for one of the agent's; its end is for `end`."""
        match event:
            case MessageEnd(message=UserMessage() as message):
                return self._heard(message)
            case MessageDiscarded():
                return [*self._speaker.drop(), self._snapshot()]
            case ToolExecutionEnd() if isinstance(event.outer, str):
                return [_inner(event)]
            case (
                MessageStart() | MessageUpdate() | MessageEnd() | TurnStart() | TurnEnd() | ToolExecutionEnd()
            ):
                if isinstance(event, MessageEnd):
                    self._keep(event.message)
                if not isinstance(event, ToolExecutionEnd):
                    return self._speaker.say(event, self._shown)
                if event.call_id in self._brought:
                    return []
                return [*self._subagents.end(event.call_id), *self._speaker.say(event)]
            case ToolExecutionStart():
                return [_inner(event)] if isinstance(event.outer, str) else []
            case ToolExecutionUpdate(call_id=call_id, update=NestedEvent() as nested):
                return self._subagents.add(call_id, nested)
            case ToolExecutionUpdate(call_id=call_id, update=update):
                return [_custom("tool_progress", {"toolCallId": call_id, "update": as_data(update)})]
            case StateChanged(delta=delta, removed=removed):
                return [{"type": "STATE_DELTA", "delta": _patch(delta, removed)}]
            case CustomEvent(name=name, data=data):
                return [_custom(name, as_data(data))]
            case ApprovalRequested() | ApprovalResolved() | AgentStart() | AgentEnd():
                return []
            case _:
                data = as_data(event)
                return [_custom(data.pop("type"), data)]

    def end(self, end: RunEnd) -> list[Event]:
        """The last events of the run."""
        used = _usage(self._usage)
        usage = {"usage": used} if used else {}
        if end.error is not None:
            return [{"type": "RUN_ERROR", "message": end.error, "code": end.code, **usage}]
        finished: Event = {"type": "RUN_FINISHED", **self._run, **usage}
        if end.output is not None:
            finished["result"] = as_data(end.output)
        if end.is_aborted:
            finished["outcome"] = {"type": "cancelled"}
        elif end.pending:
            finished["outcome"] = {
                "type": "interrupt",
                "interrupts": [_interrupt(call) for call in end.pending],
            }
        elif end.client_calls:
            ids = [call.id for call in end.client_calls]
            finished["outcome"] = {"type": "success", "pendingToolCallIds": ids}
        else:
            finished["outcome"] = {"type": "success"}
        return [*self._subagents.end(), *self._speaker.close(), finished]

    def _heard(self, message: UserMessage) -> list[Event]:
        """A message of the user: one that the client sent it has already."""
        if not self._fresh:
            self._messages.append((self._speaker.message_id, message))
            return self._speaker.hear(message)
        id, _ = self._fresh.pop(0)
        self._messages.append((id, message))
        self._speaker.say(MessageEnd(message))
        return []

    def _keep(self, message: Message) -> None:
        self._messages.append((self._speaker.message_id, message))
        if isinstance(message, AssistantMessage) and not self._waited & {
            call.id for call in message.tool_calls
        }:
            whose = message.provider, message.model
            self._usage[whose] = self._usage.get(whose, Usage()) + message.usage

    def _snapshot(self) -> Event:
        return {"type": "MESSAGES_SNAPSHOT", "messages": messages_of([*self._messages, *self._fresh])}


def _id(position: int) -> str:
    return f"message-{position}"


def _custom(name: str, value: Any) -> Event:
    return {"type": "CUSTOM", "name": name, "value": value}


def _inner(event: ToolExecutionStart | ToolExecutionEnd) -> Event:
    """A call that a call makes: it stands in no message."""
    data = as_data(event)
    return _custom(data.pop("type"), data)


def _patch(delta: Mapping[str, Any], removed: Sequence[str]) -> list[Event]:
    """The change of the state as a JSON patch; "add" replaces what is there."""
    added = [{"op": "add", "path": _pointer(key), "value": as_data(value)} for key, value in delta.items()]
    return [*added, *[{"op": "remove", "path": _pointer(key)} for key in removed]]


def _pointer(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1")


def _interrupt(call: PendingApproval) -> Event:
    return {
        "id": call.call_id,
        "reason": "tool_call",
        "message": f"May the tool {call.name} run?",
        "toolCallId": call.call_id,
        "responseSchema": _ANSWER,
        "metadata": {"name": call.name, "arguments": as_data(call.shown)},
    }


def _usage(usage: Mapping[tuple[str, str], Usage]) -> list[Event]:
    return [
        {
            "provider": provider,
            "model": model,
            "inputTokens": used.input + used.cache_read + used.cache_write,
            "outputTokens": used.output,
            "totalTokens": used.total,
            "cachedInputTokens": used.cache_read,
            "cacheWriteInputTokens": used.cache_write,
        }
        for (provider, model), used in usage.items()
        if not used.unknown
    ]
