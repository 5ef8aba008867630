"""A turn that has ended, as policies see it: with the calls that a program of the model's made."""

from collections.abc import Iterator

from swink.agent.engine.turnstate import TurnState
from swink.agent.policy import InnerCall, Turn
from swink.messages import ToolResultMessage, TurnEndReason


def ended_turn(turn: TurnState, reason: TurnEndReason) -> Turn:
    """The turn with its reply, its results and what was called inside of its calls."""
    assert turn.reply is not None
    return Turn(turn.reply, turn.results, reason, tuple(_inner_calls(turn)))


def _inner_calls(turn: TurnState) -> Iterator[InnerCall]:
    for call in turn.inner:
        made, result, outer = call.as_it_will_run, call.result, call.outer
        if result is not None and outer is not None:
            message = ToolResultMessage(made.id, made.name, result.content, result.is_error, result.details)
            yield InnerCall(made, message, outer.call.id)
