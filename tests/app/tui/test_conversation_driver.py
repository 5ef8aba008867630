"""The conductor: what the user says reaches the agent, and what the agent does can be shown; without any screen."""

import asyncio
from itertools import count

import pytest
from apps import Gate

from swink import Agent, tool
from swink.agent.retry import ExponentialBackoff
from swink.app.tui.conductor import Conductor
from swink.errors import Aborted, AuthError, MissingKey, MisuseError, NetworkError
from swink.events import CustomEvent
from swink.events.transcript import NoticeBlock, PromptBlock, ReplyBlock, ToolBlock, Transcript
from swink.messages import Input, ToolCall, Usage, UserMessage
from swink.stream import StreamOptions
from swink.testing import ScriptedModel


def conductor_of(replies: list, **options) -> Conductor:
    return Conductor(Agent("scripted:model", stream_fn=ScriptedModel(replies), **options))


def texts(conductor: Conductor) -> list[str]:
    return [
        block.text for block in conductor.transcript.blocks if isinstance(block, PromptBlock | ReplyBlock)
    ]


async def test_a_prompt_begins_a_run_whose_end_is_told():
    conductor = conductor_of(["Hello."])
    ended = []
    conductor.ended = ended.append
    conductor.send("hi")
    assert (conductor.is_running, conductor.activity.state) == (True, "running")
    await conductor.wait()
    assert (conductor.is_running, conductor.activity.state, conductor.activity.turn) == (False, "idle", 1)
    assert texts(conductor) == ["hi", "Hello."]
    assert [activity.state for activity in ended] == ["idle"]


async def test_what_is_sent_while_it_works_steers_and_what_is_queued_waits_for_the_end():
    gate = Gate()
    conductor = conductor_of([ToolCall("1", "hold", {}), "Steered.", "Followed."], tools=[gate.tool()])
    conductor.send("begin")
    await gate.started.wait()
    conductor.queue("later")
    conductor.send("now")
    assert [message.text for message in conductor.queued] == ["now", "later"]
    gate.open.set()
    await conductor.wait()
    assert texts(conductor) == ["begin", "now", "Steered.", "later", "Followed."]
    assert conductor.queued == ()


async def test_an_abort_keeps_what_arrived_and_gives_the_queue_back():
    gate = Gate()
    conductor = conductor_of([["I begin. ", ToolCall("1", "hold", {})]], tools=[gate.tool()])
    conductor.send("begin")
    await gate.started.wait()
    conductor.queue("later")
    assert conductor.abort()
    assert [message.text for message in conductor.take_back()] == ["later"]
    await conductor.wait()
    assert conductor.activity.state == "aborted"
    assert texts(conductor)[:2] == ["begin", "I begin. "]
    assert not conductor.abort()


async def test_an_abort_before_the_run_has_begun_is_not_lost_and_neither_is_the_prompt():
    conductor = conductor_of(["Never said."])
    conductor.send("begin")
    assert conductor.abort()
    await conductor.wait()
    assert conductor.activity.state == "aborted"
    assert texts(conductor) == ["begin"]


async def test_a_failed_run_is_an_error_that_is_shown():
    conductor = conductor_of([NetworkError("no route")], retry=ExponentialBackoff(max_attempts=1))
    conductor.send("hi")
    await conductor.wait()
    assert conductor.activity.state == "error"
    notices = [str(block.notice) for block in conductor.transcript.blocks if isinstance(block, NoticeBlock)]
    assert any("no route" in notice for notice in notices)


async def test_a_run_that_cannot_begin_is_an_error_that_is_shown():
    conductor = conductor_of([])
    conductor.go_on()  # there is nothing to go on with
    await conductor.wait()
    assert conductor.activity.state == "error"
    assert any(isinstance(block, NoticeBlock) for block in conductor.transcript.blocks)


async def test_closing_while_a_tool_runs_ends_the_run():
    gate = Gate()
    conductor = conductor_of([ToolCall("1", "hold", {})], tools=[gate.tool()])
    conductor.send("begin")
    await gate.started.wait()
    await conductor.close()
    assert (conductor.is_running, conductor.activity.state) == (False, "aborted")


async def test_another_agent_takes_over_with_its_own_transcript():
    conductor = conductor_of(["One."])
    conductor.send("hi")
    await conductor.wait()
    before = conductor.agent
    conductor.adopt(Agent("scripted:model", stream_fn=ScriptedModel(["Two."])))
    conductor.send("again")
    await conductor.wait()
    assert texts(conductor) == ["again", "Two."]
    assert [message.role for message in before.messages] == ["user", "assistant"]


async def test_what_is_read_of_a_prompt_and_when_a_retry_comes_is_known():
    now = 10.0
    conductor = Conductor(Agent("scripted:model", stream_fn=ScriptedModel([])), clock=lambda: now)
    conductor._take(CustomEvent("prompt_progress", {"done": 30, "total": 120}))
    assert conductor.activity.reading == (30, 120)
    conductor._take(CustomEvent("prompt_progress", {"done": "x"}))
    assert conductor.activity.reading == (30, 120)


async def test_compacting_waits_for_nobody_to_work():
    gate = Gate()
    conductor = conductor_of([ToolCall("1", "hold", {})], tools=[gate.tool()])
    conductor.send("begin")
    await gate.started.wait()
    with pytest.raises(MisuseError, match="at work"):
        await conductor.compact()
    await conductor.close()


async def test_a_conversation_that_is_resumed_hears_everything_once():
    conductor = conductor_of(["fine"])
    conductor.adopt(conductor.agent, Transcript.of([]))
    conductor.send("hi")
    await conductor.wait()
    assert texts(conductor) == ["hi", "fine"]


async def test_a_prompt_that_no_run_took_up_is_given_back():
    class NoKey(ScriptedModel):
        def check_key(self, options: StreamOptions) -> None:
            raise MissingKey("no API key for scripted")

    conductor = Conductor(Agent("scripted:model", stream_fn=NoKey([])))
    refused: list[Input] = []
    conductor.refused = refused.append
    conductor.send("hi")
    await conductor.wait()
    assert refused == ["hi"]
    assert conductor.activity.state == "error"
    assert "#key scripted" in str(conductor.transcript.blocks[-1])


async def test_a_prompt_that_was_taken_up_is_not_given_back():
    conductor = conductor_of([AuthError("bad key")])
    refused: list[Input] = []
    conductor.refused = refused.append
    conductor.send("hi")
    await conductor.wait()
    assert conductor.activity.state == "error"
    assert not refused


async def test_the_rate_is_that_of_the_last_reply_when_idle():
    now = [0.0]

    def clock() -> float:
        now[0] += 0.5
        return now[0]

    model = ScriptedModel(["a b c d"], usage=Usage(input=1, output=10))
    conductor = Conductor(Agent("scripted:model", stream_fn=model), clock=clock)
    assert conductor.rate is None
    conductor.send("hi")
    await conductor.wait()
    assert conductor.rate is not None
    assert 0 < conductor.rate <= 20


async def test_a_reply_that_came_in_one_burst_has_no_rate():
    model = ScriptedModel(["a b c d"], usage=Usage(input=1, output=10))
    ticks = count()
    conductor = Conductor(Agent("scripted:model", stream_fn=model), clock=lambda: next(ticks) / 1000)
    conductor.send("hi")
    await conductor.wait()
    assert conductor.rate is None


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
    conductor = Conductor(
        Agent("scripted:model", stream_fn=model, tools=[write, look], system_prompt="Be brief.")
    )
    conductor.set_planning(True)
    conductor.send("plan it")
    await conductor.wait()
    assert [spec.name for spec in model.calls[0].tools] == ["look"]
    assert model.calls[0].system_prompt.startswith("Be brief.\n\n# Plan mode")
    assert conductor.has_plan
    conductor.set_planning(False)
    conductor.send("do it")
    await conductor.wait()
    assert [spec.name for spec in model.calls[1].tools] == ["write", "look"]
    assert model.calls[1].system_prompt == "Be brief."


async def test_plan_mode_goes_on_with_another_agent_and_the_one_before_has_its_tools_back():
    first = Agent("scripted:model", stream_fn=ScriptedModel([]), tools=[write, look])
    second = Agent("scripted:model", stream_fn=ScriptedModel([]), tools=[write, look])
    conductor = Conductor(first)
    conductor.set_planning(True)
    conductor.adopt(second)
    assert [tool.name for tool in first.tools] == ["write", "look"]
    assert [tool.name for tool in second.tools] == ["look"]


async def test_a_system_prompt_set_in_plan_mode_keeps_its_instruction_and_stays_when_it_is_left():
    model = ScriptedModel(["1. Write it.", "Written."])
    conductor = Conductor(Agent("scripted:model", stream_fn=model, system_prompt="Be brief."))
    conductor.set_planning(True)
    conductor.instruct("Be kind.")
    conductor.send("plan it")
    await conductor.wait()
    conductor.set_planning(False)
    conductor.send("do it")
    await conductor.wait()
    assert model.calls[0].system_prompt.startswith("Be kind.\n\n# Plan mode")
    assert model.calls[1].system_prompt == "Be kind."


async def test_a_plan_is_not_offered_in_another_conversation():
    conductor = conductor_of(["1. Write it."])
    conductor.set_planning(True)
    conductor.send("plan it")
    await conductor.wait()
    conductor.adopt(Agent("scripted:model", stream_fn=ScriptedModel([])))
    assert not conductor.has_plan


async def test_a_question_aside_leaves_the_conversation_as_it_is():
    conductor = conductor_of(["Hello.", "It is a flag."], tools=[write])
    conductor.send("hi")
    await conductor.wait()
    used = conductor.transcript.totals.usage.total
    assert await conductor.ask_aside("what is -x?") == "It is a flag."
    assert conductor.transcript.totals.usage.total > used, "it was paid for"
    assert texts(conductor) == ["hi", "Hello."]
    assert len(conductor.agent.messages) == 2


def commands(conductor: Conductor) -> list[ToolBlock]:
    return [block for block in conductor.transcript.blocks if isinstance(block, ToolBlock)]


async def test_a_command_of_the_users_own_is_shown_and_told_to_the_model():
    model = ScriptedModel(["I see."])
    conductor = Conductor(Agent("scripted:model", stream_fn=model))
    conductor.commands.run("printf 'a\\nb'; exit 3", shown=True)
    await conductor.wait()
    (block,) = commands(conductor)
    assert (block.state, block.text) == ("failed", "a\nb")
    conductor.send("and?")
    await conductor.wait()
    assert "a\nb" in model.calls[0].messages[0].text
    assert 'exit_code="3"' in model.calls[0].messages[0].text
    numbered = [block.id for block in conductor.transcript.blocks if isinstance(block, PromptBlock)]
    assert numbered == ["0", "1"]  # as a session numbers them


async def test_a_command_of_two_marks_stays_between_the_user_and_the_shell():
    conductor = conductor_of([])
    conductor.commands.run("echo hidden", shown=False)
    await conductor.wait()
    assert commands(conductor)[0].text == "hidden\n"
    assert len(conductor.agent.messages) == 0


async def test_stopping_ends_a_command_of_the_users_own_and_keeps_what_it_wrote():
    conductor = conductor_of([])
    conductor.commands.run("echo begun; sleep 600", shown=True)
    while not (commands(conductor) and "begun" in commands(conductor)[0].output):
        await asyncio.sleep(0.01)
    assert conductor.abort()
    await conductor.wait()
    assert (commands(conductor)[0].state, commands(conductor)[0].text) == ("cancelled", "begun\n")
    assert len(conductor.agent.messages) == 0


async def test_what_a_command_wrote_during_a_run_is_told_after_it():
    gate = Gate()
    conductor = conductor_of([ToolCall("1", "hold", {}), "Done."], tools=[gate.tool()])
    conductor.send("begin")
    await gate.started.wait()
    conductor.commands.run("echo aside", shown=True)
    while not commands(conductor) or not any(block.state == "done" for block in commands(conductor)):
        await asyncio.sleep(0.01)
    gate.open.set()
    await conductor.wait()
    assert [message.role for message in conductor.agent.messages] == [
        "user",
        "assistant",
        "tool_result",
        "assistant",
        "user",
    ]
    assert "aside" in conductor.agent.messages[-1].text
    assert conductor.queued == ()


async def test_how_far_a_local_model_is_with_loading_is_told_until_it_answers():
    conductor = conductor_of(["Hello."])
    conductor.show_loading("fetching tiny 30 %")
    assert conductor.activity.loading == "fetching tiny 30 %"
    conductor.send("hi")
    conductor.show_loading("loading tiny")
    await conductor.wait()
    assert conductor.activity.loading == ""


async def test_compacting_can_be_stopped_and_what_is_said_meanwhile_is_said_afterwards():
    begun, held = asyncio.Event(), asyncio.Event()

    class Slow:
        """A context transformer that takes its time."""

        async def __call__(self, messages, context):
            begun.set()
            await held.wait()
            return messages

    conductor = conductor_of(
        ["Hello.", "And on."], messages=[UserMessage("before")], transform_context=Slow()
    )
    compacting = asyncio.create_task(conductor.compact())
    await begun.wait()
    assert (conductor.is_running, conductor.activity.state) == (True, "running")
    assert conductor.abort()
    with pytest.raises(Aborted):
        await compacting
    assert (conductor.is_running, conductor.activity.state) == (False, "idle")
    begun.clear()
    compacting = asyncio.create_task(conductor.compact())
    await begun.wait()
    conductor.send("meanwhile")
    held.set()
    await compacting
    await conductor.wait()
    assert texts(conductor) == ["meanwhile", "Hello."]
