"""`swink acp` as an editor starts it: a process, of whose output every line is the protocol's."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from command_line import STALL, Call, Place, Provider

NOISY = '''
import os, subprocess
print("loaded")

def shout() -> str:
    """Say something everywhere."""
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"])
    return "said"
'''


class Process:
    """A process of the agent, spoken to in lines."""

    def __init__(self, place: Place, *arguments: str, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "swink", "acp", "-m", "openai:gpt-4o", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.here,
            env={**place.environ, **env},
        )
        place.started.append(self.process)
        self.frames: list[dict[str, Any]] = []
        self._count = 0

    def send(self, method: str, **parameters: Any) -> int:
        assert self.process.stdin is not None
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": parameters}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._count

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        frame = json.loads(self.process.stdout.readline())
        self.frames.append(frame)
        return frame

    def ask(self, method: str, **parameters: Any) -> Any:
        number = self.send(method, **parameters)
        while (frame := self.read()).get("id") != number or "method" in frame:
            pass
        return frame["result"]

    def open(self, place: Place) -> str:
        self.ask("initialize", protocolVersion=1)
        return self.ask("session/new", cwd=str(place.here), mcpServers=[])["sessionId"]

    def words(self) -> str:
        updates = [frame["params"]["update"] for frame in self.frames if "update" in frame.get("params", {})]
        return "".join(each["content"]["text"] for each in updates if "chunk" in each["sessionUpdate"])


def test_nothing_but_the_protocol_gets_to_standard_output(place: Place, provider: Provider):
    place.trust()
    place.write("noisy.py", NOISY)
    provider.replies = [[Call("shout")], ["Done."]]
    agent = Process(place, "-t", "noisy:shout", "--approve", "off", env=provider.env)
    session = agent.open(place)
    ended = agent.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Shout"}])
    assert ended["stopReason"] == "end_turn"
    rest, told = agent.process.communicate(timeout=60)
    assert all(json.loads(line) for line in rest.splitlines())
    for word in (b"loaded", b"printed", b"written", b"echoed"):
        assert word in told
    assert agent.process.returncode == 0


def test_a_process_that_is_killed_loses_nothing_that_was_saved(place: Place, provider: Provider):
    place.trust()
    provider.replies = [["One."], ["half ", STALL], ["Two."]]
    agent = Process(place, env=provider.env)
    session = agent.open(place)
    agent.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "First"}])
    agent.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Second"}])
    while "half" not in agent.words():
        agent.read()
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    again = Process(place, env=provider.env)
    again.ask("initialize", protocolVersion=1)
    again.ask("session/load", sessionId=session, cwd=str(place.here), mcpServers=[])
    assert again.words().startswith("FirstOne.Second")
    again.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "/continue"}])
    assert again.words().endswith("Two.")
    again.process.communicate(timeout=60)
