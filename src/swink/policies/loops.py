"""LoopDetection: a model that repeats itself is nudged once, then stopped."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast
from weakref import WeakKeyDictionary

import msgspec

from swink.agent.policy import Inject, Policy, PolicyContext, ReplyVerdict, RunKey, Stop, Turn
from swink.messages import AssistantMessage, ToolCall, ToolResultMessage, UserMessage, clean
from swink.messages.checks import check_word
from swink.policies.inputs import check_flag, check_number, texts_of

NUDGE = (
    "You have made the same tool calls several times in a row without getting further. "
    "Do something different: use the results you already have, try another approach, or say what stops you."
)

_Signature = frozenset[tuple[str, ...]]


class LoopDetection(Policy):
    """The same set of (tool, arguments) `repeats` turns in a row, or two sets in alternation `repeats` times.

    Call ids, order, blanks, and arguments named in `ignore` make no difference. Only a message that was sent
    to the agent resets the count. With `action="nudge"` the model first gets the text `nudge`, and the run
    stops if the very next turn repeats the calls; with `action="stop"` it stops at once. `same_results=True`
    lets a tool be polled for as long as its answers change.

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
        check_number("repeats", repeats, 2, whole=True)
        check_word("action", action, ("nudge", "stop"))
        check_flag("same_results", same_results)
        [self.nudge] = texts_of("nudge", [nudge])
        self.repeats = repeats
        self.action: Literal["nudge", "stop"] = action
        self.same_results = same_results
        self.ignore = frozenset(texts_of("ignore", ignore))
        self._nudged: WeakKeyDictionary[RunKey, int] = WeakKeyDictionary()

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> ReplyVerdict:
        """Look at the calls of the turn."""
        if not turn.message.tool_calls:
            return None
        row, nudged_at = self._row(ctx)
        period = next((period for period in (1, 2) if _repeats(row, period, self.repeats)), None)
        if period is None:
            return None
        if self.action == "stop" or (nudged_at is not None and nudged_at < period * self.repeats):
            names = ", ".join(sorted({call.resolved.name for call in turn.message.tool_calls}))
            again = f"{names} called with the same arguments {self.repeats} times in a row"
            return Stop(f"loop detected: {again if period == 1 else 'two sets of calls keep alternating'}")
        if ctx.run is not None:
            self._nudged[ctx.run] = len(ctx.messages)
        return Inject(self.nudge)

    def _row(self, ctx: PolicyContext) -> tuple[list[_Signature], int | None]:
        """Signatures of the newest turns, newest first, and how many of them followed the nudge."""
        row: list[_Signature] = []
        results: dict[str, str] = {}
        injected = {id(message) for message in ctx.injected}
        nudged = self._nudged.get(ctx.run, -1) if ctx.run is not None else -1
        nudged_at: int | None = None
        places = reversed(range(len(ctx.messages)))
        for position, message in zip(places, reversed(ctx.messages), strict=True):
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
        call = call.resolved
        try:
            told = {key: value for key, value in call.arguments.items() if key not in self.ignore}
            encoded = msgspec.json.encode(_canonical(told), order="sorted").decode()
        except (TypeError, ValueError, OverflowError, RecursionError):
            encoded = "arguments that are no JSON"
        answer = (results.get(call.id, ""),) if self.same_results else ()
        return (call.name, encoded, call.partial_json or "", *answer)


def _repeats(row: Sequence[_Signature], period: int, times: int) -> bool:
    """Whether the newest turns are `times` repetitions of the newest `period` turns."""
    span = period * times
    return len(row) >= span and all(row[index] == row[index % period] for index in range(span))


def _canonical(value: Any) -> Any:
    """The value with one spelling for equal numbers, and for texts that differ in blanks alone."""
    match value:
        case str() if "\n" in value.strip():
            # Indentation stays: it may be what the model is trying out.
            return "\n".join([line.rstrip() for line in clean(value).strip().splitlines()])
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
