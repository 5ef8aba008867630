"""Policies, one at a time (O1, O3-O5): slots, verdicts, failures, and what may be kept of a message."""

import asyncio
import logging
from typing import Any

import pytest

from swink import Agent, tool
from swink.agent.policy import (
    Approved,
    Inject,
    NudgeReasoningOnly,
    Policy,
    PolicyContext,
    Rejected,
    Replace,
    Rewrite,
    Skip,
    Slots,
    Stop,
    Turn,
    consult,
    vet_commit,
)
from swink.errors import InvalidInput
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.testing import ScriptedModel

CONTEXT = PolicyContext(1, ModelSpec("acme", "m1"), "", (), (), Usage(), None, {})
SLOTS = ["pre_turn", "pre_dispatch", "pre_retry", "post_turn", "post_loop", "post_run", "pre_commit"]


def returning(verdict, *, guard=False):
    class Fixed(Policy):
        fail_closed = guard

        def pre_turn(self, ctx):
            return verdict

        def pre_commit(self, message):
            return verdict

    return Fixed()


def raising(error, *, guard=False):
    class Broken(Policy):
        fail_closed = guard

        def pre_turn(self, ctx):
            raise error

        def pre_commit(self, message):
            raise error

    return Broken()


# Slots


def test_slots_of_no_policies_are_empty():
    slots = Slots([])
    assert all(getattr(slots, name) == () for name in SLOTS)


@pytest.mark.parametrize("name", SLOTS)
def test_a_policy_is_only_in_the_slots_it_overrides(name):
    one = type("One", (Policy,), {name: lambda self, *values: None})()
    slots = Slots([Policy(), one])
    for slot in SLOTS:
        assert getattr(slots, slot) == ((one,) if slot == name else ())


def test_a_slot_keeps_the_order_of_the_policies_and_knows_inherited_overrides():
    first = returning(None)
    second = type("Second", (type(returning(None)),), {})()
    assert Slots([first, second]).pre_turn == (first, second)


# Consulting one


@pytest.mark.parametrize("verdict", [None, Stop("enough"), Inject("hi")])
async def test_a_policy_may_be_sync_or_async(verdict):
    class Later(Policy):
        async def pre_turn(self, ctx):
            await asyncio.sleep(0)
            return verdict

    assert await consult(returning(verdict), "pre_turn", CONTEXT) == verdict
    assert await consult(Later(), "pre_turn", CONTEXT) == verdict


async def test_a_policy_that_raises_is_logged_and_means_go_on(caplog):
    with caplog.at_level(logging.ERROR, "swink.policy"):
        assert await consult(raising(ValueError("oh")), "pre_turn", CONTEXT) is None
    assert "Broken failed in pre_turn" in caplog.text


async def test_a_guard_that_raises_stops_the_run():
    verdict = await consult(raising(ValueError("the password is hunter22"), guard=True), "pre_turn", CONTEXT)
    assert verdict == Stop("Broken failed: ValueError"), "what it says may be private"


@pytest.mark.parametrize("verdict", [Stop, "stop", True, {"stop": True}])
async def test_a_verdict_that_is_none_is_a_failure_of_the_policy(verdict, caplog):
    assert await consult(returning(verdict), "pre_turn", CONTEXT) is None
    assert "verdict" in caplog.text
    assert isinstance(await consult(returning(verdict, guard=True), "pre_turn", CONTEXT), Stop)


async def test_cancellation_passes_through_a_policy():
    with pytest.raises(asyncio.CancelledError):
        await consult(raising(asyncio.CancelledError(), guard=True), "pre_turn", CONTEXT)


# Verdicts


def test_injected_messages_are_whatever_input_may_be():
    assert Inject("hi").messages == (UserMessage("hi"),)
    assert Inject([UserMessage("a"), "b"]).messages == (UserMessage("a"), UserMessage("b"))
    with pytest.raises(TypeError, match="input takes"):
        Inject(5)


def test_injected_messages_may_come_from_a_generator_and_stay_the_same():
    inject = Inject(UserMessage(text) for text in "ab")
    assert [message.text for message in inject.messages] == ["a", "b"]
    assert [message.text for message in inject.messages] == ["a", "b"], "it can be read again"
    assert inject == Inject([UserMessage("a"), UserMessage("b")])


@pytest.mark.parametrize(
    ("reason", "fresh", "nudges"),
    [("reasoning_only", "q", True), ("reasoning_only", "Go on!", False), ("complete", "q", False)],
)
def test_the_nudge_is_given_once_and_only_to_a_reply_of_nothing_but_thinking(reason, fresh, nudges):
    turn = Turn(AssistantMessage((Thinking("hm"),)), (), reason)
    context = PolicyContext(1, ModelSpec("a", "b"), "", (), (UserMessage(fresh),), Usage(), None, {})
    assert NudgeReasoningOnly("Go on!").post_turn(context, turn) == (Inject("Go on!") if nudges else None)


# What is kept of a message


def test_a_replacement_is_kept_and_the_next_policy_sees_it():
    seen = []

    class Shout(Policy):
        def pre_commit(self, message):
            seen.append(message.text)
            return Replace(UserMessage(message.text.upper()))

    assert vet_commit([Shout(), Shout()], UserMessage("hi")).text == "HI"
    assert seen == ["hi", "HI"]
    message = UserMessage("same")
    assert vet_commit([returning(None)], message) is message


@pytest.mark.parametrize(
    ("message", "replacement"),
    [
        (AssistantMessage("a"), UserMessage("b")),
        (ToolResultMessage("1", "t", "a"), ToolResultMessage("2", "t", "b")),
    ],
)
def test_a_replacement_that_would_break_the_history_is_refused(message, replacement, caplog):
    assert vet_commit([returning(Replace(replacement))], message) is message
    assert "Fixed" in caplog.text


def test_a_policy_that_fails_before_the_commit_leaves_the_message_alone(caplog):
    message = UserMessage("hi")
    assert vet_commit([raising(ValueError("x"))], message) is message
    assert "Broken failed in pre_commit" in caplog.text


@pytest.mark.parametrize(
    "message",
    [
        UserMessage("private"),
        AssistantMessage(
            (Thinking("private"), Text("private"), ToolCall("1", "look", {"at": 1})), usage=Usage(3)
        ),
        ToolResultMessage("1", "look", "private", details={"raw": "private"}),
    ],
)
def test_a_guard_that_fails_withholds_what_was_said_but_keeps_the_calls(message):
    kept = vet_commit([raising(ValueError("x"), guard=True)], message)
    assert "private" not in repr(kept)
    assert kept.text == "[withheld: Broken failed]"
    assert type(kept) is type(message)
    assert getattr(kept, "tool_calls", ()) == getattr(message, "tool_calls", ())
    assert getattr(kept, "tool_call_id", None) == getattr(message, "tool_call_id", None)


def test_a_guard_that_fails_on_a_custom_message_leaves_its_data_alone():
    message = CustomMessage("note", {"x": 1})
    assert vet_commit([raising(ValueError("x"), guard=True)], message) == message


def test_an_async_pre_commit_is_a_failure_not_a_silent_pass(caplog):
    class Later(Policy):
        fail_closed = True

        async def pre_commit(self, message):
            return None

    assert vet_commit([Later()], UserMessage("private")).text == "[withheld: Later failed]"
    assert "sync" in caplog.text


async def test_a_verdict_may_be_of_a_type_of_ones_own():
    class Refusal(Stop, frozen=True):
        code: int = 403

    class Refuses(Policy):
        def pre_turn(self, ctx):
            return Refusal("not here")

    assert await consult(Refuses(), "pre_turn", None) == Refusal("not here")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rewrite("x"),  # pyright: ignore[reportArgumentType]
        lambda: Replace("x"),  # pyright: ignore[reportArgumentType]
        lambda: Approved("x"),  # pyright: ignore[reportArgumentType]
        lambda: Rejected(5),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_verdict_that_means_nothing_is_refused_where_it_is_made(make: Any):
    with pytest.raises(InvalidInput, match="takes"):
        make()


@pytest.mark.parametrize(
    "wording", ["", "half \ud83d", None, 3, {"why": "no"}, [Text("no")], object(), b"no"]
)
async def test_a_verdict_that_forbids_holds_whatever_its_wording(wording: Any):
    ran: list[str] = []

    @tool
    def act() -> str:
        """Act."""
        ran.append("act")
        return "done"

    class Forbids(Policy):
        def pre_dispatch(self, ctx, call):
            return Skip(wording)

        def post_turn(self, ctx, turn):
            return Stop(wording)

    model = ScriptedModel([ToolCall("1", "act", {})])
    result = await Agent("test:m", stream_fn=model, tools=[act], policies=[Forbids()]).run("go")
    assert ran == []
    assert result.reason
    assert result.messages[-1].is_error
    assert result.messages[-1].text
