"""A conversation for people: the blocks of a run that was watched are those of its saved session."""

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink import (
    Agent,
    CustomMessage,
    ExponentialBackoff,
    Image,
    Policy,
    Rejected,
    Replace,
    Text,
    Thinking,
    ToolCall,
    ToolError,
    ToolResult,
    Usage,
    UserMessage,
    tool,
)
from swink.errors import NetworkError
from swink.events import (
    AgentEvent,
    CompactionReport,
    ContextCompacted,
    MessageEnd,
    MessageUpdate,
    NestedEvent,
    RetryScheduled,
    ToolExecutionStart,
    ToolExecutionUpdate,
    decode_agent_event,
    encode_agent_event,
)
from swink.events.transcript import (
    AgentStopped,
    Block,
    Compacted,
    Custom,
    Discarded,
    Ended,
    NoticeBlock,
    PromptBlock,
    ReplyBlock,
    Retrying,
    Spent,
    ThinkingBlock,
    ToolBlock,
    Transcript,
    lasting,
)
from swink.memory import MemoryStore
from swink.messages import AssistantMessage, Price, ToolResultMessage
from swink.messages.modelspec import ModelSpec
from swink.messages.records import (
    CallEnded,
    CallStarted,
    Compaction,
    Conversation,
    MessageSaved,
    PendingApproval,
    TurnOpened,
    decode_record,
    encode_record,
)
from swink.stream import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStart
from swink.teams import agent_tool
from swink.testing import ScriptedModel

PNG = Image.from_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 16)
MODEL = ModelSpec("test", "m", price=Price(1.0, 2.0))


@tool
async def work(text: str, ticks: int = 0) -> ToolResult:
    """Work a while."""
    for _ in range(ticks):
        await asyncio.sleep(0)
    return ToolResult((Text(text), PNG), {"path": text})


@tool
async def fail(text: str = "") -> str:
    """Fail."""
    raise ToolError(text)


@tool(requires_approval=True)
async def danger(text: str) -> str:
    """Ask first."""
    return text


def make_helper() -> Agent:
    script = [[ToolCall("i", "work", {"text": "in"})], "found"]
    return Agent("test:inner", stream_fn=ScriptedModel(script), tools=[work])


helper = agent_tool(make_helper, "helper", "Help.")


class Mirror:
    """Keeps a copy of a transcript's blocks by what `since` tells, as a terminal interface does."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.version = 0
        self.blocks: list[Block] = []

    def look(self) -> None:
        changes = self.transcript.since(self.version)
        self.version = changes.version
        del self.blocks[changes.length :]
        for place, block in changes.blocks.items():
            self.blocks[place : place + 1] = [block]


call_ids = (f"call-{number}" for number in itertools.count())
words = st.text(max_size=8)
pieces = st.one_of(
    words.map(Text),
    st.builds(Thinking, words, st.none() | st.just("sig"), st.booleans()),
    st.builds(
        lambda text, ticks: ToolCall(next(call_ids), "work", {"text": text, "ticks": ticks}),
        words,
        st.integers(0, 3),
    ),
    st.builds(lambda text: ToolCall(next(call_ids), "fail", {"text": text}), words),
    st.builds(lambda text: ToolCall(next(call_ids), "danger", {"text": text}), words),
    st.builds(lambda text: ToolCall(next(call_ids), "helper", {"task": text or "x"}), words),
    st.builds(lambda: ToolCall(next(call_ids), "nobody", {})),
    st.builds(lambda: ToolCall(next(call_ids), "work", {}, '{"text": ')),
)
failures = st.sampled_from(
    [NetworkError("lost"), ["some text", NetworkError("lost")], [Thinking("hm"), "a", NetworkError("lost")]]
)
replies = st.lists(pieces, max_size=4) | failures


@tried(60, 1_000)
@given(
    script=st.lists(replies, min_size=1, max_size=6),
    steer_at=st.integers(0, 60),
    abort_at=st.integers(0, 250),
    look_at=st.integers(1, 7),
    verdict=st.booleans(),
    attempts=st.integers(1, 2),
)
async def test_a_run_that_was_watched_and_its_session_give_the_same_blocks(
    script: list[Any], steer_at: int, abort_at: int, look_at: int, verdict: bool, attempts: int
):
    session = await MemoryStore().create()
    agent = Agent(
        MODEL,
        stream_fn=ScriptedModel([*script, *["end"] * 40], usage=Usage(10, 5)),
        tools=[work, fail, danger, helper],
        approve=lambda request: verdict or Rejected("not now"),
        retry=ExponentialBackoff(attempts, 0.0),
        policies=[Rewording()],
        session=session,
    )
    live, events = Transcript(), 0
    mirror = Mirror(live)

    def take(event: AgentEvent) -> None:
        nonlocal events
        events += 1
        live.take(event)
        if events % look_at == 0:
            mirror.look()
            assert mirror.blocks == list(live.blocks)
        if events == steer_at:
            agent.steer(["and", PNG])
        if events == abort_at:
            agent.abort()

    agent.subscribe(take)
    for prompt in ([CustomMessage("note", {"a": 1}), UserMessage(["look", PNG])], "again"):
        await agent.run(prompt)
    mirror.look()
    records = [decode_record(encode_record(record)) for record in session._backend.read(session.id).records]
    assert mirror.blocks == list(live.blocks)
    assert lasting(live.blocks) == lasting(Transcript.of(records).blocks)
    assert lasting(live.blocks) == lasting(Transcript.of(session.conversation).blocks)
    assert len({block.id for block in live.blocks}) == len(live.blocks)
    assert all(block.is_settled for block in live.blocks if isinstance(block, ToolBlock))
    assert live.totals == Transcript.of(records).totals


class Rewording(Policy):
    """Replaces every other reply, as a policy may."""

    def post_turn(self, ctx: Any, turn: Any) -> Any:
        if turn.message.text != "a" and len(turn.message.content) == 2:
            return Replace(AssistantMessage((Text("reworded"), *turn.message.tool_calls)))
        return None


async def watch(script: list[Any], prompt: Any = "go", **options: Any) -> tuple[Transcript, list[AgentEvent]]:
    agent = Agent(MODEL, stream_fn=ScriptedModel(script), **options)
    transcript, events = Transcript(), list[AgentEvent]()
    agent.subscribe(transcript.take)
    agent.subscribe(events.append)
    await agent.run(prompt)
    return transcript, events


def kinds(blocks: Any) -> list[str]:
    return [block.notice.kind if isinstance(block, NoticeBlock) else type(block).__name__ for block in blocks]


def notices(transcript: Transcript, kind: type) -> list[Any]:
    return [
        block.notice
        for block in transcript.blocks
        if isinstance(block, NoticeBlock) and isinstance(block.notice, kind)
    ]


async def test_a_reply_is_shown_while_it_streams_and_replaced_when_it_is_complete():
    transcript = Transcript()
    for text in ("Hel", "lo"):
        transcript.take(MessageUpdate(ThinkingDelta(0, "hm")))
        transcript.take(MessageUpdate(TextDelta(1, text)))
    transcript.take(MessageUpdate(ToolCallStart(2, "c", "work")))
    assert transcript.blocks[2] == ToolBlock("0.2", "c", "work", partial="")
    transcript.take(MessageUpdate(ToolCallDelta(2, '{"a"')))
    assert transcript.blocks == (
        ThinkingBlock("0.0", "hmhm", is_complete=False),
        ReplyBlock("0.1", "Hello", is_complete=False),
        ToolBlock("0.2", "c", "work", partial='{"a"'),
    )
    reply = AssistantMessage((Thinking("hmhm"), Text("Hello"), ToolCall("c", "work", {"a": 1})), "test", "m")
    transcript.take(MessageEnd(reply))
    thinking, text, call = transcript.blocks
    assert (thinking.id, text.id, call.id) == ("0.0", "0.1", "0.2")
    assert (text.model, text.is_complete, call.name, call.arguments) == ("test:m", True, "work", {"a": 1})


async def test_blocks_that_nobody_touched_are_the_same_objects_and_only_changes_are_told():
    transcript = Transcript()
    transcript.take(MessageEnd(UserMessage("a")))
    transcript.take(MessageUpdate(TextDelta(0, "x")))
    seen = transcript.since(0)
    prompt = transcript.blocks[0]
    transcript.take(MessageUpdate(TextDelta(0, "y")))
    changes = transcript.since(seen.version)
    assert list(changes.blocks) == [1]
    assert transcript.blocks[0] is prompt
    assert transcript.since(changes.version).blocks == {}


async def test_withdrawn_text_goes_and_a_notice_keeps_it():
    transcript, _ = await watch([["half", NetworkError("lost")], "whole"], retry=ExponentialBackoff(2, 0.0))
    assert kinds(transcript.blocks) == ["PromptBlock", "discarded", "retry", "ReplyBlock", "usage"]
    assert notices(transcript, Discarded)[0].text == "half"
    assert [block.text for block in transcript.blocks if isinstance(block, ReplyBlock)] == ["whole"]


async def test_an_error_and_an_abort_are_notices_and_what_arrived_stays():
    transcript, _ = await watch([["half", NetworkError("lost")]], retry=ExponentialBackoff(1))
    assert [block.text for block in transcript.blocks if isinstance(block, ReplyBlock)] == ["half"]
    (ended,) = notices(transcript, Ended)
    assert (ended.stop_reason, "lost" in str(ended)) == ("error", True)


async def test_a_call_passes_through_its_states():
    seen: list[str] = []
    transcript = Transcript()

    def take(event: AgentEvent) -> None:
        transcript.take(event)
        seen.extend(
            block.state
            for block in transcript.blocks
            if isinstance(block, ToolBlock) and block.state not in seen
        )

    agent = Agent(
        MODEL,
        stream_fn=ScriptedModel([ToolCall("c", "danger", {"text": "x"}), "ok"]),
        tools=[danger],
        approve=lambda request: True,
    )
    agent.subscribe(take)
    await agent.run("go")
    assert seen == ["waiting", "approval", "running", "done"]


async def test_what_was_rejected_cancelled_or_refused_is_told_from_what_failed():
    rejected, _ = await watch(
        [ToolCall("c", "danger", {"text": "x"}), "ok"], tools=[danger], approve=lambda request: False
    )
    failed, _ = await watch([ToolCall("c", "fail", {}), "ok"], tools=[fail])
    assert rejected.blocks[1].state == "rejected"
    assert failed.blocks[1].state == "failed"
    endless = ToolCall("b", "work", {"text": "y", "ticks": 10**9})
    agent = Agent(MODEL, stream_fn=ScriptedModel([endless, "ok"]), tools=[work])
    transcript = Transcript()
    agent.subscribe(transcript.take)
    agent.subscribe(lambda event: agent.abort() if isinstance(event, ToolExecutionStart) else None)
    await agent.run("go")
    assert transcript.blocks[1].state == "cancelled"


async def test_the_clock_gives_durations_and_tokens_a_second():
    ticks = itertools.count()
    transcript = Transcript(clock=lambda: float(next(ticks)))
    agent = Agent(
        MODEL,
        stream_fn=ScriptedModel([["a", ToolCall("c", "work", {"text": "x"})], "ok"], usage=Usage(1, 8)),
        tools=[work],
    )
    agent.subscribe(transcript.take)
    await agent.run("go")
    assert transcript.blocks[2].duration == 1.0
    assert notices(transcript, Spent)[0].rate == 8.0


async def test_what_a_sub_agent_cost_counts_as_it_does_for_the_run():
    helper = Agent(MODEL, stream_fn=ScriptedModel(["found"], usage=Usage(1_000, 1_000)))
    replies = ScriptedModel([ToolCall("c", "explore", {"task": "x"}), "ok"], usage=Usage(1_000, 1_000))
    agent = Agent(MODEL, stream_fn=replies, tools=[agent_tool(helper, "explore", "Looks.")])
    transcript = Transcript()
    agent.subscribe(transcript.take)
    result = await agent.run("go")
    assert result.cost is not None
    assert transcript.spent.cost.total == pytest.approx(result.cost.total)
    assert transcript.totals.cost.total == pytest.approx(result.cost.total * 2 / 3)


async def test_arguments_are_shown_without_secrets_and_a_change_of_them_is_kept():
    class Other(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            from swink import Rewrite

            return Rewrite({"text": "safe"}) if call.arguments != {"text": "safe"} else None

    transcript, _ = await watch(
        [ToolCall("c", "work", {"text": "wild"}), "ok"], tools=[work], policies=[Other()]
    )
    block = transcript.blocks[1]
    assert (block.arguments, block.ran_with, block.shown) == (
        {"text": "wild"},
        {"text": "safe"},
        {"text": "safe"},
    )
    secret = ToolBlock("1", "c", "login", {"password": "hunter2secret", "user": "ann"})
    assert secret.shown == {"password": "[redacted]", "user": "ann"}


async def test_the_agents_inside_a_call_have_transcripts_of_their_own_however_deep():
    middle = Agent(
        "test:mid",
        stream_fn=ScriptedModel([ToolCall("m", "helper", {"task": "t"}), "mid"] * 2),
        tools=[helper],
    )
    outer = agent_tool(middle, "middle", "Delegate.")
    transcript, events = await watch([ToolCall("o", "middle", {"task": "t"}), "out"], tools=[outer])
    for again in (transcript, replay(events)):
        call = again.blocks[1]
        inner = again.inside(call)["middle"]
        assert kinds(inner.blocks) == ["PromptBlock", "ToolBlock", "usage", "ReplyBlock", "usage"]
        innermost = inner.inside(inner.blocks[1])["helper"]
        assert [block.text for block in innermost.blocks if isinstance(block, ReplyBlock)] == ["found"]
        assert again.totals.usage.output == 2
        assert again.spent.usage.output == 2 + inner.totals.usage.output + innermost.totals.usage.output == 6


def replay(events: list[AgentEvent]) -> Transcript:
    transcript = Transcript()
    for event in events:
        transcript.take(decode_agent_event(encode_agent_event(event)))
    return transcript


async def test_output_of_a_running_tool_grows_and_stays_bounded():
    transcript = Transcript()
    transcript.take(MessageEnd(AssistantMessage((ToolCall("c", "bash", {}),))))
    for _ in range(30):
        transcript.take(ToolExecutionUpdate("c", "bash", "x" * 1000))
    transcript.take(ToolExecutionUpdate("c", "bash", {"progress": 3}))
    transcript.take(ToolExecutionUpdate("unknown", "bash", NestedEvent(("a",), RetryScheduled(1, 0.0, "e"))))
    (block,) = transcript.blocks
    assert (len(block.output), block.progress) == (20_000, {"progress": 3})


async def test_a_session_that_was_cut_off_shows_how_far_its_calls_came():
    reply = AssistantMessage(tuple(ToolCall(id, "work", {}) for id in "abcd"), stop_reason="tool_use")
    records = [
        MessageSaved(UserMessage("go"), 0),
        TurnOpened(reply),
        CallStarted("a"),
        CallEnded("a", ToolResult("done")),
        CallStarted("b"),
        PendingApproval("c", "work", {}, {}),
    ]
    states = ["done", "running", "approval", "waiting"]
    for transcript in (Transcript.of(records), Transcript.of(Conversation(records))):
        assert [block.state for block in transcript.blocks[1:]] == states
    results = [
        MessageSaved(ToolResultMessage(id, "work", "r"), number) for number, id in enumerate("abcd", 2)
    ]
    whole = Transcript.of([*records, MessageSaved(reply, 1), *results])
    assert [(block.id, block.state) for block in whole.blocks[1:]] == [
        (f"1.{index}", "done") for index in range(4)
    ]


async def test_a_compaction_is_told_and_what_left_the_context_is_still_shown():
    live = Transcript()
    live.take(ContextCompacted(CompactionReport(3, 100, 40)))
    assert notices(live, Compacted) == [Compacted(3, 100, 40)]
    messages = [MessageSaved(UserMessage(str(number)), number) for number in range(5)]
    saved = Transcript.of(
        [*messages, Compaction([UserMessage("summary of it"), 4], tokens_before=100, tokens_after=40)]
    )
    assert notices(saved, Compacted) == [Compacted(4, 100, 40, "summary of it")]
    assert sum(isinstance(block, PromptBlock) for block in saved.blocks) == 5


async def test_structured_output_is_a_call_like_any_other_and_no_notice_says_that_it_ended():
    agent = Agent(MODEL, stream_fn=ScriptedModel([ToolCall("c", "final_output", {"value": 3})]))
    transcript = Transcript()
    agent.subscribe(transcript.take)
    assert (await agent.run("go", output=int)).output == 3
    assert kinds(transcript.blocks) == ["PromptBlock", "ToolBlock", "usage"]


async def test_a_run_that_a_policy_stops_says_why():
    class Enough(Policy):
        def pre_turn(self, ctx: Any) -> Any:
            from swink import Stop

            return Stop("that is enough")

    transcript, _ = await watch(["never"], policies=[Enough()])
    assert [str(notice) for notice in notices(transcript, AgentStopped)] == ["the run ended: that is enough"]


async def test_a_result_without_its_call_and_messages_of_the_application_are_shown():
    transcript = Transcript.of([MessageSaved(ToolResultMessage("lost", "work", "r"), 7)])
    assert transcript.blocks == (ToolBlock("7", "lost", "work", state="done", content=(Text("r"),)),)
    transcript.take(MessageEnd(CustomMessage("note", "hello")))
    assert transcript.blocks[-1].notice == Custom("note", "hello")
    assert transcript.blocks[-1].id == "8"


async def test_a_session_that_is_continued_goes_on_where_its_transcript_ends():
    session = await MemoryStore().create()
    script = ["one", [ToolCall("c", "work", {"text": "x"})], "two"]
    agent = Agent(MODEL, stream_fn=ScriptedModel(script), tools=[work], session=session)
    await agent.run("first")
    transcript = Transcript.of(session.conversation)
    agent.subscribe(transcript.take)
    await agent.run("second")
    assert lasting(transcript.blocks) == lasting(Transcript.of(session.conversation).blocks)
    assert notices(transcript, Retrying) == []
