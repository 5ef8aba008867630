"""Nothing hangs: wherever a run is stuck, each way to end it ends it, and the program exits (A10, S6)."""

import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from tests.counts import MORE, left_to_more
from tests.pages import ROOT
from tests.stuck_places import PLACES

PROGRAM = Path(__file__).parents[2] / "stuck_places.py"
WITHIN = 600 if MORE else 100
"""Seconds that only bound a hang."""


def play(folder: Path, way: str, *names: str) -> None:
    """Get stuck in these places, or in all, in a program of its own, and see each ended and the program exit."""
    command = [sys.executable, str(PROGRAM), way, *names]
    with subprocess.Popen(command, cwd=folder, stdout=PIPE, stderr=PIPE, text=True) as program:
        try:
            out, err = program.communicate(timeout=WITHIN)
        except subprocess.TimeoutExpired:
            program.kill()
            out, err = program.communicate()
            pytest.fail(f"did not exit; ended: {out.split()[1::2]}\n{err}")
    assert sorted(out.split()[1::2]) == sorted(names or PLACES), err
    assert program.returncode == 0


WAYS = ["deadline", "aborted", "waited_for", "left", "closed"]


@pytest.mark.more
@pytest.mark.parametrize("way", WAYS)
def test_each_way_out_ends_a_run_wherever_it_is_stuck_and_the_program_exits(tmp_path: Path, way: str) -> None:
    # Every day each way is tried in a twentieth of the places.
    play(tmp_path, way, *(() if MORE else list(PLACES)[WAYS.index(way) :: 4 * len(WAYS)]))


OFTEN_INTERRUPTED = ["tool_blocks", "stream_waits", "session_blocks", "post_run_swallows", "audit_locked"]


@pytest.mark.more
@pytest.mark.parametrize(
    ("way", "places"),
    [("interrupted", OFTEN_INTERRUPTED[:3]), ("interrupted_twice", OFTEN_INTERRUPTED[3:])],
    ids=["interrupted", "interrupted_twice"],
)
def test_ctrl_c_ends_the_program_wherever_it_is_stuck(tmp_path: Path, way: str, places: list[str]) -> None:
    play(tmp_path, way, *(OFTEN_INTERRUPTED if MORE else places))


@pytest.mark.more
@pytest.mark.skipif(not MORE, reason="takes a minute; make test-more does it")
@pytest.mark.parametrize("way", ["interrupted", "interrupted_twice"])
def test_ctrl_c_ends_the_program_in_every_place(tmp_path: Path, way: str) -> None:
    play(tmp_path, way)


READS = """
import threading
from swink import Agent, ToolCall, tool
from swink.testing import ScriptedModel

asked = threading.Event()

@tool(requires_approval=True)
def delete() -> None: ...

def approve(request):
    asked.set()
    return input() == "y"

agent = Agent("test:m", stream_fn=ScriptedModel([ToolCall("1", "delete", {}), "done"]), tools=[delete], approve=approve)
threading.Thread(target=lambda: asked.wait() and agent.abort()).start()
print(agent.run_sync("go").stop_reason)
"""


def test_a_program_exits_while_an_approval_still_reads_its_standard_input() -> None:
    command = [sys.executable, "-c", READS]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as program:
        assert program.wait(WITHIN) == 0, program.stderr and program.stderr.read()
        assert program.stdout
        assert program.stdout.read() == "aborted\n"


@left_to_more
@pytest.mark.skipif(sys.platform != "linux", reason="it counts in /proc")
def test_a_minute_of_mixed_faults_leaves_nothing_behind():
    soak = [sys.executable, ROOT / "benchmarks" / "soak.py", "--seconds", "40"]
    done = subprocess.run(soak, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
