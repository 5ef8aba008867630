"""The servers: a local model over other protocols, and the proxy for holders of a token."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from command_line import KEY, Place, Provider
from tests.counts import cell_of_more, left_to_more

from swink import Agent
from swink.app.cli.agentserving import as_factory
from swink.app.cli.serving import load_tokens, stream_fns_for
from swink.errors import MisuseError
from swink.memory import MemoryStore
from swink.serve import agent_app

TOKEN = "a-token-of-some-length"


@contextmanager
def running(
    place: Place, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A server that has to end by itself, with 0, when it is told to."""
    process = place.start(*arguments, env=env)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err.endswith(b"swink: stopped\n")
    assert b"Traceback" not in err


def first_url(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    found = re.search(r"http://\S+", line)
    assert found is not None, line
    return found[0]


@left_to_more
def test_a_served_model_answers_like_openai(place: Place, weights: Path):
    with running(place, "serve", "model", "--port", "0", "--context", "1024") as process:
        env = {"OPENAI_BASE_URL": first_url(process)}
        done = place.swink(
            "run", "--model", "openai:smollm2-135m", "--max-tokens", "8", "Say hello.", env=env
        )
        assert done.code == 0, done
        assert done.out.strip()


def test_a_model_is_served_to_the_network_only_with_a_key(place: Place):
    done = place.swink("serve", "model", "--host", "0.0.0.0")
    assert done.code == 2
    assert "set SWINK_SERVE_KEY" in done.err


SERVED = """
from swink import Agent
from swink.testing import ScriptedModel

model = ScriptedModel(["Paris."] * 9)


def make(request):
    return Agent("test:m", stream_fn=model)
"""


def test_an_agent_is_served_and_keeps_its_conversations_in_the_store(place: Place):
    place.write("served_agents.py", SERVED)
    arguments = ("serve", "agent", "served_agents:make", "--port", "0", "--store", "sqlite:served.db")
    with running(place, *arguments) as process:
        url = first_url(process)
        assert httpx.get(url).status_code == 404, "it has no page unless that is asked for"
        id = httpx.post(f"{url}/conversations", json={}).json()["id"]
        runs = f"{url}/conversations/{id}/runs"
        run = httpx.post(runs, json={"input": "Capital of France?"}).json()["run_id"]
        assert "agent_end" in httpx.get(f"{runs}/{run}/events").text
    with running(place, *arguments) as process:
        said = httpx.get(f"{first_url(process)}/conversations/{id}/messages").json()
    assert [message["content"][0]["text"] for message in said["messages"]] == ["Capital of France?", "Paris."]


@left_to_more
def test_a_served_agent_has_a_page_if_that_is_asked_for(place: Place):
    place.write("served_agents.py", SERVED)
    arguments = ("serve", "agent", "served_agents:make", "--port", "0", "--store", "memory:")
    with running(place, *arguments, "--page") as process:
        answer = httpx.get(first_url(process))
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    with running(place, *arguments) as process:
        assert httpx.get(first_url(process)).status_code == 404


def test_where_a_token_is_needed_the_page_opens_once_by_its_address_and_sees_the_same_conversations(
    place: Place,
):
    place.write("served_agents.py", SERVED)
    arguments = ("serve", "agent", "served_agents:make", "--port", "0", "--store", "memory:", "--page")
    with running(place, *arguments, "--token", TOKEN) as process:
        address = first_url(process)
        url = address.partition("/?")[0]
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        id = httpx.post(f"{url}/conversations", json={}, headers=bearer).json()["id"]
        assert httpx.get(url).status_code == 401
        with httpx.Client() as browser:
            page = browser.get(address)
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
            listed = browser.get(f"{url}/conversations").json()
            assert [each["id"] for each in listed["conversations"]] == [id]
        assert httpx.get(address).status_code == 401


KILLED = """
import os
from swink import Agent, tool
from swink.messages import ToolCall
from swink.testing import Pause, ScriptedModel


@tool
async def note(text: str) -> str:
    "Write a line down."
    with open("notes.txt", "a") as file:
        file.write(text)
    return "noted"


def make(request):
    call = [] if os.path.exists("notes.txt") else [ToolCall("c1", "note", {"text": "once"})]
    reply = ["Paris."] if os.path.exists("killed") else ["Par", Pause(60)]
    return Agent("test:m", stream_fn=ScriptedModel([*call, reply]), tools=[note])
"""


@left_to_more
def test_a_run_goes_on_after_the_process_was_killed_and_nothing_is_told_twice(place: Place):
    place.write("served_agents.py", KILLED)
    arguments = ("serve", "agent", "served_agents:make", "--port", "0", "--store", "jsonl:served")
    process = place.start(*arguments)
    seen: list[tuple[int, Any]] = []
    try:
        path, url = begin_run(first_url(process))
        for number, event in events_of(url, 0):
            seen.append((number, event))
            if event["type"] == "message_update" and event["delta"].get("text") == "Par":
                break
    finally:
        process.kill()
        process.communicate(timeout=60)
    place.write("killed", "")
    with running(place, *arguments) as process:
        url = f"{first_url(process)}{path}/events"
        seen += list(events_of(url, seen[-1][0]))
        again = list(events_of(url, 0))
    numbers, events = [number for number, _ in seen], [event for _, event in seen]
    lost = [at for at, (one, next_one) in enumerate(pairwise(numbers), 1) if next_one != one + 1]
    assert numbers == sorted(set(numbers))
    names = [event["type"] for event in events]
    assert [names[at] for at in lost] == ["message_discarded"]  # numbers jump where a reply was lost
    assert [names.count(name) for name in ("agent_start", "agent_end", "message_discarded")] == [1, 1, 1]
    assert names.count("turn_start") == names.count("turn_end") == 2
    told = [event for event in events if event["type"] == "message_end"]
    assert [words(event["message"]) for event in told] == ["Capital of France?", "", "noted", "Paris."]
    assert [words(message) for message in events[-1]["messages"]] == [words(each["message"]) for each in told]
    assert (place.here / "notes.txt").read_text() == "once"
    assert [event for _, event in again if event["type"] == "message_end"] == told


@pytest.mark.parametrize("killed_after", [9, *map(cell_of_more, [*range(1, 9), *range(10, 16)])])
def test_a_process_may_be_killed_at_any_event(place: Place, killed_after: int):
    place.write("served_agents.py", KILLED)
    arguments = ("serve", "agent", "served_agents:make", "--port", "0", "--store", "jsonl:served")
    process = place.start(*arguments)
    try:
        path, url = begin_run(first_url(process))
        seen = list(islice(events_of(url, 0), killed_after))
    finally:
        process.kill()
        process.communicate(timeout=60)
    place.write("killed", "")
    with running(place, *arguments) as process:
        url = first_url(process)
        seen += list(events_of(f"{url}{path}/events", seen[-1][0]))
        kept = httpx.get(f"{url}{path.rpartition('/runs')[0]}/messages").json()["messages"]
    events = [event for _, event in seen]
    names = [event["type"] for event in events]
    assert names.count("agent_start") == names.count("agent_end") == 1
    assert names.count("message_start") == names.count("message_end")
    assert names.count("turn_start") == names.count("turn_end")
    assert [words(event["message"]) for event in events if event["type"] == "message_end"] == [
        words(message) for message in kept
    ]
    assert (place.here / "notes.txt").read_text() == "once"


def begin_run(url: str) -> tuple[str, str]:
    """The path of a run that has begun, and the URL of its events."""
    id = httpx.post(f"{url}/conversations", json={}).json()["id"]
    path = f"/conversations/{id}/runs"
    path += "/" + httpx.post(url + path, json={"input": "Capital of France?"}).json()["run_id"]
    return path, f"{url}{path}/events"


def events_of(url: str, after: int) -> Iterator[tuple[int, Any]]:
    number = 0
    with httpx.stream("GET", url, headers={"Last-Event-ID": str(after)}, timeout=60) as answer:
        for line in answer.iter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: "):
                yield number, json.loads(line[6:])


def words(message: Any) -> str:
    return "".join([block.get("text", "") for block in message["content"]])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "--token"),
        (("--token", "short"), "at least 8 characters"),
        (("--store", "mysql://u:secret-word@host/db"), "sqlite:FILE"),
    ],
)
def test_an_agent_is_not_served_to_just_anybody(place: Place, options: tuple[str, ...], said: str):
    place.write("served_agents.py", SERVED)
    done = place.swink("serve", "agent", "served_agents:make", *options)
    assert done.code == 2
    assert said in done.err
    assert "secret-word" not in done.err


def test_the_proxy_serves_holders_of_a_token_with_the_stored_key(place: Place, provider: Provider):
    assert place.swink("keys", "set", "openai", stdin=KEY).code == 0
    tokens = place.write("tokens.txt", f"# who may use what\n{TOKEN} openai:gpt-5 openai:gpt-4*\n")
    tokens.chmod(0o600)
    with running(
        place, "serve", "proxy", "--port", "0", "--tokens", str(tokens), env={"OPENAI_BASE_URL": provider.url}
    ) as process:
        client = {"SWINK_PROXY_URL": first_url(process), "SWINK_PROXY_TOKEN": TOKEN}
        allowed = place.swink("run", "--model", "proxy:openai:gpt-5", "hi", env=client)
        other_model = place.swink("run", "--model", "proxy:openai:o1", "hi", env=client)
        other_token = place.swink(
            "run", "--model", "proxy:openai:gpt-5", "hi", env={**client, "SWINK_PROXY_TOKEN": "another-token"}
        )
    assert (allowed.code, allowed.out) == (0, "Hello there.\n")
    assert provider.keys == [f"Bearer {KEY}"]
    assert other_model.code == other_token.code == 1
    assert "may not use openai:o1" in other_model.err
    assert "the key is that of SWINK_PROXY_TOKEN" in other_token.err


def test_a_port_that_is_taken_is_explained(place: Place, provider: Provider):
    port = provider.url.split(":")[2].split("/")[0]
    done = place.swink(
        "serve", "proxy", "--port", port, env={**provider.env, "SWINK_PROXY_TOKENS": f"{TOKEN} openai:*"}
    )
    assert done.code == 2
    assert f"127.0.0.1:{port} cannot be served" in done.err


def test_tokens_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWINK_PROXY_TOKENS", f"{TOKEN} openai:*, xai:grok-4; another-token local:*")
    assert load_tokens(None) == {TOKEN: ("openai:*", "xai:grok-4"), "another-token": ("local:*",)}


def test_a_proxy_without_tokens_is_refused_with_the_option_that_gives_them_and_an_example(place: Place):
    done = place.swink("serve", "proxy", "--port", "0")
    assert (done.code, done.out) == (2, "")
    assert '"SECRET anthropic:* openai:gpt-5" and start it with: swink serve proxy --tokens FILE' in done.err


@pytest.mark.parametrize("text", ["", "# nothing\n", "short openai:*\n", f"{TOKEN}\n", f"{TOKEN} gpt-5\n"])
def test_tokens_that_make_no_sense_are_refused_without_being_shown(tmp_path: Path, text: str):
    file = tmp_path / "tokens.txt"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(MisuseError) as raised:
        load_tokens(str(file))
    assert TOKEN not in str(raised.value)


def test_a_file_of_tokens_that_others_may_read_is_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "tokens.txt"
    file.write_text(f"{TOKEN} local:*\n")
    file.chmod(0o644)
    load_tokens(str(file))
    assert "chmod 600" in capsys.readouterr().err


def test_a_provider_without_a_key_is_not_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XAI_API_KEY", "x")
    for name in ("MISTRAL_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert "xai" in stream_fns_for({TOKEN: ("*",)})
    assert "mistral" not in stream_fns_for({TOKEN: ("*",)})
    with pytest.raises(MisuseError, match="swink keys set mistral"):
        stream_fns_for({TOKEN: ("mistral:*",)})
    with pytest.raises(
        MisuseError, match="a token may use nobody:…, but: unknown provider 'nobody'; swink models list"
    ):
        stream_fns_for({TOKEN: ("nobody:*",)})


def test_a_local_model_that_is_named_but_not_here_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path / "cache"))
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    assert list(stream_fns_for({TOKEN: (f"local:{own}", "local:*")})) == ["local"]
    for name in ("hf/owner/repo", f"{own}.not"):
        with pytest.raises(MisuseError, match="is not on this machine; get it with: swink models pull"):
            stream_fns_for({TOKEN: (f"local:{name}",)})


def test_an_application_named_in_place_of_the_function_is_refused_with_what_to_do():
    app = agent_app(lambda request: Agent("test:m"), store=MemoryStore())
    with pytest.raises(MisuseError, match="is an ASGI application: serve it with uvicorn"):
        as_factory(app)
