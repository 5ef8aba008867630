"""The events of one speaker, the agent or one of its sub-agents: its text, thinking, calls and steps."""

from typing import Any

from swink.events import (
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    TurnEnd,
    TurnStart,
)
from swink.messages import (
    AssistantMessage,
    Audio,
    Document,
    Image,
    Media,
    Text,
    Thinking,
    ToolCall,
    UserMessage,
)
from swink.messages.jsondata import encode
from swink.serve.agui.shapes import media_part, parts_of, reasoning_id, result_id
from swink.stream import BlockAdded, TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStart

Event = dict[str, Any]
Said = MessageStart | MessageUpdate | MessageDiscarded | MessageEnd | TurnStart | TurnEnd | ToolExecutionEnd


class Speaker:
    """Writes what one agent says. Whatever it opens it closes, at the latest in `close`."""

    def __init__(self, prefix: str, position: int = 0, tag: str | None = None) -> None:
        """Its messages are numbered from `position`; `tag` is the id of the sub-agent's run that it is."""
        self._prefix = prefix
        self._position = position
        self._tag: Event = {} if tag is None else {"subagentRunId": tag}
        self._attempt = 0
        self._step: str | None = None
        self._has_text = False
        self._thinking: str | None = None
        self._thoughts: set[int] = set()
        self._open: dict[int, str] = {}
        self._begun: set[str] = set()
        self._filled: set[str] = set()

    @property
    def message_id(self) -> str:
        """The id of the message that is next or under way."""
        attempt = f"-{self._attempt}" if self._attempt else ""
        return f"{self._prefix}{self._position}{attempt}"

    def say(self, event: Said, shown: frozenset[str] = frozenset()) -> list[Event]:
        """The events for one of the agent's; calls in `shown` are known to the client with their reply."""
        match event:
            case TurnStart(turn=turn):
                return [*self._end_step(), self._begin_step(f"turn {turn}")]
            case MessageUpdate(delta=delta):
                return self._update(delta)
            case MessageEnd(message=AssistantMessage() as message):
                said = [] if shown & {call.id for call in message.tool_calls} else self._rest(message)
                return [*said, *self._settle(next_message=True)]
            case MessageEnd():
                self._position += 1
                return []
            case ToolExecutionEnd(call_id=call_id, result=result):
                content = parts_of(result.content)
                head = {"messageId": result_id(call_id), "toolCallId": call_id, "role": "tool"}
                failed = {"metadata": {"isError": True}} if event.is_error or result.is_error else {}
                return [self._event("TOOL_CALL_RESULT", **head, content=content, **failed)]
            case TurnEnd():
                return self._end_step()
            case MessageStart() | MessageDiscarded():
                return []

    def hear(self, message: UserMessage) -> list[Event]:
        """A message of the user that entered while the agent was at work."""
        id, self._position = self.message_id, self._position + 1
        return [
            self._event("TEXT_MESSAGE_START", messageId=id, role="user"),
            *(
                [self._event("TEXT_MESSAGE_CONTENT", messageId=id, delta=message.text)]
                if message.text
                else []
            ),
            self._event("TEXT_MESSAGE_END", messageId=id),
        ]

    def drop(self) -> list[Event]:
        """What was said of the reply does not count: close it."""
        closed = self._settle()
        if self._tag:
            self._attempt += 1  # there is no way to take back what a sub-agent said
        return closed

    def close(self) -> list[Event]:
        """The events that close whatever is still open."""
        return [*self._settle(), *self._end_step()]

    def _update(self, delta: Any) -> list[Event]:
        match delta:
            case TextDelta(text=text):
                return [*self._end_thinking(), *self._text(text)]
            case ThinkingDelta(index=index, text=text):
                return self._think(index, text)
            case ToolCallStart(index=index, id=id, name=name):
                return [*self._end_thinking(), *self._begin_call(index, id, name)]
            case ToolCallDelta(index=index, json=json):
                if (id := self._open.get(index)) is None:
                    return []
                self._filled.add(id)
                return [self._event("TOOL_CALL_ARGS", toolCallId=id, delta=json)]
            case BlockAdded(block=Image() | Audio() | Document() as block):
                return [*self._end_thinking(), *self._media(block)]
            case _:
                return []

    def _rest(self, message: AssistantMessage) -> list[Event]:
        """What of a complete reply did not come piece by piece."""
        events: list[Event] = []
        had_text = self._has_text
        for index, block in enumerate(message.content):
            match block:
                case Text(text=text) if text and not had_text:
                    events += [*self._end_thinking(), *self._text(text)]
                case Thinking(text=text) if text and index not in self._thoughts and not had_text:
                    events += self._think(index, text)
                case ToolCall(id=id, name=name):
                    if id not in self._begun:
                        events += [*self._end_thinking(), *self._begin_call(-1 - index, id, name)]
                    if id not in self._filled:
                        json = block.partial_json or encode(block.arguments).decode()
                        events.append(self._event("TOOL_CALL_ARGS", toolCallId=id, delta=json))
                case _:
                    pass
        return events

    def _text(self, text: str) -> list[Event]:
        begun = [] if self._has_text else [self._event("TEXT_MESSAGE_START", messageId=self.message_id)]
        if not self._has_text:
            begun[0]["role"] = "assistant"
        self._has_text = True
        return [*begun, self._event("TEXT_MESSAGE_CONTENT", messageId=self.message_id, delta=text)]

    def _think(self, index: int, text: str) -> list[Event]:
        id = reasoning_id(self.message_id, index)
        begun: list[Event] = []
        if self._thinking != id:
            begun = [
                *self._end_thinking(),
                self._event("REASONING_START", messageId=id),
                self._event("REASONING_MESSAGE_START", messageId=id, role="reasoning"),
            ]
            self._thinking = id
            self._thoughts.add(index)
        return [*begun, self._event("REASONING_MESSAGE_CONTENT", messageId=id, delta=text)]

    def _end_thinking(self) -> list[Event]:
        if (id := self._thinking) is None:
            return []
        self._thinking = None
        return [
            self._event("REASONING_MESSAGE_END", messageId=id),
            self._event("REASONING_END", messageId=id),
        ]

    def _begin_call(self, index: int, id: str, name: str) -> list[Event]:
        self._open[index] = id
        self._begun.add(id)
        message = {"parentMessageId": self.message_id}
        return [self._event("TOOL_CALL_START", toolCallId=id, toolCallName=name, **message)]

    def _media(self, block: Media) -> list[Event]:
        part = media_part(block)
        value = {"messageId": self.message_id, "part": part}
        return [] if part is None else [self._event("CUSTOM", name="file", value=value)]

    def _settle(self, next_message: bool = False) -> list[Event]:
        """Close what is open of a message."""
        events = self._end_thinking()
        events += [self._event("TOOL_CALL_END", toolCallId=id) for id in self._open.values()]
        if self._has_text:
            events.append(self._event("TEXT_MESSAGE_END", messageId=self.message_id))
        self._has_text = False
        self._open, self._begun, self._filled, self._thoughts = {}, set(), set(), set()
        if next_message:
            self._position, self._attempt = self._position + 1, 0
        return events

    def _begin_step(self, name: str) -> Event:
        self._step = name
        return self._event("STEP_STARTED", stepName=name)

    def _end_step(self) -> list[Event]:
        name, self._step = self._step, None
        return [] if name is None else [self._event("STEP_FINISHED", stepName=name)]

    def _event(self, type: str, **fields: Any) -> Event:
        return {"type": type, **fields, **self._tag}
