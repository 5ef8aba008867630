"""Runs that are killed with SIGKILL at every step, and taken up by another process: `python killing.py DIRECTORY PLACES`.

A step is whatever could leave a trace: a write or a sync of the session, a question, the start and the end of a tool, a
request. This process stays warm and alone; it forks one child that dies at a step, one that takes up the run and dies
as well, and one that finishes it. A log with O_APPEND, which survives them all, tells what really happened.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swink import Agent, InvalidContinue, NoMessages, ToolCall, tool
from swink.memory import JsonlStore
from swink.messages import AssistantMessage, ToolResultMessage, UserMessage
from swink.testing import ScriptedModel, history_problems

ID = "killed"
SAFE = {"idempotent", "read_only"}


class Stage:
    """One process of a scene: it dies at a step, if one is given."""

    def __init__(self, directory: Path, dies_at: int | None) -> None:
        self.directory = directory
        self.left = dies_at
        self.steps = 0
        self.log = os.open(directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.store = JsonlStore(directory / "sessions")
        for name in ("write", "fsync", "fdatasync"):
            if hasattr(os, name):
                setattr(os, name, self._stepping(getattr(os, name)))

    def step(self) -> None:
        self.steps += 1
        if self.left is not None and self.steps > self.left:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)

    def note(self, line: str) -> None:
        """Goes to the log in one write, which is a step of its own, before and after."""
        os.write(self.log, f"{line}\n".encode())

    def _stepping(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            self.step()
            result = function(*values)
            self.step()
            return result

        return call


def calls(name: str, *ids: str) -> list[ToolCall]:
    return [ToolCall(id, name, {"id": id}) for id in ids]


class Scene:
    """A script, and how the agent is set up."""

    def __init__(self, *script: Any, kind: str = "", ends: str = "end", **options: Any) -> None:
        self.script = [*script, ends]
        self.kind = kind
        self.options = options

    def agent(self, stage: Stage, session: Any) -> Agent:
        @tool(
            idempotent=self.kind == "idempotent",
            read_only=self.kind == "read_only",
            requires_approval=self.kind == "approval",
        )
        async def count(id: str) -> str:
            stage.note(f"run {id}")
            await asyncio.sleep(0)
            if self.kind == "steering" and id == "a":
                agent.steer("steered")
                agent.follow_up("later")
            stage.note(f"end {id}")
            return f"counted {id}"

        async def approve(request: Any) -> bool:
            stage.note(f"ask {request.call_id}")
            return request.call_id != "b"

        def ask(model: Any, context: Any, options: Any) -> Any:
            broken = history_problems(context.messages)
            stage.note(f"request {'; '.join(broken)}")
            said = sum(isinstance(message, AssistantMessage) for message in context.messages)
            return ScriptedModel([self.script[min(said, len(self.script) - 1)]])(model, context, options)

        agent = Agent(
            "test:m", stream_fn=ask, tools=[count], session=session, approve=approve, **self.options
        )
        return agent


SCENES = {
    "sequential": Scene(calls("count", "a", "b"), calls("count", "c"), tool_execution="sequential"),
    "concurrent": Scene(calls("count", "a", "b", "c"), "end"),
    "idempotent": Scene(calls("count", "a", "b"), kind="idempotent", tool_execution="sequential"),
    "read_only": Scene(calls("count", "a", "b"), kind="read_only"),
    "approval": Scene(calls("count", "a", "b", "c"), kind="approval"),
    "steering": Scene(calls("count", "a", "b"), "heard", kind="steering"),
}


async def perform(scene: Scene, stage: Stage) -> list[str]:
    """Begin, or go on where the one before died; what is wrong at the end, in words."""
    ids = [meta.id for meta in await stage.store.list()]
    session = await (stage.store.open(ID) if ids else stage.store.create(id=ID))
    agent = scene.agent(stage, session)
    problems = [f"as found: {problem}" for problem in history_problems(agent.messages)]
    queued = [
        message.text for message in (*agent._queues.steering, *agent._queues.follow_up, *agent.messages)
    ]
    problems += [f"{text!r} is in two places" for text in ("steered", "later") if queued.count(text) > 1]
    try:
        await (agent.run() if agent.messages or agent.has_pending else agent.run("go"))
    except (InvalidContinue, NoMessages):
        pass  # the one before died after its last save
    await agent.aclose()
    problems += history_problems(agent.messages)
    saved = await stage.store.open(ID)
    if list(saved.messages) != list(agent.messages) or saved.conversation.open is not None:
        problems.append(f"saved is {list(saved.messages)}, not {list(agent.messages)}")
    users = [message.text for message in agent.messages if isinstance(message, UserMessage)]
    if len(users) != len(set(users)) or users[:1] != ["go"]:
        problems.append(f"prompts: {users}")
    if agent.messages[-1].text not in scene.script[1:]:
        problems.append(f"it ends with {agent.messages[-1]}")
    return problems + log_problems(scene, stage, agent.messages)


def log_problems(scene: Scene, stage: Stage, messages: Sequence[Any]) -> list[str]:
    lines = (stage.directory / "log").read_text().splitlines()
    problems = [
        f"a request was {line}" for line in lines if line.startswith("request ") and line != "request "
    ]
    for result in messages:
        if not isinstance(result, ToolResultMessage):
            continue
        id = result.tool_call_id
        runs, ends = lines.count(f"run {id}"), lines.count(f"end {id}")
        if runs > 1 and scene.kind not in SAFE:
            problems.append(f"{id} ran {runs} times")
        if result.text == f"counted {id}" and not ends:
            problems.append(f"{id} has a result and never ended")
        if result.text.startswith("outcome unknown") and scene.kind in SAFE:
            problems.append(f"{id} is safe to run again, and was not")
        if f"run {id}" in lines and f"ask {id}" in lines[lines.index(f"run {id}") :]:
            problems.append(f"{id} was asked for after it ran")
    return problems


def in_child(scene: Scene, directory: Path, dies_at: int | None) -> tuple[bool, int]:
    """Whether the child was killed; and how many steps it took if it was not."""
    child = os.fork()
    if child == 0:
        steps = 0
        try:
            stage = Stage(directory, dies_at)
            problems = asyncio.run(perform(scene, stage))
            steps = stage.steps
        except BaseException as error:
            problems = [f"{type(error).__name__}: {error}"]
        (directory / "said").write_text("\n".join([str(steps), *problems]))
        os._exit(1 if problems else 0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True, 0
    steps, *problems = (directory / "said").read_text().splitlines()
    if problems:
        log = (directory / "log").read_text()
        sys.exit(f"{directory.name}, {dies_at=}:\n" + "\n".join(problems) + f"\n{log}")
    return False, int(steps)


def main(directory: Path, places: int) -> None:
    for name, scene in SCENES.items():
        whole = directory / f"{name}-whole"
        whole.mkdir()
        _, steps = in_child(scene, whole, None)
        assert steps > 20, f"{name} takes {steps} steps"
        chosen = range(steps) if places >= steps else range(places // 3, steps, -(-steps // places))
        for place in chosen:
            scratch = directory / f"{name}-{place}"
            scratch.mkdir()
            killed, _ = in_child(scene, scratch, place)
            assert killed, f"{name} took fewer steps than {place}"
            in_child(scene, scratch, (place * 7 + 5) % steps)
            killed, _ = in_child(scene, scratch, None)
            assert not killed
        print(f"{name}: {len(chosen)} of {steps} steps", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
