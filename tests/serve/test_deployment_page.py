"""docs/library/deployment.md: who is let in behind a proxy, the probes, the timeouts and the commands that it names."""

import asyncio
import re
import shlex
from hashlib import sha256
from typing import Any

import httpx
import pytest
from tests.later import Later
from tests.pages import FENCE, ROOT
from tests.serve.served import Client, served

from swink import Agent
from swink.app.cli.commands import parse_arguments
from swink.errors import SessionError
from swink.memory import MemoryStore
from swink.serve import ServeLimits, agent_app
from swink.testing import Pause, ScriptedModel

uvicorn = Later("uvicorn")

PAGE = (ROOT / "docs" / "library" / "deployment.md").read_text("utf-8")
BLOCKS = {match["language"]: match["code"] for match in FENCE.finditer(PAGE)}
PROXIED = {"Host": "agents.example"}


def caller_of(request: Any) -> str | None:
    return "ada" if request.token == "token" else None


async def test_behind_a_proxy_of_this_machine_the_agent_is_open_to_all_without_authorize():
    async with served([], hosts=["agents.example"]) as client:
        assert (await client.get("/conversations", headers=PROXIED)).status_code == 200
    async with served([], hosts=["agents.example"], authorize=caller_of) as client:
        assert (await client.get("/conversations", headers=PROXIED)).status_code == 401


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded"])
async def test_a_proxy_that_says_for_whom_it_asks_is_refused_without_authorize(header: str):
    sent = {**PROXIED, header: "for=192.0.2.1"}
    async with served([], hosts=["agents.example"]) as client:
        refused = await client.get("/conversations", headers=sent)
        assert refused.status_code == 403
        assert "authorize=" in refused.text
    async with served([], hosts=["agents.example"], authorize=caller_of) as client:
        let_in = {**sent, "Authorization": "Bearer token"}
        assert (await client.get("/conversations", headers=let_in)).status_code == 200


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"hosts": ["agents.example", "b.example"]}, 1),
        ({"hosts": ["agents.example"], "authorize": caller_of}, 0),
        ({}, 0),
    ],
)
def test_a_proxy_that_is_named_without_authorize_is_warned_of(
    options: Any, told: int, caplog: pytest.LogCaptureFixture
):
    agent_app(lambda request: Agent("test:m"), store=MemoryStore(), **options)
    said = [record.getMessage() for record in caplog.records if record.name == "swink.serve"]
    assert len(said) == told
    assert all("agents.example, b.example" in each and "authorize=" in each for each in said)


async def test_the_function_of_the_page_knows_callers_by_the_hashes_of_their_tokens(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(BLOCKS["python"], names)
    names["CALLERS"][sha256(b"secret").hexdigest()] = "ada"
    async with served([], authorize=names["authorize"]) as client:
        sent = [{"Authorization": f"Bearer {token}"} for token in ("secret", "other")]
        found = [(await client.get("/conversations", headers=each)).status_code for each in (*sent, {})]
    assert found == [200, 401, 401]


class Unreadable(MemoryStore):
    """A store whose database is gone."""

    async def list(self, *arguments: Any, **options: Any) -> Any:
        raise SessionError("the database cannot be reached")


async def test_the_probes_of_the_page_tell_what_it_says():
    token = {"Authorization": "Bearer token"}
    async with served([], authorize=caller_of, store=Unreadable()) as client:
        assert (await client.get("/openapi.json")).status_code == 401
        assert (await client.get("/nothing")).status_code == 401
        assert (await client.get("/openapi.json", headers=token)).status_code == 200
        assert (await client.get("/conversations?limit=1", headers=token)).status_code == 500
    async with served([], authorize=caller_of) as client:
        assert (await client.get("/conversations?limit=1", headers=token)).status_code == 200


def test_the_times_and_sizes_of_the_page_fit_the_limits():
    limits = ServeLimits()
    nginx, unit = BLOCKS["nginx"], BLOCKS["ini"]
    assert f"client_max_body_size {limits.body // 2**20}m;" in nginx
    assert f"{limits.body // 2**20} MiB (`ServeLimits.body`)" in PAGE
    assert f"`ServeLimits.shutdown_seconds` ({limits.shutdown_seconds:.0f})" in PAGE
    assert f"`ServeLimits.lease_seconds` ({limits.lease_seconds:.0f})" in PAGE
    assert number_behind("proxy_read_timeout ", nginx) > limits.silence_seconds
    assert number_behind("TimeoutStopSec=", unit) > limits.shutdown_seconds + 5
    assert number_behind("--stop-timeout ", BLOCKS["sh"]) > limits.shutdown_seconds + 5


def test_the_commands_of_the_unit_and_of_the_container_are_understood():
    started = shlex.split(re.findall(r"^ExecStart=\S+/swink (.*)$", BLOCKS["ini"], re.MULTILINE)[0])
    contained = re.findall(r'"([^"]+)"', BLOCKS["dockerfile"].partition("CMD")[2])
    assert contained[0] == "swink"
    assert parse_arguments(started).allow_host == ["agents.example"]
    assert parse_arguments(contained[1:]).host == "0.0.0.0"


async def test_uvicorn_with_the_option_of_the_page_stops_while_somebody_reads_a_stream():
    assert "--timeout-graceful-shutdown 5`" in PAGE
    model = ScriptedModel([["Par", Pause(60)]])
    limits = ServeLimits(shutdown_seconds=0.1)
    app = agent_app(lambda request: Agent("test:m", stream_fn=model), store=MemoryStore(), limits=limits)
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        id = await client.begin()
        run = await client.start(id)
        with pytest.raises(httpx.RemoteProtocolError):
            async for _, event in client.stream_events(id, run):
                if event["type"] == "message_update":
                    server.should_exit = True
        await asyncio.wait_for(serving, 20)
    kept = (await app.host.store.open(id)).messages
    assert [message.role for message in kept] == ["user", "assistant"]
    assert kept[1].text == "Par"


def number_behind(name: str, text: str) -> float:
    return float(re.findall(rf"{re.escape(name)}(\d+)", text)[0])
