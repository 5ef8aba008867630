"""`swink acp` in a process of its own, as an editor starts it, spoken to in lines."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from command_line import Place

MODEL = "openai:gpt-4.1"


class Process:
    """A process of the agent, spoken to in lines."""

    def __init__(
        self, place: Place, *arguments: str, env: Mapping[str, str], within: Sequence[str] = ()
    ) -> None:
        self.process = subprocess.Popen(
            [*within, sys.executable, "-m", "swink", "acp", "-m", MODEL, *arguments],
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

    def answer(self, number: int, result: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"
        )
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        frame = json.loads(line) if (line := self.process.stdout.readline()) else None
        assert frame is not None, "the agent has ended"
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

    def load(self, place: Place, session: str) -> None:
        self.ask("initialize", protocolVersion=1)
        self.ask("session/load", sessionId=session, cwd=str(place.here), mcpServers=[])

    def prompt(self, session: str, text: str) -> Any:
        return self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def updates(self, kind: str = "") -> list[dict[str, Any]]:
        found = [frame["params"]["update"] for frame in self.frames if "update" in frame.get("params", {})]
        return [update for update in found if kind in update["sessionUpdate"]]

    def words(self, kind: str = "message_chunk") -> str:
        return "".join(each["content"]["text"] for each in self.updates(kind))

    def leave(self) -> bytes:
        """Close the pipe, as an editor does; what is left of its output."""
        rest, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return rest
