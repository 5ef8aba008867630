"""One run of an agent as version 1 of the UI message stream.

    start
    ├── start-step
    │   ├── reasoning-start reasoning-delta* reasoning-end   text-start text-delta* text-end
    │   ├── source-url | source-document | file              what a text cites, what a model made
    │   ├── tool-input-start tool-input-delta* tool-input-available
    │   ├── tool-approval-request tool-approval-response
    │   ├── tool-output-available (preliminary first) | tool-output-error | tool-output-denied
    │   └── data-state data-subagent data-…                  what the stream has no word for
    ├── finish-step, or reset-step where the reply begins again
    ├── abort | error
    └── finish

All calls are dynamic tools: the client need not know them.
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
from swink.messages import AssistantMessage, Message, ToolResultMessage, Usage, UserMessage
from swink.messages.jsondata import as_data
from swink.serve.vercel.parts import output_of, parts_of
from swink.serve.vercel.step import Chunk, Step
from swink.serve.vercel.subagents import SubagentParts
from swink.serve.webrun import Before, RunEnd

_FINISH = {
    "stop": "stop",
    "length": "length",
    "tool_use": "tool-calls",
    "error": "error",
    "aborted": "interrupted",
    "transfer": "other",
}


class VercelReply:
    """Writes the chunks of one run, in the order of the agent's events."""

    def __init__(
        self,
        conversation: str,
        message_id: str,
        before: Before,
        *,
        shown: frozenset[str] = frozenset(),
        earlier: Sequence[Message] = (),
    ) -> None:
        """`shown` are calls that the message has already; `earlier` are replies that it is to have again."""
        self._conversation = conversation
        self._message_id = message_id
        self._shown = shown
        self._earlier = earlier
        self._waited = before.waiting
        self._fresh = len(before.news.messages)
        self._step = Step()
        self._subagents = SubagentParts()
        self._asked: set[str] = set()
        self._calls = {*shown}
        self._denied: set[str] = set()
        self._usage = Usage()
        self._heard = 0

    def begin(self, state: Mapping[str, Any]) -> list[Chunk]:
        """The chunks before the agent's first event."""
        metadata = {"conversation": self._conversation}
        chunks: list[Chunk] = [{"type": "start", "messageId": self._message_id, "messageMetadata": metadata}]
        for message in self._earlier:
            match message:
                case AssistantMessage():
                    self._calls |= {call.id for call in message.tool_calls}
                    chunks += [*self._step.close(), *self._step.complete(message)]
                case ToolResultMessage(tool_call_id=call_id, content=content, is_error=is_error):
                    chunks.append(output_of(call_id, content, is_error))
                case _:
                    pass
        if state:
            chunks.append({"type": "data-state", "id": "state", "data": as_data(dict(state))})
        return [*chunks, *self._step.close()]

    def add(self, event: AgentEvent) -> list[Chunk]:
        """The chunks for one of the agent's events; its end is for `end`."""
        match event:
            case MessageUpdate(delta=delta):
                return self._step.update(delta)
            case MessageDiscarded():
                return self._step.reset()
            case MessageEnd(message=AssistantMessage() as message):
                calls = {call.id for call in message.tool_calls}
                if not self._waited & calls:
                    self._usage += message.usage
                self._calls |= calls
                if self._shown & calls:
                    return []
                return self._step.complete(message)
            case MessageEnd(message=UserMessage() as message):
                return self._hear(message)
            case ToolExecutionEnd() | ToolExecutionUpdate() | ToolExecutionStart():
                return self._tool(event)
            case ApprovalRequested(call_id=call_id) if call_id in self._calls:
                if call_id in self._shown:
                    return []
                self._asked.add(call_id)
                return [{"type": "tool-approval-request", "approvalId": call_id, "toolCallId": call_id}]
            case ApprovalResolved(call_id=call_id) if call_id in self._calls:
                return self._resolved(event)
            case StateChanged(delta=delta, removed=removed):
                change = {"changed": as_data(dict(delta)), "removed": list(removed)}
                return [{"type": "data-state-change", "data": change, "transient": True}]
            case TurnEnd():
                return self._step.close()
            case CustomEvent(name=name, data=data):
                return [{"type": f"data-{name}", "data": as_data(data), "transient": True}]
            case AgentStart() | AgentEnd() | TurnStart() | MessageStart() | MessageEnd():
                return []
            case _:
                data = as_data(event)
                return [{"type": f"data-{data.pop('type')}", "data": data, "transient": True}]

    def end(self, end: RunEnd) -> list[Chunk]:
        """The last chunks of the run."""
        chunks = [*self._subagents.end(), *self._step.close()]
        if end.output is not None:
            chunks.append({"type": "data-output", "id": "output", "data": as_data(end.output)})
        if end.is_aborted:
            chunks.append({"type": "abort", "reason": end.reason or "the run was aborted"})
        elif end.error is not None:
            chunks.append({"type": "error", "errorText": end.error})
        used = {"inputTokens": self._usage.total - self._usage.output, "outputTokens": self._usage.output}
        reason = "tool-calls" if end.pending or end.client_calls else _FINISH.get(end.stop_reason, "other")
        finish = {"type": "finish", "finishReason": reason}
        return [*chunks, {**finish, "messageMetadata": {"usage": {**used, "totalTokens": self._usage.total}}}]

    def _hear(self, message: UserMessage) -> list[Chunk]:
        """A message of the user: one that the client sent, or one that entered while the agent worked."""
        if self._fresh:
            self._fresh -= 1
            return []
        self._heard += 1
        id = f"{self._message_id}-user-{self._heard}"
        return [{"type": "steering-message", "id": id, "parts": parts_of(message.content)}]

    def _tool(self, event: ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd) -> list[Chunk]:
        if isinstance(event.outer, str):
            data = as_data(event)
            return [{"type": f"data-inner_{data.pop('type')}", "data": data, "transient": True}]
        match event:
            case ToolExecutionUpdate(call_id=call_id, update=NestedEvent() as nested):
                return self._subagents.add(call_id, nested)
            case ToolExecutionUpdate(call_id=call_id, update=update) if call_id in self._calls:
                output = {"output": as_data(update), "dynamic": True, "preliminary": True}
                return [{"type": "tool-output-available", "toolCallId": call_id, **output}]
            case ToolExecutionEnd(call_id=call_id, result=result):
                ended = self._subagents.end(call_id)
                if call_id in self._denied or call_id not in self._calls:
                    return ended  # the client refuses an output of a call that its message has not
                return [*ended, output_of(call_id, result.content, event.is_error or result.is_error)]
            case ToolExecutionStart() | ToolExecutionUpdate():
                return []

    def _resolved(self, event: ApprovalResolved) -> list[Chunk]:
        chunks: list[Chunk] = []
        if event.call_id in self._asked:
            answer = {"approvalId": event.call_id, "approved": event.approved}
            reason = {} if event.reason is None else {"reason": event.reason}
            chunks = [{"type": "tool-approval-response", **answer, **reason}]
        if not event.approved:
            self._denied.add(event.call_id)
            chunks.append({"type": "tool-output-denied", "toolCallId": event.call_id})
        return chunks
