"""The short ways to read a run: its text alone, and its output as it grows."""

import asyncio
import dataclasses
import gc
import json
from typing import Any

import msgspec
import pydantic
import pytest

import swink.agent.structured
from swink import (
    Agent,
    AgentError,
    AuthError,
    ExponentialBackoff,
    NetworkError,
    Policy,
    Stop,
    Thinking,
    ToolCall,
    ToolError,
    tool,
)
from swink.agent.structured import NAME
from swink.errors import Aborted, MisuseError, RunStopped, StructuredOutputFailed
from swink.events import AgentEnd, MessageDiscarded
from swink.messages import Usage
from swink.stream import Done, Start, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from swink.testing import EventCollector, Pause, ScriptedModel, history_problems


@dataclasses.dataclass
class City:
    name: str
    people: int
    tags: list[str]


TOKYO: dict[str, Any] = {"name": "Tokyo", "people": 14, "tags": ["big", "wet"]}


def growing(value: Any, size: int = 4, id: str = "1", name: str = NAME) -> list[Any]:
    """A reply that gives the output in pieces of so many characters."""
    text = json.dumps(value)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return [
        Start(),
        ToolCallStart(0, id, name),
        *[ToolCallDelta(0, piece) for piece in pieces],
        ToolCallEnd(0),
        Done("tool_use", Usage(1, 1)),
    ]


def agent_on(*script: Any, **options: Any) -> Agent:
    return Agent(
        **{
            "model": "test:m",
            "stream_fn": ScriptedModel(list(script)),
            "retry": ExponentialBackoff(2, 0, 0),
            **options,
        }
    )


async def nothing_left(agent: Agent) -> None:
    """The agent is idle and works, and no task is left."""
    gc.collect()
    await asyncio.wait_for(agent.wait_for_idle(), 20)
    for _ in range(5):
        await asyncio.sleep(0)
    assert history_problems(agent.messages) == []
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, left


# text()


async def test_text_gives_the_text_alone_of_every_reply():
    @tool
    async def look() -> str:
        return "not to be seen"

    agent = agent_on(
        ["Let me ", "look.", Thinking("hm"), ToolCall("1", "look")], ["It ", "rains."], tools=[look]
    )
    async with agent.stream("q") as run:
        pieces = [piece async for piece in run.text()]
    assert pieces == ["Let me ", "look.", "It ", "rains."]
    assert (await run.result()).text == "It rains."


async def test_text_of_a_stream_that_was_not_entered_starts_it():
    assert [piece async for piece in agent_on(["a", "b"]).stream("q").text()] == ["a", "b"]


async def test_a_failed_run_ends_the_text_and_says_so_in_the_result():
    async with agent_on(["par", AuthError("no")]).stream("q") as run:
        assert [piece async for piece in run.text()] == ["par"]
        with pytest.raises(AuthError):
            (await run.result()).raise_for_error()


async def test_a_reply_that_is_retried_begins_again_and_an_event_says_so():
    agent, collector = agent_on(["wro", NetworkError("down")], "right"), EventCollector()
    agent.subscribe(collector)
    async with agent.stream("q") as run:
        assert [piece async for piece in run.text()] == ["wro", "right"]
    assert collector.of(MessageDiscarded)


async def test_a_hooks_exception_is_raised_from_the_text_and_from_the_output():
    async def key(provider: str) -> str:
        raise LookupError("vault")

    for read in ("text", "output"):
        agent = agent_on("a", get_api_key=key)
        with pytest.raises(LookupError, match="vault"):
            async for _ in getattr(agent.stream("q", output=City), read)():
                pass
        await nothing_left(agent)


async def test_events_and_text_are_read_from_the_same_stream():
    async with agent_on(["a", "b", "c"]).stream("q") as run:
        async for event in run:
            if getattr(event, "delta", None) == TextDelta(0, "a"):
                break
        assert [piece async for piece in run.text()] == ["b", "c"]


async def test_two_readers_of_one_stream_are_refused():
    async with agent_on(["a", Pause(10)]).stream("q") as run:
        first = asyncio.ensure_future(anext(run.text()))
        assert await first == "a"
        waiting = asyncio.ensure_future(anext(run.text()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(MisuseError, match="two readers of one stream"):
            await anext(run.text())
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_text_of_a_pipeline_is_everybodys():
    from swink.teams import sequential

    async with sequential(agent_on(["a", "b"]), agent_on("c")).stream("q") as run:
        assert [piece async for piece in run.text()] == ["a", "b", "c"]
        with pytest.raises(MisuseError, match="output"):
            async for _ in run.output():
                pass


# output()


async def test_the_output_grows_and_ends_with_the_full_value():
    async with agent_on(growing(TOKYO)).stream("q", output=City) as run:
        values = [value async for value in run.output()]
    assert values[-1] == City("Tokyo", 14, ["big", "wet"])
    assert all(isinstance(value, City) for value in values)
    names = [value.name for value in values if value.name is not None]
    assert len(set(names)) > 1, "it is seen while it is written"
    assert all("Tokyo".startswith(name) for name in names)
    assert values[0].people is None, "what has not arrived is None"
    lengths = [len(value.tags or ()) for value in values]
    assert lengths == sorted(lengths)
    assert (await run.result()).output == values[-1]


class Struct(msgspec.Struct):
    name: str
    people: int
    tags: list[str]

    def __post_init__(self) -> None:
        if self.people is None or len(self.tags) != 2:
            raise ValueError("not whole")


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=5)
    people: int
    tags: list[str]


@dataclasses.dataclass
class Indexed:
    name: str
    people: int
    tags: list[str]

    def __post_init__(self) -> None:
        self.index = set(self.tags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Indexed) and self.index == getattr(other, "index", None)


@pytest.mark.parametrize(
    ("output", "value", "expected"),
    [
        (Struct, TOKYO, Struct(**TOKYO)),
        (Model, TOKYO, Model(**TOKYO)),
        (Indexed, TOKYO, Indexed(**TOKYO)),
        (dict[str, int], {"a": 1, "bcdefgh": 2}, {"a": 1, "bcdefgh": 2}),
        (list[City], {"value": [TOKYO, TOKYO]}, [City(**TOKYO), City(**TOKYO)]),
        (str, {"value": "a long text that grows"}, "a long text that grows"),
        (City | Struct, {"value": TOKYO}, City(**TOKYO)),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "text"}, {"a": "text"}),
    ],
)
async def test_every_kind_of_output_grows(output: Any, value: Any, expected: Any):
    async with agent_on(growing(value, 3)).stream("q", output=output) as run:
        values = [value async for value in run.output()]
    assert values[-1] == expected
    assert type(values[-1]) is type(expected), "the last one is made and checked like any output"
    assert len(values) > 2


async def test_a_value_that_arrives_whole_is_given_at_the_end():
    async with agent_on([ToolCall("1", NAME, TOKYO)]).stream("q", output=City) as run:
        values = [value async for value in run.output()]
    assert values[-1] == City(**TOKYO)
    assert len(values) <= 2


async def test_the_output_of_a_failed_run_raises_at_the_end_after_what_grew():
    broken = OSError("cable")
    script = [*growing(TOKYO)[:6], broken]
    agent = agent_on(script)
    values: list[Any] = []
    with pytest.raises(AgentError, match="cable") as caught:
        async with agent.stream("q", output=City) as run:
            async for value in run.output():
                values.append(value)
    assert caught.value.__cause__ is broken
    assert values
    await nothing_left(agent)


async def test_an_output_that_never_validates_raises_at_the_end():
    agent = agent_on(growing({"name": "x"}), growing({"name": "y"}, id="2"))
    with pytest.raises(StructuredOutputFailed, match="after 2 attempts"):
        async for _ in agent.stream("q", output=City, max_output_retries=1).output():
            pass
    await nothing_left(agent)


async def test_an_attempt_that_was_refused_and_a_reply_that_was_retried_grow_again():
    def check(city: City) -> None:
        if city.name != "Tokyo":
            raise ToolError("no")

    first = {"name": "Atlantis", "people": 0, "tags": ["lost"]}
    agent = agent_on(growing(first), [*growing(TOKYO)[:5], NetworkError("down")], growing(TOKYO, id="2"))
    async with agent.stream("q", output=City, validate=check) as run:
        values = [value async for value in run.output()]
    assert values[-1] == City(**TOKYO)
    names = [value.name for value in values if value.name]
    assert names[0].startswith("A")
    assert len(names[-1]) == 5


async def test_other_tools_on_the_way_are_no_output():
    @tool
    async def search(name: str) -> str:
        return "found"

    agent = agent_on(
        growing({"name": "not the output"}, name="search"), growing(TOKYO, id="2"), tools=[search]
    )
    async with agent.stream("q", output=City) as run:
        values = [value async for value in run.output()]
    assert all(not (value.name or "").startswith("not") for value in values)
    assert values[-1] == City(**TOKYO)


@pytest.mark.parametrize("how", ["abort", "deadline", "policy"])
async def test_an_output_that_was_cut_short_raises_why(how: str):
    class Halt(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> Any:
            return Stop("halted") if how == "policy" else None

    script = ["words"] if how == "policy" else [*growing(TOKYO)[:5], Pause(10)]
    agent = agent_on(script)
    wanted = RunStopped if how == "policy" else Aborted
    deadline = 0.02 if how == "deadline" else None
    with pytest.raises(wanted, match=r"halted|aborted|deadline"):
        async for _ in agent.stream("q", output=City, deadline=deadline, policies=[Halt()]).output():
            if how == "abort":
                agent.abort()
    await nothing_left(agent)


async def test_output_without_a_type_is_misuse_and_says_what_to_write():
    agent = agent_on("a", "b")
    collector = EventCollector()
    agent.subscribe(collector)
    with pytest.raises(MisuseError, match=r"agent\.stream\(…, output=City\)"):
        async for _ in agent.stream("q").output():
            pass
    assert collector.events == [], "nothing was started"
    async with agent.stream("q") as run:
        with pytest.raises(MisuseError):
            await anext(run.output())
        assert (await run.result()).text == "a", "and the run is not disturbed"


async def test_output_after_the_run_has_been_read_gives_the_value_alone():
    async with agent_on(growing(TOKYO)).stream("q", output=City) as run:
        async for _ in run:
            pass
        assert [value async for value in run.output()] == [City(**TOKYO)]
        assert [value async for value in run.output()] == [City(**TOKYO)]


async def test_a_slow_reader_skips_values_and_misses_none_at_the_end():
    async with agent_on(growing({**TOKYO, "name": "T" * 400}, 2)).stream("q", output=City) as run:
        values: list[Any] = []
        async for value in run.output():
            values.append(value)
            await asyncio.sleep(0.005)
    assert values[-1].name == "T" * 400
    assert len(values) < 30


@pytest.mark.parametrize("size", [1, 7])
async def test_the_cost_of_a_growing_output_is_linear(size: int, monkeypatch: pytest.MonkeyPatch):
    read: list[int] = []
    parse = swink.agent.structured.partial_json

    def counted(text: str) -> Any:
        read.append(len(text))
        return parse(text)

    monkeypatch.setattr(swink.agent.structured, "partial_json", counted)
    work: dict[int, tuple[int, int]] = {}
    for length in (1_000, 4_000, 16_000):
        read.clear()
        value = {**TOKYO, "name": "x" * length}
        async with agent_on(growing(value, size)).stream("q", output=City) as run:
            async for _ in run.output():
                pass
        work[length] = len(read), sum(read)
    for length, (looks, characters) in work.items():
        assert looks < 150, work
        assert characters < 40 * length, work
    assert work[16_000][1] < 5 * work[4_000][1], "four times the text, about four times the work"


async def test_a_text_that_is_no_object_is_not_read_as_the_output(monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    monkeypatch.setattr(swink.agent.structured, "partial_json", read.append)
    reply = ["Let me ", *["think about Tokyo. "] * 20, ToolCall("1", NAME, TOKYO)]
    async with agent_on(reply).stream("q", output=City) as run:
        assert [value async for value in run.output()] == [City(**TOKYO)]
    assert not [text for text in read if text.startswith("Let")]


async def test_looking_at_a_delta_costs_the_same_however_much_has_arrived():
    """Only a look that is taken joins the pieces: a join per delta would be quadratic, too."""

    class Parts(list[str]):
        joined = 0

        def __iter__(self) -> Any:
            Parts.joined += 1
            return super().__iter__()

    class Attempt:
        class assembly:
            parts = Parts()

            @classmethod
            def argument_parts(cls, index: int, name: str) -> Any:
                return cls.parts

    class Ledger:
        attempt = Attempt

    class Run:
        ledger = Ledger

    output = swink.agent.structured.StructuredOutput(City, 1)
    Attempt.assembly.parts.append('{"name": "')
    for _ in range(5_000):
        Attempt.assembly.parts.append("x")
        output.grow(Run, 0)  # type: ignore[arg-type]
    assert Parts.joined < 200


# Leaving early


@pytest.mark.parametrize("read", ["text", "output", "events"])
@pytest.mark.parametrize("way", ["break", "break without a block", "cancel", "aclose"])
async def test_leaving_early_leaves_nothing_behind(read: str, way: str):
    slow = [*growing(TOKYO)[:5], Pause(10)] if read == "output" else ["a", "b", Pause(10)]

    def reply(context: Any) -> Any:
        return slow if len(context.messages) == 1 else "later"

    agent = agent_on(reply, reply)

    def reader(run: Any) -> Any:
        return run if read == "events" else getattr(run, read)()

    stream = agent.stream("q", output=City if read == "output" else None)
    if way == "break":
        async with stream as run:
            async for _ in reader(run):
                break
        assert not agent.is_running, "the block waits for the end"
    elif way == "break without a block":
        async for _ in reader(stream):
            break
        del stream
    elif way == "aclose":
        values = reader(stream)
        await anext(values)
        if read != "events":
            await values.aclose()
        assert agent.is_running, "leaving the loop is not leaving the run"
        await stream.aclose()
        assert not agent.is_running
    else:
        begun = asyncio.Event()

        async def consume() -> None:
            async for _ in reader(stream):
                begun.set()

        task = asyncio.create_task(consume())
        await begun.wait()
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not agent.is_running, "a reader that is cancelled ends the run"
    await nothing_left(agent)
    assert (await agent.run("q")).text == "later"


async def test_an_exception_in_the_readers_loop_ends_the_run():
    agent = agent_on([*growing(TOKYO)[:5], Pause(10)], "later")
    with pytest.raises(LookupError):
        async with agent.stream("q", output=City) as run:
            async for _ in run.output():
                raise LookupError
    await nothing_left(agent)


async def test_detaching_ends_the_text_and_lets_the_run_finish():
    agent, collector = agent_on(["a", Pause(0.01), "b"]), EventCollector()
    agent.subscribe(collector)
    async with agent.stream("q") as run:
        pieces: list[str] = []
        async for piece in run.text():
            pieces.append(piece)
            run.detach()
    assert pieces == ["a"]
    await agent.wait_for_idle()
    assert agent.messages[-1].text == "ab"
    assert len(collector.of(AgentEnd)) == 1


async def test_a_run_that_refuses_to_start_raises_from_every_reader():
    agent = agent_on(["a", Pause(10)])
    for read in ("text", "output"):
        second = agent.stream("q", output=City)
        async with agent.stream("q"):
            with pytest.raises(MisuseError, match="already running"):
                async for _ in getattr(second, read)():
                    pass
    await nothing_left(agent)
