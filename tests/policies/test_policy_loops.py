"""LoopDetection: repetition is seen through its disguises, and work is not taken for it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import Scene, call

from swink import AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from swink.errors import MisuseError
from swink.policies import LoopDetection
from swink.policies.loops import NUDGE
from swink.policy import Inject, PolicyContext, Stop, Turn


async def test_the_same_calls_are_nudged_then_stopped():
    scene = Scene(LoopDetection(3), [*(call(number, q="x") for number in range(10)), "done"])
    result = await scene.run()
    assert len(scene.ran) == 4, "three, then the nudge, then one more"
    assert "loop detected" in result.reason
    assert [message.text for message in result.messages if message.role == "user"] == ["Go.", NUDGE]


async def test_a_nudge_that_helps_lets_the_run_go_on():
    scene = Scene(LoopDetection(3), [*(call(number, q="x") for number in range(3)), call(4, q="y"), call(5, q="x"), "done"])
    result = await scene.run()
    assert (result.text, result.reason) == ("done", None)


async def test_a_new_loop_gets_a_nudge_of_its_own():
    scene = Scene(LoopDetection(2), [call(1, q="x"), call(2, q="x"), call(3, q="y"), call(4, q="y"), call(5, q="z"), "done"])
    result = await scene.run()
    assert result.text == "done"
    assert [message.text for message in result.messages].count(NUDGE) == 2


async def test_action_stop_stops_at_once():
    scene = Scene(LoopDetection(3, action="stop"), [*(call(number, q="x") for number in range(10)), "done"])
    await scene.run()
    assert len(scene.ran) == 3


async def test_ping_pong_is_a_loop():
    scene = Scene(LoopDetection(3), [*(call(number, q=number % 2) for number in range(20)), "done"])
    result = await scene.run()
    assert len(scene.ran) == 7
    assert "alternating" in result.reason


async def test_three_different_steps_in_rotation_are_let_pass():
    scene = Scene(LoopDetection(3), [*(call(number, q=number % 3) for number in range(12)), "done"])
    assert (await scene.run()).text == "done"


async def test_fresh_ids_key_order_call_order_and_number_spelling_do_not_fool_it():
    turns = [
        [ToolCall("a", "act", {"x": 1, "y": [1.0]}), ToolCall("b", "act", {"z": 2})],
        [ToolCall("c", "act", {"z": 2.0}), ToolCall("d", "act", {"y": [1], "x": 1})],
        [ToolCall("e", "act", {"y": [1], "x": 1}), ToolCall("f", "act", {"z": 2})],
    ]
    scene = Scene(LoopDetection(3, action="stop"), [*turns, "done"])
    assert "loop detected" in (await scene.run()).reason


async def test_an_ignored_argument_does_not_fool_it():
    turns = [call(number, q="x", request_id=str(number)) for number in range(5)]
    assert (await Scene(LoopDetection(3, action="stop"), [*turns, "done"]).run()).text == "done"
    assert (await Scene(LoopDetection(3, action="stop", ignore=["request_id"]), [*turns, "done"]).run()).reason


async def test_repeated_text_never_counts():
    scene = Scene(LoopDetection(2, action="stop"), ["same"] * 6)
    for _ in range(6):
        assert (await scene.run()).reason is None


async def test_the_user_may_ask_for_the_same_again_and_again():
    scene = Scene(LoopDetection(2, action="stop"), [item for number in range(5) for item in (call(number, q="x"), "done")])
    for _ in range(5):
        assert (await scene.run()).text == "done"


async def test_steering_ends_a_row():
    scene = Scene(LoopDetection(3, action="stop"), [*(call(number, q="x") for number in range(4)), "done"])
    turns = 0

    def steer(event: Any) -> None:
        nonlocal turns
        if type(event).__name__ == "TurnEnd":
            turns += 1
            if turns == 2:
                scene.agent.steer("Try once more.")

    scene.agent.subscribe(steer)
    assert (await scene.run()).text == "done"


async def test_polling_is_let_pass_while_the_answers_change():
    answers = iter(range(100))
    turns = [call(number, q="status") for number in range(6)]
    polling = Scene(LoopDetection(3, action="stop", same_results=True), [*turns, "done"], answer=lambda _: str(next(answers)))
    assert (await polling.run()).text == "done"
    stuck = Scene(LoopDetection(3, action="stop", same_results=True), [*turns, "done"], answer="pending")
    assert (await stuck.run()).reason


async def test_calls_that_fail_the_same_way_count():
    scene = Scene(LoopDetection(3, action="stop"), [*(call(number, name="missing") for number in range(9)), "done"])
    assert (await scene.run()).reason
    assert len(scene.model.calls) == 3


async def test_malformed_arguments_count_by_what_they_say():
    turns = [ToolCall(f"c{number}", "act", {}, partial_json='{"q": ') for number in range(5)]
    scene = Scene(LoopDetection(3, action="stop"), [*turns, "done"])
    assert (await scene.run()).reason
    assert len(scene.model.calls) == 3


def test_a_row_of_one_is_refused():
    with pytest.raises(MisuseError):
        LoopDetection(1)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=14), st.integers(2, 4), st.integers(0, 1000))
def test_it_fires_exactly_when_the_newest_turns_repeat(turns: list[int], repeats: int, salt: int):
    messages: list[Any] = [UserMessage("go")]
    for number, value in enumerate(turns):
        id = f"{salt}-{number}"
        messages += [AssistantMessage([ToolCall(id, "act", {"v": value})]), ToolResultMessage(id, "act", "ok")]
    context = PolicyContext(len(turns), None, "", messages, (), None, None, {})  # type: ignore[arg-type]
    verdict = LoopDetection(repeats).post_turn(context, Turn(messages[-2], (messages[-1],), "tools_executed"))
    same = len(turns) >= repeats and len(set(turns[-repeats:])) == 1
    pairs = turns[-2 * repeats :]
    alternating = len(turns) >= 2 * repeats and pairs == pairs[:2] * repeats
    assert isinstance(verdict, Inject) == (same or alternating)
    assert not isinstance(verdict, Stop)
