"""Function calls of a streamed delta and of a turn with one tool: swink beside other libraries.

    python benchmarks/compare.py        the table of the README; libraries that are not installed are named

A scripted model replays the same work in each (`work.py`), and a run must show every delta.
The others live in environments of their own below `.venv/peers`, which .ci/run makes.
Counts are those of `cProfile`, of Python and C; they do not depend on the load of the machine.
"""

import asyncio
import cProfile
import json
import platform
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import work

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv" / "peers"
DELTAS, TURNS = 300, 20
LIBRARIES = {
    "swink": ("peer.py", "swink", Path(sys.executable)),
    "LangGraph": ("others/langgraph.py", "langgraph", PEERS / "langchain" / "bin" / "python"),
    "OpenAI Agents SDK": ("others/openai_agents.py", "openai-agents", PEERS / "openai" / "bin" / "python"),
    "pydantic-ai": ("others/pydantic_ai.py", "pydantic-ai-slim", PEERS / "openai" / "bin" / "python"),
}
"""File here, package and interpreter of each."""


def main() -> None:
    print(f"| {date.today()}, Python {platform.python_version()} | a streamed delta | a turn with one tool |")
    print("|---|---:|---:|")
    for name, (file, package, python) in LIBRARIES.items():
        if not python.exists():
            print(f"{name} is not there: .ci/run installs it", file=sys.stderr)
            continue
        command = [str(python), "-W", "ignore", __file__, file, package]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(f"| {name} {found['version']} | {found['delta']:,.0f} | {found['turn']:,.0f} |")


async def counts(file: str, package: str) -> dict[str, Any]:
    """What one library takes, in this process."""
    sys.path.remove(str(HERE))  # files here have names of packages, such as requests
    spec = spec_from_file_location("library", HERE / file)
    assert spec is not None
    assert spec.loader is not None
    peer = module_from_spec(spec)
    spec.loader.exec_module(peer)
    delta = await calls(peer, work.text(DELTAS), DELTAS)
    turn = await calls(peer, work.tools(TURNS), 2)
    return {"version": version(package), "delta": delta / DELTAS, "turn": turn / TURNS}


async def calls(peer: Any, steps: list[work.Step], deltas: int) -> int:
    await work.scripted(peer.run, steps)  # what is imported and made once does not count
    profile = cProfile.Profile()
    profile.enable()
    shown = await work.scripted(peer.run, steps)
    profile.disable()
    assert shown >= deltas, f"{shown} of {deltas} deltas were seen"
    profile.create_stats()
    return sum(numbers[1] for numbers in profile.stats.values())  # type: ignore[attr-defined]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(counts(*sys.argv[1:]))))
    else:
        main()
