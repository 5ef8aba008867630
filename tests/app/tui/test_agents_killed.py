"""Background agents of the real program, killed in the midst of their work: ten of them, none lost, none mixed up."""

import re
import signal
import threading
from pathlib import Path
from typing import Any

from command_line import STALL, Call, Place, Provider
from terminal import Terminal
from tests.counts import left_to_more

TASKS = [f"dig number {number}." for number in range(10)]
GIVEN = ["--model", "openai:gpt-4.1", "--approve", "off"]


class Played(list[Any]):
    """The requests of a server; each thread knows its own."""

    def __init__(self) -> None:
        super().__init__()
        self.local = threading.local()

    def append(self, request: Any) -> None:
        self.local.request = request
        super().append(request)


def play(provider: Provider, *, is_done: bool) -> None:
    """Have the assistant start ten agents, and each of them stall, or report with its own task."""
    requests = provider.requests = Played()

    def reply() -> Any:
        said = [message for message in requests.local.request["messages"] if message["role"] != "system"]
        if said[0]["content"] != "go":
            return [f"report on {said[0]['content']}"] if is_done else [STALL]
        if said[-1]["role"] == "tool":
            return ["All begun."]
        if said[-1]["content"] == "go":
            return [Call("task", task=task, background=True) for task in TASKS]
        return ["Thanks for the report."]

    provider.next_reply = reply  # type: ignore[method-assign]


def own_sessions(place: Place) -> dict[str, str]:
    """What the session of each agent holds, by its task."""
    found: dict[str, str] = {}
    for path in Path(place.sessions).rglob("*.jsonl"):
        text = path.read_text()
        tasks = {task for task in TASKS if task in text}
        if "All begun." not in text and tasks:
            (task,) = tasks  # nothing of another agent
            found[task] = text
    return found


@left_to_more
def test_ten_agents_survive_a_kill_and_are_resumed_each_from_its_own_session(
    place: Place, provider: Provider
):
    place.trust()
    (place.here / "file").write_text("so that this is a project\n")
    play(provider, is_done=False)
    with Terminal(place, *GIVEN, env=provider.env, size=(120, 40)) as terminal:
        terminal.wait_for("idle")
        terminal.type("go\r")
        terminal.wait_for("All begun.")
        terminal.wait_until(lambda: len(own_sessions(place)) == len(TASKS), "the sessions of the agents")
        terminal.process.send_signal(signal.SIGKILL)
        terminal.wait_for_end(with_others=False)
    provider.over.set()
    records = list(place.here.parent.rglob("state/swink/agents/*.json"))
    assert len(records) == len(TASKS)
    play(provider, is_done=True)
    with Terminal(place, *GIVEN, "--continue", env=provider.env, size=(120, 40)) as terminal:
        terminal.wait_for("was interrupted", "idle")
        terminal.type("/agents resume 3\r")
        terminal.wait_for("Thanks for the report.")
        terminal.type("/agents resume 7\r")
        terminal.wait_until(lambda: len(reported(place)) == 2, "the second report")
        terminal.press("ctrl+q")
        terminal.wait_for_end(with_others=False)
    for task, text in own_sessions(place).items():
        assert (f"report on {task}" in text) == (task in reported(place))
        assert len(re.findall(r"report on dig", text)) <= 1
    assert len(list(place.here.parent.rglob("state/swink/agents/*.json"))) == len(TASKS) - 2


def reported(place: Place) -> list[str]:
    return [task for task, text in own_sessions(place).items() if f"report on {task}" in text]
