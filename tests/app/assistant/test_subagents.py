"""Sub-agents: what holds for the assistant holds for them, and they are counted with it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, Policy, PolicyContext, Price, defer
from swink.agent.policy import ApprovalRequest, CallVerdict, Stop, enclosing
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.errors import NetworkError
from swink.messages import ModelSpec, ToolCall, Usage
from swink.policies import (
    AuditLogger,
    Budget,
    Checkpoint,
    ContentFilter,
    LoopDetection,
    MaxTurns,
    PathGuard,
    PiiRedactor,
    ToolDenyList,
)
from swink.teams import agent_tool, sequential
from swink.testing import Pause, ScriptedModel

LARGE = ModelSpec("test", "large", context_window=200_000, price=Price(1.0, 1.0))
WRITE = ToolCall("write", "write_file", {"path": "main.py", "content": "no"})


def task(number: int = 1, kind: str = "task") -> ToolCall:
    return ToolCall(f"{kind}_{number}", kind, {"task": f"number {number}"})


def look(number: int) -> ToolCall:
    return ToolCall(f"look_{number}", "read_file", {"path": "main.py", "offset": number + 1})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "main.py").write_text("print(42)\n" * 100)
    return directory


def assistant(
    project: Path, script: ScriptedModel, *policies: Policy, approve: Any = lambda request: True, **more: Any
) -> Agent:
    return AgentEnvironment(project).make_agent(
        LARGE, stream_fn=script, approve=approve, policies=policies, **more
    )


class Seen(Policy):
    """Notes the calls of every run that it is asked about."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
        self.calls.append(call.name)
        return None


async def test_a_tool_that_is_denied_to_the_assistant_is_denied_to_its_sub_agent(project: Path):
    script = ScriptedModel([task(), WRITE, "I could not.", "Done."])
    await assistant(project, script, ToolDenyList("write_file")).run("Hi")
    assert "print" in (project / "main.py").read_text()
    assert "'write_file' is not allowed here" in script.calls[2].messages[-1].text


async def test_a_guard_that_fails_stops_the_sub_agent_too(project: Path):
    class Broken(Policy):
        fail_closed = True

        def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
            if call.name == "write_file":
                raise RuntimeError("broken")
            return None

    script = ScriptedModel([task(), WRITE, "Done."])
    await assistant(project, script, Broken()).run("Hi")
    assert "print" in (project / "main.py").read_text()
    assert "'task' was stopped: Broken failed: RuntimeError" in script.calls[-1].messages[-1].text


async def test_every_kind_of_guard_sees_what_a_sub_agent_does(project: Path):
    outside = ToolCall("out", "read_file", {"path": "../secret"})
    script = ScriptedModel([task(), outside, "mail ada@example.org, codeword zebra", "Done."])
    seen = Seen()
    guards = PathGuard(project), PiiRedactor(), ContentFilter(["zebra"], action="mask"), seen
    await assistant(project, script, *guards).run("Hi")
    assert "outside" in script.calls[2].messages[-1].text
    report = script.calls[3].messages[-1].text
    assert "ada@example.org" not in report
    assert "zebra" not in report
    assert seen.calls == ["task"]  # the path guard skips the other one before it is asked


async def test_all_requests_of_a_run_count_for_max_turns(project: Path):
    script = ScriptedModel([task(), *(look(number) for number in range(40))])
    result = await assistant(project, script, MaxTurns(3)).run("Hi")
    assert len(script.calls) == 3
    assert result.reason == "max turns: 3 of 3 model calls made"


async def test_sub_agents_that_work_at_once_do_not_exceed_max_turns_together(project: Path):
    script = ScriptedModel([[task(1), task(2), task(3, "explore")], *(look(number) for number in range(40))])
    await assistant(project, script, MaxTurns(5)).run("Hi")
    assert len(script.calls) == 5


async def test_requests_of_a_sub_agent_that_are_sent_again_count_for_max_turns(project: Path):
    script = ScriptedModel([task(), *[NetworkError("down")] * 40])
    await assistant(project, script, MaxTurns(2)).run("Hi")
    assert len(script.calls) == 2


async def test_each_run_of_the_assistant_has_its_turns_again(project: Path):
    script = ScriptedModel([task(), "Report.", "One.", task(2), "Report.", "Two.", task(3), look(1), look(2)])
    agent = assistant(project, script, MaxTurns(3))
    assert (await agent.run("Hi")).text == "One."
    assert (await agent.run("Hi")).text == "Two."
    assert (await agent.run("Hi")).reason
    assert len(script.calls) == 9


async def test_a_budget_counts_the_assistant_and_its_sub_agents_together(project: Path):
    script = ScriptedModel(
        [[task(1), task(2)], *(look(number) for number in range(40))], usage=Usage(input=400, output=100)
    )
    await assistant(project, script, Budget(max_tokens=2_000, reserve=False)).run("Hi")
    assert len(script.calls) <= 5


@pytest.mark.parametrize(
    ("limit", "most"),
    [(MaxTurns(4), 4), (Budget(max_tokens=400, reserve=False), 5)],  # the last one may begin beside another
)
async def test_a_turn_that_is_taken_up_later_binds_its_sub_agents_together(
    project: Path, limit: Policy, most: int
):
    calls = [look(number) for number in range(40)]
    script = ScriptedModel([[task(1), task(2)], *calls], usage=Usage(input=90, output=10))

    async def approve(request: ApprovalRequest) -> Any:
        return await defer(request) if request.name == "task" else True

    agent = assistant(project, script, limit, approve=approve)
    result = await agent.run("Hi")
    assert result.reason == "approval"
    await agent.run(approvals={pending.call_id: True for pending in result.pending})
    assert 4 <= len(script.calls) - 1 <= most


async def test_the_audit_log_names_the_sub_agent_that_made_a_call(project: Path, tmp_path: Path):
    log = tmp_path / "audit.jsonl"
    script = ScriptedModel([task(), look(1), "It prints.", "Done."])
    await assistant(project, script, AuditLogger(log)).run("Hi")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    calls = [(record.get("agent"), call["name"]) for record in records for call in record.get("calls", ())]
    assert calls == [("task", "read_file"), (None, "task")]
    assert [record.get("agent") for record in records if record["event"] == "end"] == ["task", None]
    assert AuditLogger.verify(log).ok


async def test_what_keeps_one_conversation_is_not_given_those_of_sub_agents(project: Path):
    kept: list[dict[str, Any]] = []
    script = ScriptedModel([task(), look(1), "It prints.", "Done."])
    await assistant(project, script, Checkpoint(kept.append)).run("Hi")
    assert [len(data["messages"]) for data in kept] == [3, 4]


async def test_loops_of_sub_agents_at_once_are_told_apart(project: Path):
    same = ToolCall("look", "read_file", {"path": "main.py"})
    script = ScriptedModel([[task(1), task(2)], same, same, "One.", "Two.", "Done."])
    result = await assistant(project, script, LoopDetection(repeats=2)).run("Hi")
    assert result.text == "Done."


async def test_agents_that_tools_bring_along_are_bound_at_every_depth(project: Path):
    inner = ScriptedModel([ToolCall(str(number), "nothing", {}) for number in range(40)])
    deepest = Agent("test:deepest", stream_fn=inner)
    middle = Agent(
        "test:middle",
        stream_fn=ScriptedModel([ToolCall("deep", "deeper", {"task": "go"}), "I see."]),
        tools=[agent_tool(sequential({"only": deepest}), "deeper", "Goes deeper.")],
    )
    script = ScriptedModel([ToolCall("m", "middle", {"task": "go"}), "Done."])
    seen = Seen()
    agent = assistant(project, script, seen, MaxTurns(4), tools=[agent_tool(middle, "middle", "Delegates.")])
    result = await agent.run("Hi")
    assert len(inner.calls) == 2  # after one of the assistant and one of the agent between
    assert seen.calls == ["middle", "deeper", "nothing", "nothing"]
    assert result.reason == "max turns: 4 of 4 model calls made"


async def test_a_sub_agent_that_is_cut_off_leaves_nothing_behind(project: Path):
    script = ScriptedModel([[task(1), task(2)], ["so far", Pause(600)], ["so far", Pause(600)], "again"])
    environment = AgentEnvironment(project)
    policies = [Seen(), MaxTurns(5)]
    agent = environment.make_agent(LARGE, stream_fn=script, approve=lambda request: True, policies=policies)
    running = asyncio.create_task(agent.run("Hi"))
    while len(script.calls) < 3:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [one.ended is not None for one in environment.sub_agents.listed] == [True, True]
    assert enclosing.get() == ()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert (await agent.run("Again")).text == "again"


async def test_a_stop_meant_for_the_whole_run_ends_the_assistant_after_its_sub_agent(project: Path):
    class Halt(Policy):
        halted = False

        def pre_turn(self, ctx: PolicyContext) -> Stop | None:
            return Stop("halted") if self.halted else None

        def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
            self.halted = call.name == "read_file"
            return None

    script = ScriptedModel([task(), look(1), "never", "never"])
    result = await assistant(project, script, Halt()).run("Hi")
    assert result.reason == "halted"
    assert len(script.calls) == 2


async def test_an_agent_without_the_workshop_keeps_its_policies_to_itself(project: Path):
    inner = ScriptedModel([ToolCall("x", "nothing", {}), "ok"])
    seen = Seen()
    lead = Agent(
        "test:lead",
        stream_fn=ScriptedModel([ToolCall("r", "research", {"task": "go"}), "Done."]),
        tools=[agent_tool(Agent("test:inner", stream_fn=inner), "research", "Finds out.")],
        policies=[seen],
    )
    await lead.run("Hi")
    assert seen.calls == ["research"]
