"""LoopDetection: a model that repeats itself is told once, then stopped."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast
from weakref import WeakKeyDictionary

import msgspec

from swink.errors import MisuseError
from swink.messages import AssistantMessage, ToolCall, ToolResultMessage, UserMessage, clean
from swink.policy import Inject, Policy, PolicyContext, RunKey, Stop, Turn, Verdict

NUDGE = (
    "You have made the same tool calls several times in a row without getting further. "
    "Do something different: use the results you already have, try another approach, or say what stops you."
)

_Signature = frozenset[tuple[str, ...]]


class LoopDetection(Policy):
    """The same set of (tool, arguments) `repeats` turns in a row, or two sets in alternation `repeats` times.

    Call ids, the order of calls and of keys, blanks, and arguments named in `ignore` make no difference. Only a message
    that was sent to the agent (a prompt, steering, a follow-up) resets the count: turns without calls are passed over,
    and so is what other policies inject, skip or replace. With `action="nudge"` the model is told first, and the run
    stops if the very next turn goes on the same way; with `action="stop"` it stops at once. `same_results=True` lets a
    tool be polled for as long as its answers change.

    >>> agent = Agent(model, policies=[LoopDetection(repeats=3)])
    """

    fail_closed = True

    def __init__(
        self,
        repeats: int = 3,
        *,
        action: Literal["nudge", "stop"] = "nudge",
        same_results: bool = False,
        ignore: Iterable[str] = (),
        nudge: str = NUDGE,
    ) -> None:
        if repeats < 2:
            raise MisuseError(f"LoopDetection(repeats={repeats}) would stop every call; give at least 2")
        self.repeats = repeats
        self.action: Literal["nudge", "stop"] = action
        self.same_results = same_results
        self.ignore = frozenset(ignore)
        self.nudge = nudge
        self._nudged: WeakKeyDictionary[RunKey, int] = WeakKeyDictionary()

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> Verdict:
        """Nudge, then stop."""
        if not turn.message.tool_calls:
            return None
        row, nudged_at = self._row(ctx)
        period = next((period for period in (1, 2) if _repeats(row, period, self.repeats)), None)
        if period is None:
            return None
        if self.action == "stop" or (nudged_at is not None and nudged_at < period * self.repeats):
            names = ", ".join(sorted({call.name for call in turn.message.tool_calls}))
            return Stop(
                f"loop detected: {names} called with the same arguments {self.repeats} times in a row"
                if period == 1
                else _PING_PONG
            )
        if ctx.run is not None:
            self._nudged[ctx.run] = len(ctx.messages)
        return Inject(self.nudge)

    def _row(self, ctx: PolicyContext) -> tuple[list[_Signature], int | None]:
        """The signatures of the newest turns, newest first, and how many turns ago the nudge came, if it is among them."""
        row: list[_Signature] = []
        results: dict[str, str] = {}
        injected = {id(message) for message in ctx.injected}
        nudged = self._nudged.get(ctx.run, -1) if ctx.run is not None else -1
        nudged_at: int | None = None
        for position, message in zip(
            range(len(ctx.messages) - 1, -1, -1), reversed(ctx.messages), strict=True
        ):
            is_nudge = position < nudged or (isinstance(message, UserMessage) and message.text == self.nudge)
            nudged_at = len(row) if nudged_at is None and is_nudge else nudged_at
            match message:
                case ToolResultMessage():
                    results[message.tool_call_id] = message.text
                case AssistantMessage(tool_calls=calls) if calls:
                    row.append(frozenset(self._signature(call, results) for call in calls))
                    results = {}
                case UserMessage() if not is_nudge and id(message) not in injected:
                    break
                case _:
                    pass
            if len(row) == 2 * self.repeats + 1:
                break
        return row, nudged_at

    def _signature(self, call: ToolCall, results: dict[str, str]) -> tuple[str, ...]:
        try:
            arguments = _canonical(
                {key: value for key, value in call.arguments.items() if key not in self.ignore}
            )
            encoded = msgspec.json.encode(arguments, order="sorted").decode()
        except (TypeError, ValueError, OverflowError, RecursionError):
            encoded = "arguments that are no JSON"
        answer = (results.get(call.id, ""),) if self.same_results else ()
        return (call.name, encoded, call.partial_json or "", *answer)


_PING_PONG = "loop detected: two sets of calls keep alternating"


def _repeats(row: Sequence[_Signature], period: int, times: int) -> bool:
    """Whether the newest turns are `times` repetitions of the newest `period` turns."""
    span = period * times
    return len(row) >= span and all(row[index] == row[index % period] for index in range(span))


def _canonical(value: Any) -> Any:
    """The value with one spelling for equal numbers, and for texts that differ in blanks alone."""
    match value:
        case str() if "\n" in value.strip():
            return "\n".join(
                [line.rstrip() for line in clean(value).strip().splitlines()]
            )  # indentation may be what is being tried
        case str():
            return " ".join(clean(value).split())
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _canonical(item) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_canonical(item) for item in cast("list[Any]", value)]
        case _:
            return value
