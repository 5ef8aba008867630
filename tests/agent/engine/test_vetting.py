"""Every way into a history, a checkpoint and a result passes the policies that decide how messages are kept."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from swink import Agent, Inject, Policy, Replace, Skip, ToolCall, tool
from swink.errors import AuthError
from swink.events import MessageEnd
from swink.messages import AssistantMessage, Message, Text, ToolResultMessage, UserMessage
from swink.messages.codec import encode_messages
from swink.testing import ScriptedModel

SECRET = "hunter2"


class Mask(Policy):
    """Hides one word wherever a message may hold it."""

    def pre_commit(self, message: Any) -> Any:
        changes: dict[str, Any] = {"content": tuple(_masked(block) for block in message.content)}
        if isinstance(message, AssistantMessage) and message.error_message:
            changes["error_message"] = message.error_message.replace(SECRET, "***")
        return Replace(replace(message, **changes))


def _masked(block: Any) -> Any:
    return replace(block, text=block.text.replace(SECRET, "***")) if isinstance(block, Text) else block


class Broken(Policy):
    fail_closed = True

    def pre_commit(self, message: Any) -> Any:
        raise RuntimeError("bug")


@tool
def look() -> str:
    """Look."""
    return f"found {SECRET}"


def agent(*replies: Any, **options: Any) -> Agent:
    policies = [Mask(), *options.pop("policies", ())]
    return Agent("test:m", stream_fn=ScriptedModel(list(replies)), policies=policies, **options)


def stored(messages: Sequence[Message]) -> str:
    return encode_messages(messages).decode()


class KeptSession:
    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self.messages = list(messages)
        self.state: dict[str, Any] = {}

    async def append(self, messages: Sequence[Message]) -> None:
        self.messages += messages


def given() -> Agent:
    return agent("ok", messages=[UserMessage(SECRET)])


def from_a_session() -> Agent:
    return agent("ok", session=KeptSession([UserMessage(SECRET)]))


def assigned() -> Agent:
    made = agent("ok")
    made.messages = [UserMessage(SECRET)]
    return made


def appended() -> Agent:
    made = agent("ok")
    made.append_messages(SECRET)
    return made


def steered() -> Agent:
    made = agent("ok")
    made.steer(SECRET)
    return made


def followed_up() -> Agent:
    made = agent("ok", "ok")
    made.follow_up(SECRET)
    return made


@pytest.mark.parametrize("make", [given, from_a_session, assigned, appended, steered, followed_up])
async def test_what_enters_a_history_is_kept_as_the_policies_want_it(make: Any):
    made = make()
    if make in (given, from_a_session, assigned, appended):
        assert SECRET not in stored(made.messages)
    await made.run("go on")
    assert SECRET not in stored(made.messages)
    assert "***" in stored(made.messages)


async def test_prompts_results_replies_and_injected_messages_too():
    class Say(Policy):
        def pre_turn(self, ctx: Any) -> Any:
            return Inject(f"by the way, {SECRET}") if ctx.turn == 0 else None

    made = agent(
        [f"Let me see, {SECRET}", ToolCall("1", "look", {})],
        f"It is {SECRET}",
        tools=[look],
        policies=[Say()],
    )
    result = await made.run(f"What is {SECRET}?")
    assert SECRET not in stored(made.messages)
    assert SECRET not in stored(result.messages)
    assert stored(made.messages).count("***") == 5


async def test_a_replacement_by_another_policy_too():
    class Rewording(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> Any:
            return Replace(replace(turn.message, content=(Text(f"reworded {SECRET}"),)))

    made = agent("fine", policies=[Rewording()])
    assert (await made.run("hello")).text == "reworded ***"
    assert SECRET not in stored(made.messages)


async def test_messages_appended_during_a_run_and_at_its_very_end_too():
    made = agent("fine")

    def listen(event: Any) -> None:
        if isinstance(event, MessageEnd) and event.message.role == "assistant":
            made.append_messages(f"one {SECRET}")
        if type(event).__name__ == "AgentEnd":
            made.append_messages(f"two {SECRET}")

    made.subscribe(listen)
    await made.run("hello")
    assert SECRET not in stored(made.messages)
    assert [message.text for message in made.messages[-2:]] == ["one ***", "two ***"]


async def test_error_texts_too():
    made = agent(AuthError(f"the key {SECRET} is wrong"))
    result = await made.run("hello")
    assert SECRET not in stored(made.messages)
    assert SECRET not in f"{result.error} {made.error}"
    assert "***" in str(result.error)


async def test_queues_in_a_checkpoint_too():
    made = agent("fine")
    made.steer(f"one {SECRET}")
    made.follow_up(f"two {SECRET}")
    data = made.checkpoint()
    assert SECRET not in str(data)
    assert str(data).count("***") == 2


async def test_a_guard_that_fails_withholds_what_it_could_not_judge():
    made = Agent("test:m", stream_fn=ScriptedModel([AuthError(SECRET)]), policies=[Broken()])
    result = await made.run(SECRET)
    assert SECRET not in stored(made.messages)
    assert SECRET not in str(result.error)


@pytest.mark.parametrize(
    ("slot", "verdict"),
    [
        ("pre_turn", Skip("no")),
        ("pre_turn", Replace(UserMessage("x"))),
        ("pre_turn", True),
        ("pre_dispatch", Replace(UserMessage("x"))),
        ("pre_dispatch", "stop"),
        ("post_turn", Skip("no")),
        ("post_turn", Replace(AssistantMessage("no calls"))),
        ("post_loop", Skip("no")),
    ],
)
async def test_a_verdict_that_cannot_be_carried_out_stops_the_run_if_the_policy_is_a_guard(
    slot: str, verdict: Any
):
    guard = type("Guard", (Policy,), {"fail_closed": True, slot: lambda *_: verdict})()
    made = Agent(
        "test:m",
        stream_fn=ScriptedModel([[ToolCall("1", "look", {})], "done"]),
        tools=[look],
        policies=[guard],
    )
    result = await made.run("hello")
    assert (result.reason or "").startswith("Guard failed")
    ran = any(isinstance(message, ToolResultMessage) and not message.is_error for message in result.messages)
    assert ran == (slot in ("post_turn", "post_loop"))


async def test_a_verdict_that_cannot_be_carried_out_is_reported_and_passed_over_otherwise(
    caplog: pytest.LogCaptureFixture,
):
    hint = type("Hint", (Policy,), {"pre_turn": lambda *_: Skip("no")})()
    result = await Agent("test:m", stream_fn=ScriptedModel(["done"]), policies=[hint]).run("hello")
    assert (result.text, result.reason) == ("done", None)
    assert "pre_turn cannot return a Skip; it returns None or Stop or Inject" in caplog.text
