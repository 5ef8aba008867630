"""Background agents: their call returns at once, their report is a message, and none is lost or left running."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, Price
from swink.agent.policy import ApprovalRequest
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.agentfiles import AgentFile
from swink.app.assistant.agenttoolnames import parse_tools
from swink.app.assistant.awaitedreports import AwaitReports
from swink.errors import MisuseError
from swink.events import ToolExecutionEnd
from swink.events.transcript import Totals
from swink.memory.jsonl import JsonlStore
from swink.messages import AssistantMessage, ModelSpec, ToolCall, Usage
from swink.policies import Budget, ToolDenyList
from swink.testing import ScriptedModel

LARGE = ModelSpec("test", "large", context_window=200_000, price=Price(1.0, 1.0))


def send_off(task: str, **more: Any) -> ToolCall:
    return ToolCall(f"call_{task}", "task", {"task": task, "background": True, **more})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    places = {
        "XDG_CONFIG_HOME": "config",
        "XDG_STATE_HOME": "state",
        "HOME": "home",
        "SWINK_SESSIONS_DIR": "said",
    }
    for name, value in places.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_text("print(42)\n")
    return tmp_path / "project"


class Cast:
    """A model that plays the assistant by a script, and every sub-agent by a function of its task."""

    def __init__(self, main: list[Any], part: Callable[[str, Any], Any] | None = None) -> None:
        self.main, self.part = main, part
        self.gates: dict[str, asyncio.Event] = {}

    def model(self) -> Any:
        scripted = ScriptedModel([self._reply] * 500, usage=Usage(input=10, output=1))

        async def stream(model: Any, context: Any, options: Any) -> Any:
            task = _task(context)
            if task is not None:
                await self.gates.setdefault(task, asyncio.Event()).wait()
            async for event in scripted(model, context, options):
                yield event

        return stream

    def _reply(self, context: Any) -> Any:
        task = _task(context)
        if task is None:
            return self.main.pop(0)
        assert self.part is not None
        return self.part(task, context)

    def open_gate(self, task: str) -> None:
        self.gates.setdefault(task, asyncio.Event()).set()


def _task(context: Any) -> str | None:
    """The task of a sub-agent; None for the assistant."""
    return None if context.system_prompt.startswith("MAIN") else context.messages[0].text


class Scene:
    """An environment whose agents work in the background, and what is delivered there."""

    def __init__(
        self, project: Path, cast: Cast, *policies: Any, saves: bool = True, approve: Any = None
    ) -> None:
        self.environment = AgentEnvironment(project)
        self.delivered: asyncio.Queue[str] = asyncio.Queue()
        self.environment.sub_agents.work_in_background(
            project, self.delivered.put_nowait, self.environment.notify, saves=saves
        )
        self.agent: Agent = self.environment.make_agent(
            LARGE,
            stream_fn=cast.model(),
            approve=approve or (lambda request: True),  # pyright: ignore[reportUnknownLambdaType]
            policies=policies,
            system="MAIN",
        )

    @property
    def outcomes(self) -> list[str]:
        return [one.outcome for one in self.environment.sub_agents.listed]

    async def report(self) -> str:
        return await asyncio.wait_for(self.delivered.get(), 20)


def sessions() -> dict[str, list[Any]]:
    store = JsonlStore().sync
    return {meta.id: list(store.open(meta.id).messages) for meta in store.list()}


def records() -> list[Path]:
    return sorted(Path(os.environ["XDG_STATE_HOME"], "swink", "agents").glob("*.json"))


async def test_without_somebody_who_takes_reports_there_is_no_background(project: Path):
    environment = AgentEnvironment(project)
    (task,) = [tool for tool in environment.tools() if tool.name == "task"]
    assert [*task.parameters_schema["properties"]] == ["task"]


async def test_the_call_returns_at_once_and_the_report_is_delivered(project: Path):
    cast = Cast([send_off("dig"), "I go on."], lambda task, context: f"{task}: found it")
    scene = Scene(project, cast)
    result = await scene.agent.run("Hi")
    assert result.text == "I go on."
    assert "agent_1 has begun to work in the background" in result.messages[2].text
    assert scene.outcomes == ["running"]
    assert len(records()) == 1
    cast.open_gate("dig")
    report = await scene.report()
    assert report.startswith(
        "[Background agent agent_1 (task) is done. What follows is its report, not the user's"
    )
    assert report.endswith("dig: found it")
    assert scene.outcomes == ["is done"]
    assert records() == []
    await scene.environment.aclose()


async def test_ten_at_once_do_not_mix(project: Path):
    tasks = [f"number {number}" for number in range(10)]

    def part(task: str, context: Any) -> Any:
        if context.messages[-1].role == "user":
            return ToolCall("same", "read_file", {"path": "main.py"})
        return f"report of {task}"

    cast = Cast([[send_off(task) for task in tasks], "All begun."], part)
    scene = Scene(project, cast)
    await scene.agent.run("Hi")
    for task in reversed(tasks):
        cast.open_gate(task)
    reports = [await scene.report() for _ in tasks]
    for task in tasks:
        (own,) = [report for report in reports if report.endswith(f"report of {task}")]
        assert f"Its task: {task}\n" in own
    said = sessions()
    assert len(said) == 10
    for messages in said.values():
        assert messages[-1].text == f"report of {messages[0].text}"
        assert len(messages) == 4
    await scene.environment.aclose()
    assert records() == []


async def test_the_end_of_the_main_run_by_an_abort_leaves_it_running(project: Path):
    cast = Cast([send_off("dig"), "never"], lambda task, context: "found")
    scene = Scene(project, cast)
    async with scene.agent.stream("Hi") as run:
        async for event in run:
            if isinstance(event, ToolExecutionEnd):
                scene.agent.abort()
        assert (await run.result()).stop_reason == "aborted"
    cast.open_gate("dig")
    assert (await scene.report()).endswith("found")
    await scene.environment.aclose()


async def test_one_is_stopped_and_says_so(project: Path):
    cast = Cast([[send_off("a"), send_off("b")], "Ok."], lambda task, context: f"{task} found")
    scene = Scene(project, cast)
    await scene.agent.run("Hi")
    assert scene.environment.sub_agents.stop("agent_1")
    assert "agent_1 (task) was stopped" in await scene.report()
    cast.open_gate("b")
    assert "b found" in await scene.report()
    assert not scene.environment.sub_agents.stop("agent_1")
    assert records() == []
    await scene.environment.aclose()


async def test_leaving_ends_all_of_them_saved_and_they_can_be_resumed(project: Path):
    cast = Cast([[send_off("a"), send_off("b")], "Ok."], lambda task, context: f"{task} found")
    scene = Scene(project, cast)
    await scene.agent.run("Hi")
    await scene.environment.aclose()
    await scene.environment.aclose()
    assert scene.delivered.empty()
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("swink-agent")] == []
    assert len(records()) == 2
    later = Cast([], lambda task, context: f"{task} found later")
    later.open_gate("a")
    scene = Scene(project, later)
    await scene.environment.open()
    assert sorted(scene.outcomes) == ["interrupted", "interrupted"]
    (id,) = [one.call_id for one in scene.environment.sub_agents.listed if one.task == "a"]
    background = scene.environment.sub_agents.background
    assert background is not None
    await background.resume(id, {})
    assert (await scene.report()).endswith("a found later")
    (other,) = {"agent_1", "agent_2"} - {id}
    background.drop(other)
    assert records() == []
    with pytest.raises(MisuseError, match="no interrupted agent"):
        await background.resume(id, {})
    await scene.environment.aclose()


async def test_one_that_is_resumed_is_bound_by_what_binds_the_assistant(project: Path):
    scene = Scene(project, Cast([[send_off("a")], "Ok."], lambda task, context: "found"))
    await scene.agent.run("Hi")
    await scene.environment.aclose()

    def part(task: str, context: Any) -> Any:
        if context.messages[-1].role == "user":
            return ToolCall("write", "write_file", {"path": "main.py", "content": "no"})
        return f"was told: {context.messages[-1].text}"

    later = Cast([], part)
    later.open_gate("a")
    scene = Scene(project, later, ToolDenyList(["write_file"]))
    await scene.environment.open()
    background = scene.environment.sub_agents.background
    assert background is not None
    await background.resume("agent_1", {})
    assert "'write_file' is not allowed here" in await scene.report()
    assert (project / "main.py").read_text() == "print(42)\n"
    await scene.environment.aclose()


async def test_the_policies_and_the_budget_of_the_run_hold_after_its_end(project: Path):
    def part(task: str, context: Any) -> Any:
        if context.messages[-1].role == "user":
            return ToolCall("write", "write_file", {"path": "main.py", "content": "no"})
        return ToolCall("look", "read_file", {"path": "main.py"})

    budget = Budget(max_tokens=100, reserve=False)
    cast = Cast([send_off("dig"), "Ok."], part)
    scene = Scene(project, cast, ToolDenyList("write_file"), budget)
    await scene.agent.run("Hi")
    cast.open_gate("dig")
    report = await scene.report()
    assert "was stopped: budget: tokens" in report
    (messages,) = sessions().values()
    assert "not allowed here" in messages[2].text
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    assert 11 * (2 + len(replies)) <= 110  # two requests of the run itself
    assert "print" in (project / "main.py").read_text()
    await scene.environment.aclose()


async def test_a_budget_counts_it_once_while_the_main_run_goes_on(project: Path):
    look = ToolCall("look", "read_file", {"path": "main.py"})
    budget = Budget(max_tokens=10_000, scope="session", reserve=False)
    ended = asyncio.Event()

    async def approve(request: ApprovalRequest) -> bool:
        if request.arguments.get("path") == "late.py":
            await ended.wait()
        return True

    def part(task: str, context: Any) -> Any:
        return look if context.messages[-1].role == "user" else "found"

    late = ToolCall("late", "read_file", {"path": "late.py"})
    cast = Cast([send_off("dig"), late, look, "Ok."], part)
    cast.open_gate("dig")
    scene = Scene(project, cast, budget, approve=approve)
    background = scene.environment.sub_agents.background
    assert background is not None
    background.deliver = lambda report: ended.set()
    result = await scene.agent.run("Hi")
    assert result.usage.total == 11 * 4
    assert budget.spent.usage.total == 11 * (4 + 2)
    await scene.environment.aclose()


async def test_what_it_spends_is_among_the_totals_of_its_conversation_while_it_works(project: Path):
    look = ToolCall("look", "read_file", {"path": "main.py"})

    def part(task: str, context: Any) -> Any:
        return look if context.messages[-1].role == "user" else "found"

    cast = Cast([send_off("dig"), "Ok."], part)
    scene = Scene(project, cast)
    now = ["one"]
    background = scene.environment.sub_agents.background
    assert background is not None
    background.conversation = lambda: now[0]
    await scene.agent.run("Hi")
    own = Totals(usage=Usage(input=1))
    assert scene.environment.sub_agents.add_spent(own) == own
    cast.open_gate("dig")
    await scene.report()
    spent = scene.environment.sub_agents.add_spent(own)
    assert spent.usage.total == 1 + 11 * 2
    assert spent.cost.total == pytest.approx(22e-6)
    assert scene.environment.sub_agents.listed[0].cost == pytest.approx(22e-6)
    now[0] = "another"
    assert scene.environment.sub_agents.add_spent(own) == own
    await scene.environment.aclose()


class Waiting:
    """An environment without a person, whose runs wait for background agents."""

    def __init__(self, project: Path, cast: Cast, *policies: Any) -> None:
        self.environment = AgentEnvironment(project)
        self.told: list[str] = []
        self.reports = AwaitReports(self.environment.sub_agents, project, self.told.append, saves=False)
        self.agent: Agent = self.environment.make_agent(
            LARGE,
            stream_fn=cast.model(),
            approve=lambda request: True,  # pyright: ignore[reportUnknownLambdaType]
            policies=[self.reports, *policies],
            system="MAIN",
        )


async def test_a_run_without_a_person_waits_and_goes_on_with_the_reports(project: Path):
    answers = [[send_off("a"), send_off("b")], "I wait.", "One is there.", "Both are there."]
    cast = Cast(answers, lambda task, context: f"{task} found")
    scene = Waiting(project, cast)
    running = asyncio.create_task(scene.agent.run("Hi"))
    while not scene.told:
        await asyncio.sleep(0)
    assert scene.told == ["waiting for 2 background agents: agent_1, agent_2"]
    cast.open_gate("b")
    while len(scene.told) < 3:
        await asyncio.sleep(0)
    assert scene.told[1:] == [
        "Background agent agent_2 (task) is done",
        "waiting for 1 background agent: agent_1",
    ]
    cast.open_gate("a")
    result = await running
    assert result.text == "Both are there."
    reports = [message.text for message in result.messages if message.role == "user"]
    assert [text.splitlines()[-1] for text in reports] == ["Hi", "b found", "a found"]
    scene.reports.leave()
    assert len(scene.told) == 4
    await scene.environment.aclose()


async def test_an_agent_that_ends_without_a_report_is_not_waited_for(project: Path):
    cast = Cast([send_off("a"), "I wait."], lambda task, context: "never")
    scene = Waiting(project, cast)
    running = asyncio.create_task(scene.agent.run("Hi"))
    while not scene.told:
        await asyncio.sleep(0)
    (task,) = [task for task in asyncio.all_tasks() if task.get_name().startswith("swink-agent")]
    task.cancel()
    assert (await asyncio.wait_for(running, 20)).text == "I wait."
    await scene.environment.aclose()


async def test_the_deadline_and_an_abort_end_the_waiting_and_the_agents(project: Path):
    for how in ("deadline", "abort"):
        cast = Cast([send_off("a"), "I wait."], lambda task, context: "never")
        scene = Waiting(project, cast)
        deadline = 0.2 if how == "deadline" else None
        running = asyncio.create_task(scene.agent.run("Hi", deadline=deadline))
        while not scene.told:
            await asyncio.sleep(0)
        if how == "abort":
            scene.agent.abort()
        result = await running
        assert result.stop_reason == "aborted" or result.stopped or result.error
        scene.reports.leave()
        assert scene.told[-1] == "ended with the run, before they were done: agent_1"
        await scene.environment.aclose()
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("swink-agent")] == []


async def test_the_limits_of_the_run_hold_while_it_waits(project: Path):
    look = ToolCall("look", "read_file", {"path": "main.py"})
    cast = Cast([send_off("a"), "I wait.", "never said"], lambda task, context: look)
    cast.open_gate("a")
    scene = Waiting(project, cast, Budget(max_tokens=66, reserve=False))
    result = await scene.agent.run("Hi")
    assert result.stopped
    assert cast.main == ["never said"]
    await scene.environment.aclose()


async def test_its_calls_are_put_to_the_same_person(project: Path):
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.name)
        return request.name == "task"

    def part(task: str, context: Any) -> Any:
        if context.messages[-1].role == "user":
            return ToolCall("write", "write_file", {"path": "main.py", "content": "no"})
        return "I may not."

    cast = Cast([send_off("dig"), "Ok."], part)
    scene = Scene(project, cast, approve=approve)
    await scene.agent.run("Hi")
    cast.open_gate("dig")
    await scene.report()
    assert asked == ["task", "write_file"]
    assert "print" in (project / "main.py").read_text()
    await scene.environment.aclose()


async def test_a_report_is_not_given_to_another_conversation(project: Path):
    cast = Cast([send_off("dig"), "Ok."], lambda task, context: "found")
    scene = Scene(project, cast)
    background = scene.environment.sub_agents.background
    assert background is not None
    now, told = ["one"], asyncio.Event()
    background.conversation = lambda: now[0]
    await scene.agent.run("Hi")
    now[0] = "another"
    scene.environment.changed = told.set
    cast.open_gate("dig")
    await asyncio.wait_for(told.wait(), 20)
    (notice,) = [each for each in scene.environment.take_notices() if "agent_1" in each]
    (id,) = sessions()
    assert f"of another conversation is done; swink --resume {id} shows its report" in notice
    assert scene.delivered.empty()
    await scene.environment.aclose()


async def test_where_nothing_is_saved_it_leaves_nothing(project: Path):
    cast = Cast([send_off("dig"), "Ok."], lambda task, context: "found")
    scene = Scene(project, cast, saves=False)
    await scene.agent.run("Hi")
    assert records() == []
    await scene.environment.aclose()
    assert sessions() == {}


async def test_an_agent_whose_file_is_gone_is_not_resumed_with_more_than_it_had(project: Path):
    file = AgentFile("reader", "reads", "You read.", Path("reader.md"), tools=parse_tools(["Read"], []))
    cast = Cast([send_off("dig", agent="reader"), "Ok."], lambda task, context: "found")
    scene = Scene(project, cast)
    scene.environment.sub_agents.files = {"reader": file}
    await scene.agent.run("Hi")
    await scene.environment.aclose()
    scene = Scene(project, cast)
    await scene.environment.open()
    background = scene.environment.sub_agents.background
    assert background is not None
    with pytest.raises(MisuseError, match="reader is not there any more"):
        await background.resume("agent_1", {})
    await scene.environment.aclose()
    assert len(records()) == 1


PROGRAM = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_background_agents import Cast, Scene, send_off
async def main():
    cast = Cast([send_off("dig"), "Ok."], lambda task, context: "found")
    scene = Scene(Path(sys.argv[1]), cast)
    await scene.agent.run("Hi")
    while "dig" not in cast.gates:  # its model is not asked yet
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="there is no kill -9")
async def test_after_kill_9_it_is_reported_as_interrupted_and_goes_on_from_its_session(project: Path):
    words = [sys.executable, "-c", PROGRAM, str(project), str(Path(__file__).parent)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        alive = Scene(project, Cast([]))
        await alive.environment.open()
        assert alive.outcomes == []  # it runs elsewhere
        await alive.environment.aclose()
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    cast = Cast([], lambda task, context: f"{len(context.messages)} message, found after all")
    cast.open_gate("dig")
    scene = Scene(project, cast)
    await scene.environment.open()
    told = [notice for notice in scene.environment.take_notices() if "interrupted" in notice]
    assert len(told) == 1
    assert "agent_1 (task) was interrupted: dig; /agents resume agent_1 goes on with it" in told[0]
    background = scene.environment.sub_agents.background
    assert background is not None
    before = set(sessions())
    await background.resume("agent_1", {})
    assert (await scene.report()).endswith("1 message, found after all")
    assert set(sessions()) == before
    assert [len(messages) for messages in sessions().values()] == [2]
    await scene.environment.aclose()
    assert records() == []


async def test_a_budget_counts_one_in_the_background_and_one_in_the_call_once_each(project: Path):
    budget = Budget(max_tokens=10_000, scope="session", reserve=False)
    beside = ToolCall("call_b", "task", {"task": "b"})
    cast = Cast([[send_off("a"), beside], "Ok."], lambda task, context: "found")
    cast.open_gate("a")
    scene = Scene(project, cast, budget)
    background = scene.environment.sub_agents.background
    assert background is not None
    background.deliver = lambda report: cast.open_gate("b")  # so that the run counts one that has ended
    result = await scene.agent.run("Hi")
    assert result.usage.total == 11 * 3
    assert budget.spent.usage.total == 11 * 4
    await scene.environment.aclose()
