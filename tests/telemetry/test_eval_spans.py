"""Evaluations are spans: the run, each attempt, and below it what its agent does."""

import asyncio
from typing import Any

import pytest
from tests.telemetry.seen import Seen

from swink import Agent
from swink.agent.retry import ExponentialBackoff
from swink.errors import ModelThrottled
from swink.eval import Case, Trajectory, evaluate
from swink.eval.attempt import Factory
from swink.telemetry import uninstrument
from swink.testing import Pause, ScriptedModel

CASE = "eval run > eval case"


def hello(case: Case, trajectory: Trajectory) -> bool:
    """A scorer."""
    return "hello" in trajectory.response


def broken(case: Case, trajectory: Trajectory) -> bool:
    """A scorer that fails."""
    raise ValueError("no")


def saying(*replies: Any) -> Factory:
    return lambda case: Agent("test:model", stream_fn=ScriptedModel([*replies]))


def cases(count: int) -> list[Case]:
    return [Case(id=f"c{number}", user_messages=("hi",)) for number in range(count)]


async def test_each_attempt_is_a_span_below_that_of_the_run(seen: Seen):
    await evaluate(saying("hello"), cases(3), scorers=[hello], repeat=2, concurrency=2)
    below = [CASE, f"{CASE} > invoke_agent", f"{CASE} > invoke_agent > turn"]
    assert seen.paths == sorted(["eval run", *(6 * [*below, f"{below[-1]} > chat model"])])
    told = [span.attributes or {} for span in seen.spans if span.name == "eval case"]
    assert {(known["swink.eval.case"], known["swink.eval.repeat"]) for known in told} == {
        (f"c{number}", repeat) for number in range(3) for repeat in range(2)
    }
    assert all(known["swink.eval.passed"] for known in told)


async def test_every_metric_is_an_event(seen: Seen):
    await evaluate(saying("good bye"), cases(1), scorers=[hello, broken])
    events = {
        str((event.attributes or {})["gen_ai.evaluation.name"]): event
        for event in seen.one("eval case").events
    }
    assert {event.name for event in events.values()} == {"gen_ai.evaluation.result"}
    labels = {"gen_ai.evaluation.score.value": 0.0, "gen_ai.evaluation.score.label": "fail"}
    assert events["hello"].attributes == {"gen_ai.evaluation.name": "hello"} | labels
    failed = {"gen_ai.evaluation.name": "broken", "error.type": "ValueError"}
    assert events["broken"].attributes == failed | labels


async def test_an_attempt_that_is_tried_again_is_one_span(seen: Seen):
    model = ScriptedModel([ModelThrottled("busy"), "hello"])

    def factory(case: Case) -> Agent:
        return Agent("test:model", stream_fn=model, retry=ExponentialBackoff(max_attempts=1))

    await evaluate(factory, cases(1), scorers=[hello], retry=ExponentialBackoff(base_delay=0.0))
    assert seen.paths.count(CASE) == 1
    assert seen.paths.count(f"{CASE} > invoke_agent") == 2


async def test_an_attempt_that_could_not_be_made_says_who_is_to_blame(seen: Seen):
    def factory(case: Case) -> Agent:
        raise ValueError("no")

    await evaluate(factory, cases(1), scorers=[hello])
    known = seen.one("eval case").attributes or {}
    assert (known["swink.eval.passed"], known["error.type"]) == (False, "factory")


async def test_the_spans_of_a_cancelled_evaluation_end(seen: Seen):
    asked, both = [0], asyncio.Event()

    def reply(context: Any) -> Any:
        asked[0] += 1
        if asked[0] == 2:
            both.set()
        return [Pause(3600)]

    running = asyncio.create_task(evaluate(saying(reply), cases(2), scorers=[hello]))
    await both.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen.paths.count(CASE) == 2
    assert seen.paths.count("eval run") == 1


async def test_without_telemetry_an_evaluation_is_the_same(seen: Seen):
    uninstrument()
    run = await evaluate(saying("hello"), cases(1), scorers=[hello])
    assert (run.passed, seen.spans) == (1, [])
