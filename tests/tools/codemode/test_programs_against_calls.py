"""Any program of calls gives the same runs of tools, questions to policies, journal and telemetry as direct calls."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried
from tests.patience import until

from swink import Agent, Policy, PolicyContext, Skip, ToolCall, tool
from swink.events import ToolExecutionEnd, ToolExecutionStart
from swink.messages.records import CallEnded, CallStarted
from swink.stream import observer
from swink.testing import EventCollector, ScriptedModel, history_problems
from swink.tools import code_mode

GOOD, FAILS, DENIED, WRONG = "good", "fails", "denied", "wrong"

Step = tuple[str, bool, list[tuple[str, str]]]
"""How calls are made ("one", "loop", "gather"), whether what they raise is caught, and tool and argument of each."""

calls = st.tuples(
    st.sampled_from(["look", "write"]), st.sampled_from([GOOD, GOOD, GOOD, FAILS, DENIED, WRONG])
)
steps = st.one_of(
    st.tuples(st.just("one"), st.booleans(), st.lists(calls, min_size=1, max_size=1)),
    st.tuples(st.just("loop"), st.just(True), st.lists(calls, min_size=1, max_size=4)),
    st.tuples(st.just("gather"), st.booleans(), st.lists(calls, min_size=1, max_size=4)),
)


def program_of(script: Sequence[Step]) -> str:
    lines = ["import asyncio"]
    for kind, caught, made in script:
        written = [f"{name}({1 if argument == WRONG else argument!r})" for name, argument in made]
        if kind == "loop":
            body = [f"for k in range({len(made)}):", "    try:"]
            for number, text in enumerate(written):
                body.append(f"        {'if' if not number else 'elif'} k == {number}:")
                body.append(f"            {text}")
            body += ["    except RuntimeError:", "        pass"]
        elif kind == "gather":
            body = [f"await asyncio.gather({', '.join(written)})"]
        else:
            body = written
        if caught and kind != "loop":
            body = ["try:", *[f"    {line}" for line in body], "except RuntimeError:", "    pass"]
        lines += body
    return "\n".join([*lines, "'end'"])


def direct_of(script: Sequence[Step]) -> list[list[ToolCall]]:
    """The turns in which a model would make the same calls; it ends where the program does."""
    turns: list[list[ToolCall]] = []
    number = 0
    for kind, caught, made in script:
        built: list[ToolCall] = []
        for name, argument in made:
            number += 1
            built.append(ToolCall(f"c.{number}", name, {"name": 1 if argument == WRONG else argument}))
        turns += [built] if kind == "gather" else [[call] for call in built]
        if not caught and any(argument != GOOD for _, argument in made):
            break
    return turns


class Journal:
    """A session that only keeps what it is told."""

    messages: Sequence[Any] = ()

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.state: dict[str, Any] = {}

    async def append(
        self, messages: Sequence[Any], *, state: Any = None, records: Sequence[Any] = ()
    ) -> None:
        self.records.extend(records)


class Part:
    """Something that is observed, until its end is told."""

    context = None

    def __init__(self, ends: list[Any], key: Any = None, options: Any = None) -> None:
        self._ends, self._key, self.options = ends, key, options

    def failed(self, error: BaseException) -> None: ...

    def end(self, *told: Any) -> None:
        if self._key is not None:
            self._ends.append((*self._key, told[0].is_error))


class Telemetry:
    """Keeps which calls began, and how they ended."""

    def __init__(self) -> None:
        self.began: list[Any] = []
        self.ended: list[Any] = []

    def run(self, *_: Any) -> Part:
        return Part(self.ended)

    def turn(self, *_: Any) -> Part:
        return Part(self.ended)

    def request(self, model: Any, context: Any, options: Any) -> Part:
        return Part(self.ended, None, options)

    def call(self, call: ToolCall, arguments: Any, description: str) -> Part:
        if call.name == "run_code":
            return Part(self.ended)
        self.began.append((call.id, call.name))
        return Part(self.ended, (call.id, call.name))


class Trial(Policy):
    """One run, and all that it did."""

    def __init__(self, abort_at: int | None) -> None:
        self.ran: list[Any] = []
        self.seen: list[Any] = []
        self.running = 0
        self.abort_at = abort_at
        self.agent: Agent | None = None

        @tool(read_only=True)
        async def look(name: str) -> str:
            """Look."""
            return await self._run("look", name)

        @tool
        async def write(name: str) -> str:
            """Write."""
            return await self._run("write", name)

        self.tools = [look, write]

    async def _run(self, tool: str, name: str) -> str:
        self.ran.append((tool, name))
        self.running += 1
        try:
            if len(self.ran) == self.abort_at:
                assert self.agent is not None
                self.agent.abort()
            await asyncio.sleep(0)
            if name == FAILS:
                raise ValueError("it fails")
            return f"{tool} {name}"
        finally:
            self.running -= 1

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Skip | None:
        if call.name != "run_code":
            self.seen.append((call.id, call.name, dict(call.arguments)))
        return Skip("denied") if call.arguments.get("name") == DENIED else None

    async def run(self, replies: Sequence[Any], tools: Sequence[Any]) -> dict[str, Any]:
        heard, journal, telemetry = EventCollector(), Journal(), Telemetry()
        agent = self.agent = Agent(
            "test:m",
            stream_fn=ScriptedModel([*replies, "done"]),
            tools=tools,
            policies=[self],
            session=journal,
        )
        agent.subscribe(heard)
        observer.observe(telemetry)
        try:
            await agent.run("go")
        finally:
            observer.observe(None)
        heard.check()
        assert history_problems(agent.messages) == []
        assert self.running == 0
        # A call that does not end at once is ended later: who waits for the run goes on before.
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, asyncio.all_tasks)
        assert sorted(telemetry.began) == sorted(item[:2] for item in telemetry.ended)
        started = [record.call_id for record in journal.records if isinstance(record, CallStarted)]
        ended = [record.call_id for record in journal.records if isinstance(record, CallEnded)]
        assert len(set(started)) == len(started)
        assert len(set(ended)) == len(ended)
        writes = {id for id, name in telemetry.began if name == "write"}
        told = {
            (event.call_id, event.result.text)
            for event in heard.of(ToolExecutionEnd)
            if event.name != "run_code"
        }
        return {
            "ran": self.ran,
            "seen": self.seen,
            "telemetry": telemetry.began,
            "ended": sorted(telemetry.ended),
            "journal": [id for id in started if id in writes],
            "told": sorted(told),
            "starts": [event.call_id for event in heard.of(ToolExecutionStart) if event.name != "run_code"],
        }


async def both(script: Sequence[Step], abort_at: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    direct, inside = Trial(abort_at), Trial(abort_at)
    code = [[ToolCall("c", "run_code", {"code": program_of(script)})]]
    return await direct.run(direct_of(script), direct.tools), await inside.run(
        code, [code_mode(inside.tools)]
    )


def is_one_by_one(script: Sequence[Step]) -> bool:
    """Whether no calls run at once: those that do may begin in any order."""
    return all(kind != "gather" or len(made) == 1 for kind, _, made in script)


@tried(20, 500)
@given(script=st.lists(steps, min_size=1, max_size=5))
async def test_a_program_does_what_direct_calls_do(script: list[Step]):
    direct, inside = await both(script, None)
    if is_one_by_one(script):
        assert inside == direct
    else:
        assert {name: sorted(map(repr, items)) for name, items in inside.items()} == {
            name: sorted(map(repr, items)) for name, items in direct.items()
        }


@tried(10, 500)
@given(script=st.lists(steps, min_size=1, max_size=4), abort_at=st.integers(1, 6))
async def test_an_abort_ends_both_at_the_same_call(script: list[Step], abort_at: int):
    direct, inside = await both(script, abort_at)
    written = Counter((name, argument) for _, _, made in script for name, argument in made)
    assert Counter(inside["ran"]) <= written
    if is_one_by_one(script):
        least = min(abort_at, len(direct["ran"]))
        shorter = min(len(direct["ran"]), len(inside["ran"]))
        assert inside["ran"][:least] == direct["ran"][:least]
        assert inside["ran"][:shorter] == direct["ran"][:shorter]
