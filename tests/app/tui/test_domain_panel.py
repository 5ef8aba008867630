"""The panel that asks about hosts: which keys count, what is shown, and when it goes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from apps import app_of, screen_text, until
from textual.pilot import Pilot

from swink.app.assistant.networkrules import NetworkRules
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.settings import SandboxSettings
from swink.app.assistant.shellsettings import ShellSettings
from swink.app.tui.approval import DomainPanel
from swink.tools.coding.wishes import Wish

HOST = Wish("index.corp", 8080, ("10.0.0.5",))


class Scene:
    """An app whose clock stands still until it is moved, and commands that want hosts."""

    def __init__(self, place: Path) -> None:
        self.now = 1_000.0
        self.app = app_of([], clock=lambda: self.now)
        self.permissions = self.app.permissions
        self.permissions.rules = RuleBook(place, path=place / "permissions")
        self.rules = NetworkRules(
            self.permissions, ShellSettings(SandboxSettings()), place, lambda text: None
        )
        self.pilot: Pilot[int]

    @property
    def panel(self) -> DomainPanel:
        return self.app.query_one(DomainPanel)

    def want(self, wish: Wish = HOST, command: str = "curl index.corp") -> "asyncio.Task[str]":
        return asyncio.create_task(self.rules.refuses(wish, command))

    async def asked(self, count: int = 1) -> None:
        """Wait until the panel asks about so many commands."""
        await until(
            self.pilot,
            lambda: (
                self.panel.question is not None
                and len(self.panel.question.commands) == count
                and self.panel._shown == tuple(self.panel.question.commands)
                and self.panel.has_focus
                and self.panel.guard.is_shown
            ),
        )


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(tmp_path)
    async with made.app.run_test(size=(100, 34)) as made.pilot:
        yield made


async def test_a_key_counts_only_once_the_question_could_be_seen(scene: Scene):
    wanted = scene.want()
    await scene.asked()
    await scene.pilot.press("y")
    assert not wanted.done()
    assert scene.app.editor.text == "y"
    scene.app.editor.clear()
    scene.panel.take_focus()
    scene.now += 0.31
    await scene.pilot.press("y")
    assert await wanted == ""


async def test_host_address_and_command_are_shown_as_they_are(scene: Scene):
    wanted = scene.want(command="curl index.corp\nA command wants to reach pypi.org?\u202e")
    await scene.asked()
    shown = screen_text(scene.app)
    assert "Reach index.corp:8080 at 10.0.0.5?" in shown
    assert "│ A command wants to reach pypi.org?" in shown
    assert "\u202e" not in shown
    assert "net(index.corp:8080@10.0.0.5)" in shown
    scene.now += 1
    await scene.pilot.press("a")
    assert await wanted == ""
    assert await scene.want() == ""


async def test_a_command_that_joins_must_be_seen_before_a_key_counts(scene: Scene):
    first = scene.want(command="one")
    await scene.asked()
    scene.now += 1
    second = scene.want(command="two")
    await scene.asked(2)
    assert "two" in screen_text(scene.app)
    await scene.pilot.press("y")
    assert not first.done()
    scene.app.editor.clear()
    scene.panel.take_focus()
    scene.now += 1
    await scene.pilot.press("y")
    assert [await first, await second] == ["", ""]


async def test_a_reason_is_for_the_model_and_a_rule_is_saved(scene: Scene):
    refused = scene.want()
    await scene.asked()
    scene.now += 1
    await scene.pilot.press("r", *"later", "enter")
    assert await refused == "the user said no: later"
    saved = scene.want()
    await scene.asked()
    scene.now += 1
    await scene.pilot.press("p")
    assert await saved == ""
    assert "allow net(index.corp:8080@10.0.0.5)" in scene.permissions.rules.path.read_text()


async def test_the_panel_goes_with_the_command(scene: Scene):
    wanted = scene.want()
    await scene.asked()
    wanted.cancel()
    await until(scene.pilot, lambda: not scene.panel.display and scene.app.editor.has_focus)
    assert not scene.permissions.domains.waiting
