"""The driver: what the user says reaches the agent, and what the agent does can be shown; without any screen."""

import asyncio
from itertools import count
from typing import Any

import pytest
from apps import Gate

from swink import Agent, tool
from swink.agent.retry import ExponentialBackoff
from swink.app.tui.conversationdriver import ConversationDriver
from swink.errors import Aborted, AuthError, MissingKey, MisuseError, NetworkError
from swink.events import AgentEnd, AgentEvent, CustomEvent
from swink.events.transcript import NoticeBlock, PromptBlock, ReplyBlock, ToolBlock, Transcript
from swink.messages import Input, ToolCall, Usage, UserMessage
from swink.stream import StreamOptions
from swink.testing import ScriptedModel


def driver_of(replies: list, **options) -> ConversationDriver:
    return ConversationDriver(Agent("scripted:model", stream_fn=ScriptedModel(replies), **options))


def texts(driver: ConversationDriver) -> list[str]:
    return [block.text for block in driver.transcript.blocks if isinstance(block, PromptBlock | ReplyBlock)]


async def test_a_prompt_begins_a_run_whose_end_is_told():
    driver = driver_of(["Hello."])
    ended = []
    driver.ended = ended.append
    driver.send("hi")
    assert (driver.is_running, driver.activity.state) == (True, "running")
    await driver.wait()
    assert (driver.is_running, driver.activity.state, driver.activity.turn) == (False, "idle", 1)
    assert texts(driver) == ["hi", "Hello."]
    assert [activity.state for activity in ended] == ["idle"]


async def test_what_is_sent_while_it_works_steers_and_what_is_queued_waits_for_the_end():
    gate = Gate()
    driver = driver_of([ToolCall("1", "hold", {}), "Steered.", "Followed."], tools=[gate.tool()])
    driver.send("begin")
    await gate.started.wait()
    driver.queue("later")
    driver.send("now")
    assert [message.text for message in driver.queued] == ["now", "later"]
    gate.open.set()
    await driver.wait()
    assert texts(driver) == ["begin", "now", "Steered.", "later", "Followed."]
    assert driver.queued == ()


@pytest.mark.parametrize("say", [ConversationDriver.send, ConversationDriver.queue])
async def test_what_is_said_when_a_run_listens_no_more_begins_the_next_one(say: Any):
    driver = driver_of(["Hello.", "Said late."])

    def say_late(event: AgentEvent) -> None:
        if isinstance(event, AgentEnd) and len(driver.agent.messages) == 2:
            say(driver, "late")

    driver.agent.subscribe(say_late)
    driver.send("hi")
    await driver.wait()
    assert texts(driver) == ["hi", "Hello.", "late", "Said late."]
    assert driver.queued == ()


async def test_an_abort_keeps_what_arrived_and_gives_the_queue_back():
    gate = Gate()
    driver = driver_of([["I begin. ", ToolCall("1", "hold", {})]], tools=[gate.tool()])
    driver.send("begin")
    await gate.started.wait()
    driver.queue("later")
    assert driver.abort()
    assert [message.text for message in driver.take_back()] == ["later"]
    await driver.wait()
    assert driver.activity.state == "aborted"
    assert texts(driver)[:2] == ["begin", "I begin. "]
    assert not driver.abort()


async def test_an_abort_before_the_run_has_begun_is_not_lost_and_neither_is_the_prompt():
    driver = driver_of(["Never said."])
    driver.send("begin")
    assert driver.abort()
    await driver.wait()
    assert driver.activity.state == "aborted"
    assert texts(driver) == ["begin"]


async def test_a_failed_run_is_an_error_that_is_shown():
    driver = driver_of([NetworkError("no route")], retry=ExponentialBackoff(max_attempts=1))
    driver.send("hi")
    await driver.wait()
    assert driver.activity.state == "error"
    notices = [str(block.notice) for block in driver.transcript.blocks if isinstance(block, NoticeBlock)]
    assert any("no route" in notice for notice in notices)


async def test_a_run_that_cannot_begin_is_an_error_that_is_shown():
    driver = driver_of([])
    driver.go_on()  # there is nothing to go on with
    await driver.wait()
    assert driver.activity.state == "error"
    assert any(isinstance(block, NoticeBlock) for block in driver.transcript.blocks)


async def test_closing_while_a_tool_runs_ends_the_run():
    gate = Gate()
    driver = driver_of([ToolCall("1", "hold", {})], tools=[gate.tool()])
    driver.send("begin")
    await gate.started.wait()
    await driver.close()
    assert (driver.is_running, driver.activity.state) == (False, "aborted")


async def test_another_agent_takes_over_with_its_own_transcript():
    driver = driver_of(["One."])
    driver.send("hi")
    await driver.wait()
    before = driver.agent
    driver.adopt(Agent("scripted:model", stream_fn=ScriptedModel(["Two."])))
    driver.send("again")
    await driver.wait()
    assert texts(driver) == ["again", "Two."]
    assert [message.role for message in before.messages] == ["user", "assistant"]


async def test_what_is_read_of_a_prompt_and_when_a_retry_comes_is_known():
    now = 10.0
    driver = ConversationDriver(Agent("scripted:model", stream_fn=ScriptedModel([])), clock=lambda: now)
    driver._take_event(CustomEvent("prompt_progress", {"done": 30, "total": 120}))
    assert driver.activity.reading == (30, 120)
    driver._take_event(CustomEvent("prompt_progress", {"done": "x"}))
    assert driver.activity.reading == (30, 120)


async def test_compacting_waits_for_nobody_to_work():
    gate = Gate()
    driver = driver_of([ToolCall("1", "hold", {})], tools=[gate.tool()])
    driver.send("begin")
    await gate.started.wait()
    with pytest.raises(MisuseError, match="at work"):
        await driver.compact()
    await driver.close()


async def test_a_conversation_that_is_resumed_hears_everything_once():
    driver = driver_of(["fine"])
    driver.adopt(driver.agent, Transcript.of([]))
    driver.send("hi")
    await driver.wait()
    assert texts(driver) == ["hi", "fine"]


async def test_a_prompt_that_no_run_took_up_is_given_back():
    class NoKey(ScriptedModel):
        def check_key(self, options: StreamOptions) -> None:
            raise MissingKey("no API key for scripted")

    driver = ConversationDriver(Agent("scripted:model", stream_fn=NoKey([])))
    refused: list[Input] = []
    driver.refused = refused.append
    driver.send("hi")
    await driver.wait()
    assert refused == ["hi"]
    assert driver.activity.state == "error"
    assert "#key scripted" in str(driver.transcript.blocks[-1])


async def test_a_prompt_that_was_taken_up_is_not_given_back():
    driver = driver_of([AuthError("bad key")])
    refused: list[Input] = []
    driver.refused = refused.append
    driver.send("hi")
    await driver.wait()
    assert driver.activity.state == "error"
    assert not refused


async def test_the_rate_is_that_of_the_last_reply_when_idle():
    now = [0.0]

    def clock() -> float:
        now[0] += 0.5
        return now[0]

    model = ScriptedModel(["a b c d"], usage=Usage(input=1, output=10))
    driver = ConversationDriver(Agent("scripted:model", stream_fn=model), clock=clock)
    assert driver.rate is None
    driver.send("hi")
    await driver.wait()
    assert driver.rate is not None
    assert 0 < driver.rate <= 20


async def test_a_reply_that_came_in_one_burst_has_no_rate():
    model = ScriptedModel(["a b c d"], usage=Usage(input=1, output=10))
    ticks = count()
    driver = ConversationDriver(Agent("scripted:model", stream_fn=model), clock=lambda: next(ticks) / 1000)
    driver.send("hi")
    await driver.wait()
    assert driver.rate is None


@tool
def write(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


@tool(read_only=True)
def look(path: str) -> str:
    """Read a file."""
    return f"read {path}"


async def test_plan_mode_offers_what_reads_alone_and_leaving_it_brings_everything_back():
    model = ScriptedModel(["1. Write it.", "Written."])
    driver = ConversationDriver(
        Agent("scripted:model", stream_fn=model, tools=[write, look], system_prompt="Be brief.")
    )
    driver.set_planning(True)
    driver.send("plan it")
    await driver.wait()
    assert [spec.name for spec in model.calls[0].tools] == ["look"]
    assert model.calls[0].system_prompt.startswith("Be brief.\n\n# Plan mode")
    assert driver.has_plan
    driver.set_planning(False)
    driver.send("do it")
    await driver.wait()
    assert [spec.name for spec in model.calls[1].tools] == ["write", "look"]
    assert model.calls[1].system_prompt == "Be brief."


async def test_plan_mode_goes_on_with_another_agent_and_the_one_before_has_its_tools_back():
    first = Agent("scripted:model", stream_fn=ScriptedModel([]), tools=[write, look])
    second = Agent("scripted:model", stream_fn=ScriptedModel([]), tools=[write, look])
    driver = ConversationDriver(first)
    driver.set_planning(True)
    driver.adopt(second)
    assert [tool.name for tool in first.tools] == ["write", "look"]
    assert [tool.name for tool in second.tools] == ["look"]


async def test_a_system_prompt_set_in_plan_mode_keeps_its_instruction_and_stays_when_it_is_left():
    model = ScriptedModel(["1. Write it.", "Written."])
    driver = ConversationDriver(Agent("scripted:model", stream_fn=model, system_prompt="Be brief."))
    driver.set_planning(True)
    driver.instruct("Be kind.")
    driver.send("plan it")
    await driver.wait()
    driver.set_planning(False)
    driver.send("do it")
    await driver.wait()
    assert model.calls[0].system_prompt.startswith("Be kind.\n\n# Plan mode")
    assert model.calls[1].system_prompt == "Be kind."


async def test_a_plan_is_not_offered_in_another_conversation():
    driver = driver_of(["1. Write it."])
    driver.set_planning(True)
    driver.send("plan it")
    await driver.wait()
    driver.adopt(Agent("scripted:model", stream_fn=ScriptedModel([])))
    assert not driver.has_plan


async def test_a_question_aside_leaves_the_conversation_as_it_is():
    driver = driver_of(["Hello.", "It is a flag."], tools=[write])
    driver.send("hi")
    await driver.wait()
    used = driver.transcript.totals.usage.total
    assert await driver.ask_aside("what is -x?") == "It is a flag."
    assert driver.transcript.totals.usage.total > used, "it was paid for"
    assert texts(driver) == ["hi", "Hello."]
    assert len(driver.agent.messages) == 2


def commands(driver: ConversationDriver) -> list[ToolBlock]:
    return [block for block in driver.transcript.blocks if isinstance(block, ToolBlock)]


async def test_a_command_of_the_users_own_is_shown_and_told_to_the_model():
    model = ScriptedModel(["I see."])
    driver = ConversationDriver(Agent("scripted:model", stream_fn=model))
    driver.commands.run("printf 'a\\nb'; exit 3", shown=True)
    await driver.wait()
    (block,) = commands(driver)
    assert (block.state, block.text) == ("failed", "a\nb")
    driver.send("and?")
    await driver.wait()
    assert "a\nb" in model.calls[0].messages[0].text
    assert 'exit_code="3"' in model.calls[0].messages[0].text
    numbered = [block.id for block in driver.transcript.blocks if isinstance(block, PromptBlock)]
    assert numbered == ["0", "1"]  # as a session numbers them


async def test_a_command_of_two_marks_stays_between_the_user_and_the_shell():
    driver = driver_of([])
    driver.commands.run("echo hidden", shown=False)
    await driver.wait()
    assert commands(driver)[0].text == "hidden\n"
    assert len(driver.agent.messages) == 0


async def test_stopping_ends_a_command_of_the_users_own_and_keeps_what_it_wrote():
    driver = driver_of([])
    driver.commands.run("echo begun; sleep 600", shown=True)
    while not (commands(driver) and "begun" in commands(driver)[0].output):
        await asyncio.sleep(0.01)
    assert driver.abort()
    await driver.wait()
    assert (commands(driver)[0].state, commands(driver)[0].text) == ("cancelled", "begun\n")
    assert len(driver.agent.messages) == 0


async def test_what_a_command_wrote_during_a_run_is_told_after_it():
    gate = Gate()
    driver = driver_of([ToolCall("1", "hold", {}), "Done."], tools=[gate.tool()])
    driver.send("begin")
    await gate.started.wait()
    driver.commands.run("echo aside", shown=True)
    while not commands(driver) or not any(block.state == "done" for block in commands(driver)):
        await asyncio.sleep(0.01)
    gate.open.set()
    await driver.wait()
    assert [message.role for message in driver.agent.messages] == [
        "user",
        "assistant",
        "tool_result",
        "assistant",
        "user",
    ]
    assert "aside" in driver.agent.messages[-1].text
    assert driver.queued == ()


async def test_how_far_a_local_model_is_with_loading_is_told_until_it_answers():
    driver = driver_of(["Hello."])
    driver.show_loading("fetching tiny 30 %")
    assert driver.activity.loading == "fetching tiny 30 %"
    driver.send("hi")
    driver.show_loading("loading tiny")
    await driver.wait()
    assert driver.activity.loading == ""


async def test_compacting_can_be_stopped_and_what_is_said_meanwhile_is_said_afterwards():
    begun, held = asyncio.Event(), asyncio.Event()

    class Slow:
        """A context transformer that takes its time."""

        async def __call__(self, messages, context):
            begun.set()
            await held.wait()
            return messages

    driver = driver_of(["Hello.", "And on."], messages=[UserMessage("before")], transform_context=Slow())
    compacting = asyncio.create_task(driver.compact())
    await begun.wait()
    assert (driver.is_running, driver.activity.state) == (True, "running")
    assert driver.abort()
    with pytest.raises(Aborted):
        await compacting
    assert (driver.is_running, driver.activity.state) == (False, "idle")
    begun.clear()
    compacting = asyncio.create_task(driver.compact())
    await begun.wait()
    driver.send("meanwhile")
    held.set()
    await compacting
    await driver.wait()
    assert texts(driver) == ["meanwhile", "Hello."]
