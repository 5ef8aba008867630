"""Four agents on one model take turns, and a process that leaves keeps neither threads nor memory."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

from talking import SMOL
from tests.counts import left_to_more

from swink.local import LocalStreamFn
from swink.messages import UserMessage
from swink.stream import LlmContext, StreamOptions

TURNS = 3


@left_to_more
async def test_four_agents_at_once_take_turns(weights: Path, model: LocalStreamFn):
    """Two places for four: nobody is ever more than two replies behind another."""
    ended: list[str] = []

    async def agent(name: str) -> None:
        for number in range(TURNS):
            context = LlmContext("", [UserMessage(f"{name} asks: say {number}.")])
            async for _ in model(SMOL, context, StreamOptions(max_tokens=3, session_id=name)):
                pass
            ended.append(name)

    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        for name in "abcd":
            group.create_task(agent(name))
    assert Counter(ended) == dict.fromkeys("abcd", TURNS)
    for place in range(1, len(ended) + 1):
        turns = Counter(dict.fromkeys("abcd", 0) | Counter(ended[:place]))
        assert max(turns.values()) - min(turns.values()) <= 2, ended


LEAVING = """
import asyncio, gc, sys, threading, time
from pathlib import Path
from swink.local import LocalEmbedder, LocalStreamFn, unload_all
from swink.messages import ModelSpec, UserMessage
from swink.stream import LlmContext, StreamOptions

path = sys.argv[1]

def threads():
    return len(list(Path("/proc/self/task").iterdir()))

def mapped():
    return path in Path("/proc/self/maps").read_text() or any(
        str(link.readlink()) == path for link in Path("/proc/self/fd").iterdir() if link.is_symlink()
    )

async def talk():
    function = LocalStreamFn()
    context, spec = LlmContext("", [UserMessage("Say blue.")]), ModelSpec("local", path)
    async for _ in function(spec, context, StreamOptions(max_tokens=2)):
        pass
    await LocalEmbedder(path).embed(["a cat"])
    assert mapped(), "one model, in memory"
    return len([line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(path)])

for _ in range(2):
    print("mappings", asyncio.run(talk()))
    unload_all()
    gc.collect()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(20)
    for _ in range(2000):  # the runtime's own end a moment later
        if threads() <= 2:
            break
        time.sleep(0.01)
    print("mapped", mapped(), "threads", threads())
"""


@left_to_more
def test_a_process_that_is_done_with_a_model_has_no_thread_and_no_mapping_left(weights: Path):
    weights = weights.resolve()
    ran = subprocess.run(
        [sys.executable, "-c", LEAVING, str(weights)], capture_output=True, text=True, timeout=200
    )
    assert ran.returncode == 0, ran.stderr
    # Beside the main thread there is that of llama.cpp's log, one for all models, which ends with the process.
    assert ran.stdout.splitlines() == ["mappings 1", "mapped False threads 2"] * 2
    assert ran.stderr == ""
