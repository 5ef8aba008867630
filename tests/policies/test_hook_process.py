"""The process of a hook: every way to fail, and that nothing of it is left running."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from swink.policies.hooks import Event, Hook, HookAnswer, run_hook
from swink.policies.hooks.hookprocess import MOST_OUTPUT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands need a POSIX system")


async def answer_of(
    command: str, directory: Path, event: Event = "PreToolUse", timeout: float = 30.0, **payload: object
) -> HookAnswer:
    return await run_hook(Hook(event, command, timeout=timeout), payload, directory)


def alive(mark: str) -> list[str]:
    """Command lines of living processes that carry a mark."""
    found = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if mark in line and not line.startswith("Z")]


async def gone(mark: str) -> bool:
    for _ in range(1_200):
        if not alive(mark):
            return True
        await asyncio.sleep(0.05)
    return False


async def test_a_hook_reads_its_payload_and_knows_its_place(tmp_path: Path):
    script = 'cat > seen.json; pwd > where; echo "$CLAUDE_PROJECT_DIR" >> where'
    text = "ü" * 200_000  # more than a pipe holds
    assert await answer_of(script, tmp_path, tool_input={"command": text}) == HookAnswer()
    assert json.loads((tmp_path / "seen.json").read_text("utf-8")) == {"tool_input": {"command": text}}
    assert (tmp_path / "where").read_text().splitlines() == [str(tmp_path), str(tmp_path)]


async def test_output_and_errors_are_kept_apart(tmp_path: Path):
    assert await answer_of("echo a reason >&2; echo '{}'; exit 2", tmp_path) == HookAnswer("deny", "a reason")
    command = 'echo noise >&2; echo \'{"systemMessage": "hello"}\''
    assert await answer_of(command, tmp_path) == HookAnswer(message="hello")


async def test_not_reading_standard_input_is_fine(tmp_path: Path):
    assert await answer_of("exec 0<&-; exit 0", tmp_path, tool_input="x" * 1_000_000) == HookAnswer()


WAYS_TO_FAIL = {
    "no such program": "no-such-program-at-all",
    "not executable": "./plain.txt",
    "killed": "kill -9 $$",
    "its child is killed": "sh -c 'kill -9 $$'; exit $?",
    "times out": "sleep 100",
    "deaf to the end": "trap '' TERM; while :; do sleep 1; done",
    "broken JSON": """echo '{"decision": '""",
    "floods an object": "echo '{'; yes | head -c 5000000",
}


@pytest.mark.parametrize("way", WAYS_TO_FAIL)
async def test_every_way_to_fail_blocks_a_call_and_nothing_else(way: str, tmp_path: Path):
    (tmp_path / "plain.txt").write_text("nothing")
    command, limit = WAYS_TO_FAIL[way], 0.5 if way in ("times out", "deaf to the end") else 30.0
    found = await answer_of(command, tmp_path, timeout=limit)
    assert found.decision == "deny"
    assert "failed" in found.reason
    found = await answer_of(command, tmp_path, "PostToolUse", timeout=limit)
    assert found.decision is None
    assert found.problem


async def test_a_directory_that_is_gone_fails_closed(tmp_path: Path):
    assert (await answer_of("true", tmp_path / "nowhere")).decision == "deny"


async def test_a_flood_of_text_is_cut_and_does_not_fill_memory(tmp_path: Path):
    found = await answer_of(f"yes | head -c {20 * MOST_OUTPUT}", tmp_path, "UserPromptSubmit")
    assert 0 < len(found.context) < 11_000


async def test_a_child_that_holds_the_pipe_delays_nothing_and_is_ended(tmp_path: Path):
    mark = f"3{os.getpid()}.25"
    found = await answer_of(f"sleep {mark} & echo hello", tmp_path, "SessionStart")
    assert found == HookAnswer(context="hello")
    assert await gone(f"sleep {mark}")


async def test_cancellation_ends_the_hook_with_all_it_started(tmp_path: Path):
    mark = f"3{os.getpid()}.5"
    command = f"(setsid sleep {mark} &) ; touch ready; sleep {mark}"
    task = asyncio.create_task(answer_of(command, tmp_path))
    while not (tmp_path / "ready").exists():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(f"sleep {mark}")


def test_the_hook_ends_with_the_program_that_started_it(tmp_path: Path):
    mark = f"3{os.getpid()}.75"
    code = (
        "import asyncio; from swink.policies.hooks import Hook, run_hook\n"
        f"asyncio.run(run_hook(Hook('PreToolUse', 'touch ready; sleep {mark}'), {{}}, '.'))"
    )
    program = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    try:
        while not (tmp_path / "ready").exists():
            assert program.poll() is None
            time.sleep(0.02)
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()
    assert asyncio.run(gone(f"sleep {mark}"))
