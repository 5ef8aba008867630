"""Results of an earlier run are taken for the same agent, and never for one that may answer otherwise."""

import importlib
import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, tool
from swink.agent.policy import Policy
from swink.eval import Case, EvalRun, ExpectedResponse, SimulatedUser, evaluate
from swink.eval.fingerprint import MOST, NotTold, fingerprint
from swink.eval.resultcache import _say
from swink.eval.simulation import STOP
from swink.messages import ToolCall
from swink.stream import StreamOptions
from swink.stream.wrappers import recorded, replayed, through
from swink.testing import ScriptedModel

ASKED: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_asked():
    ASKED.clear()
    _say.cache_clear()


def answer(context: Any) -> str:
    ASKED.append(context)
    return "hello"


def saying(reply: Any = answer, **options: Any) -> Callable[[Case], Agent]:
    return lambda case: Agent("test:model", stream_fn=ScriptedModel([reply]), **options)


async def tried(factory: Any, cache: Path, **options: Any) -> EvalRun:
    case = Case(id="one", user_messages=("hi",), expected_response=ExpectedResponse(contains="hello"))
    return await evaluate(factory, [case], cache=cache, **options)


async def cached(factory: Any, cache: Path, **options: Any) -> bool:
    return (await tried(factory, cache, **options)).cases[0].cached


# What must not share an answer


@pytest.mark.parametrize(
    "other",
    [
        {"options": StreamOptions(temperature=1.0)},
        {"options": StreamOptions(temperature=0.0, seed=7)},
        {"system_prompt": "another"},
        {"thinking_level": "high"},
        {"fallback_models": ["test:other"]},
        {"tool_timeout": 3.0},
    ],
)
async def test_an_agent_with_other_options_is_asked_itself(tmp_path: Path, other: dict[str, Any]):
    options = {"options": StreamOptions(temperature=0.0)}
    await tried(saying(**options), tmp_path)
    assert not await cached(saying(**(options | other)), tmp_path)
    assert await cached(saying(**options), tmp_path)


async def test_closures_that_hold_different_things_do_not_share_an_answer(tmp_path: Path):
    def looks_up(table: dict[str, str]) -> Any:
        @tool
        def look(city: str) -> str:
            """Look."""
            return table[city]

        return saying(tools=[look])

    await tried(looks_up({"Oslo": "rain"}), tmp_path)
    assert not await cached(looks_up({"Oslo": "sun"}), tmp_path)
    assert await cached(looks_up({"Oslo": "rain"}), tmp_path)


async def test_scorers_that_hold_different_things_do_not_share_a_score(tmp_path: Path):
    def at_least(length: int) -> Any:
        return lambda case, trajectory: len(trajectory.response) >= length

    assert (await tried(saying(), tmp_path, scorers=[at_least(1)])).passed == 1
    run = await tried(saying(), tmp_path, scorers=[at_least(100)])
    assert (run.cases[0].cached, run.passed) == (False, 0)
    assert await cached(saying(), tmp_path, scorers=[at_least(1)])


async def test_policies_with_other_settings_do_not_share_an_answer(tmp_path: Path):
    class Careful(Policy):
        def __init__(self, limit: int) -> None:
            self.limit = limit

    await tried(saying(policies=[Careful(1)]), tmp_path)
    assert not await cached(saying(policies=[Careful(2)]), tmp_path)
    assert await cached(saying(policies=[Careful(1)]), tmp_path)


async def test_a_model_that_is_asked_otherwise_does_not_share_an_answer(tmp_path: Path):
    await tried(saying("hello"), tmp_path)
    assert not await cached(saying("hello there"), tmp_path)


def module(directory: Path, name: str, text: str) -> Any:
    (directory / f"{name}.py").write_text(text, "utf-8")
    sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module(name)


async def test_code_that_a_tool_imports_is_part_of_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    inner, outer = "def weather() -> str:\n    return {!r}\n", "from cached_inner import weather\n\n\n"
    outer += 'def look(city: str) -> str:\n    """Look."""\n    return weather()\n'

    def looks(said: str) -> Any:
        module(tmp_path, "cached_inner", inner.format(said))
        return saying(tools=[module(tmp_path, "cached_outer", outer).look])

    await tried(looks("rain"), tmp_path / "cache")
    assert await cached(looks("rain"), tmp_path / "cache")
    assert not await cached(looks("sun, all day"), tmp_path / "cache")


async def test_what_cannot_be_told_apart_is_not_cached_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with socket.socket() as connection:

        @tool
        def look(city: str) -> str:
            """Look."""
            return str(connection)

        with caplog.at_level(logging.WARNING, "swink.eval"):
            for _ in range(2):
                assert not await cached(saying(tools=[look]), tmp_path)
    assert not list(tmp_path.rglob("*.json"))
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == "attempts are not cached: an object of socket.socket cannot be told from another one"


# What is the same


async def test_the_cache_answers_for_the_same_agent_and_no_model_is_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    for found in (False, True):
        run = await tried(saying(), tmp_path)
        assert (run.cases[0].cached, run.passed, run.errors) == (found, 1, 0)
    assert len(ASKED) == 1
    assert not caplog.records
    assert not await cached(saying(), tmp_path, model="test:another")
    assert len(ASKED) == 2


async def test_the_workspace_of_an_attempt_makes_no_difference(tmp_path: Path):
    def factory(case: Case) -> Agent:
        @tool
        def look(name: str) -> str:
            """Look."""
            return (case.workspace / name).read_text("utf-8") if case.workspace else ""

        prompt = f"You work in {case.workspace}."
        return Agent("test:model", system_prompt=prompt, tools=[look], stream_fn=ScriptedModel([answer]))

    await tried(factory, tmp_path)
    assert await cached(factory, tmp_path)


async def test_a_conversation_that_a_simulated_user_begins_is_found_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    case = Case(id="one", simulated_user=SimulatedUser("A jacket"))

    def factory(case: Case) -> Agent:
        return Agent("test:model", stream_fn=ScriptedModel(["I am cold.", "hello", STOP]))

    for found in (False, True):
        run = await evaluate(factory, [case], cache=tmp_path, scorers=[lambda case, trajectory: True])
        assert (run.cases[0].cached, run.errors, run.passed) == (found, 0, 1)
    assert not caplog.records


async def test_a_replayed_run_is_answered_by_its_cassette(tmp_path: Path):
    tape = tmp_path / "tape.jsonl"
    with through(lambda stream_fn: recorded(stream_fn, tape)):
        assert not await cached(saying(), tmp_path / "cache")
    with through(lambda stream_fn: replayed(tape)):
        run = await tried(saying(), tmp_path / "cache")
    assert (run.cases[0].cached, run.passed, len(ASKED)) == (False, 1, 1)
    assert await cached(saying(), tmp_path / "cache")


# Fingerprints


class Node:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.me = self


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ("a", b"a"),
        ([1], (1,)),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1, 3}),
        (Node(1), Node(2)),
        (ValueError("a"), ValueError("b")),
        ("".join, ",".join),
        (lambda: 1, lambda: 2),
        (Node(ToolCall("1", "a", {})), Node(ToolCall("1", "b", {}))),
    ],
)
def test_different_objects_have_different_fingerprints(one: Any, other: Any):
    assert fingerprint(one) != fingerprint(other)


def test_equal_objects_have_the_same_fingerprint():
    assert fingerprint(Node([1, {"a": {2, 3}}])) == fingerprint(Node([1, {"a": {3, 2}}]))
    assert fingerprint([Node(1)] * 2) == fingerprint([Node(1)] * 2)


def test_what_is_too_large_or_too_deep_cannot_be_told_apart():
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value in (deep, list(range(MOST + 1))):
        with pytest.raises(NotTold):
            fingerprint(value)
