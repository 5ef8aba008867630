"""The scenes of the web doors over the OpenAI door, by both of OpenAI's packages: chat and responses, whole and streamed."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from tests.counts import left_to_more
from tests.serve.openai_scenes import play_in_python
from tests.serve.served import serving
from tests.serve.webscenes import DOOR_TOOL, MODULES, SCENES, Town, ask_node

from swink import Agent
from swink.memory import MemoryStore
from swink.messages import Image
from swink.serve.agentapp import agent_app
from swink.serve.hosting import AgentRequest
from swink.serve.openai.door import NOT_HERE
from swink.stream import Start, TextDelta, TextStart
from swink.testing import ScriptedModel

TOWN = msgspec.json.schema(Town)["$defs"]["Town"]
WAYS = ["chat.whole", "chat.streamed", "responses.whole", "responses.streamed"]
PLAYED = [f"{way}.{name}" for way in WAYS for name in SCENES if name != "aborted" or way.endswith("streamed")]
DAILY = [
    "chat.streamed.text",
    "responses.streamed.tools",
    "chat.streamed.approved",
    "responses.streamed.aborted",
]


class Left:
    """A model that says something and then waits until its run is ended."""

    def __init__(self) -> None:
        self.has_ended = asyncio.Event()
        self.calls: list[Any] = []

    async def __call__(self, model: Any, context: Any, options: Any) -> Any:
        try:
            yield Start()
            yield TextStart(0)
            yield TextDelta(0, "par")
            await asyncio.Event().wait()
        finally:
            self.has_ended.set()


def asked_of(id: str) -> dict[str, Any]:
    name = id.rpartition(".")[2]
    scene = SCENES[name]
    return {
        "id": id,
        "steps": scene.steps,
        "tools": [DOOR_TOOL] if scene.client_tools else [],
        "schema": TOWN if name == "structured" else None,
        "leaves": name == "aborted",
    }


async def play(language: str, ids: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the clients saw, and the models that they talked to. A key names the scene that is played."""
    models: dict[str, Any] = {}

    def make(request: AgentRequest) -> Agent[Any, Any]:
        id = request.caller.name
        scene = SCENES[id.rpartition(".")[2]]
        if id not in models:
            models[id] = Left() if id.endswith("aborted") else ScriptedModel(scene.script)
        return Agent("test:m", stream_fn=models[id], **scene.agent())

    app = agent_app(make, store=MemoryStore(), protocols=["openai"], authorize=lambda request: request.token)
    async with serving(app) as client:
        scenes = [asked_of(id) for id in ids]
        asked = {"url": str(client.base_url).rstrip("/"), "modules": str(MODULES), "scenes": scenes}
        if language == "python":
            played = await play_in_python(asked)
        else:
            played = await ask_node("openai_scenes_judge.mjs", asked)
        async with asyncio.timeout(20):
            for model in models.values():
                if isinstance(model, Left):
                    await model.has_ended.wait()
    return played, models


def played_in(language: str, ids: list[str]) -> Any:
    if language == "node" and not (MODULES / "openai").exists():
        pytest.skip("the npm package openai is not installed; .ci/run brings it")
    return asyncio.run(play(language, ids))


@pytest.fixture(scope="module")
def some() -> Any:
    return played_in("python", DAILY)


@pytest.mark.parametrize("id", DAILY)
def test_the_published_client_plays_the_scene(some: Any, id: str):
    played, models = some
    check(id, played[id], models[id].calls)


@pytest.fixture(scope="module", params=["python", "node"])
def all_of_them(request: pytest.FixtureRequest) -> Any:
    return played_in(request.param, PLAYED)


@left_to_more
@pytest.mark.parametrize("id", PLAYED)
def test_the_published_clients_play_every_scene(all_of_them: Any, id: str):
    played, models = all_of_them
    check(id, played[id], models[id].calls)


def check(id: str, steps: list[Any], calls: list[Any]) -> None:
    """What the client saw of a scene: the texts of all turns, and nothing of what stays inside."""
    door, way, name = id.split(".")
    between = "\n\n" if door == "chat" else ""
    texts = [step["text"] for step in steps]
    failed = [step.get("error") for step in steps]
    told = [message.text for call in calls for message in call.messages]
    is_streamed = way == "streamed"
    match name:
        case "error":
            assert "the model is gone (choose another model)" in failed[0]
            assert texts == ["So far" if is_streamed else ""]
            return
        case "aborted":
            assert texts == ["par"]
            return
        case "retried" if is_streamed:
            assert "ask again" in failed[0]
            assert (texts[1], failed[1]) == ("Lyon.", None)
            return
        case "tools":
            assert texts == [f"Both: {between}Done.", "Again."]
        case "approved":
            assert texts == [f"May I? {between}Gone.", "Yes."]
        case "rejected":
            assert texts == [f"May I? {between}Kept."]
        case "structured":
            assert json.loads(texts[0]) == {"name": "Paris", "people": 2_000_000}
        case "client_tools":
            assert texts == ["", "It is open."]
        case _:
            assert texts == SCENES[name].texts
    assert failed == [None] * len(steps)
    finishes = ["tool_calls", "stop"] if name == "client_tools" else ["stop"] * len(steps)
    assert [step["finish"] for step in steps] == finishes
    assert all(step["tokens"] > 0 for step in steps)
    assert [step["thinking"] for step in steps] == ["a river" if name == "thinking" else ""] * len(steps)
    match name:
        case "approved" | "rejected":
            assert any(NOT_HERE in text for text in told)
            assert "deleted a.txt" not in told
        case "client_tools":
            (call,) = steps[0]["calls"]
            assert (call["name"], json.loads(call["arguments"])) == ("open_door", {"door": 2})
            assert told[-1] == "opened"
        case "images":
            assert any(isinstance(block, Image) for block in calls[0].messages[0].content)
        case "fresh":
            assert [message.text for message in calls[-1].messages] == ["Second"]
        case _:
            assert not any(step["calls"] for step in steps)
