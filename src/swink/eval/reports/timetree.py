"""Where an attempt spent its time, tokens and money: the tree that `swink trace show` draws, of a result.

A result knows its turns and calls, but not what is inside of calls: for that there is `--trace FILE`.
"""

from swink.eval.result import CaseResult
from swink.eval.trajectory import TakenCall, TakenTurn
from swink.telemetry.tracetree import TraceNode
from swink.telemetry.traceview import heads, lines_of, rows_of

_COLUMNS, _MOST = 100, 400


def time_tree(attempt: CaseResult) -> str:
    """The tree in lines; empty if nothing was timed."""
    if not attempt.timings:
        return ""
    turns = [_turn(turn, attempt) for turn in attempt.timings]
    usage = attempt.usage
    read = usage.input + usage.cache_read + usage.cache_write
    run = TraceNode("attempt", 0.0, attempt.duration, read, usage.output, attempt.cost, inside=turns)
    rows = [heads(), *rows_of([run])]
    left = len(rows) - _MOST
    lines = [f"{name}{figures}" for _, name, figures in lines_of(rows[:_MOST], _COLUMNS)]
    return "\n".join([*lines, f"… {left:,} more in results.jsonl"] if left > 0 else lines)


def _turn(turn: TakenTurn, attempt: CaseResult) -> TraceNode:
    """A reply and the calls of it that ran."""
    usage = turn.usage
    asked = TraceNode(
        f"chat {attempt.model.partition(':')[2] or attempt.model}",
        turn.started,
        max(turn.replied - turn.started, 0.0),
        usage.input + usage.cache_read + usage.cache_write,
        usage.output,
        turn.cost,
    )
    calls = [_call(call) for call in attempt.calls if call.turn == turn.turn and call.ran]
    took = max(turn.ended - turn.started, 0.0)
    return TraceNode(f"turn {turn.turn}", turn.started, took, inside=[asked, *calls])


def _call(call: TakenCall) -> TraceNode:
    error = "error" if call.is_error else ""
    return TraceNode(f"execute_tool {call.name}", call.started, call.duration, error=error)
