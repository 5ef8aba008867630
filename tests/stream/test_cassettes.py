"""Cassettes: no secret gets onto one, every request is its own, and a damaged line costs that line alone."""

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counts import left_to_more

from swink import (
    Agent,
    ExponentialBackoff,
    Image,
    ModelSpec,
    NetworkError,
    StreamOptions,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
    tool,
)
from swink.messages import AssistantMessage, Citation, Extension, Thinking, clean
from swink.messages.providertools import McpConnector, WebSearch
from swink.stream import (
    Assembly,
    BlockAdded,
    Done,
    Error,
    LlmContext,
    OutputSchema,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from swink.stream.wrappers import cached, recorded, replayed
from swink.stream.wrappers.cassette import Cassette, identify
from swink.stream.wrappers.scrub import scrub, scrub_events
from swink.system.filelock import locked
from swink.testing import ScriptedModel

KEY = "sk-proj-abcdefghijklmnop123456"
NO_RETRY = ExponentialBackoff(max_attempts=1)


def agent_on(stream_fn: Any, **keywords: Any) -> Agent:
    return Agent("test:m", stream_fn=stream_fn, retry=NO_RETRY, **keywords)


def block(kind: str, index: int, pieces: list[str]) -> list[Any]:
    match kind:
        case "text":
            return [TextStart(index), *(TextDelta(index, piece) for piece in pieces), TextEnd(index)]
        case "thinking":
            return [
                ThinkingStart(index),
                *(ThinkingDelta(index, piece) for piece in pieces),
                ThinkingEnd(index, "signature"),
            ]
        case _:
            return [
                ToolCallStart(index, "c1", "note"),
                *(ToolCallDelta(index, piece) for piece in pieces),
                ToolCallEnd(index),
            ]


def said(events: list[Any]) -> str:
    return "".join(
        getattr(event, "text", getattr(event, "json", ""))
        for event in events
        if hasattr(event, "text") or hasattr(event, "json")
    )


def assembled(events: list[Any]) -> AssistantMessage:
    assembly = Assembly()
    for event in events:
        assembly.feed(event)
    return assembly.message(ModelSpec("test", "m"), "stop", usage=Done().usage)


@tool
async def note(text: str, password: str = "") -> str:
    """Take a note."""
    return f"noted: {text}"


# No secret


@pytest.mark.parametrize("kind", ["text", "thinking", "call"])
@pytest.mark.parametrize("size", [1, 3, 7])
async def test_a_secret_divided_over_deltas_is_on_no_cassette(kind: str, size: int, tmp_path: Path):
    whole = (
        json.dumps({"text": f"use {KEY} for it", "n": 1})
        if kind == "call"
        else f"The key is {KEY}, and so on."
    )
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    script = [Start(), *block(kind, 0, pieces), Done("tool_use" if kind == "call" else "stop")]
    live: list[Any] = []
    cassette = tmp_path / "c.jsonl"
    for wrapper in (recorded, cached):
        talker = agent_on(wrapper(ScriptedModel([script, "done"]), cassette), tools=[note])
        async with talker.stream("hi") as run:
            async for event in run:
                live.append(event)
        assert KEY in repr(talker.messages), "the caller gets what was said"
    for recording in Cassette(cassette).read():
        assert KEY not in said(recording.events)
        assert all(KEY[at : at + 12] not in said(recording.events) for at in range(3, len(KEY) - 12))
    assert KEY not in cassette.read_text()
    assert "[redacted]" in said(Cassette(cassette).read()[0].events)
    again = agent_on(replayed(cassette), tools=[note])
    result = await again.run("hi")
    assert result.stop_reason == "stop", result.error
    kept = next(message for message in result.messages if isinstance(message, AssistantMessage))
    match kind:
        case "call":
            assert kept.tool_calls[0].arguments == {"text": "use [redacted] for it", "n": 1}
        case "text":
            assert kept.text == "The key is [redacted], and so on."
        case _:
            assert kept.thinking == "The key is [redacted], and so on."


async def test_a_secret_divided_over_blocks_and_interleaved_deltas_is_on_no_cassette(tmp_path: Path):
    script = [
        Start(),
        TextStart(0),
        TextDelta(0, "first half: " + KEY[:14]),
        ThinkingStart(1),
        ThinkingDelta(1, "api_key: hunter2"),
        TextEnd(0),
        TextStart(2),
        ThinkingDelta(1, "-and-more"),
        TextDelta(2, KEY[14:20]),
        ThinkingEnd(1),
        TextDelta(2, KEY[20:] + " is all"),
        TextEnd(2),
        Done("stop"),
    ]
    cassette = tmp_path / "c.jsonl"
    first = await agent_on(recorded(ScriptedModel([script]), cassette)).run("hi")
    assert KEY in first.text
    [recording] = Cassette(cassette).read()
    text = "".join(event.text for event in recording.events if isinstance(event, TextDelta))
    assert text == "first half: [redacted] is all"
    assert "hunter2" not in cassette.read_text()
    assert "and-more" not in cassette.read_text()
    assert [type(event) for event in recording.events] == [type(event) for event in script]


async def test_no_part_of_an_exchange_keeps_a_secret(tmp_path: Path):
    cassette = tmp_path / "c.jsonl"
    strange = "a-key-that-looks-like-none"
    gateway = "a-header-that-looks-like-no-key"
    options = StreamOptions(
        api_key=strange,
        extra={"metadata": {"password": "open sesame"}, "note": KEY},
        headers={"authorization": f"Bearer {gateway}"},
    )
    history = [
        UserMessage(f"my key is {KEY}"),
        AssistantMessage(
            [Thinking(f"they said {strange}"), ToolCall(KEY, "note", {"password": "open sesame", KEY: 1})],
            stop_reason="tool_use",
        ),
    ]
    fn = recorded(
        ScriptedModel(
            [
                [
                    Start(),
                    BlockAdded(0, Extension("test", {"was": gateway}, f"with {gateway}")),
                    TextStart(1),
                    TextEnd(1, strange, (Citation(f"https://x.example/{gateway}", data={"key": strange}),)),
                    Error(f"key {strange} is bad", "network"),
                ],
                NetworkError(f"no {strange}, no {KEY}"),
            ]
        ),
        cassette,
    )
    talker = agent_on(
        fn, options=options, system_prompt=f"Never say {KEY} or {strange}.", messages=history, tools=[note]
    )
    await talker.run("go on")
    await talker.run("go on")
    written = cassette.read_text()
    assert len(Cassette(cassette).read()) == 2
    for secret in (KEY, strange, gateway, "open sesame"):
        assert secret not in written
    assert "go on" in written


async def test_a_replay_goes_on_after_a_reply_that_held_a_secret(tmp_path: Path):
    def script() -> list[Any]:
        call = json.dumps({"text": f"remember {KEY}", "password": "hunter2"})
        return [
            [
                Start(),
                *block("text", 0, ["use ", KEY[:9], KEY[9:]]),
                *block("call", 1, [call[:30], call[30:]]),
                Done("tool_use"),
            ],
            "bye",
        ]

    first = await agent_on(recorded(ScriptedModel(script()), tmp_path / "c"), tools=[note]).run("hi")
    second = await agent_on(replayed(tmp_path / "c"), tools=[note]).run("hi")
    assert (first.text, second.text, second.error) == ("bye", "bye", None)
    assert KEY in repr(first.messages)
    assert KEY not in repr(second.messages)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            [
                "plain ",
                "ü ",
                KEY,
                "sk-",
                "Bearer ",
                "abcdefgh12",
                " ",
                "password=",
                "[redacted]",
                "\ud83d",
                "\ude00",
                "a",
            ]
        ),
        max_size=12,
    ),
    st.data(),
)
def test_scrubbed_deltas_are_as_many_and_say_what_the_scrubbed_text_says(
    words: list[str], data: st.DataObject
):
    whole = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    events = [Start(), *block("text", 0, pieces), Done("stop")]
    scrubbed = scrub_events(events)
    assert [type(event) for event in scrubbed] == [type(event) for event in events]
    assert assembled(scrubbed).text == scrub(clean(whole))
    assert scrub_events(scrubbed) == scrubbed


def test_deltas_without_a_secret_stay_as_they_are():
    pieces = ["one ", "two ", "three ", KEY[:5], KEY[5:11], KEY[11:] + ".", " four", " five ", KEY, " six"]
    kept = [
        event.text
        for event in scrub_events([TextDelta(0, piece) for piece in pieces])
        if isinstance(event, TextDelta)
    ]
    assert kept == ["one ", "two ", "three ", "[redacted]", "", ".", " four", " five ", "[redacted]", " six"]


def test_scrubbing_takes_time_in_proportion_to_the_reply():
    events = [
        TextDelta(0, f"word {KEY[:9]}") if number % 2 else TextDelta(0, KEY[9:] + " ")
        for number in range(40_000)
    ]
    assert len(scrub_events(events)) == len(events)


# The whole request


def exactly(**changes: Any) -> str:
    model = changes.pop("model", ModelSpec("test", "m"))
    context = LlmContext(
        changes.pop("system", "s"),
        changes.pop("messages", [UserMessage("q")]),
        changes.pop("tools", ()),
        changes.pop("hosted", ()),
        changes.pop("output", None),
    )
    server = changes.pop("server", "")
    return identify(model, context, StreamOptions(**changes), server).exact()


def test_whatever_changes_the_request_changes_what_it_is_known_by(tmp_path: Path):
    picture = tmp_path / "a.png"
    picture.write_bytes(b"one")
    known = {
        "plain": exactly(),
        "model": exactly(model=ModelSpec("test", "n")),
        "provider": exactly(model=ModelSpec("best", "m")),
        "thinking": exactly(model=ModelSpec("test", "m", "high")),
        "budgets": exactly(model=ModelSpec("test", "m", thinking_budgets={"high": 9})),
        "limit": exactly(model=ModelSpec("test", "m", max_output=9)),
        "system": exactly(system="t"),
        "text": exactly(messages=[UserMessage("r")]),
        "role": exactly(messages=[UserMessage("q"), AssistantMessage("q")]),
        "author": exactly(messages=[UserMessage("q"), AssistantMessage("q", "other", "model")]),
        "tools": exactly(tools=[note]),
        "temperature": exactly(temperature=0.5),
        "max_tokens": exactly(max_tokens=5),
        "choice": exactly(tool_choice="none"),
        "extra": exactly(extra={"user": "alice"}),
        "user": exactly(extra={"user": "bob"}),
        "session": exactly(session_id="alice"),
        "key": exactly(api_key="key of alice"),
        "other key": exactly(api_key="key of bob"),
        "cache": exactly(cache=False),
        "lifetime": exactly(cache="1h"),
        "top_p": exactly(top_p=0.5),
        "stop": exactly(stop=("END",)),
        "seed": exactly(seed=1),
        "header": exactly(headers={"x-tenant": "alice"}),
        "other header": exactly(headers={"x-tenant": "bobby"}),
        "hosted": exactly(hosted=[WebSearch()]),
        "connector": exactly(hosted=[McpConnector("c", "https://c.example", "token of alice")]),
        "other token": exactly(hosted=[McpConnector("c", "https://c.example", "token of bob")]),
        "output": exactly(output=OutputSchema("answer", {"type": "integer"})),
        "server": exactly(server="https://elsewhere.example/a"),
        "tenant": exactly(server="https://elsewhere.example/b"),
        "image": exactly(messages=[UserMessage([Image.from_file(picture)])]),
        "secret": exactly(messages=[UserMessage(f"{KEY}")]),
        "other secret": exactly(messages=[UserMessage(f"{KEY}7")]),
        "password": exactly(extra={"password": "a"}),
        "other password": exactly(extra={"password": "b"}),
    }
    picture.write_bytes(b"two")
    known["other image"] = exactly(messages=[UserMessage([Image.from_file(picture)])])
    assert len(set(known.values())) == len(known)
    assert known["plain"] == exactly(
        messages=[UserMessage("q", timestamp=1.0)], timeout=3, on_raw_payload=print
    )


async def test_nobody_gets_the_answer_to_somebody_elses_question(tmp_path: Path):
    fn = cached(ScriptedModel(["for alice", "for bob", "for carol", "for dave"]), tmp_path / "c")
    ask = "My key is {}. Whose is it?"
    assert (await agent_on(fn).run(ask.format("sk-proj-Al1ceQw8Zr5Tn3Vb7Xk2"))).text == "for alice"
    assert (await agent_on(fn).run(ask.format("sk-proj-B0bHs6Jd4Lf9Mg1Pc5Yt"))).text == "for bob"
    assert (
        await agent_on(fn, options=StreamOptions(extra={"user": "carol"})).run("who am I?")
    ).text == "for carol"
    assert (
        await agent_on(fn, options=StreamOptions(extra={"user": "dave"})).run("who am I?")
    ).text == "for dave"
    again = cached(ScriptedModel([]), tmp_path / "c")
    assert (await agent_on(again).run(ask.format("sk-proj-B0bHs6Jd4Lf9Mg1Pc5Yt"))).text == "for bob"
    assert (
        await agent_on(again, options=StreamOptions(extra={"user": "carol"})).run("who am I?")
    ).text == "for carol"
    assert "sk-proj-" not in (tmp_path / "c").read_text()


async def test_an_answer_that_lost_a_secret_is_no_answer_for_later(tmp_path: Path):
    fn = cached(ScriptedModel([f"it is {KEY}"]), tmp_path / "c")
    assert (await agent_on(fn).run("which key?")).text == f"it is {KEY}"
    assert (await agent_on(fn).run("which key?")).text == f"it is {KEY}"
    assert KEY not in (tmp_path / "c").read_text()
    again = cached(ScriptedModel([f"it is {KEY}"]), tmp_path / "c")
    assert (await agent_on(again).run("which key?")).text == f"it is {KEY}"


async def test_what_no_json_can_hold_is_asked_and_not_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    options = StreamOptions(extra={"odd": object()})
    for wrapper in (recorded, cached):
        assert (
            await agent_on(wrapper(ScriptedModel(["yes"]), tmp_path / "c"), options=options).run("hi")
        ).text == "yes"
    assert not (tmp_path / "c").exists()
    assert "is not recorded" in caplog.text


# Damage


async def test_a_torn_line_costs_that_line_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    cassette = tmp_path / "c.jsonl"
    fn = recorded(ScriptedModel(["a", "b"]), cassette)
    await agent_on(fn).run("one")
    whole = cassette.read_bytes()
    await agent_on(fn).run("two")
    torn = cassette.read_bytes()[: len(whole) + 40]
    for damage in (
        torn,
        torn + b"\n",
        whole + b"\x00\x00\xff\n",
        whole + b'{"key": 5}\n',
        whole + b"[" * 100_000 + b"\n",
    ):
        cassette.write_bytes(damage)
        await agent_on(recorded(ScriptedModel(["c"]), cassette)).run("three")
        play = replayed(cassette)
        assert (await agent_on(play).run("one")).text == "a"
        assert (await agent_on(play).run("three")).text == "c"
        assert (await agent_on(play).run("two")).error_kind == "cache_miss"
    assert "line 2 is not a whole recording and is skipped" in caplog.text


def test_every_cut_of_a_cassette_leaves_the_lines_before_it(tmp_path: Path):
    cassette = tmp_path / "c.jsonl"
    asyncio.run(agent_on(recorded(ScriptedModel(["aü"]), cassette)).run("one"))
    whole = cassette.read_bytes()
    for at in range(len(whole)):
        cassette.write_bytes(whole + whole[:at])
        asked = identify(ModelSpec("test", "m"), LlmContext("", [UserMessage("q")]), StreamOptions())
        Cassette(cassette).keep(asked, [Start(), Done("stop")])
        recordings = Cassette(cassette).read()
        assert recordings[0].key != asked.key
        assert recordings[-1].key == asked.key
        assert len(recordings) == (3 if at >= len(whole) - 1 else 2)


async def test_a_full_disk_costs_the_recording_and_not_the_reply(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    cassette = tmp_path / "c.jsonl"
    cassette.symlink_to("/dev/full")
    assert (await agent_on(recorded(ScriptedModel(["fine"]), cassette)).run("hi")).text == "fine"
    assert "could not be recorded: No space left on device" in caplog.text
    blocked = tmp_path / "file" / "c.jsonl"
    blocked.parent.write_text("no directory")
    fn = cached(ScriptedModel(["fine"]), blocked)
    assert (await agent_on(fn).run("hi")).text == "fine"
    assert (await agent_on(fn).run("hi")).text == "fine"


def test_a_disk_that_fills_up_in_the_middle_of_a_line_keeps_the_lines_before_and_after(tmp_path: Path):
    """With a limit on the size of files, which fails a write in its middle as a full disk does."""
    program = f"""
import asyncio, resource
from swink import Agent
from swink.testing import ScriptedModel
from swink.stream.wrappers import recorded
fn = recorded(ScriptedModel(["a", "b" * 5000, "c"]), {str(tmp_path / "c.jsonl")!r})
ask = lambda text: asyncio.run(Agent("test:m", stream_fn=fn).run(text))
ask("one")
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
assert ask("two").text == "b" * 5000
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ask("three")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    texts = [said(item.events) for item in Cassette(tmp_path / "c.jsonl").read()]
    assert texts == ["a", "c"]


@left_to_more
def test_several_processes_may_write_one_cassette(tmp_path: Path):
    program = """
import asyncio, sys
from swink import Agent
from swink.testing import ScriptedModel
from swink.stream.wrappers import recorded
fn = recorded(ScriptedModel(["x" * 20_000] * 25), sys.argv[1])
for number in range(25):
    asyncio.run(Agent("test:m", stream_fn=fn).run(f"{sys.argv[2]} {number}"))
"""
    with ThreadPoolExecutor(4) as pool:
        codes = list(
            pool.map(
                lambda name: (
                    subprocess.run(
                        [sys.executable, "-c", program, str(tmp_path / "c"), name], timeout=120
                    ).returncode
                ),
                "abcd",
            )
        )
    assert codes == [0] * 4
    recordings = Cassette(tmp_path / "c").read()
    assert len({item.key for item in recordings}) == 100


async def test_writing_does_not_hold_up_the_event_loop(tmp_path: Path):
    with open(tmp_path / "c", "a+b") as other, locked(other):
        running = asyncio.create_task(agent_on(recorded(ScriptedModel(["yes"]), tmp_path / "c")).run("hi"))
        await asyncio.sleep(0.1)
        assert not running.done()
    assert (await running).text == "yes"
    assert len(Cassette(tmp_path / "c").read()) == 1


@pytest.mark.parametrize("wrapper", [recorded, cached])
async def test_cancelled_at_any_moment_a_cassette_has_whole_lines_and_nothing_is_left_running(
    wrapper: Any, tmp_path: Path
):
    script = [Start(), *block("text", 0, ["one ", "two"]), Done("stop")]
    finished = 0
    for ticks in range(60):
        cassette = tmp_path / f"{ticks}"
        talker = agent_on(wrapper(ScriptedModel([script]), cassette))
        running = asyncio.create_task(talker.run("hi"))
        for _ in range(ticks):
            await asyncio.sleep(0.0005 if ticks > 30 else 0)
        finished += running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await talker.wait_for_idle()
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        lines = Cassette(cassette).read() if cassette.exists() else []
        assert all(said(line.events) == "one two" for line in lines)
        assert len(asyncio.all_tasks()) == 1
    assert finished


async def test_results_and_texts_of_any_kind_are_recorded(tmp_path: Path):
    @tool
    async def odd(city: str) -> ToolResult:
        """Look."""
        return ToolResult([Text("half a \ud83d pair")], details={(1, 2): object()})

    script: list[Any] = [
        [ToolCall("1", "odd", {"city": "x"})],
        [Start(), *block("text", 0, ["done \ud83d", "\ude00", "\ud800"]), Done("stop")],
    ]
    fn = recorded(ScriptedModel(script), tmp_path / "c.jsonl")
    first = await Agent("test:m", stream_fn=fn, tools=[odd], system_prompt="half \udc00").run("hi")
    assert first.text == "done \U0001f600\ufffd"
    again = await Agent(
        "test:m", stream_fn=replayed(tmp_path / "c.jsonl"), tools=[odd], system_prompt="half \udc00"
    ).run("hi")
    assert again.text == first.text


class Choosy(ScriptedModel):
    """A model whose provider sees to closed schemas alone."""

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        return context.output is not None and "properties" in context.output.schema


class Searching(ScriptedModel):
    """A model whose provider searches deferred tools."""

    def native_search(self, model: ModelSpec) -> bool:
        return True


@pytest.mark.parametrize("kind", [Searching, ScriptedModel])
async def test_deferred_tools_are_sent_as_they_were_recorded(tmp_path: Path, kind: type[ScriptedModel]):
    def wait(seconds: int) -> str:
        """Wait."""
        return "waited"

    tools = [tool(deferred=True)(wait)]
    for stream_fn in (recorded(kind(["done"]), tmp_path / "tape"), None):
        agent = Agent("test:m", stream_fn=stream_fn or replayed(tmp_path / "tape"), tools=tools)
        assert (await agent.run("Go.")).text == "done"


async def test_each_schema_is_asked_for_as_it_was_recorded(tmp_path: Path):
    model = Choosy(['{"name": "Oslo"}', [ToolCall("c", "final_output", {"Oslo": 7})]])
    for stream_fn in (recorded(model, tmp_path / "tape"), None):
        agent = agent_on(stream_fn or replayed(tmp_path / "tape"))
        first = await agent.run("Which?", output=TypedDict("City", {"name": str}))
        assert first.output == {"name": "Oslo"}
        agent.reset()
        assert (await agent.run("How many?", output=dict[str, int])).output == {"Oslo": 7}
