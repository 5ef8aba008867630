"""The agent is killed, or its editor is: at every kind of step, what was saved is there and no tool runs twice."""

import os
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import STALL, Call, Place, Provider
from editor_process import Process
from tests.counts import left_to_more
from tests.patience import wait_until

RUN = Call("bash", command="echo once >> counter; echo started")
HANG = Call("bash", command="echo once >> counter; sleep 60")


class Step(NamedTuple):
    """What the model says before the kill, how often it was asked by then, and what it had done."""

    replies: list[Any]
    approve: str = "off"
    asked: int = 1
    ran: bool = False


STEPS = {
    "a reply arrives": Step([["half ", STALL]]),
    "the model is asked": Step([[STALL]]),
    "a call is asked about": Step([[RUN]], approve="on"),
    "a tool runs": Step([[HANG]], ran=True),
    "a tool has ended": Step([[RUN], [STALL]], asked=2, ran=True),
    "the turn has ended": Step([["First."]]),
}


def wait_for_step(agent: Process, place: Place, provider: Provider, name: str) -> None:
    match name:
        case "a reply arrives":
            while "half" not in agent.words():
                agent.read()
        case "a call is asked about":
            while agent.read().get("method") != "session/request_permission":
                pass
            wait_until(lambda: is_kept(place, '"type":"approval"'))
        case "the turn has ended":
            while "result" not in agent.read():
                pass
        case "a tool runs":
            wait_until(lambda: counted(place.here) == 1)
        case _:
            wait_until(lambda: len(provider.requests) == STEPS[name].asked)


def is_kept(place: Place, text: str) -> bool:
    """Whether it is in a saved session."""
    return any(text in path.read_text() for path in place.sessions.rglob("*.jsonl"))


def counted(here: Path) -> int:
    """How often the command ran."""
    path = here / "counter"
    return len(path.read_text().splitlines()) if path.exists() else 0


def say(agent: Process, session: str, text: str) -> dict[str, Any]:
    """The answer to a prompt, in which whatever is asked is allowed."""
    number = agent.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
    while (frame := agent.read()).get("id") != number or "method" in frame:
        if frame.get("method") == "session/request_permission":
            agent.answer(frame["id"], {"outcome": {"outcome": "selected", "optionId": "y"}})
    return frame


def look_again(place: Place, provider: Provider, session: str, *, approve: str, runs: int) -> None:
    """Open the session anew, go on with it, and see that all is there and nothing was done twice."""
    provider.replies = [["Finished."]]
    again = Process(place, "--approve", approve, env=provider.env)
    again.load(place, session)
    assert again.words("user_message_chunk") == "Do it"
    was_answered = "First." in again.words()
    answer = say(again, session, "/continue")
    if was_answered:
        assert "nothing to continue" in answer["error"]["message"]
        answer = say(again, session, "Go on")
    assert answer["result"]["stopReason"] == "end_turn"
    assert again.words().rstrip().endswith("Finished.")
    assert counted(place.here) == runs
    again.leave()


@left_to_more
@pytest.mark.parametrize("name", STEPS)
def test_an_agent_that_is_killed_loses_nothing_and_runs_nothing_twice(
    place: Place, provider: Provider, name: str
):
    place.trust()
    step = STEPS[name]
    provider.replies = [*step.replies]
    agent = Process(place, "--approve", step.approve, env=provider.env)
    session = agent.open(place)
    agent.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Do it"}])
    wait_for_step(agent, place, provider, name)
    agent.process.kill()
    agent.process.wait()
    runs = 1 if step.ran or step.approve == "on" else 0  # what waited for approval runs when it is allowed
    look_again(place, provider, session, approve=step.approve, runs=runs)


@left_to_more
@pytest.mark.parametrize("name", STEPS)
def test_an_editor_that_is_killed_takes_the_agent_with_it_and_loses_nothing(
    place: Place, provider: Provider, name: str
):
    place.trust()
    step = STEPS[name]
    provider.replies = [*step.replies]
    relay = (sys.executable, str(Path(__file__).with_name("relay.py")))
    agent = Process(place, "--approve", step.approve, env=provider.env, within=relay)
    assert agent.process.stdout is not None
    pid = int(agent.process.stdout.readline())
    session = agent.open(place)
    agent.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Do it"}])
    wait_for_step(agent, place, provider, name)
    agent.process.send_signal(signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}") or _is_dead(pid))
    runs = 1 if step.ran else 0  # a question that nobody answers is a no
    look_again(place, provider, session, approve=step.approve, runs=runs)


def _is_dead(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
