"""`swink rpc` as the coding agent of a folder: its tools, its rules, its questions to the program."""

import json
import subprocess
import sys
from typing import Any

import pytest
from command_line import Call, Place, Provider, Screen
from tests.counts import left_to_more


def ask(process: "subprocess.Popen[bytes]", method: str, **params: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n"
    )
    process.stdin.flush()


@pytest.mark.more
def test_the_coding_agent_asks_the_program_and_changes_what_that_allows(place: Place, provider: Provider):
    provider.replies = [
        [Call("write_file", path="a.txt", content="written\n")],
        [Call("write_file", path="b.txt", content="written\n")],
        ["Done."],
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "swink", "rpc", "-m", "openai:m", "--approve", "on"], cwd=place.here,
        env={**place.environ, **provider.env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    ask(process, "run", input="Write.")
    answers, seen = [True, False], list[str]()
    while "result" not in seen:
        message = json.loads(process.stdout.readline())
        event = message.get("params", {}).get("event", {"type": "answer"})
        seen.append(event["type"])
        if event["type"] == "approval_requested":
            ask(process, "approve", call_id=event["call_id"], approved=answers.pop(0))
    assert event["text"] == "Done."
    ask(process, "sessions.list")
    [session] = json.loads(process.stdout.readline())["result"]["sessions"]
    assert session["title"] == "Write."
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert (place.here / "a.txt").read_text() == "written\n"
    assert not (place.here / "b.txt").exists()


@pytest.mark.more
def test_a_run_waits_for_the_report_of_its_background_agent(place: Place, provider: Provider):
    provider.replies = [
        [Call("task", task="dig", background=True)],
        ["A coin."],  # the agent, and the run itself: whoever asks first
        ["A coin."],
        ["It is a coin."],
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "swink", "rpc", "-m", "openai:m", "--approve", "off"], cwd=place.here,
        env={**place.environ, **provider.env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    ask(process, "run", input="Go.")
    event: dict[str, Any] = {}
    while event.get("type") != "result":
        event = json.loads(process.stdout.readline()).get("params", {}).get("event", {})
    process.communicate(timeout=30)
    assert event["text"] == "It is a coin."


def without_chance(line: str) -> Any:
    """An event without what differs from run to run: times and ids."""
    event = json.loads(line)

    def strip(value: Any) -> Any:
        match value:
            case dict():
                return {
                    key: "…" if key in ("timestamp", "session", "duration") else strip(each)
                    for key, each in value.items()
                }
            case list():
                return [strip(each) for each in value]
            case _:
                return value

    return strip(event)


@pytest.mark.more
def test_the_events_are_those_of_a_run_with_output_json(place: Place, provider: Provider):
    said = [["Look:", Call("read_file", path="a.txt")], [Call("nothing")], ["It says one."]]
    (place.here / "a.txt").write_text("one\n")
    arguments = ("-m", "openai:m", "--approve", "off")
    provider.replies = [*said]
    ended = place.swink("run", "--coding", "--output", "json", *arguments, "Read it.", env=provider.env)
    wanted = [without_chance(line) for line in ended.out.splitlines()]
    provider.replies = [*said]
    process = subprocess.Popen(
        [sys.executable, "-m", "swink", "rpc", *arguments], cwd=place.here,
        env={**place.environ, **provider.env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    ask(process, "run", input="Read it.")
    events: list[Any] = []
    while not events or events[-1]["type"] != "result":
        message = json.loads(process.stdout.readline())
        events += [message["params"]["event"]] if "params" in message else []
    process.communicate(timeout=30)
    assert {event["type"] for event in events} >= {"message_update", "tool_execution_end", "result"}
    told = [without_chance(json.dumps(event)) for event in events]
    assert told == wanted


@left_to_more
@pytest.mark.parametrize("arguments", [["rpc"], ["acp"], ["mcp", "serve", "agents:make"]])
def test_a_person_who_starts_it_in_a_terminal_is_told_who_talks_to_it(place: Place, arguments: list[str]):
    place.write("agents.py", "from swink import Agent\n\ndef make():\n    return Agent('local:x')\n")
    screen = Screen(place, *arguments)
    screen.wait_for(f"starts swink {arguments[0]}")
    screen.type("\x03")
    screen.wait_for_end()
