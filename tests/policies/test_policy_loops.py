"""LoopDetection: repetition is seen through its disguises, and work is not taken for it."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import Scene, call

from swink import (
    AssistantMessage,
    Policy,
    Replace,
    Rewrite,
    Skip,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.agent.policy import Inject, PolicyContext, Stop, Turn
from swink.errors import MisuseError
from swink.policies import LoopDetection
from swink.policies.loops import NUDGE


async def test_the_same_calls_are_nudged_then_stopped():
    scene = Scene(LoopDetection(3), [*(call(number, q="x") for number in range(10)), "done"])
    result = await scene.run()
    assert len(scene.ran) == 4, "three, then the nudge, then one more"
    assert "loop detected" in result.reason
    assert [message.text for message in result.messages if message.role == "user"] == ["Go.", NUDGE]


async def test_a_nudge_that_helps_lets_the_run_go_on():
    scene = Scene(
        LoopDetection(3),
        [*(call(number, q="x") for number in range(3)), call(4, q="y"), call(5, q="x"), "done"],
    )
    result = await scene.run()
    assert (result.text, result.reason) == ("done", None)


async def test_a_new_loop_gets_a_nudge_of_its_own():
    scene = Scene(
        LoopDetection(2),
        [call(1, q="x"), call(2, q="x"), call(3, q="y"), call(4, q="y"), call(5, q="z"), "done"],
    )
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
    assert (
        await Scene(LoopDetection(3, action="stop", ignore=["request_id"]), [*turns, "done"]).run()
    ).reason


async def test_repeated_text_never_counts():
    scene = Scene(LoopDetection(2, action="stop"), ["same"] * 6)
    for _ in range(6):
        assert (await scene.run()).reason is None


async def test_the_user_may_ask_for_the_same_again_and_again():
    scene = Scene(
        LoopDetection(2, action="stop"),
        [item for number in range(5) for item in (call(number, q="x"), "done")],
    )
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


class Meddling(Policy):
    """Says or changes something at every turn."""

    def __init__(self, slot: str) -> None:
        self.slot = slot
        self.count = 0
        self.agent: Any = None

    def pre_turn(self, ctx: PolicyContext) -> Any:
        self.count += 1
        return Inject(f"Reminder {self.count}: be careful.") if self.slot == "pre_turn" and ctx.turn else None

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Any:
        verdicts = {
            "skip": Skip("not now"),
            "rewrite": Rewrite({"n": self.count}),
            "pre_dispatch": Inject(f"Before {self.count}."),
        }
        return verdicts.get(self.slot)

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> Any:
        reply = turn.message
        if self.agent is not None and reply.tool_calls:
            getattr(self.agent, self.slot)(f"Queued {self.count}.")
        changed = (
            msgspec.structs.replace(reply, content=(*reply.tool_calls, Text(f"Note {self.count}.")))
            if reply.tool_calls
            else reply
        )
        return {"post_turn": Inject([f"Again {self.count}.", "And more."]), "replace": Replace(changed)}.get(
            self.slot
        )

    def post_loop(self, ctx: PolicyContext) -> Any:
        return Inject(f"Go on {self.count}.") if self.slot == "post_loop" and ctx.turn < 40 else None

    def pre_commit(self, message: Any) -> Any:
        if self.slot == "pre_commit" and isinstance(message, UserMessage):
            self.count += 1
            return Replace(UserMessage(f"{message.text} ({self.count})"))
        return None


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "slot",
    [
        "pre_turn",
        "pre_dispatch",
        "skip",
        "rewrite",
        "post_turn",
        "replace",
        "post_loop",
        "pre_commit",
        "steer",
        "append_messages",
    ],
)
async def test_no_other_policy_resets_the_count(slot: str, first: bool):
    replies = [call(number, q="x") for number in range(30)]
    if slot == "post_loop":
        replies = [item for number in range(15) for item in (call(number, q="x"), f"text {number}")]
    meddling = Meddling(slot)
    policies = [meddling, LoopDetection(3)]
    scene = Scene(policies if first else policies[::-1], [*replies, "done"])
    meddling.agent = scene.agent if slot in ("steer", "append_messages") else None
    result = await scene.run()
    assert "loop detected" in (result.reason or "")
    assert (
        sum(
            bool(message.tool_calls)
            for message in scene.agent.messages
            if isinstance(message, AssistantMessage)
        )
        == 4
    )


async def test_a_nudge_that_a_guard_rewrites_is_given_once_all_the_same():
    scene = Scene(
        [Meddling("pre_commit"), LoopDetection(2)], [*(call(number, q="x") for number in range(10)), "done"]
    )
    result = await scene.run()
    assert len(scene.ran) == 3
    assert "loop detected" in result.reason


async def test_one_detector_serves_many_agents_at_once():
    detector = LoopDetection(3)
    scenes = [
        Scene(detector, [*(call(number, q="x") for number in range(3 + extra)), "done"])
        for extra in (0, 5, 0, 5)
    ]
    results = await asyncio.gather(*(scene.run() for scene in scenes))
    assert [bool(result.reason) for result in results] == [False, True, False, True]


async def test_blanks_do_not_fool_it():
    turns = [
        call(number, q=f"{' ' * number}ls   -la{' ' * number}", text=f"a{' ' * number}\nb")
        for number in range(5)
    ]
    assert (await Scene(LoopDetection(3, action="stop"), [*turns, "done"]).run()).reason


async def test_another_indentation_is_another_attempt():
    turns = [call(number, text=f"if x:\n{' ' * number}y") for number in range(5)]
    assert (await Scene(LoopDetection(3, action="stop"), [*turns, "done"]).run()).text == "done"


async def test_polling_is_let_pass_while_the_answers_change():
    answers = iter(range(100))
    turns = [call(number, q="status") for number in range(6)]
    polling = Scene(
        LoopDetection(3, action="stop", same_results=True),
        [*turns, "done"],
        answer=lambda _: str(next(answers)),
    )
    assert (await polling.run()).text == "done"
    stuck = Scene(LoopDetection(3, action="stop", same_results=True), [*turns, "done"], answer="pending")
    assert (await stuck.run()).reason


async def test_calls_that_fail_the_same_way_count():
    scene = Scene(
        LoopDetection(3, action="stop"), [*(call(number, name="missing") for number in range(9)), "done"]
    )
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
        messages += [
            AssistantMessage([ToolCall(id, "act", {"v": value})]),
            ToolResultMessage(id, "act", "ok"),
        ]
    context = PolicyContext(len(turns), None, "", messages, (), None, None, {})  # type: ignore[arg-type]
    verdict = LoopDetection(repeats).post_turn(context, Turn(messages[-2], (messages[-1],), "tools_executed"))
    same = len(turns) >= repeats and len(set(turns[-repeats:])) == 1
    pairs = turns[-2 * repeats :]
    alternating = len(turns) >= 2 * repeats and pairs == pairs[:2] * repeats
    assert isinstance(verdict, Inject) == (same or alternating)
    assert not isinstance(verdict, Stop)
