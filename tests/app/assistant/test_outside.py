"""Once outside: offered where the sandbox made a command fail, never silent, and the model is told."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from commandscene import MODEL, Scene
from tests.counts import in_cells

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.person import (
    ABSENT,
    Always,
    Once,
    Question,
    Refuse,
    Reply,
    answer_options,
    default_key,
)
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.trust import decided, look_up
from swink.app.cli.terminalquestions import TerminalPerson, format_question
from swink.messages import ToolCall
from swink.testing import ScriptedModel
from swink.tools.coding import backends
from swink.tools.coding.outside import runs_git


@pytest.fixture
async def work(tmp_path: Path) -> Path:
    """A folder beside a file that sandboxed commands do not see."""
    if trouble := await backends.find_machine_trouble(backends.USUAL, network=False):
        pytest.skip(trouble)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "main.py").write_text("print(1)\n")
    (tmp_path / "outside.txt").write_text("from outside\n")
    return tmp_path / "work"


def answer(outside: Reply) -> Any:
    """A person who allows every call, and says this to a run outside."""
    return lambda question: outside if question.is_once else Once()


def read(work: Path) -> str:
    return f"python3 -c 'print(open(\"{work.parent}/outside.txt\").read())'"


async def test_a_yes_runs_it_once_outside_and_the_model_is_told(work: Path):
    scene = Scene(work, reply=answer(Once()))
    (told,) = await scene.shell(read(work))
    assert told.startswith("from outside\n")
    assert (
        "[this ran outside the sandbox, once, because the user allowed it; in the sandbox it failed: " in told
    )
    (question,) = scene.outside
    assert question.title == "Run it once outside the sandbox?"
    assert f"it cannot see {work.parent}/outside.txt" in question.notice
    assert "it may read and change all your files, use your keys and the network" in question.notice
    assert question.request.shown["command"] == read(work)


async def test_a_no_leaves_what_the_sandbox_gave_and_the_model_is_told_why_and_it_is_not_asked_again(
    work: Path,
):
    scene = Scene(work, reply=answer(Refuse("not that file")))
    told, second = await scene.shell(read(work), read(work))
    assert "No such file or directory" in told
    assert "it was not run outside: the user said no: not that file]" in told
    assert "from outside" not in told
    assert len(scene.outside) == 1
    assert "was asked about this command before and said no" in second
    text = format_question(scene.outside[0])
    assert text.startswith("swink: The sandbox made this command fail: it cannot see ")


async def test_a_yes_is_for_one_run_and_kept_with_the_reason(work: Path):
    scene = Scene(work, reply=answer(Once()))
    await scene.shell(read(work), read(work))
    assert len(scene.outside) == 2
    assert scene.permissions.decisions[0].why == "you allowed it outside"


@in_cells("word", ["off", "edits", "smart", "on"], every=4)
async def test_no_mode_answers_for_the_person(work: Path, word: Any):
    scene = Scene(work, reply=answer(Refuse()), word=word)
    (told,) = await scene.shell(read(work))
    assert len(scene.outside) == 1
    assert "from outside" not in told


async def test_neither_a_rule_nor_an_always_answers_for_the_person(work: Path):
    scene = Scene(work, reply=lambda question: Refuse() if question.is_once else Always())
    scene.permissions.rules.add([parse_rule("bash")], "user")
    await scene.shell(read(work))
    assert len(scene.outside) == 1
    (question,) = scene.outside
    assert [option.key for option in answer_options(question)] == ["y", "n", "r"]
    assert default_key(question) == "n"
    assert question.suggested == ()


async def test_it_is_never_offered_without_trust(work: Path):
    scene = Scene(work, trusted=False, reply=answer(Once()))
    (told,) = await scene.shell(read(work))
    assert scene.outside == []
    assert "it was not run outside: the folder is not trusted" in told


async def test_a_rule_that_denies_it_meanwhile_holds_against_a_yes(work: Path):
    scene = Scene(work)

    def deny_first(question: Question) -> Reply:
        if question.is_once:
            scene.permissions.rules.add([parse_rule("deny bash(python3 *)")], "user")
        return Once()

    scene.reply = deny_first
    (told,) = await scene.shell(read(work))
    assert "it was not run outside: the user's rule: deny bash(python3 *)" in told
    assert "from outside" not in told


async def test_the_mode_deny_asks_nobody(work: Path):
    scene = Scene(work, reply=answer(Once()), word="deny")
    scene.permissions.rules.add([parse_rule("bash(cat *)")], "user")
    (told,) = await scene.shell(f"cat {work.parent}/outside.txt")
    assert scene.asked == []
    assert "it was not run outside: the user allows no call that needs approval" in told


async def test_a_command_that_fails_by_itself_is_not_offered(work: Path):
    scene = Scene(work)
    await scene.shell("false", "echo no such file >&2; exit 3", "cat missing", "exit 1")
    assert scene.outside == []


async def test_a_command_that_succeeds_is_not_offered_whatever_it_writes(work: Path):
    scene = Scene(work)
    await scene.shell("echo Read-only file system; echo Could not resolve host: x")
    assert scene.outside == []


async def test_keys_stay_out_of_the_environment_and_handles_do_not(
    work: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("EXAMPLE_API_KEY", "sk-test-0123456789abcdef0123")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent.sock")
    scene = Scene(work, reply=answer(Once()))
    (told,) = await scene.shell(f"env; {read(work)}")
    assert "from outside" in told
    assert "EXAMPLE_API_KEY" not in told
    assert "SSH_AUTH_SOCK=/run/agent.sock" in told
    assert f"HOME={os.environ['HOME']}" in told


async def test_programs_on_the_path_are_none_that_the_agent_can_write(
    work: Path, monkeypatch: pytest.MonkeyPatch
):
    (work / "bin").mkdir()
    (work / "bin" / "date").write_text("#!/bin/sh\necho planted\n")
    (work / "bin" / "date").chmod(0o755)
    monkeypatch.setenv("PATH", f"{work}/bin{os.pathsep}{os.environ['PATH']}")
    scene = Scene(work, reply=answer(Once()))
    (told,) = await scene.shell(f"date; {read(work)}")
    assert "from outside" in told
    assert "planted" not in told
    assert "without the directories of the workspace on the PATH" in told


async def test_the_question_names_a_program_that_the_agent_can_write(work: Path):
    (work / "run.sh").write_text(f"exec {read(work)}\n")
    (work / "run.sh").chmod(0o755)
    scene = Scene(work, reply=answer(Refuse()))
    await scene.shell("./run.sh")
    (question,) = scene.outside
    assert f"it may run {work}/run.sh, which the agent can change, and read and change" in question.notice


async def test_it_does_not_run_in_another_directory_than_was_shown(work: Path):
    (work / "sub").mkdir()

    def exchange(question: Question) -> Reply:
        if question.is_once:
            (work / "sub").rmdir()
            (work / "sub").symlink_to(work.parent)
        return Once()

    scene = Scene(work, reply=exchange)
    arguments = {"command": f"touch ran && {read(work)}; rm -f ran; false", "directory": "sub"}
    (told,) = await scene.call(("bash", arguments))
    assert scene.outside[0].request.arguments["directory"] == f"{work}/sub"
    assert f"its directory is now {work.parent}, and the user was asked about {work}/sub" in told
    assert "from outside" not in told


@pytest.mark.parametrize(
    ("line", "is_git"),
    [
        ("git push", True),
        ("gi''t push", True),
        ("g\\it push", True),
        ("git-push origin", True),
        ("/usr/lib/git-core/git-push", True),
        ("env git push", True),
        ("/usr/bin/gi? push", True),
        ("x=1 gi''t push", True),
        ("for x in 1; do git-fetch; done", True),
        ("cat ../git-notes.md", False),
        ("cat .git/config", False),
        ("echo digit", False),
    ],
)
def test_git_is_known_however_it_is_written(line: str, is_git: bool):
    assert runs_git(line) == is_git


async def test_an_abort_withdraws_the_question_and_runs_nothing(work: Path):
    scene = Scene(work)
    waiting: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    async def ask(question: Question) -> Reply:
        if not question.is_once:
            return Once()
        scene.asked.append(question)
        return await waiting

    scene.permissions._ask = ask
    command = f"{read(work)} && touch {work.parent}/ran"
    model = ScriptedModel([[ToolCall("c", "bash", {"command": command})], "done"])
    await scene.environment.open()
    agent = scene.environment.make_agent(
        MODEL, approve=scene.permissions, approval_mode="on", stream_fn=model
    )
    running = asyncio.create_task(agent.run("go"))
    async with asyncio.timeout(60):
        while not scene.asked:
            await asyncio.sleep(0.01)
    agent.abort()
    result = await running
    assert result.stop_reason == "aborted"
    assert waiting.cancelled() or not waiting.done()
    assert not (work.parent / "ran").exists()
    await scene.environment.aclose()


async def test_an_abort_ends_the_run_outside(work: Path):
    scene = Scene(work, reply=answer(Once()))
    command = f"{read(work)} && touch {work.parent}/began && sleep 1000"
    model = ScriptedModel([[ToolCall("c", "bash", {"command": command})], "done"])
    await scene.environment.open()
    agent = scene.environment.make_agent(
        MODEL, approve=scene.permissions, approval_mode="on", stream_fn=model
    )
    running = asyncio.create_task(agent.run("go"))
    async with asyncio.timeout(60):
        while not (work.parent / "began").exists():
            await asyncio.sleep(0.01)
    agent.abort()
    assert (await running).stop_reason == "aborted"
    await scene.environment.aclose()


async def test_without_a_terminal_the_answer_is_no_and_it_is_said(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    async def nobody(text: str) -> str | None:
        return None

    monkeypatch.setattr("swink.app.cli.terminalquestions._answer_to", nobody)
    scene = Scene(work, word="off")
    scene.permissions._ask = TerminalPerson().ask
    (told,) = await scene.shell(read(work))
    assert f"it was not run outside: {ABSENT}]" in told
    assert "There is no terminal to ask on, so it stays inside." in capsys.readouterr().err


@in_cells(("typed", "allowed"), [(["y"], True), (["a", "y"], True), (["n"], False), ([""], False)], every=2)
async def test_the_plain_chat_takes_yes_for_this_once_and_no_always(
    work: Path, monkeypatch: pytest.MonkeyPatch, typed: list[str], allowed: bool
):
    shown: list[str] = []
    lines = iter(typed)

    async def read_line(text: str) -> str | None:
        shown.append(text)
        return next(lines)

    monkeypatch.setattr("swink.app.cli.terminalquestions._answer_to", read_line)
    scene = Scene(work, word="off")
    scene.permissions._ask = TerminalPerson().ask
    (told,) = await scene.shell(read(work))
    assert ("from outside" in told) == allowed
    assert (
        "swink: y allows it this once, n refuses\nswink: Run it once outside the sandbox? [y/N] " in shown[0]
    )
    assert "always" not in shown[0]
    assert all(text.startswith("swink: please answer y or n: ") for text in shown[1:])


async def test_a_no_that_nobody_said_is_asked_about_again(work: Path):
    scene = Scene(work, reply=answer(Refuse(by=ABSENT)))
    await scene.shell(read(work), read(work))
    assert len(scene.outside) == 2


def test_an_empty_folder_that_nobody_was_asked_about_is_the_persons_own_until_they_say_no(tmp_path: Path):
    assert AgentEnvironment(tmp_path, look_up(tmp_path)).is_own
    assert not AgentEnvironment(tmp_path, decided(look_up(tmp_path), False)).is_own
    (tmp_path / "main.py").touch()
    assert not AgentEnvironment(tmp_path, look_up(tmp_path)).is_own
    assert AgentEnvironment(tmp_path, decided(look_up(tmp_path), True)).is_own
