"""What users of other harnesses lost with their sessions, one complaint a test, on real files."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.counts import MORE, in_cells

from swink import (
    Agent,
    NetworkError,
    Policy,
    Rejected,
    Skip,
    Stop,
    Text,
    Thinking,
    ToolCall,
    ToolContext,
    UserMessage,
    defer,
    tool,
)
from swink.agent.retry import ExponentialBackoff
from swink.errors import SessionConflict
from swink.memory import JsonlStore, Session, SqliteStore, Store
from swink.messages import AssistantMessage, Message, ToolResultMessage, Usage
from swink.messages.modelspec import ModelSpec
from swink.messages.records import encode_record
from swink.providers.convert import prepare
from swink.stream import UsageUpdate
from swink.testing import ScriptedModel, history_problems

KILLED_RUN = Path(__file__).with_name("killed_run.py")
Reopen = Callable[[], Store]
ONCE = ExponentialBackoff(max_attempts=1)


@pytest.fixture(params=["jsonl", "sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Reopen:
    """The store as another process finds it."""
    return {
        "jsonl": lambda: JsonlStore(tmp_path / "sessions"),
        "sqlite": lambda: SqliteStore(tmp_path / "sessions.db"),
    }[request.param]


@tool
async def work(text: str, ctx: ToolContext) -> str:
    """Do something."""
    ctx.update("begun")
    await asyncio.sleep(0)
    return f"did {text}"


@tool
async def broken() -> str:
    """Never works."""
    raise ValueError("broken")


@tool(timeout=0.05)
async def endless() -> str:
    """Never ends."""
    await asyncio.sleep(3600)
    return ""


class Counting:
    """A tool that needs approval and counts how often it ran."""

    def __init__(self) -> None:
        self.runs = 0

        @tool(requires_approval=True)
        async def pay() -> str:
            """Pay the bill."""
            self.runs += 1
            return "paid"

        self.tool = pay


CALLS = [ToolCall("a", "work", {"text": "one"}), ToolCall("b", "work", {"text": "two"})]


def script() -> list[Any]:
    return [["looking ", *CALLS], ["again ", ToolCall("c", "work", {"text": "three"})], "done"]


def agent_of(session: Any, script: Sequence[Any], *tools: Any, **options: Any) -> Agent:
    return Agent(
        "test:m", stream_fn=ScriptedModel(list(script)), tools=tools, session=session, retry=ONCE, **options
    )


def asked(agent: Agent) -> Sequence[Message]:
    """What its model was asked last."""
    model: Any = agent._config.stream_fn
    return model.calls[-1].messages


def prompts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]


async def went_on(store: Store, id: str) -> Session:
    """The session, opened again and continued with one more prompt; what the model is asked is sound."""
    session = await store.open(id)
    assert history_problems(session.messages) == []
    agent = Agent(session=session, model="test:m", stream_fn=ScriptedModel(["later"]), tools=[work])
    assert (await agent.run("and now?")).text == "later"
    assert history_problems(asked(agent)) == []
    again = await store.open(id)
    assert list(again.messages) == list(agent.messages)
    return again


# Poisoned histories


@in_cells("way", ["abort", "cancel", "leave"], every=2)
async def test_stopped_at_any_moment_a_session_can_be_continued(reopen: Reopen, way: str):
    """Complaint: after Ctrl-C every prompt is refused, because a call has no result."""
    moment, ended = 0, False
    while not ended:
        session = await reopen().create()
        agent = agent_of(session, script(), work)
        ended = await _stopped(agent, moment, way)
        await session.aclose()
        await went_on(reopen(), session.id)
        moment += 1
    assert moment > 20


async def _stopped(agent: Agent, moment: int, way: str) -> bool:
    """Stop a run at its event of that number; whether it ended before."""
    seen = 0

    def count(event: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == moment + 1 and way != "leave":
            agent.abort() if way == "abort" else running.cancel()

    agent.subscribe(count)
    if way == "leave":
        async with agent.stream("go") as run:
            async for _ in run:
                if seen > moment:
                    return False
        return True
    running = asyncio.create_task(agent.run("go"))
    await asyncio.wait([running])
    return seen <= moment


async def test_every_call_in_a_session_has_one_result_whatever_became_of_it(reopen: Reopen):
    """Complaint: an unknown tool, bad arguments or a refusal leave a call without its result."""

    class Guard(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            if call.id == "denied":
                return Skip("not today")
            if call.id == "hook":
                raise RuntimeError("a policy failed")
            return None

    counting = Counting()
    calls = [
        ToolCall("fine", "work", {"text": "x"}),
        ToolCall("unknown", "nothing"),
        ToolCall("invalid", "work", {"text": 5}),
        ToolCall("cut", "work", {}, '{"text": "x'),
        ToolCall("denied", "work", {"text": "x"}),
        ToolCall("hook", "work", {"text": "x"}),
        ToolCall("rejected", "pay"),
        ToolCall("raises", "broken"),
        ToolCall("slow", "endless"),
    ]
    session = await reopen().create()
    tools = (work, broken, endless, counting.tool)
    agent = agent_of(
        session, [calls, "done"], *tools, policies=[Guard()], approve=lambda request: Rejected("no")
    )
    await agent.run("go")
    saved = (await went_on(reopen(), session.id)).messages
    assert counting.runs == 0
    results = [message.tool_call_id for message in saved if isinstance(message, ToolResultMessage)]
    assert sorted(results) == sorted(call.id for call in calls)


class TwoTurns(Policy):
    """No more than two turns."""

    def post_turn(self, ctx: Any, turn: Any) -> Any:
        return Stop("enough") if ctx.turn >= 1 else None


ENDINGS: dict[str, tuple[Callable[[], list[Any]], dict[str, Any]]] = {
    "done": (script, {}),
    "out of turns": (script, {"policies": [TwoTurns()]}),
    "the provider fails": (lambda: [["looking ", *CALLS], ["half a ", NetworkError("down")]], {}),
    "a call is rejected": (script, {"approve": lambda request: False, "approval_mode": "on"}),
    "a call waits for approval": (script, {"approve": defer, "approval_mode": "on"}),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_streamed_run_and_a_plain_one_leave_the_same_session(reopen: Reopen, ending: str):
    """Complaint: streamed runs save something else than plain ones when a guard, a limit or an error ends them."""
    make, options = ENDINGS[ending]
    kept: list[Any] = []
    for streamed in (False, True):
        session = await reopen().create()
        agent = agent_of(session, make(), work, **options)
        if streamed:
            async with agent.stream("go") as run:
                async for _ in run:
                    pass
        else:
            await agent.run("go")
        kept.append([_without_times(record) for record in await reopen().load(session.id)])
    assert kept[0] == kept[1]
    assert kept[0]


def _without_times(record: Any) -> Any:
    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: strip(item) for name, item in value.items() if "time" not in name}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return strip(json.loads(encode_record(record)))


async def test_so_many_prompts_are_so_many_messages_however_often_a_session_is_resumed(reopen: Reopen):
    """Complaint: after a resume the model gets the conversation twice."""
    session = await reopen().create()
    for turn in range(5):
        session = await (reopen().fork(session.id) if turn == 3 else reopen().open(session.id))
        call = ToolCall(f"call {turn}", "work", {"text": "x"})
        agent = agent_of(session, [[call], f"reply {turn}"], work)
        await agent.run(f"prompt {turn}")
        assert prompts(asked(agent)) == [f"prompt {number}" for number in range(turn + 1)]
    saved = await reopen().open(session.id)
    assert (saved.meta.turns, saved.meta.messages) == (5, 20)
    ids = [
        call.id
        for message in saved.messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    ]
    assert len(ids) == len(set(ids)) == 5


@pytest.mark.parametrize("reply", ["", " \n", [Thinking("", "")]])
async def test_an_empty_reply_does_not_make_a_session_unusable(reopen: Reopen, reply: Any):
    """Complaint: one empty block in the history, and the provider refuses every request from then on."""
    session = await reopen().create()
    await agent_of(session, [reply]).run("go")
    saved = await went_on(reopen(), session.id)
    for message in prepare(list(saved.messages), ModelSpec("a", "b")):
        assert message.content
        assert all(block.text.strip() for block in message.content if isinstance(block, Text))


# What was accepted is somewhere


@pytest.mark.more
@pytest.mark.parametrize("way", ["abort", "cancel"])
async def test_a_message_that_was_accepted_is_sent_once_whenever_the_run_is_stopped(reopen: Reopen, way: str):
    """Complaint: what was typed while the agent worked is gone after Ctrl-C."""
    for moment in range(0, 24, 1 if MORE else 3):
        session = await reopen().create()
        agent = agent_of(session, script(), work)
        agent.steer("steered")
        agent.follow_up("followed up")
        await _stopped(agent, moment, way)
        await session.aclose()
        again = Agent(
            session=await reopen().open(session.id), stream_fn=ScriptedModel(["later"] * 4), tools=[work]
        )
        await again.run("and now?")
        texts = prompts((await reopen().open(session.id)).messages)
        assert (texts.count("steered"), texts.count("followed up")) == (1, 1), (moment, texts)


async def test_two_who_continue_one_session_do_not_mix_and_the_second_is_told(reopen: Reopen):
    """Complaint: two requests on one session, and the conversation is neither's."""
    session = await reopen().create()
    await agent_of(session, ["one"]).run("first")
    mine, theirs = [agent_of(await reopen().open(session.id), ["two"]) for _ in range(2)]
    await mine.run("mine")
    with pytest.raises(SessionConflict, match=r"[Oo]pen it again"):
        await theirs.run("theirs")
    assert prompts(theirs.messages) == ["first", "theirs"]  # nothing of the second is lost
    saved = await went_on(reopen(), session.id)
    assert prompts(saved.messages) == ["first", "mine", "and now?"]


def test_a_session_serves_one_event_loop_after_another_and_threads(reopen: Reopen):
    """Complaint: the second synchronous call says that the event loop is closed."""
    session = reopen().sync.create()
    agent = agent_of(session, [f"reply {number}" for number in range(4)])
    for number in range(3):
        assert agent.run_sync(f"prompt {number}").text == f"reply {number}"
    thread = threading.Thread(target=agent.run_sync, args=("prompt 3",))
    thread.start()
    thread.join()
    assert prompts(reopen().sync.open(session.id).messages) == [f"prompt {number}" for number in range(4)]


# Files


@pytest.mark.more
def test_a_file_cut_off_anywhere_has_all_that_was_complete_and_takes_more(tmp_path: Path):
    """Complaint: one torn line, and the session cannot be opened; the next append runs into the fragment."""
    store = JsonlStore(tmp_path)
    session = store.sync.create(id="torn")
    ends: list[int] = []
    path = tmp_path / "torn.jsonl"
    for turn in range(3):
        session.append([UserMessage(f"über {turn} 🦊"), AssistantMessage(f"antwort ü{turn}")])
        ends.append(path.stat().st_size)
    whole = path.read_bytes()
    first = len(whole.splitlines(keepends=True)[0])
    near = {at + by for at in (first, *ends) for by in (-2, -1, 0, 1)}
    for cut in range(first, len(whole) + 1):
        if not MORE and cut % 11 and cut not in near:
            continue
        path.write_bytes(whole[:cut])
        complete = sum(end <= cut for end in ends)
        # Only its newline is missing, so nothing is.
        complete += sum(end - 1 == cut for end in ends)
        opened = JsonlStore(tmp_path).sync.open("torn")
        assert len(opened.messages) == 2 * complete, cut
        opened.append([UserMessage("more")])
        again = JsonlStore(tmp_path).sync.open("torn")
        assert [message.text for message in again.messages[2 * complete :]] == ["more"], cut


async def test_a_turn_adds_to_a_file_what_was_said_and_no_more(tmp_path: Path):
    """Complaint: with every turn the whole history is written again."""
    store = JsonlStore(tmp_path)
    session = await store.create(id="long")
    agent = agent_of(session, ["a reply of some length"] * 60)
    sizes: list[int] = []
    for number in range(60):
        await agent.run(f"prompt {number:04}")
        sizes.append((tmp_path / "long.jsonl").stat().st_size)
    assert sizes[-1] - sizes[-2] < 1.2 * (sizes[3] - sizes[2])


async def test_sessions_made_in_the_same_second_have_different_ids(reopen: Reopen):
    """Complaint: the second run overwrites what the first one saved."""
    store = reopen()
    made = [await store.create() for _ in range(20)]
    assert len({session.id for session in made}) == 20
    assert len(await store.list()) == 20


# Thinking and money


async def test_thinking_comes_back_to_its_author_byte_for_byte(reopen: Reopen):
    """Complaint: a resumed conversation is refused, because the signature of a thought was lost or changed."""
    signature = "RXJ+/=ü\u2028" * 200
    reply = [Thinking(" hm \n", signature), Thinking("", "redacted:x"), "yes"]
    session = await reopen().create()
    agent = agent_of(
        session, [[*reply, ToolCall("a", "work", {"text": "x"}, signature="c2ln")], "done"], work
    )
    await agent.run("go")
    again = Agent(session=await reopen().open(session.id), stream_fn=ScriptedModel(["later"]), tools=[work])
    await again.run("and now?")
    before = [message for message in asked(agent) if isinstance(message, AssistantMessage)]
    after = [message for message in asked(again) if isinstance(message, AssistantMessage)]
    assert after[: len(before)] == before
    assert before[0].content[0] == Thinking(" hm \n", signature)
    assert before[0].tool_calls[0].signature == "c2ln"


async def test_a_cost_that_is_unknown_is_not_told_as_nothing(reopen: Reopen):
    """Complaint: a session of an unpriced model seems to have been free."""
    session = await reopen().create()
    await agent_of(session, [["hello", UsageUpdate(Usage(input=1000, output=10))]]).run("go")
    meta = (await reopen().open(session.id)).meta
    assert meta.unpriced
    priced = await reopen().create()
    agent = Agent(
        "openai:gpt-5",
        stream_fn=ScriptedModel([["hello", UsageUpdate(Usage(input=1000, output=10))]]),
        session=priced,
    )
    cost = (await agent.run("go")).cost
    meta = (await reopen().open(priced.id)).meta
    assert cost is not None
    assert (meta.unpriced, meta.cost) == (False, pytest.approx(cost.total))
    assert meta.cost > 0


# Approvals


async def test_an_approval_given_days_later_runs_the_tool_once(reopen: Reopen):
    """Complaint: a run that waits for a person cannot be resumed, or asks for ever, or pays again later."""
    session, counting = await reopen().create(), Counting()
    agent = agent_of(session, [[ToolCall("a", "pay")], "never"], counting.tool, approve=defer)
    assert (await agent.run("pay the bill")).reason == "approval"
    again = Agent(
        session=await reopen().open(session.id),
        stream_fn=ScriptedModel(["paid it", "fine"]),
        tools=[counting.tool],
        approve=defer,
    )
    assert [pending.call_id for pending in again.pending] == ["a"]
    assert (await again.run(approvals={"a": True})).text == "paid it"
    assert (await again.run("thanks")).text == "fine"
    later = Agent(
        session=await reopen().open(session.id), stream_fn=ScriptedModel(["ok"]), tools=[counting.tool]
    )
    assert (later.pending, (await later.run("bye")).text) == ((), "ok")
    assert counting.runs == 1
    assert prompts(asked(later)) == ["pay the bill", "thanks", "bye"]


async def test_two_who_approve_at_once_run_the_tool_once(reopen: Reopen):
    """Complaint: the page was reloaded, the button pressed twice, and the bill was paid twice."""
    session, counting = await reopen().create(), Counting()
    await agent_of(session, [[ToolCall("a", "pay")]], counting.tool, approve=defer).run("pay the bill")
    agents = [
        Agent(
            session=await reopen().open(session.id), stream_fn=ScriptedModel(["paid"]), tools=[counting.tool]
        )
        for _ in range(2)
    ]
    outcomes = await asyncio.gather(
        *(agent.run(approvals={"a": True}) for agent in agents), return_exceptions=True
    )
    assert counting.runs == 1
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AgentResult", "SessionConflict"]


# Crashes


@pytest.mark.more
@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_killed_at_any_step_no_tool_runs_twice_and_what_is_unknown_is_told(tmp_path: Path, kind: str):
    """Complaint: after a crash the mail is sent again."""
    done = subprocess.run(
        [sys.executable, str(KILLED_RUN), str(tmp_path), kind, "1" if MORE else "5"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > 5
    for at, counted, problems, results in outcomes:
        assert len(counted) == len(set(counted)), (at, counted)
        assert problems == [], at
        for name in counted:
            assert results.get(name) == f"counted {name}" or "unknown" in results.get(name, ""), (at, results)
