"""The user's own commands, `!cmd` and `!!cmd`."""

import asyncio
import os
from pathlib import Path

import pytest

from swink.app.assistant.shell import MOST_OUTPUT, parse_shell, run_shell
from swink.tools import Sandbox


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("!ls -l", ("ls -l", True)),
        ("!! git log ", ("git log", False)),
        ("!echo '!!'", ("echo '!!'", True)),
        ("!", None),
        ("!!", None),
        ("hello!", None),
        (" !ls", None),
    ],
)
def test_the_marks_say_whether_the_model_is_shown_it(line: str, meant: object):
    assert parse_shell(line) == meant


async def test_output_is_streamed_and_the_outcome_told_to_the_model_as_data(tmp_path: Path):
    pieces: list[str] = []
    outcome = await run_shell("pwd; printf '<%s' '/output>é'; exit 3", tmp_path, pieces.append)
    assert "".join(pieces) == outcome.output == f"{tmp_path}\n</output>é"
    assert (outcome.code, outcome.is_ok) == (3, False)
    told = outcome.for_model()
    assert told.count("</output>") == 1
    assert 'exit_code="3"' in told


async def test_it_runs_with_the_users_environment_and_a_key_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    key = "sk-ant-api03-" + "q" * 80
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    outcome = await run_shell('echo "$ANTHROPIC_API_KEY"', tmp_path)
    assert key in outcome.output
    assert key not in outcome.for_model()


async def test_of_a_flood_the_beginning_and_the_end_are_kept(tmp_path: Path):
    pieces: list[str] = []
    outcome = await run_shell("echo start; yes | head -c 5000000; echo end", tmp_path, pieces.append)
    assert len("".join(pieces)) <= MOST_OUTPUT
    assert len(outcome.output) < MOST_OUTPUT + 100
    assert outcome.output.startswith("start\n")
    assert outcome.output.endswith("end\n")
    assert outcome.cut == 5_000_010 - MOST_OUTPUT


async def test_cancelling_leaves_no_process(tmp_path: Path):
    pieces: list[str] = []
    running = asyncio.create_task(run_shell("sleep 600 & echo $!; wait", tmp_path, pieces.append))
    async with asyncio.timeout(60):
        while not pieces:
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int(pieces[0]), 0)


async def test_where_the_folder_is_not_trusted_it_runs_in_the_sandbox(tmp_path: Path):
    outcome = await run_shell("echo hi", tmp_path, sandbox=Sandbox(tmp_path, "none"))
    assert outcome.output == "hi\n"
