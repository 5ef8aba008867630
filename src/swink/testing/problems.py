"""What is wrong with a history, with the events of a run or of a reply; and a collector of events."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast, get_args

import msgspec

from swink.errors import ErrorKind, StreamError
from swink.events import AgentEvent
from swink.messages import ModelSpec, ToolCall
from swink.messages.history import violations
from swink.stream import Assembly, AssistantMessageEvent, Done, Error, decode_event, encode_event

_KINDS = frozenset(get_args(ErrorKind))
_ENDS = frozenset(("stop", "length", "tool_use", "transfer"))


def history_problems(messages: Sequence[Any]) -> list[str]:
    """Every break of the pairing of tool calls and results in `messages`, in words."""
    return violations(messages)


def nesting_problems(events: Sequence[AgentEvent]) -> list[str]:
    """Each of `events` that starts without its end, ends without its start, or is outside its parent, in
    words.
    """
    problems: list[str] = []
    stack: list[str] = []
    running: set[str] = set()
    settled: set[str] = set()
    parents = {"Agent": [], "Turn": ["Agent"], "Message": ["Agent", "Turn"]}
    for number, event in enumerate(events):
        name = type(event).__name__
        kind = name.removesuffix("Start").removesuffix("End")
        if name in ("AgentStart", "TurnStart", "MessageStart"):
            if (stack[-1:] or [""])[0] not in (parents[kind] or [""]):
                problems.append(f"event {number}: {name} inside {stack}")
            stack.append(kind)
            if name == "TurnStart":
                settled = set()
        elif name in ("AgentEnd", "TurnEnd", "MessageEnd"):
            if not stack or stack.pop() != kind:
                problems.append(f"event {number}: {name} does not close what is open")
            if kind == "Turn" and running:
                problems.append(f"event {number}: turn ends while {sorted(running)} run")
        elif name.startswith("ToolExecution"):
            problems.extend(_tool_problems(number, name, cast(Any, event).call_id, running, settled))
        if "Agent" not in stack and name != "AgentEnd" and name not in ("ContextCompacted", "CustomEvent"):
            problems.append(f"event {number}: {name} outside a run")
    return problems + [f"{kind} never ends" for kind in stack]


def stream_problems(events: Sequence[AssistantMessageEvent]) -> list[str]:
    """What is wrong with the events of one reply, in words; nothing for a reply that keeps the protocol."""
    assembly = Assembly()
    for number, event in enumerate(events):
        if problem := _shape_problem(event):
            return [f"event {number}: {problem}"]
        try:
            assembly.feed(event)
        except StreamError as error:
            return [f"event {number}: {error.message}"]
    match assembly.terminal:
        case None:
            return ["the stream ends without done or error"]
        case Error(message, kind):
            return error_problems(message, kind)
        case Done(stop_reason):
            usage = next(event.usage for event in reversed(events) if isinstance(event, Done))
            counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total)
            negative = ["usage counts below zero"] if min(*counts, *usage.extra.values()) < 0 else []
            content = assembly.message(ModelSpec("test", "test"), stop_reason, usage=usage).content
            return [*_end_problems(stop_reason, content), *negative]


def error_problems(message: str, kind: str | None) -> list[str]:
    """What is wrong with an error's message and kind, in words."""
    problems = [] if message.strip() else ["an error without a message"]
    if kind is not None and kind not in _KINDS:
        problems.append(f"an error of the unknown kind {kind!r}")
    return problems


def _tool_problems(number: int, name: str, call_id: str, running: set[str], settled: set[str]) -> list[str]:
    if name == "ToolExecutionStart":
        running.add(call_id)
    elif name == "ToolExecutionUpdate":
        return [] if call_id in running else [f"event {number}: update of {call_id}, which does not run"]
    else:
        running.discard(call_id)
        if call_id in settled:
            return [f"event {number}: {call_id} ends twice"]
        settled.add(call_id)
    return []


def _end_problems(stop_reason: str, content: Sequence[Any]) -> list[str]:
    calls = [block for block in content if isinstance(block, ToolCall)]
    problems: list[str] = []
    if stop_reason not in _ENDS:
        problems.append(f"done({stop_reason}); a failed stream ends with an error event")
    if calls and stop_reason == "stop":
        problems.append("done(stop) after tool calls; it should be tool_use")
    if not calls and stop_reason == "tool_use":
        problems.append("done(tool_use) without a tool call")
    if any(not call.id or not call.name for call in calls):
        problems.append("a tool call without an id or a name")
    if len({call.id for call in calls}) < len(calls):
        problems.append("two tool calls of one reply have the same id")
    return problems


def _shape_problem(event: Any) -> str:
    """Structs do not check types when they are built, so JSON, which does, finds a wrong one here."""
    try:
        if decode_event(encode_event(event)) == event:
            return ""
    except (msgspec.MsgspecError, TypeError, UnicodeError) as error:
        return f"{type(event).__name__} does not survive JSON: {error}"
    return f"{type(event).__name__} does not survive JSON unchanged"


T = TypeVar("T")


class EventCollector:
    """A subscriber that keeps every event: `agent.subscribe(collector)`."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        """The events of a `kind`, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def names(self) -> list[str]:
        """The names of the events, in order."""
        return [type(event).__name__ for event in self.events]

    def check(self) -> None:
        """Assert that every start has exactly one end, properly nested."""
        problems = nesting_problems(self.events)
        if problems:
            raise AssertionError("\n".join(problems))
