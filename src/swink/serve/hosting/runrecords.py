"""The events of a run as its session keeps them: enough to give every event again, by its number.

Deltas that follow each other are one text with the places where it was cut; what ends a turn or a run is
written without the messages that its events have told already.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from swink.events import AgentEnd, AgentEvent, AgentStart, MessageEnd, MessageUpdate, TurnEnd
from swink.messages import AssistantMessage, Message, ToolResultMessage
from swink.messages.jsondata import decode, encode
from swink.messages.records import CustomSaved, MessageSaved, Record, RunEvents, RunStarted
from swink.serve.hosting.eventlog import Numbered
from swink.stream import TextDelta, ThinkingDelta, ToolCallDelta

_DELTAS: dict[str, type[Any]] = {"text": TextDelta, "thinking": ThinkingDelta, "tool_call": ToolCallDelta}
_KINDS = {kind: name for name, kind in _DELTAS.items()}


class RecordedRun(Struct):
    """A run as a session has it."""

    started: RunStarted
    events: list[Numbered] = field(default_factory=list[Numbered])
    ended: bool = False

    @property
    def last(self) -> int:
        """The number of its last recorded event."""
        return self.events[-1].id if self.events else 0


class Told:
    """The messages that the events of a run have told so far: what ends a turn or a run repeats them."""

    def __init__(self) -> None:
        self._all: list[Message] = []
        self._reply = 0

    def hear(self, event: AgentEvent) -> None:
        """Take note of an event."""
        if isinstance(event, MessageEnd):
            if isinstance(event.message, AssistantMessage):
                self._reply = len(self._all)
            self._all.append(event.message)

    def shorten(self, event: AgentEvent) -> Any:
        """What is written of an event."""
        match event:
            case TurnEnd(message, results, reason) if _same((message, *results), self._turn):
                return {"type": "turn_end", "reason": reason, "$told": True}
            case AgentEnd(messages, stop_reason, reason) if _same(messages, self._all):
                return {"type": "agent_end", "stop_reason": stop_reason, "reason": reason, "$told": True}
            case _:
                return decode(encode(event))

    def lengthen(self, data: dict[str, Any]) -> AgentEvent:
        """The event of which this was written."""
        match data:
            case {"$told": True, "type": "turn_end", "reason": reason}:
                reply, *results = self._turn
                return TurnEnd(msgspec.convert(reply, AssistantMessage), tuple(_results(results)), reason)
            case {"$told": True, "stop_reason": stop_reason, "reason": reason}:
                return AgentEnd(tuple(self._all), stop_reason, reason)
            case _:
                return decode(encode(data), AgentEvent)

    @property
    def turn_end(self) -> TurnEnd | None:
        """How the turn ends whose last message was told, if its reply was."""
        if not self._turn or not isinstance(self._turn[0], AssistantMessage):
            return None
        results = _results(self._turn[1:])
        return TurnEnd(self._turn[0], tuple(results), "tools_executed" if results else "complete")

    @property
    def messages(self) -> tuple[Message, ...]:
        """All that the run has told."""
        return tuple(self._all)

    @property
    def _turn(self) -> list[Message]:
        return self._all[self._reply :]


def write_events(run: str, numbered: Sequence[Numbered], told: Told, *, ended: bool = False) -> RunEvents:
    """The record of events that follow each other."""
    written: list[dict[str, Any]] = []
    for each in numbered:
        event = each.event
        if type(event) is MessageUpdate and (kind := _KINDS.get(type(event.delta))) is not None:
            delta: Any = event.delta
            text = delta.json if kind == "tool_call" else delta.text
            last: dict[str, Any] = written[-1] if written else {}
            if last.get("$deltas") == kind and last["index"] == delta.index:
                last["parts"].append(text)
            else:
                written.append({"$deltas": kind, "index": delta.index, "parts": [text]})
        else:
            told.hear(event)
            written.append(told.shorten(event))
    for data in written:
        if parts := data.pop("parts", None):
            data |= {"text": "".join(parts), "cuts": [len(part) for part in parts]}
    return RunEvents(run, numbered[0].id if numbered else 0, written, ended)


def unended_run(records: Iterable[Record]) -> str | None:
    """The run of a session that has not ended, before those that wait for it; none if others talked since."""
    runs: dict[str, None] = {}
    is_last = True
    for record in records:
        match record:
            case RunStarted(run):
                runs[run], is_last = None, True
            case RunEvents(run):
                is_last = True
                if record.first == 1 and run in runs:  # it has begun: those before it were given up
                    runs = dict.fromkeys(list(runs)[list(runs).index(run) :])
                if record.ended:
                    runs.pop(run, None)
            case MessageSaved() | CustomSaved():
                is_last = False
            case _:
                pass
    return next(iter(runs), None) if is_last else None


def aborted_before(run: str) -> RunEvents:
    """The record of a run that was aborted before it began."""
    end = AgentEnd((), "aborted", "aborted")
    return write_events(run, [Numbered(1, AgentStart()), Numbered(2, end)], Told(), ended=True)


def recorded_runs(records: Iterable[Record]) -> dict[str, RecordedRun]:
    """The runs of a session, the oldest first."""
    runs: dict[str, RecordedRun] = {}
    told: dict[str, Told] = {}
    for record in records:
        if isinstance(record, RunStarted) and record.run not in runs:
            runs[record.run] = RecordedRun(record)
            told[record.run] = Told()
        elif isinstance(record, RunEvents) and record.run in runs:
            run = runs[record.run]
            number = max(record.first, run.last + 1)
            for data in record.events:
                for event in _read(data, told[record.run]):
                    told[record.run].hear(event)
                    run.events.append(Numbered(number, event))
                    number += 1
            run.ended = run.ended or record.ended
    return runs


def told_by(events: Iterable[Numbered]) -> Told:
    """What events have told, for the record of those that follow."""
    told = Told()
    for numbered in events:
        told.hear(numbered.event)
    return told


def _read(data: dict[str, Any], told: Told) -> Iterable[AgentEvent]:
    if (kind := data.get("$deltas")) is None:
        return [told.lengthen(data)]
    text, at, cuts = data["text"], 0, data["cuts"]
    events: list[AgentEvent] = []
    for index, length in enumerate(cuts):
        # A key that was taken out of the text has changed its length: the last piece has the rest.
        until = len(text) if index + 1 == len(cuts) else at + length
        events.append(MessageUpdate(_DELTAS[kind](data["index"], text[at:until])))
        at = until
    return events


def _same(some: Sequence[Message], others: Sequence[Message]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def _results(messages: Sequence[Message]) -> list[ToolResultMessage]:
    return [message for message in messages if isinstance(message, ToolResultMessage)]
