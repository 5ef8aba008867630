"""τ-bench's tasks: a simulated user, tools on a database, and the state that they leave it in."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from swink import Agent
from swink.errors import MisuseError
from swink.eval.case import Case
from swink.eval.importers import BadRows, import_cases
from swink.eval.importers.tau import domain_tools
from swink.eval.runner import evaluate
from swink.eval.simulation import STOP
from swink.messages import ToolCall
from swink.stream import LlmContext
from swink.testing import ScriptedModel

TOOLS = """
class Cancel:
    @staticmethod
    def invoke(data, order_id):
        data["orders"][order_id]["status"] = "cancelled"
        return "done"

    @staticmethod
    def get_info():
        return {"type": "function", "function": {"name": "cancel", "description": "Cancel an order.", "parameters": {
            "type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}}}

class Look:
    @staticmethod
    def invoke(data):
        return str(data["orders"])

    @staticmethod
    def get_info():
        return {"type": "function", "function": {"name": "look", "description": "All orders.",
            "parameters": {"type": "object", "properties": {}}}}

ALL_TOOLS = [Cancel, Look]
"""
TASK: dict[str, Any] = {
    "user_id": "ann",
    "instruction": "You are Ann. Cancel the order A and ask what you get back.",
    "actions": [{"name": "cancel", "kwargs": {"order_id": "A"}}],
    "outputs": ["1200"],
}


def domain(root: Path, tasks: Any = (TASK,)) -> Path:
    (root / "data").mkdir(parents=True)
    orders = {"A": {"status": "paid"}, "B": {"status": "paid"}}
    (root / "data" / "orders.json").write_text(json.dumps(orders), "utf-8")
    (root / "tools.py").write_text(TOOLS, "utf-8")
    (root / "wiki.md").write_text("Be kind.", "utf-8")
    (root / "tasks.json").write_text(json.dumps(list(tasks)), "utf-8")
    return root


async def outcome(path: Path, replies: list[Any], user: list[str]) -> Any:
    """How an attempt at the first task ends."""
    agent_model, user_model = ScriptedModel(replies), ScriptedModel(user)

    def ask(model: Any, context: LlmContext, options: Any) -> Any:
        chosen = user_model if "play a user" in (context.system_prompt or "") else agent_model
        return chosen(model, context, options)

    run = await evaluate(lambda case: Agent("test:agent", stream_fn=ask), import_cases("tau", path).cases)
    assert agent_model.calls[0].system_prompt == "Be kind."
    (result,) = run.cases
    assert result.error is None
    return result


def cancel(order: str) -> ToolCall:
    return ToolCall(order, "cancel", {"order_id": order})


async def test_a_task_passes_if_the_database_and_the_outputs_are_as_expected(tmp_path: Path):
    talk = ["Cancel A", "And the money?", STOP]
    result = await outcome(
        domain(tmp_path / "shop"), [ToolCall("0", "look", {}), cancel("A"), "Done.", "$1,200."], talk
    )
    assert result.passed
    assert [call.result for call in result.calls][1] == "done"


async def test_another_database_fails_and_the_difference_is_named(tmp_path: Path):
    result = await outcome(domain(tmp_path / "shop"), [cancel("B"), "1200"], ["Cancel A", STOP])
    assert not result.passed
    assert "orders.A.status is 'paid', not 'cancelled'" in result.metrics[0].why


async def test_an_output_that_was_never_said_fails(tmp_path: Path):
    result = await outcome(domain(tmp_path / "shop"), [cancel("A"), "Done."], ["Cancel A", STOP])
    assert not result.passed
    assert "never said: '1200'" in result.metrics[0].why


async def test_a_tool_that_raises_gives_its_error_and_changes_nothing(tmp_path: Path):
    result = await outcome(domain(tmp_path / "shop"), [cancel("Z"), cancel("A"), "1200"], ["Cancel", STOP])
    assert result.passed
    assert result.calls[0].result.startswith("Error: ")


async def test_every_attempt_has_a_database_of_its_own(tmp_path: Path):
    (case,) = import_cases("tau", domain(tmp_path / "shop")).cases
    for _ in range(2):
        tools = {tool.name: tool for tool in domain_tools(case)}
        agent = Agent(
            "test:agent",
            tools=list(tools.values()),
            stream_fn=ScriptedModel([ToolCall("1", "look", {}), cancel("A"), "x"]),
        )
        await agent.run("go")
        assert "cancelled" not in agent.messages[2].text


def test_tasks_written_in_python_are_read_without_being_run(tmp_path: Path):
    root = domain(tmp_path / "shop")
    (root / "tasks.json").unlink()
    (root / "tasks_test.py").write_text(
        "from tau_bench.types import Task, Action\nraise SystemExit\nTASKS_TEST = [Task(annotator='0', user_id='ann', "
        "instruction='Cancel ' 'A.', actions=[Action(name='cancel', kwargs={'order_id': 'A'})], outputs=[])]\n",
        "utf-8",
    )
    (case,) = import_cases("tau", root).cases
    assert case.simulated_user is not None
    assert case.simulated_user.goal == "Cancel A."
    assert case.metadata["tau"]["actions"] == [{"name": "cancel", "kwargs": {"order_id": "A"}}]


@pytest.mark.parametrize("text", ["TASKS = [Task(instruction=open('x').read(), actions=[])]", "Task("])
def test_tasks_that_are_not_literals_are_refused(tmp_path: Path, text: str):
    root = domain(tmp_path / "shop")
    (root / "tasks.json").unlink()
    (root / "tasks.py").write_text(text, "utf-8")
    with pytest.raises(BadRows, match=r"tasks\.py"):
        import_cases("tau", root)


def test_a_domain_without_tasks_or_tools_and_a_broken_action_are_refused(tmp_path: Path):
    with pytest.raises(BadRows, match=r"holds none of tasks\.json"):
        import_cases("tau", tmp_path)
    root = domain(tmp_path / "shop", [{**TASK, "actions": [{"name": "cancel"}]}])
    with pytest.raises(BadRows, match="an action needs"):
        import_cases("tau", root)
    other = domain(tmp_path / "other")
    (other / "tools.py").write_text("1 / 0", "utf-8")
    with pytest.raises(MisuseError, match="division by zero"):
        import_cases("tau", other)


def test_other_cases_have_no_domain():
    assert domain_tools(Case(id="one")) == []


def published(root: Path, needs: str = "", tools: str = TOOLS) -> Path:
    """A domain within packages, as τ-bench publishes it: they import a client of models, the tools do not."""
    name = f"bench_{root.name}"
    shop = domain(root / name / "envs" / "shop")
    (shop / "tools.py").unlink()
    (shop / "tools").mkdir()
    (root / name / "__init__.py").write_text("", "utf-8")
    (root / name / "envs" / "__init__.py").write_text("import a_client_that_nobody_has", "utf-8")
    (root / name / "envs" / "tool.py").write_text("class Tool: ...", "utf-8")
    (shop / "__init__.py").write_text(f"from {name}.envs.shop.env import Env", "utf-8")
    own = f"{needs}\nfrom {name}.envs.tool import Tool\n{tools}"
    (shop / "tools" / "__init__.py").write_text("from .all import ALL_TOOLS", "utf-8")
    (shop / "tools" / "all.py").write_text(own, "utf-8")
    return shop


def test_the_packages_around_published_tools_are_not_run(tmp_path: Path):
    root = tmp_path / "whole"
    (case,) = import_cases("tau", published(root)).cases
    assert {tool.name for tool in domain_tools(case)} == {"cancel", "look"}
    assert not [name for name in sys.modules if name.startswith("bench_whole")]


def test_tools_that_need_a_module_name_it_and_the_command_that_brings_it(tmp_path: Path):
    with pytest.raises(
        MisuseError, match=r"need the module 'a_module_of_theirs'.*install.*a_module_of_theirs"
    ):
        import_cases("tau", published(tmp_path / "lacking", "from a_module_of_theirs.parts import thing"))


def test_tools_that_need_their_package_whole_get_it(tmp_path: Path):
    shop = published(tmp_path / "given", "from bench_given import GIVEN")
    (tmp_path / "given" / "bench_given" / "__init__.py").write_text("GIVEN = 1", "utf-8")
    (tmp_path / "given" / "bench_given" / "envs" / "__init__.py").write_text("", "utf-8")
    (shop / "__init__.py").write_text("", "utf-8")
    (case,) = import_cases("tau", shop).cases
    assert len(domain_tools(case)) == 2
