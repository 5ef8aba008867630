"""The library's own tests as on Windows and on macOS, in a pytest of their own; foreign.py says what is shown so.

What the system decides is what these test: files and their locks, sessions, keys, threads, processes. The loop and
the adapters know nothing of it; a few of their tests are among these. Left out are tests/tools/coding, for its
commands and files are refused on Windows and want Seatbelt on macOS, and what starts programs of its own, which
run on this system.
"""

import os
import re
import subprocess
import sys

import pytest
from tests.counts import left_to_more
from tests.pages import ROOT

SAMPLE = ("memory/test_leases.py", "messages/test_mediafiles.py", "system/test_files.py")
CHOSEN = (
    *SAMPLE, "agent/engine/test_loop.py", "agent/test_structured.py", "memory/test_checkpoints.py",
    "memory/test_heldfile.py", "memory/test_hostile_disks.py", "memory/test_jsonl.py",
    "memory/test_jsonl_damage.py", "memory/test_sqlite.py", "memory/test_store_conformance.py",
    "policies/test_policy_audit.py", "policies/test_policy_checkpoint.py", "stream/test_cassettes.py",
    "system/test_aio.py", "system/test_places.py", "system/test_programs.py", "system/test_threads.py",
    "telemetry/test_tracefile.py", "tools/test_tool.py", "tools/test_workers.py",
)  # fmt: skip


def passed_on(system: str, *files: str) -> int:
    """How many tests pass there; none may fail."""
    env = {**os.environ, "SWINK_TEST_SYSTEM": system}
    env.pop("SWINK_TEST_MORE", None)  # it would try each property far more often
    options = ["-p", "tests.system.foreign", "-p", "no:xdist", "--tb=short"]
    command = [sys.executable, "-m", "pytest", *options, *(f"tests/{file}" for file in files)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert f"these tests ran as on {system}" in done.stdout
    return int(re.findall(r"(\d+) passed", done.stdout)[0])


def test_a_sample_passes_as_on_windows():
    assert passed_on("win32", *SAMPLE) > 30


@left_to_more
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_what_the_system_decides_passes_as_on_another_one(system: str):
    assert passed_on(system, *CHOSEN) > 500
