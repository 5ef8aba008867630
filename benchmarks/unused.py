"""What is unused costs nothing: skills, hooks and agents that are not there, and empty folders for them.

The same work is done in a project without any of them and in one with empty folders, in turn, each time in a
process of its own; the figures are CPU time, the last column is the ratio of the medians. Aim: at most 1.05.

    import            python -c "import swink"
    first frame       the terminal interface until its environment is open
    tool turn         a turn of the coding agent with one call, of 300

    python benchmarks/unused.py [rounds]
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROUNDS = 7
TURNS = 300
AIM = 1.05
FOLDERS = [f"{top}/{kind}" for top in (".agents", ".claude", ".swink") for kind in ("skills", "agents")]
KINDS = ("import", "first frame", "tool turn")


def main() -> None:
    """Print a row a kind of work."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as root:
        places = {name: make(Path(root) / name, is_empty=name == "empty") for name in ("none", "empty")}
        print(f"{'CPU ms':<14}{'none':>10}{'empty':>10}{'ratio':>8}")
        for kind in KINDS:
            taken: dict[str, list[float]] = {name: [] for name in places}
            for number in range(rounds + 1):  # the first one warms the disk
                for name, place in places.items():
                    found = measure(kind, place)
                    taken[name] += [found] if number else []
            none, empty = (statistics.median(taken[name]) for name in places)
            missed = "" if empty / none <= AIM else f"  above {AIM}"
            print(f"{kind:<14}{none:>10.2f}{empty:>10.2f}{empty / none:>8.3f}{missed}")


def make(place: Path, *, is_empty: bool) -> Path:
    """A project; one that is empty has folders for what it does not have, and a file without hooks."""
    work = place / "work"
    work.mkdir(parents=True)
    (work / "main.py").write_text("x = 1\n")
    if is_empty:
        for folder in FOLDERS:
            (work / folder).mkdir(parents=True)
            (place / "home" / folder).mkdir(parents=True)
        (work / ".claude/settings.json").write_text("{}")
        (work / ".swink/hooks.json").write_text("{}")
    return work


def measure(kind: str, place: Path) -> float:
    """The milliseconds of CPU time that one process takes for a kind of work in a project."""
    home = str(place.parent / "home")
    env = {
        **os.environ,
        "HOME": home,
        "XDG_CONFIG_HOME": f"{home}/.config",
        "SWINK_SESSIONS_DIR": f"{home}/s",
    }
    command = [sys.executable, __file__, "--worker", kind]
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def worker(kind: str) -> float:
    """Do the work; its CPU time in milliseconds."""
    begun = time.process_time()
    if kind == "import":
        import swink

        assert swink
        return (time.process_time() - begun) * 1000
    return asyncio.run(frame(begun) if kind == "first frame" else turns()) * 1000


async def frame(begun: float) -> float:
    """CPU seconds until the interface shows a project, and has read what there is."""
    from swink.app.tui import ConversationDriver, SwinkApp

    environment, permissions, agent = assistant([])
    app = SwinkApp(ConversationDriver(agent), permissions, environment=environment)
    async with app.run_test(size=(100, 30)) as pilot:
        while environment.skills is None or environment.instructions is None:
            await pilot.pause(0.001)
        taken = time.process_time() - begun
        app.leave()
    return taken


async def turns() -> float:
    """CPU seconds of one turn with a call."""
    from swink.messages import ToolCall

    calls = [ToolCall(f"c{number}", "read_file", {"path": "main.py"}) for number in range(TURNS)]
    environment, _, agent = assistant([*calls, "done"])
    await environment.open()
    begun = time.process_time()
    result = await agent.run("Go.")
    taken = time.process_time() - begun
    assert result.error is None, result.error
    await environment.aclose()
    return taken / TURNS


def assistant(replies: list[Any]) -> tuple[Any, Any, Any]:
    """The coding agent in this directory, which is trusted, with a scripted model."""
    from swink.app.assistant.agentenvironment import AgentEnvironment
    from swink.app.assistant.permissions import Permissions
    from swink.app.assistant.settings import load_settings
    from swink.app.assistant.trust import decided, look_up
    from swink.messages import ModelSpec
    from swink.testing import ScriptedModel

    environment = AgentEnvironment(".", decided(look_up("."), True), load_settings())
    permissions = Permissions("off")
    environment.attend(permissions)
    model = ModelSpec("test", "large", context_window=2_000_000)
    stream = ScriptedModel(replies)
    return environment, permissions, environment.make_agent(model, approve=permissions, stream_fn=stream)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(worker(sys.argv[2])))
    else:
        main()
