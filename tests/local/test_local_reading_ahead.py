"""Reading ahead: what every prompt begins with is read before the first one, which waits for it if it is quick."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from talking import CALCULATE, WEATHER, ask
from tests.counts import left_to_more

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.trust import Trust
from swink.app.tui import ConversationDriver
from swink.local import LocalStreamFn
from swink.local.llamacpp import physical_cores
from swink.local.model import LocalModel
from swink.messages import ModelSpec, UserMessage
from swink.stream import LlmContext, PromptProgress, StreamOptions

SYSTEM = "You are an agent that answers in one word, never in two, and works in a small folder. " * 4
TOOLS = (WEATHER, CALCULATE)
pytestmark = pytest.mark.timeout(400)
"""Threads of a model that wait for each other take many times longer where others want the cores too."""


class Scene:
    """A model that has just been started, and its agent's beginning."""

    def __init__(self, weights: Path) -> None:
        self.function = LocalStreamFn(context=1024, threads=physical_cores())
        self.spec = ModelSpec("local", str(weights))
        self.told: list[tuple[int, int]] = []

    @property
    def model(self) -> LocalModel:
        return self.function.model(self.spec.model_id)

    async def read(self, progress: Any = None) -> None:
        context = LlmContext(SYSTEM, (), TOOLS)
        await self.function.read_ahead(self.spec, context, progress or (lambda *far: self.told.append(far)))

    async def begun(self) -> "asyncio.Task[None]":
        """A task that is in the middle of reading."""
        task = asyncio.create_task(self.read())
        while not self.told:
            assert not task.done(), task
            await asyncio.sleep(0.001)
        return task

    async def prompt(self, text: str = "Hi") -> Any:
        return (await ask(self.function, text, system=SYSTEM, tools=TOOLS, spec=self.spec, max_tokens=2))[
            1
        ].usage

    async def idle(self) -> None:
        async with asyncio.timeout(30):
            while self.model.generating:
                await asyncio.sleep(0.001)


@pytest.fixture
def scene(weights: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.delenv("SWINK_LOCAL_STATES")
    scene = Scene(weights)
    yield scene
    scene.model.unload()


@left_to_more
async def test_the_first_prompt_reads_only_its_own_words_and_so_does_that_of_a_later_start(
    scene: Scene, own_cache: Path
):
    await scene.read()
    done, total = scene.told[-1]
    assert 64 < done <= total
    assert [far for far, _ in scene.told] == sorted({far for far, _ in scene.told})
    usage = await scene.prompt()
    assert usage.cache_read > 64
    assert usage.input < 20
    async with asyncio.timeout(20):
        while not list((own_cache / "states").glob("*.state")):
            await asyncio.sleep(0.01)
    scene.model.unload()
    scene.told.clear()
    await scene.read()
    assert scene.told == []  # it came from the disk
    assert (await scene.prompt("Ho")).input < 20


@left_to_more
async def test_a_prompt_that_comes_meanwhile_waits_for_it_and_tells_how_far_it_is(scene: Scene):
    reading = await scene.begun()
    context = LlmContext(SYSTEM, [UserMessage("Hi")], TOOLS)
    options = StreamOptions(max_tokens=2)
    events = [event async for event in scene.function(scene.spec, context, options)]
    assert reading.done()
    far = [event.done for event in events if isinstance(event, PromptProgress)]
    assert far
    assert far == sorted(far)
    assert events[-1].usage.cache_read > 64
    await reading


@left_to_more
async def test_a_prompt_that_waits_is_aborted_at_once_and_the_reading_goes_on(scene: Scene):
    reading = await scene.begun()
    waiting = asyncio.create_task(scene.prompt())
    while scene.model.generating < 2:
        await asyncio.sleep(0.001)
    waiting.cancel()
    await asyncio.wait([waiting])
    while scene.model.generating > 1:  # the reading alone is left
        await asyncio.sleep(0.001)
    await reading
    assert (await scene.prompt()).cache_read > 64


@left_to_more
async def test_a_reading_that_is_cancelled_stops_and_the_prompt_that_waited_reads_itself(scene: Scene):
    reading = await scene.begun()
    waiting = asyncio.create_task(scene.prompt())
    while scene.model.generating < 2:
        await asyncio.sleep(0.001)
    reading.cancel()
    await asyncio.wait([reading])
    usage = await waiting
    assert usage.input + usage.cache_read > 64
    await scene.idle()


@left_to_more
async def test_a_reading_that_is_cancelled_leaves_no_thread_and_no_file(scene: Scene, own_cache: Path):
    reading = await scene.begun()
    reading.cancel()
    await asyncio.wait([reading])
    await scene.idle()
    assert not list((own_cache / "states").glob("*"))


@left_to_more
async def test_a_model_that_is_unloaded_meanwhile_ends_it_with_an_error(scene: Scene):
    reading = await scene.begun()
    scene.model.unload()
    with pytest.raises(Exception, match="unloaded while it was answering"):
        await reading


async def test_where_no_states_are_kept_nothing_is_read(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWINK_LOCAL_STATES", "off")
    await scene.read()
    assert scene.told == []


@left_to_more
async def test_what_is_read_ahead_is_what_the_assistant_asks_with(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "folder"
    folder.mkdir()
    environment = AgentEnvironment(folder, Trust(folder, "trusted"), UserSettings(tmp_path / "config.toml"))
    driver = ConversationDriver(environment.make_agent(scene.spec, stream_fn=scene.function))
    await environment.open()
    try:
        context = LlmContext(await driver.system_prompt(), (), await driver.tools())
        await scene.function.read_ahead(scene.spec, context, lambda *far: scene.told.append(far))
        assert scene.told[-1][0] > 300
        usage = (await driver.agent.run("Hello!")).usage
        assert usage.cache_read > 300
        assert usage.input < 40
    finally:
        await driver.close()
        await environment.aclose()
