"""The runner: cases in, results in a file."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.counts import MORE
from tests.patience import until

import swink.eval
from swink import Agent, Price, tool
from swink.agent.retry import ExponentialBackoff
from swink.errors import InvalidInput, MisuseError, ModelThrottled, NetworkError
from swink.eval import (
    BadResults,
    Case,
    CaseBudget,
    Environment,
    EvalRun,
    ExpectedResponse,
    Progress,
    SimulatedUser,
    Suite,
    Trajectory,
    open_run,
    read_results,
)
from swink.eval.evalrun import busy
from swink.eval.verify import verify as verify_run
from swink.messages import ModelSpec, ToolCall, Usage
from swink.policies.chain import verify
from swink.testing import Pause, ScriptedModel

AT_ONCE = ExponentialBackoff(base_delay=0.0)
HELLO = ExpectedResponse(contains="hello")


def hello(case: Case, trajectory: Trajectory) -> bool:
    """A scorer."""
    return "hello" in trajectory.response


async def evaluate(factory: Any, cases: Any, scorers: Any = (hello,), **options: Any) -> EvalRun:
    return await swink.eval.evaluate(factory, cases, scorers=scorers, **options)


def polite(case: Case) -> Agent:
    return Agent("test:polite", stream_fn=ScriptedModel([f"hello {case.id}"]))


def cases(count: int) -> list[Case]:
    return [Case(id=f"c{n}", user_messages=("hi",), expected_response=HELLO) for n in range(count)]


def one(**fields: Any) -> list[Case]:
    return [Case(**({"id": "one", "user_messages": ("hi",), "expected_response": HELLO} | fields))]


def saying(*replies: Any, **options: Any) -> Any:
    return lambda case: Agent("test:model", stream_fn=ScriptedModel(replies), **options)


async def test_a_factory_that_gives_one_agent_for_all_cases_fails_instead_of_mixing_their_histories():
    shared = Agent("test:polite", stream_fn=ScriptedModel(["hello", "hello"]))
    run = await evaluate(lambda case: shared, cases(2), concurrency=1)
    assert (run.passed, run.errors) == (1, 1)
    (error,) = [result.error for result in run.cases if result.error]
    assert "make a new one for each case" in error


async def test_every_case_has_a_result_for_each_repeat(tmp_path: Path):
    run = await evaluate(polite, cases(3), repeat=2, output=tmp_path / "run")
    assert [(result.case_id, result.repeat) for result in run.cases] == [
        ("c0", 0), ("c1", 0), ("c2", 0), ("c0", 1), ("c1", 1), ("c2", 1),
    ]  # fmt: skip
    assert [message.text for message in run.cases[0].transcript] == ["hi", "hello c0"]
    assert (run.passed, run.failed, run.errors) == (3, 0, 0)
    assert len(open_run(tmp_path / "run").cases) == 6
    assert verify_run(tmp_path / "run").ok


async def test_no_cases_and_cases_with_one_id_are_refused():
    with pytest.raises(InvalidInput, match="no cases"):
        await evaluate(polite, [])
    with pytest.raises(InvalidInput, match="more than once: one"):
        await evaluate(polite, [*one(), *one()])
    with pytest.raises(InvalidInput, match="repeat is 0"):
        await evaluate(polite, cases(1), repeat=0)
    with pytest.raises(InvalidInput, match="no_such_scorer"):
        await evaluate(polite, cases(1), ["no_such_scorer"])
    with pytest.raises(MisuseError, match="is no scorer"):
        await evaluate(polite, cases(1), [3])
    with pytest.raises(InvalidInput, match="no factory"):
        await evaluate(None, cases(1))


async def test_a_factory_that_raises_is_an_error_of_its_case_alone():
    def factory(case: Case) -> Any:
        if case.id == "c1":
            raise RuntimeError("no such database: password=hunter2-hunter2")
        return polite(case) if case.id != "c2" else "an agent"

    run = await evaluate(factory, cases(3))
    assert [result.error_source for result in run.cases] == [None, "factory", "factory"]
    assert "no such database" in str(run.cases[1].error)
    assert "hunter2" not in str(run.cases[1].error)
    assert "the factory returns an Agent, not str" in str(run.cases[2].error)
    assert (run.passed, run.failed, run.errors) == (1, 0, 2)


@pytest.mark.parametrize("error", [SystemExit(0), asyncio.CancelledError()])
async def test_a_factory_that_exits_is_an_error_of_its_case_alone(error: BaseException):
    def factory(case: Case) -> Agent:
        if case.id == "c0":
            raise error
        return polite(case)

    run = await evaluate(factory, cases(2), concurrency=1)
    assert [result.passed for result in run.cases] == [False, True]
    assert str(run.cases[0].error).startswith(f"the factory failed: {type(error).__name__}")


async def test_an_agent_that_cancels_itself_is_an_error_of_its_case_alone():
    def cancel(_: Any) -> str:
        raise asyncio.CancelledError

    def factory(case: Case) -> Agent:
        agent = polite(case)
        if case.id == "c0":
            agent.system_prompt = cancel
        return agent

    run = await evaluate(factory, cases(2), concurrency=1)
    assert [result.passed for result in run.cases] == [False, True]


@pytest.mark.parametrize("method", ["__aenter__", "__aexit__"])
async def test_an_agent_that_cannot_be_opened_or_closed_is_an_error_of_its_case_alone(method: str):
    async def fail(*_: Any) -> None:
        raise RuntimeError("no server")

    broken = type("Broken", (Agent,), {method: fail})

    def factory(case: Case) -> Agent:
        return broken("test:polite", stream_fn=ScriptedModel(["hello"])) if case.id == "c0" else polite(case)

    run = await evaluate(factory, cases(2), concurrency=1)
    assert [result.error for result in run.cases] == ["RuntimeError: no server", None]
    assert [result.passed for result in run.cases] == [False, True]


async def test_what_simulating_cost_before_a_provider_failed_is_counted():
    scripts = [["first", NetworkError("offline")], ["first", "hello", "###STOP###"]]
    model = ModelSpec("test", "model", price=Price(input=0, output=1_000_000))

    def factory(case: Case) -> Agent:
        once = ExponentialBackoff(max_attempts=1)
        return Agent(model, stream_fn=ScriptedModel(scripts.pop(0)), retry=once)

    case = Case(id="c", simulated_user=SimulatedUser(goal="hear hello"))
    run = await evaluate(factory, [case], retry=AT_ONCE)
    assert run.cases[0].metadata["simulation_cost"] == 3.0
    assert run.summary.cost == 4.0


async def test_an_async_factory_is_awaited():
    async def factory(case: Case) -> Agent:
        await asyncio.sleep(0)
        return polite(case)

    assert (await evaluate(factory, cases(1))).passed == 1


async def test_the_case_sets_prompt_state_and_files_and_its_workspace_is_gone_afterwards():
    seen: list[Case] = []

    def factory(case: Case) -> Agent:
        seen.append(case)

        @tool
        def copy(name: str) -> str:
            """Copy a file."""
            assert case.workspace is not None
            (case.workspace / "copy.txt").write_text((case.workspace / name).read_text())
            return "copied"

        replies = [ToolCall("1", "copy", {"name": "in/a.txt"}), "hello"]
        return Agent("test:model", stream_fn=ScriptedModel(replies), tools=[copy], system_prompt="mine")

    expected = Environment(files={"copy.txt": "text", "none.txt": None, "link": None}, state={"user": "ann"})
    run = await evaluate(
        factory,
        one(
            system_prompt="the case's",
            session_state={"user": "ann"},
            initial_files={"in/a.txt": "text"},
            expected_environment_state=expected,
        ),
        scorers=[lambda case, trajectory: trajectory.state == {"user": "ann"}],
    )
    result = run.cases[0]
    assert result.error is None
    assert result.system_prompt == "the case's"
    assert [(call.name, call.arguments, call.result, call.ran) for call in result.calls] == [
        ("copy", {"name": "in/a.txt"}, "copied", True)
    ]
    assert [tool["name"] for tool in result.tools] == ["copy"]
    assert result.passed, result.metrics
    assert seen[0].workspace is not None
    assert not seen[0].workspace.exists()


async def test_an_initial_file_outside_the_workspace_is_refused(tmp_path: Path):
    run = await evaluate(polite, one(initial_files={"../escaped.txt": "x"}))
    assert run.cases[0].error_source == "harness"
    assert "without '..'" in str(run.cases[0].error)


async def test_user_messages_are_sent_one_after_the_other():
    run = await evaluate(saying("first", "hello"), one(user_messages=("a", "b")))
    assert [message.text for message in run.cases[0].transcript] == ["a", "first", "b", "hello"]
    assert [turn.turn for turn in run.cases[0].timings] == [1, 2]
    assert run.cases[0].usage == Usage(input=2, output=2)


@tool
def again() -> str:
    """Do it again."""
    return "once more"


def loops(case: Case) -> Agent:
    """An agent that never stops by itself."""
    model = ModelSpec("test", "model", price=Price(input=0, output=1_000_000))
    calls = [ToolCall(str(n), "again", {}) for n in range(50)]
    return Agent(model, stream_fn=ScriptedModel(calls), tools=[again])


@pytest.mark.parametrize(
    ("budget", "turns"),
    [
        (CaseBudget(max_turns=3), 3),
        (CaseBudget(max_cost=4.0), 4),
        (CaseBudget(max_input=5), 5),
        (CaseBudget(max_output=2), 2),
    ],
)
async def test_the_budget_of_a_case_stops_its_agent_while_it_runs(budget: CaseBudget, turns: int):
    run = await evaluate(loops, one(budget=budget))
    result = run.cases[0]
    assert result.turns == turns
    assert str(result.reason).startswith("budget: ")
    assert (result.passed, result.error) == (False, None)


async def test_a_budget_counts_over_all_messages_of_a_case():
    budget = CaseBudget(max_turns=2)
    run = await evaluate(saying("hello", "hello", "hello"), one(user_messages=("a", "b", "c"), budget=budget))
    assert run.cases[0].turns == 2
    assert run.cases[0].reason == "budget: 2 of 2 turns taken"


async def test_the_budget_of_the_run_stops_it_and_keeps_what_is_finished(tmp_path: Path):
    def factory(case: Case) -> Agent:
        model = ModelSpec("test", "model", price=Price(input=0, output=1_000_000))
        return Agent(model, stream_fn=ScriptedModel(["hello"]))

    run = await evaluate(factory, cases(10), budget=3.0, concurrency=1, output=tmp_path)
    assert len(run.cases) == 3
    assert run.stopped == "the budget of 3 $ for the whole run is spent"
    assert not run.summary.complete
    more = await evaluate(factory, cases(10), budget=5.0, concurrency=1, output=tmp_path, resume=True)
    assert len(more.cases) == 5


async def test_attempts_that_the_end_of_the_money_cut_short_are_no_results():
    run = await evaluate(loops, cases(4), budget=10.0, concurrency=4)
    assert (len(run.cases), run.stopped) == (0, "the budget of 10 $ for the whole run is spent")


async def test_a_case_that_takes_too_long_is_ended_and_keeps_its_transcript():
    run = await evaluate(saying(["hel", Pause(60), "lo"]), one(timeout=0.05))
    result = run.cases[0]
    assert (result.error, result.error_source) == ("timed out after 0.05 s", "timeout")
    assert [message.text for message in result.transcript] == ["hi", "hel"]
    assert result.stop_reason == "aborted"
    run = await evaluate(saying([Pause(60)]), one(), timeout=0.01)
    assert run.cases[0].error_source == "timeout"


async def test_a_factory_that_hangs_times_out():
    async def factory(case: Case) -> Agent:
        await asyncio.sleep(60)
        return polite(case)

    run = await evaluate(factory, one(timeout=0.01))
    assert run.cases[0].error_source == "timeout"


async def test_provider_trouble_is_tried_again_with_a_new_agent():
    made: list[Case] = []

    def factory(case: Case) -> Agent:
        made.append(case)
        failing = [NetworkError("gone")] if len(made) < 3 else ["hello"]
        return Agent("test:m", stream_fn=ScriptedModel(failing), retry=ExponentialBackoff(max_attempts=1))

    run = await evaluate(factory, one(), retry=AT_ONCE)
    assert run.passed == 1
    assert len({case.workspace for case in made}) == 3
    made.clear()
    run = await evaluate(factory, one(), retry=ExponentialBackoff(max_attempts=2, base_delay=0.0))
    assert (run.cases[0].error_source, len(made)) == ("provider", 2)


async def test_what_an_agent_does_wrong_is_not_tried_again():
    made: list[Case] = []

    def factory(case: Case) -> Agent:
        made.append(case)

        def transform(*_: Any) -> Any:
            raise RuntimeError("a hook failed")

        return Agent("test:m", stream_fn=ScriptedModel(["hello"]), transform_context=transform)

    run = await evaluate(factory, one(), retry=AT_ONCE)
    assert run.cases[0].error_source == "agent"
    assert len(made) == 1


async def test_a_throttled_provider_is_asked_by_nobody_for_as_long_as_it_says():
    asked: list[str] = []

    def throttled(seconds: float) -> Callable[[Case], Agent]:
        def note(context: Any) -> str:
            asked.append("answered")
            return "hello"

        def refuse(context: Any) -> Any:
            asked.append("refused")
            return ModelThrottled("slow down", retry_after=seconds)

        def factory(case: Case) -> Agent:
            first = refuse if case.id == "c0" else note
            retry = ExponentialBackoff(base_delay=0.0, max_delay=seconds)
            return Agent("test:m", stream_fn=ScriptedModel([first, note]), retry=retry)

        return factory

    stuck = asyncio.create_task(evaluate(throttled(600), cases(3), concurrency=1))
    await until(lambda: asked)
    await asyncio.sleep(0.1)
    assert asked == ["refused"]
    stuck.cancel()
    await asyncio.wait([stuck])
    assert (await evaluate(throttled(0.01), cases(3), concurrency=1)).passed == 3
    assert asked == ["refused", "refused", *["answered"] * 3]


async def test_a_rate_limit_is_shared_by_all_attempts():
    asked: list[Any] = []

    def note(context: Any) -> str:
        asked.append(context)
        return "hello"

    limited = asyncio.create_task(evaluate(saying(note), cases(4), rate_limit=1, concurrency=4))
    await until(lambda: asked)
    await asyncio.sleep(0.1)
    assert len(asked) == 1
    limited.cancel()
    await asyncio.wait([limited])


async def test_secrets_do_not_reach_the_result_file(tmp_path: Path):
    secret = "sk-ant-api03-" + "a1B2" * 20
    run = await evaluate(saying(f"hello, the key is {secret}"), one(), output=tmp_path)
    assert run.passed == 1
    assert secret not in (tmp_path / "results.jsonl").read_text()
    assert "[redacted]" in run.cases[0].transcript[-1].text


async def test_a_case_whose_id_looks_like_a_secret_is_found_again(tmp_path: Path):
    case = Case(id="password=hunter2hunter2", user_messages=("the password=hunter2hunter2",))
    run = await evaluate(polite, [case], output=tmp_path)
    assert (run.summary.complete, verify_run(tmp_path).ok) == (True, True)
    assert "hunter2" not in run.cases[0].transcript[0].text


async def test_progress_counts_and_estimates():
    seen: list[Progress] = []
    await evaluate(polite, cases(4), progress=seen.append, concurrency=1)
    assert [(item.done, item.passed, item.total) for item in seen] == [(n, n, 4) for n in range(1, 5)]
    assert seen[0].left is not None
    assert seen[-1].left == 0.0


async def test_cancelling_keeps_what_is_finished(tmp_path: Path):
    reached = asyncio.Event()

    def factory(case: Case) -> Agent:
        if case.id == "c2":
            reached.set()
            return Agent("test:m", stream_fn=ScriptedModel([["hel", Pause(60)]]))
        return polite(case)

    task = asyncio.create_task(evaluate(factory, cases(5), concurrency=1, output=tmp_path))
    await reached.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [result.case_id for result in read_results(tmp_path)] == ["c0", "c1"]
    summary = msgspec.json.decode((tmp_path / "summary.json").read_bytes())
    assert (summary["passed"], summary["complete"]) == (2, False)
    made: list[str] = []

    def finish(case: Case) -> Agent:
        made.append(case.id)
        return polite(case)

    run = await evaluate(finish, cases(5), output=tmp_path, resume=True)
    assert (sorted(made), run.passed) == (["c2", "c3", "c4"], 5)
    assert verify_run(tmp_path).ok


async def test_a_resumed_run_takes_the_same_cases_and_the_same_model(tmp_path: Path):
    await evaluate(polite, cases(2), output=tmp_path)
    with pytest.raises(BadResults, match="has results already"):
        await evaluate(polite, cases(2), output=tmp_path)
    with pytest.raises(BadResults, match="other cases"):
        await evaluate(polite, cases(3), output=tmp_path, resume=True)
    with pytest.raises(BadResults, match="resume it with the same one"):
        await evaluate(polite, cases(2), output=tmp_path, resume=True, model="test:other")
    with pytest.raises(InvalidInput, match="name its directory"):
        await evaluate(polite, cases(2), resume=True)


async def test_a_resumed_run_keeps_its_repeats(tmp_path: Path):
    await evaluate(polite, cases(2), output=tmp_path, repeat=3)
    (tmp_path / "results.jsonl").write_bytes(
        b"".join((tmp_path / "results.jsonl").read_bytes().splitlines(True)[:4])
    )
    run = await evaluate(polite, cases(2), output=tmp_path, resume=True)
    assert (len(run.cases), run.manifest.repeat) == (6, 3)
    assert verify_run(tmp_path).ok


async def test_a_resumed_run_that_is_killed_verifies(tmp_path: Path):
    await evaluate(polite, cases(2), output=tmp_path)
    found: list[bool] = []
    await evaluate(
        polite,
        cases(2),
        output=tmp_path,
        resume=True,
        repeat=2,
        progress=lambda _: found.append(verify_run(tmp_path).ok),  # as if it ended here
    )
    assert found == [True, True]


async def test_provider_errors_are_tried_again_by_a_resumed_run(tmp_path: Path):
    down = saying(NetworkError("gone"), retry=ExponentialBackoff(max_attempts=1))
    run = await evaluate(down, cases(2), output=tmp_path, retry=ExponentialBackoff(max_attempts=1))
    assert run.errors == 2
    run = await evaluate(polite, cases(2), output=tmp_path, resume=True)
    assert (run.passed, run.errors, len(run.cases)) == (2, 0, 2)
    assert len(read_results(tmp_path)) == 2


async def test_what_failed_or_timed_out_is_never_cached(tmp_path: Path):
    no_retry = ExponentialBackoff(max_attempts=1)
    down = saying(NetworkError("gone"), retry=no_retry)
    await evaluate(down, one(), cache=tmp_path, retry=no_retry)
    await evaluate(saying([Pause(60)]), one(timeout=0.01), cache=tmp_path)
    await evaluate(saying("hello"), one(), cache=tmp_path, scorers=[lambda case, trajectory: 1 / 0])
    assert not list(tmp_path.rglob("*.json"))


async def test_a_suite_brings_its_cases_and_judges(tmp_path: Path):
    run = await evaluate(polite, Suite(name="greetings", cases=tuple(cases(1))), output=tmp_path)
    assert run.manifest.name == "greetings"
    assert msgspec.json.decode((tmp_path / "run.json").read_bytes())["name"] == "greetings"
    summary = msgspec.json.decode((tmp_path / "summary.json").read_bytes())
    assert (summary["cases"], summary["passed"], summary["pass_rate"]) == (1, 1, 1.0)
    assert summary["head"]["records"] == 1


_KILLED = """
import asyncio, os, sys
from pathlib import Path
from swink import Agent
from swink.eval import Case, ExpectedResponse, evaluate
from swink.testing import Pause, ScriptedModel

cases = [
    Case(id=f"c{n}", user_messages=("hi",), expected_response=ExpectedResponse(contains="hello"))
    for n in range(30)
]

def factory(case):
    with open(sys.argv[2], "a") as log:
        log.write(case.id + "\\n")
    waits = [Pause(600)] if sys.argv[3] == "wait" and int(case.id[1:]) >= 20 else []
    return Agent("test:m", stream_fn=ScriptedModel([[*waits, "hello"]]))

def tell(progress):
    print(progress.done, flush=True)

run = asyncio.run(
    evaluate(
        factory, cases, concurrency=4, output=sys.argv[1], resume=True, progress=tell,
        scorers=[lambda case, trajectory: trajectory.response == "hello"],
    )
)
print("passed", run.passed)
"""


_ONLY_MORE = pytest.mark.skipif(not MORE, reason="cancelling is tried in this process; make test-more")


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=(pytest.mark.more, _ONLY_MORE))]
)
def test_a_killed_run_is_resumed_where_it_was(tmp_path: Path, how: signal.Signals):
    log, output = tmp_path / "log", tmp_path / "run"
    command = [sys.executable, "-c", _KILLED, str(output), str(log)]
    outside = {**os.environ, "TMPDIR": str(tmp_path)}  # a killed process cannot remove its workspaces
    with subprocess.Popen(
        [*command, "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=outside
    ) as first:
        assert first.stdout is not None
        while first.stdout.readline() != b"20\n":
            assert first.poll() is None
        os.kill(first.pid, how)
        first.communicate(timeout=60)
    assert len(read_results(output)) == 20
    with (output / "results.jsonl").open("ab") as file:
        file.write(b'{"prev":"0000","case_id":"c25","rep')  # as a kill in the middle of a write leaves it
    log.unlink()
    second = subprocess.run([*command, "go"], capture_output=True, timeout=60, check=True, env=outside)
    assert second.stdout.endswith(b"passed 30\n")
    assert sorted(log.read_text().split()) == sorted(f"c{n}" for n in range(20, 30))
    assert verify(output / "results.jsonl").ok


async def test_a_directory_belongs_to_one_run_at_a_time(tmp_path: Path):
    begun = asyncio.Event()

    def factory(case: Case) -> Agent:
        begun.set()
        return Agent("test:m", stream_fn=ScriptedModel([[Pause(60)]]))

    task = asyncio.create_task(evaluate(factory, cases(1), output=tmp_path))
    await begun.wait()
    with pytest.raises(BadResults, match="another run writes to"):
        await evaluate(polite, cases(1), output=tmp_path, resume=True)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_lines_that_are_no_results_are_named_and_their_cases_run_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    await evaluate(polite, cases(3), output=tmp_path, concurrency=1)
    path = tmp_path / "results.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:50] + b"\n" + third)
    with caplog.at_level(logging.WARNING, "swink.eval"):
        assert [result.case_id for result in read_results(tmp_path)] == ["c0", "c2"]
    assert "results.jsonl:2: is no result" in caplog.text
    run = await evaluate(polite, cases(3), output=tmp_path, resume=True)
    assert run.passed == 3
    assert not verify(path).ok


def test_a_directory_without_results_says_what_to_name(tmp_path: Path):
    with pytest.raises(BadResults, match=r"has no results\.jsonl"):
        read_results(tmp_path)


async def test_a_parameter_named_like_a_secret_keeps_its_schema():
    @tool
    def log_in(user: str, password: str) -> str:
        """Log in."""
        return "done"

    reply = [ToolCall("1", "log_in", {"user": "ann", "password": "hunter2-hunter2"}), "hello"]
    run = await evaluate(saying(*reply, tools=[log_in]), one())
    result = run.cases[0]
    assert result.tools[0]["parameters"]["properties"]["password"]["type"] == "string"
    assert result.calls[0].arguments == {"user": "ann", "password": "[redacted]"}


def test_time_in_which_nothing_went_on_does_not_count():
    assert busy([]) == 0.0
    assert busy([(10.0, 2.0), (11.0, 3.0), (11.5, 0.5), (100.0, 1.0)]) == 5.0


async def test_a_full_disk_ends_the_run_with_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("swink.eval.resultfile.os.write", full)
    with pytest.raises(OSError, match="No space left"):
        await evaluate(polite, cases(3), output=tmp_path)
    monkeypatch.undo()
    run = await evaluate(polite, cases(3), output=tmp_path, resume=True)
    assert run.passed == 3


async def test_an_attempt_that_is_cancelled_leaves_no_workspace_behind():
    seen: list[Case] = []
    begun = asyncio.Event()

    def factory(case: Case) -> Agent:
        seen.append(case)

        def note(context: Any) -> Any:
            begun.set()
            return [Pause(60)]

        return Agent("test:m", stream_fn=ScriptedModel([note]))

    task = asyncio.create_task(evaluate(factory, one(initial_files={"a": "b"})))
    await begun.wait()
    assert seen[0].workspace is not None
    assert (seen[0].workspace / "a").read_text() == "b"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not seen[0].workspace.exists()
