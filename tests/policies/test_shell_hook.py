"""ShellHook: shell hooks as a policy of any agent."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scenes import Scene, call

from swink import Agent, Rejected, tool
from swink.agent.policy import PolicyContext
from swink.errors import InvalidInput
from swink.messages import ToolCall, UserMessage
from swink.policies import Hook, ShellHook
from swink.policies.hooks import HookGroup
from swink.testing import ScriptedModel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands need a POSIX system")


def hooked(tmp_path: Path, *hooks: Hook, **options: Any) -> ShellHook:
    return ShellHook(HookGroup(hooks, tmp_path), **options)


def pre(command: str, matcher: str = "", **options: Any) -> Hook:
    return Hook("PreToolUse", command, matcher, **options)


def decide(decision: str, **more: Any) -> str:
    special = {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}
    return f"echo '{json.dumps({'hookSpecificOutput': special})}'"


def last_result(scene: Scene) -> str:
    return next(message.text for message in reversed(scene.agent.messages) if message.role == "tool_result")


async def test_a_hook_that_cannot_start_lets_no_call_run(tmp_path: Path):
    scene = Scene(hooked(tmp_path, pre("no-such-program-at-all")), [call(), "done"])
    await scene.run()
    assert scene.ran == []
    assert "a hook that has to judge this failed" in last_result(scene)


async def test_a_hook_refuses_a_call_and_the_model_reads_why(tmp_path: Path):
    policy = hooked(tmp_path, pre("grep -q forbidden && { echo not that >&2; exit 2; }; exit 0", "act"))
    scene = Scene(policy, [[call(0, x="forbidden"), call(1, x="fine")], "done"])
    await scene.run()
    assert scene.ran == [("act", {"x": "fine"})]
    assert "not that" in scene.agent.messages[2].text


async def test_a_hook_for_another_tool_is_not_asked(tmp_path: Path):
    scene = Scene(hooked(tmp_path, pre("exit 2", "other")), [call(), "done"])
    await scene.run()
    assert len(scene.ran) == 1


async def test_deny_beats_ask_beats_allow_and_all_run(tmp_path: Path):
    hooks = [pre(f"touch {name}; {decide(name)}") for name in ("allow", "ask", "deny")]
    scene = Scene(hooked(tmp_path, *hooks), [call(), "done"])
    await scene.run()
    assert scene.ran == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["allow", "ask", "deny"]


async def test_hooks_run_concurrently(tmp_path: Path):
    # Each waits for what the other makes.
    wait = "touch {0}; for i in $(seq 1 500); do [ -e {1} ] && exit 0; sleep 0.02; done; exit 2"
    hooks = [pre(wait.format("a", "b")), pre(wait.format("b", "a"))]
    scene = Scene(hooked(tmp_path, *hooks), [call(), "done"])
    await scene.run()
    assert len(scene.ran) == 1


async def test_ask_without_a_person_is_a_refusal(tmp_path: Path):
    scene = Scene(hooked(tmp_path, pre(decide("ask"))), [call(), "done"])
    await scene.run()
    assert scene.ran == []
    assert "nobody can be" in last_result(scene)


@pytest.mark.parametrize("answer", [None, "the user said no"])
async def test_ask_puts_the_call_to_the_person_with_the_reason(tmp_path: Path, answer: str | None):
    asked: list[tuple[str, str]] = []

    async def ask(ctx: PolicyContext, call: ToolCall, reason: str) -> str | None:
        asked.append((call.name, reason))
        return answer

    hook = pre(decide("ask", permissionDecisionReason="is it late?"))
    scene = Scene(hooked(tmp_path, hook, ask=ask), [call(), "done"])
    await scene.run()
    assert asked == [("act", "is it late?")]
    assert len(scene.ran) == (answer is None)


async def test_a_changed_input_is_judged_by_the_others_and_shown(tmp_path: Path):
    seen: list[dict[str, Any]] = []

    @tool
    def act(x: str) -> str:
        """Act."""
        return x

    def approve(request: Any) -> Any:
        seen.append(dict(request.shown))
        return True

    change = pre(decide("allow", updatedInput={"x": "changed"}))
    count = pre("echo . >> judged; grep -q original && exit 0; touch saw-change; exit 0")
    model = ScriptedModel([ToolCall("1", "act", {"x": "original"}), "done"])
    agent = Agent(
        "test:m", stream_fn=model, tools=[act], policies=[hooked(tmp_path, change, count)],
        approve=approve, approval_mode="on",
    )  # fmt: skip
    await agent.run("Go.")
    assert seen == [{"x": "changed"}]
    assert (tmp_path / "saw-change").exists()
    assert agent.messages[2].text == "changed"


async def test_a_changed_input_that_another_hook_denies_does_not_run(tmp_path: Path):
    change = pre(decide("allow", updatedInput={"x": "rm -rf"}))
    guard = pre("grep -q 'rm -rf' && exit 2; exit 0")
    scene = Scene(hooked(tmp_path, change, guard), [call(x="ls"), "done"])
    await scene.run()
    assert scene.ran == []


async def test_a_question_about_a_changed_input_shows_the_change(tmp_path: Path):
    asked: list[Any] = []

    async def ask(ctx: PolicyContext, call: ToolCall, reason: str) -> str | None:
        asked.append(dict(call.arguments))
        return None

    hook = pre(decide("ask", updatedInput={"x": 2}))
    scene = Scene(hooked(tmp_path, hook, ask=ask), [call(x=1), "done"])
    await scene.run()
    assert asked == [{"x": 2}]
    assert scene.ran == [("act", {"x": 2})]


async def test_hooks_that_undo_each_other_end_in_a_refusal(tmp_path: Path):
    hooks = [pre(decide("allow", updatedInput={"x": n})) for n in (1, 2)]
    scene = Scene(hooked(tmp_path, *hooks), [call(x=0), "done"])
    await scene.run()
    assert scene.ran == []
    assert "still rewrite" in last_result(scene)


async def test_a_refusal_of_the_person_beats_a_hook_that_allows(tmp_path: Path):
    options = {"approve": lambda request: Rejected("no"), "approval_mode": "on"}
    scene = Scene(hooked(tmp_path, pre(decide("allow"))), [call(), "done"], **options)
    await scene.run()
    assert scene.ran == []


async def test_a_prompt_gets_context_once(tmp_path: Path):
    hook = Hook("UserPromptSubmit", "cat >> seen; echo; echo the branch is main")
    scene = Scene(hooked(tmp_path, hook), [call(), "done"])
    await scene.run("Where are we?")
    told = [message.text for message in scene.agent.messages if isinstance(message, UserMessage)]
    assert told[0] == "Where are we?"
    assert "the branch is main" not in told[0]
    assert len([text for text in told if '<hook event="UserPromptSubmit">' in text]) == 1
    assert json.loads((tmp_path / "seen").read_text())["prompt"] == "Where are we?"


async def test_a_blocked_prompt_reaches_no_model(tmp_path: Path):
    scene = Scene(hooked(tmp_path, Hook("UserPromptSubmit", "echo secret found >&2; exit 2")), ["unsaid"])
    result = await scene.run()
    assert scene.model.calls == []
    assert "secret found" in result.reason


async def test_what_a_hook_says_after_a_call_is_read_by_the_model(tmp_path: Path):
    hook = Hook("PostToolUse", "cat > seen; echo lint failed >&2; exit 2", "act")
    scene = Scene(hooked(tmp_path, hook), [call(x=1), "done"], answer="written")
    await scene.run()
    assert "lint failed" in scene.model.calls[1].messages[-1].text
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["tool_name"] == "act"
    assert seen["tool_input"] == {"x": 1}
    assert seen["tool_response"]["content"] == "written"
    assert seen["hook_event_name"] == "PostToolUse"


async def test_a_call_that_failed_is_no_use_of_the_tool(tmp_path: Path):
    def fail(_: object) -> str:
        raise ValueError("broken")

    scene = Scene(hooked(tmp_path, Hook("PostToolUse", "touch seen")), [call(), "done"], answer=fail)
    await scene.run()
    assert not (tmp_path / "seen").exists()


async def test_a_broken_hook_after_a_call_is_reported_once_and_blocks_nothing(tmp_path: Path):
    told: list[str] = []
    group = HookGroup([Hook("PostToolUse", "no-such-program-at-all")], tmp_path, tell=told.append)
    scene = Scene(ShellHook(group), [call(0), call(1), "done"])
    result = await scene.run()
    assert result.text == "done"
    assert len(scene.ran) == 2
    assert len(told) == 1


async def test_a_hook_keeps_the_agent_from_stopping_and_is_told_so(tmp_path: Path):
    command = "cat >> seen; [ -e again ] && exit 0; touch again; echo run the tests >&2; exit 2"
    scene = Scene(hooked(tmp_path, Hook("Stop", command)), ["done", "really done"])
    result = await scene.run()
    assert result.text == "really done"
    assert "run the tests" in scene.model.calls[1].messages[-1].text
    decoder, text, active = json.JSONDecoder(), (tmp_path / "seen").read_text(), []
    while text:
        payload, end = decoder.raw_decode(text)
        active.append((payload["stop_hook_active"], payload["last_assistant_message"]))
        text = text[end:].lstrip()
    assert active == [(False, "done"), (True, "really done")]


async def test_a_hook_that_always_blocks_lets_the_agent_stop_after_eight_times(tmp_path: Path):
    told: list[str] = []
    hooks = [Hook("Stop", "echo more >&2; exit 2"), Hook("UserPromptSubmit", "exit 0")]
    for some in (hooks, hooks[:1]):
        scene = Scene(ShellHook(HookGroup(some, tmp_path, tell=told.append)), ["done"] * 20)
        await scene.run()
        assert len(scene.model.calls) == 1 + 8
    assert told == ["hooks for Stop kept the agent from stopping 8 times; now it stops"] * 2


async def test_continue_false_stops_the_agent(tmp_path: Path):
    hook = pre("""echo '{"continue": false, "stopReason": "enough for today"}'""")
    scene = Scene(hooked(tmp_path, hook), [call(), "unsaid"])
    result = await scene.run()
    assert scene.ran == []
    assert result.reason == "enough for today"


async def test_the_other_programs_names_are_used_where_a_hook_wants_them(tmp_path: Path):
    special = {
        "permissionDecision": "allow",
        "updatedInput": {"file_path": str(tmp_path / "b.py"), "content": "y"},
    }
    command = f"cat > seen; echo '{json.dumps({'hookSpecificOutput': special})}'"
    hook = pre(command, "Write", foreign_names=True)
    write = call(name="write_file", path="a.py", content="x")
    scene = Scene(hooked(tmp_path, hook), [write, "done"], names=["write_file"])
    await scene.run()
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["tool_name"] == "Write"
    assert seen["tool_input"] == {"file_path": str(tmp_path / "a.py"), "content": "x"}
    assert scene.ran == [("write_file", {"path": "b.py", "content": "y"})]


async def test_an_abort_ends_the_hook_and_the_call_does_not_run(tmp_path: Path):
    scene = Scene(hooked(tmp_path, pre("touch started; sleep 300")), [call(), "unsaid"])
    running = asyncio.create_task(scene.agent.run("Go."))
    while not (tmp_path / "started").exists():
        await asyncio.sleep(0.02)
    scene.agent.abort()
    result = await running
    assert result.stop_reason == "aborted"
    assert scene.ran == []


def test_what_is_no_hook_is_refused_at_once():
    with pytest.raises(InvalidInput, match="takes a list of Hook"):
        ShellHook(["./check.sh"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="no event"):
        Hook("BeforeTool", "x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="needs a command"):
        Hook("Stop", " ")


def test_policies_without_hooks_load_nothing_of_them():
    code = "import sys, swink.policies; print([name for name in sys.modules if 'hook' in name and 'swink' in name])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "swink.policies.hooks" not in found
    assert "shellhook" not in found
