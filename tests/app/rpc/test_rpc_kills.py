"""`swink rpc` is killed at every kind of step: what was saved is there again, and no tool runs twice."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import SECONDS, STALL, Call, Place, Provider
from tests.counts import left_to_more
from tests.patience import wait_until

RUN = Call("bash", command="echo once >> counter; echo started")
HANG = Call("bash", command="echo once >> counter; sleep 60")


class Step(NamedTuple):
    """What the model says before the kill, which event is waited for, and how often the command has run at the end."""

    replies: list[Any]
    event: str
    approve: str = "off"
    runs: int = 0


STEPS = {
    "a reply arrives": Step([["half ", STALL]], "message_update"),
    "the model is asked": Step([[STALL]], "turn_start"),
    "a call is asked about": Step([[RUN]], "approval_requested", "on", 1),
    "a tool runs": Step([[HANG]], "tool_execution_start", runs=1),
    "a tool has ended": Step([[RUN], [STALL]], "tool_execution_end", runs=1),
    "the run has ended": Step([["First."]], "result"),
}


class Program:
    """A process of `swink rpc`, and the program that talks to it."""

    def __init__(self, place: Place, provider: Provider, approve: str) -> None:
        command = [sys.executable, "-m", "swink", "rpc", "-m", "openai:gpt-4.1", "--approve", approve]
        self.process = subprocess.Popen(
            command,
            cwd=place.here,
            env={**place.environ, **provider.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        place.started.append(self.process)
        self.events: list[dict[str, Any]] = []

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "swink rpc has ended"
        message = json.loads(line)
        if message.get("method") == "event":
            self.events.append(message["params"]["event"])
        return message

    def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin is not None
        asked = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()
        while "method" in (message := self.read()):
            pass
        return message.get("result", message.get("error"))

    def until(self, kind: str) -> dict[str, Any]:
        while not (found := [event for event in self.events if event["type"] == kind]):
            self.read()
        return found[-1]


def counted(here: Path) -> int:
    """How often the command ran."""
    path = here / "counter"
    return len(path.read_text().splitlines()) if path.exists() else 0


def is_kept(place: Place, text: str) -> bool:
    """Whether it is in a saved session."""
    return any(text in path.read_text() for path in place.sessions.rglob("*.jsonl"))


@left_to_more
@pytest.mark.parametrize("name", STEPS)
def test_a_killed_server_loses_nothing_and_runs_nothing_twice(place: Place, provider: Provider, name: str):
    place.trust()
    step = STEPS[name]
    provider.replies = [*step.replies]
    program = Program(place, provider, step.approve)
    session = program.ask("run", input="Do it")["session"]
    program.until(step.event)
    if name == "a call is asked about":
        wait_until(lambda: is_kept(place, '"type":"approval"'))
    elif name == "a tool runs":
        wait_until(lambda: counted(place.here) == 1)
    program.process.kill()
    program.process.wait()
    provider.replies = [["Finished."]]
    again = Program(place, provider, step.approve)
    shown = again.ask("sessions.open", session=session)
    assert shown["messages"][0]["content"][0]["text"] == "Do it"
    if shown["pending"]:
        again.ask("approve", session=session, call_id=shown["pending"][0]["call_id"], approved=True)
    elif step.event == "result":
        assert "already" in again.ask("run", session=session)["message"]
        again.ask("run", session=session, input="Go on")
    else:
        again.ask("run", session=session)
    assert bool(shown["pending"]) == (name == "a call is asked about")
    assert again.until("result")["text"] == "Finished."
    assert counted(place.here) == step.runs
    again.process.communicate(timeout=SECONDS)
    assert again.process.returncode == 0
