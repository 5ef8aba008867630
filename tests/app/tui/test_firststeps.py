"""First steps on the screen: trust, and a model to begin with."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apps import screen_text, until
from tests.counts import in_cells
from textual.widgets import Input

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.localfigures import read_figures
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import answer, look_up
from swink.app.tui import ConversationDriver, SwinkApp
from swink.app.tui.firststeps import load_ahead
from swink.app.tui.screens.help import Help
from swink.app.tui.screens.serverform import ServerForm
from swink.app.tui.screens.trustquestion import TrustQuestion
from swink.app.tui.screens.wizard import Wizard
from swink.errors import AuthError
from swink.local import LocalStreamFn
from swink.messages import ModelSpec
from swink.models import catalog
from swink.models.keys.store import stored_key
from swink.stream import LlmContext
from swink.testing import Pause, ScriptedModel

SIZE = (100, 30)


class Clock:
    """Time that passes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with instructions, and a home without anything."""
    for name, value in {
        "HOME": "home",
        "XDG_CONFIG_HOME": "config",
        "SWINK_SESSIONS_DIR": "sessions",
    }.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    project = tmp_path / "project"
    (project / ".swink" / "commands").mkdir(parents=True)
    (project / ".swink" / "commands" / "ship.md").write_text("Ship $ARGUMENTS.")
    (project / "AGENTS.md").write_text("Speak like a pirate.")
    return project


def app_in(
    project: Path, replies: Any = (), clock: Clock | None = None
) -> tuple[SwinkApp, AgentEnvironment, ScriptedModel]:
    environment = AgentEnvironment(project, look_up(project), load_settings())
    scripted, permissions = ScriptedModel(replies), Permissions()
    agent = environment.make_agent(
        ModelSpec("scripted", "model", context_window=200_000), approve=permissions, stream_fn=scripted
    )
    return (
        SwinkApp(ConversationDriver(agent, clock=clock or Clock()), permissions, environment=environment),
        environment,
        scripted,
    )


async def test_a_new_folder_is_asked_about_and_used_once_it_is_trusted(place: Path):
    clock = Clock()
    app, environment, scripted = app_in(place, ["Aye."], clock)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Do you trust the files" in screen_text(app))
        shown = screen_text(app)
        assert "Do you trust the files in this folder?" in shown
        assert "AGENTS.md, .swink/commands" in shown
        await pilot.press("y", "enter")  # too early to be an answer
        assert isinstance(app.screen, TrustQuestion)
        clock.now += 1.0
        await pilot.press("y")
        await until(pilot, lambda: "/ship" in environment.commands)
        assert look_up(place).is_trusted
        app.obey("/ship it now")
        await until(pilot, lambda: bool(scripted.calls) and not app.driver.is_running)
        assert "pirate" in scripted.calls[0].system_prompt
        assert scripted.calls[0].messages[0].text == "Ship it now."
        for command in ("/context", "/usage", "/mcp", "/agents", "/background", "#keys", "/reload"):
            app.obey(command)
        await until(
            pilot, lambda: "read again: 1 file of instructions, 1 command, 0 servers" in screen_text(app)
        )
        app.leave()


async def test_escape_leaves_the_folder_untrusted_for_now(place: Path):
    clock = Clock()
    app, environment, _ = app_in(place, (), clock)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Do you trust the files" in screen_text(app))
        clock.now += 1.0
        await pilot.press("escape")
        await until(pilot, lambda: "is not trusted" in screen_text(app))
        assert environment.commands == {}
        assert look_up(place).standing == "unasked"
        app.leave()


async def test_what_has_changed_is_shown_and_asked_about_at_the_start_and_at_a_reload(place: Path):
    answer(look_up(place), "y")
    (place / ".mcp.json").write_text('{"mcpServers": {"evil": {"command": "steal", "disabled": true}}}')
    clock = Clock()
    app, environment, _ = app_in(place, (), clock)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Enter takes" in screen_text(app))
        shown = screen_text(app)
        assert "You trust this folder, but have not seen this in it yet" in shown
        assert "new: server evil of .mcp.json: steal" in shown
        assert "every project below" not in shown
        clock.now += 1.0
        await pilot.press("a")  # is no answer here
        assert isinstance(app.screen, TrustQuestion)
        await pilot.press("y")
        await until(pilot, lambda: bool(environment.servers.states))
        (place / ".swink" / "commands" / "ship.md").write_text("Ship it to the thief.")
        app.obey("/reload")
        await until(pilot, lambda: "Enter takes" in screen_text(app))
        assert "changed: .swink/commands/ship.md" in screen_text(app)
        assert environment.commands["/ship"].text == "Ship $ARGUMENTS."
        clock.now += 1.0
        await pilot.press("n")
        await until(pilot, lambda: environment.commands == {})
        await until(pilot, lambda: not environment.servers.states)
        assert look_up(place).standing == "refused"
        app.leave()


async def test_many_changes_leave_room_for_the_answers(place: Path):
    answer(look_up(place), "y")
    for number in range(60):
        (place / ".swink" / "commands" / f"c{number}.md").write_text("x")
    app, _, _ = app_in(place)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Enter takes" in screen_text(app))
        shown = screen_text(app)
        assert "new: .swink/commands/c0.md" in shown
        assert "yes, as it is now" in shown
        assert "no, do not trust" in shown
        assert "and 40 more" not in shown
        await pilot.press("pagedown", "pagedown")
        await until(pilot, lambda: "and 40 more" in screen_text(app))
        app.leave()


@in_cells("way", ["usual", "escape", "other"], every=3)
async def test_the_wizard_takes_a_key_checks_it_and_remembers_the_model(
    tmp_path: Path, place: Path, way: str
):
    scripted = ScriptedModel([AuthError("invalid x-api-key sk-wrong-1"), "yes"])
    empty = tmp_path / "empty"
    empty.mkdir()
    app, environment, _ = app_in(empty)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: environment.instructions is not None)
        assert not isinstance(app.screen, TrustQuestion)  # nothing is there to be trusted
        chosen: list[str | None] = []
        app.push_screen(Wizard(stream_fn=scripted), chosen.append)
        await until(pilot, lambda: "The embedded model, now" in screen_text(app))
        assert "1.1 GB to fetch once, 2 minutes at 10 MB/s" in screen_text(app)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "Whose key is it?" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "The API key of anthropic" in screen_text(app))
        app.screen.query_one(Input).value = "sk-wrong-1"
        await pilot.press("enter")
        await until(pilot, lambda: "could not be checked" in screen_text(app))
        assert "invalid x-api-key" in screen_text(app)
        assert "sk-wrong-1" not in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.query_one(Input).display)
        app.screen.query_one(Input).value = "sk-right-2"
        await pilot.pause()
        assert "sk-right-2" not in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: "models of anthropic" in screen_text(app))
        await until(pilot, lambda: "● " in screen_text(app))
        assert "openai" not in screen_text(app)
        await pilot.press(*{"usual": ["enter"], "escape": ["escape"], "other": ["down", "enter"]}[way])
        await until(pilot, lambda: bool(chosen))
        model = "anthropic:claude-3-5-haiku-latest" if way == "other" else "anthropic:claude-sonnet-4-6"
        assert chosen == [model]
        assert scripted.options[1].api_key == "sk-right-2"
        assert stored_key("anthropic") == "sk-right-2"
        assert load_settings().default_model == model
        app.leave()


@in_cells("size", [(40, 24), (80, 24), (120, 40)], every=3)
async def test_the_wizard_shows_the_figures_of_the_local_models_as_measured(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
):
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path / "cache"))
    empty = tmp_path / "empty"
    empty.mkdir()
    app, environment, _ = app_in(empty)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: environment.instructions is not None)
        app.push_screen(Wizard())
        await until(pilot, lambda: "The embedded model, now" in screen_text(app))
        first = read_figures()[0]
        await until(pilot, lambda: f"{first.solved}/{first.tasks}" in screen_text(app))
        shown = screen_text(app)
        assert ("tok/s" in shown) == (size[0] >= 80)
        assert "Enter takes" in shown
        await pilot.press(*["pagedown"] * 4)
        await until(pilot, lambda: "prompts." in screen_text(app))
        assert "The embedded model, now" in screen_text(app)  # what can be taken stays in sight
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "Whose key is it?" in screen_text(app))
        assert f"{first.solved}/{first.tasks}" not in screen_text(app)
        app.leave()


FIELDS = ("mine", "openai", "http://localhost:8000/v1", "MY_KEY", "big, small")


async def test_the_wizard_takes_a_server_of_ones_own(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("_registered", "_models_of_others"):
        monkeypatch.setattr(catalog, name, {})
    empty = tmp_path / "empty"
    empty.mkdir()
    app, environment, _ = app_in(empty)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: environment.instructions is not None)
        chosen: list[str | None] = []
        app.push_screen(Wizard(), chosen.append)
        await until(pilot, lambda: "A server of my own" in screen_text(app))
        await pilot.press("up", "enter")
        await until(pilot, lambda: "Speaks like" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "Speaks like" not in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ServerForm) and len(app.screen.query(Input)) == 5)
        await pilot.press("tab", "tab", "tab", "tab", "enter")
        await until(pilot, lambda: "Name: nothing is written there" in screen_text(app))
        for field, text in zip(app.screen.query(Input), FIELDS, strict=True):
            field.value = text.replace("http", "ftp")
        await pilot.press("enter")
        await until(pilot, lambda: "begins with https://" in " ".join(screen_text(app).split()))
        assert not chosen
        app.screen.query_one("#base_url", Input).value = FIELDS[2]
        await pilot.press("enter")
        await until(pilot, lambda: bool(chosen))
        server = load_settings().providers["mine"]
        assert (server.kind, server.base_url, server.key_env) == FIELDS[1:4]
        assert server.models == ("big", "small")
        assert chosen == ["mine:big"]
        assert load_settings().default_model == "mine:big"
        app.leave()


async def test_escape_in_the_wizard_takes_the_embedded_model_and_remembers_it(tmp_path: Path, place: Path):
    empty = tmp_path / "empty"
    empty.mkdir()
    app, environment, _ = app_in(empty)
    environment.is_first_run = True
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "The embedded model, now" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: environment.instructions is not None)
        assert str(app.driver.agent.model) == "local:smollm2-135m"
        assert load_settings().default_model == "local:smollm2-135m"
        await until(pilot, lambda: "local:smollm2-135m  /model takes another" in screen_text(app))
        assert screen_text(app).count("/model takes another") == 1
        app.leave()


class Loader(LocalStreamFn):
    """Local models that are never done with being loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.began: list[str] = []
        self.stopped = False

    async def ready(self, model_id: str) -> None:
        self.began.append(model_id)
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped = True


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> Loader:
    monkeypatch.setattr(catalog, "_registered", {})
    loader = Loader()
    catalog.register_provider("local", lambda: loader)
    return loader


async def test_a_local_model_is_loaded_before_the_first_prompt_and_leaving_does_not_wait_for_it(
    tmp_path: Path, place: Path, loader: Loader
):
    empty, file = tmp_path / "empty", tmp_path / "model.gguf"
    empty.mkdir()
    file.write_bytes(b"GGUF")
    app, _, _ = app_in(empty)
    app.driver.switch(ModelSpec("local", str(file)))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: bool(loader.began))
        assert loader.began == [str(file)]
        assert "? or /help shows keys" in screen_text(app)
        app.leave()
    assert loader.stopped


class Reader(Loader):
    """Local models that are loaded at once, and never done with reading."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[LlmContext] = []

    async def ready(self, model_id: str) -> None:
        self.began.append(model_id)

    async def read_ahead(
        self, model: ModelSpec, context: LlmContext, progress: Callable[[int, int], None]
    ) -> None:
        self.read.append(context)
        progress(40, 100)
        await Loader.ready(self, model.model_id)


async def test_a_small_model_reads_the_instructions_ahead_and_leaving_ends_that(
    tmp_path: Path, place: Path, loader: Loader, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path / "cache"))
    reader = Reader()
    catalog.register_provider("local", lambda: reader)
    empty = tmp_path / "empty"
    empty.mkdir()
    app, environment, _ = app_in(empty)
    environment.is_first_run = True
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "The embedded model, now" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "reading the instructions, 40 %" in screen_text(app))
        (context,) = reader.read
        assert context.system_prompt == await app.driver.system_prompt()
        assert [tool.name for tool in context.tools][:2] == ["read_file", "find_files"]
        app.leave()
    assert reader.stopped
    assert app.driver.activity.loading == ""


async def test_a_large_model_reads_nothing_before_it_is_asked(
    tmp_path: Path, place: Path, loader: Loader, monkeypatch: pytest.MonkeyPatch
):
    reader = Reader()
    catalog.register_provider("local", lambda: reader)
    file = tmp_path / "large.gguf"
    with file.open("wb") as made:
        made.truncate(2_000_000_001)
    app, _, _ = app_in(tmp_path)
    app.driver.switch(ModelSpec("local", str(file)))
    await load_ahead(app.driver)
    assert reader.began == [str(file)]
    assert reader.read == []


@pytest.mark.parametrize("model", ["scripted:model", "local:qwen2.5-coder-1.5b"])
async def test_no_model_is_loaded_that_is_another_s_or_would_have_to_be_fetched_first(
    tmp_path: Path, place: Path, loader: Loader, monkeypatch: pytest.MonkeyPatch, model: str
):
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path / "cache"))
    app, _, _ = app_in(tmp_path)
    app.driver.switch(ModelSpec(*model.split(":")))
    await load_ahead(app.driver)
    assert loader.began == []


async def test_the_embedded_model_is_loaded_once_it_was_chosen_and_its_speed_is_told_or_not_measured(
    tmp_path: Path, place: Path, loader: Loader, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path / "cache"))
    empty = tmp_path / "empty"
    empty.mkdir()
    app, environment, _ = app_in(empty)
    environment.is_first_run = True
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "is not measured: it is not here yet" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: loader.began == ["smollm2-135m"])
        app.leave()
    assert loader.stopped


async def test_the_settings_of_the_screen_hold_and_a_key_of_no_action_is_named(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("EDITOR", "vi")
    file = tmp_path / "config" / "swink" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        'thinking = "shown"\nbusy_enter = "queue"\neditor = "nano -w"\n[keys]\nhelp = "ctrl+y"\n', "utf-8"
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    app, environment, _ = app_in(empty, [["slow", Pause(600)]])
    app.settings = environment.settings
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: environment.instructions is not None)
        assert app.view.thinking == "shown"
        assert os.environ["EDITOR"] == "nano -w"
        await pilot.press(*"one", "enter")
        await until(pilot, lambda: app.driver.is_running)
        await pilot.press(*"two", "enter")
        await until(pilot, lambda: bool(app.driver.queued))
        assert [message.text for message in app.driver.agent.follow_ups] == ["two"]
        await pilot.press("ctrl+y")
        await until(pilot, lambda: isinstance(app.screen, Help))
        await pilot.press("escape")
        file.write_text('[keys]\nhlep = "ctrl+y"\n', "utf-8")
        app.obey("/reload")
        await until(pilot, lambda: "hlep" in screen_text(app))
        told = f"{file}, line 2: [keys] names hlep, which is no key of ours; did you mean help?"
        assert any(told in str(getattr(block, "notice", "")) for block in app.driver.transcript.blocks)
        app.leave()


async def test_a_first_prompt_is_sent_as_it_is_once_trust_is_settled(place: Path):
    clock = Clock()
    app, _, scripted = app_in(place, ["Aye."], clock)
    app.first_prompt = "/ship !it"
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Do you trust the files" in screen_text(app))
        assert scripted.calls == []
        clock.now += 1.0
        await pilot.press("y")
        await until(pilot, lambda: "Aye." in screen_text(app) and not app.driver.is_running)
        assert "pirate" in scripted.calls[0].system_prompt
        assert [message.text for message in scripted.calls[0].messages] == ["/ship !it"]
        assert app.editor.has_focus
        app.leave()


async def test_leaving_while_trust_is_asked_about_sends_no_first_prompt(place: Path):
    app, _, scripted = app_in(place, ["Aye."])
    app.first_prompt = "go"
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Do you trust the files" in screen_text(app))
        app.leave()
    assert scripted.calls == []


@pytest.mark.parametrize("was_trusted", [True, False])
async def test_escape_in_trust_leaves_it_as_it_was(place: Path, was_trusted: bool):
    answer(look_up(place), "a" if was_trusted else "n")
    kept = (place.parent / "config" / "swink" / "trust.json").read_bytes()
    clock = Clock()
    app, environment, _ = app_in(place, (), clock)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: ("/ship" in environment.commands) == was_trusted)
        app.obey("/trust")
        await until(pilot, lambda: "Esc leaves it as it is" in screen_text(app))
        assert "every project below" in screen_text(app)
        clock.now += 1.0
        await pilot.press("escape")
        word = "still trusted" if was_trusted else "still not trusted"
        await until(pilot, lambda: word in " ".join(screen_text(app).split()))
        assert ("/ship" in environment.commands) == was_trusted
        assert (place.parent / "config" / "swink" / "trust.json").read_bytes() == kept
        app.leave()


async def test_leaving_the_program_in_the_question_of_trust_leaves_it_as_it_was(place: Path):
    answer(look_up(place), "y")
    clock = Clock()
    app, _, _ = app_in(place, (), clock)
    async with app.run_test(size=SIZE) as pilot:
        app.obey("/trust")
        await until(pilot, lambda: isinstance(app.screen, TrustQuestion))
        app.leave()
    assert look_up(place).is_trusted


async def test_no_in_trust_takes_trust_back_and_yes_gives_it_again(place: Path):
    answer(look_up(place), "y")
    clock = Clock()
    app, environment, _ = app_in(place, (), clock)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "/ship" in environment.commands)
        for key, is_trusted in (("n", False), ("y", True)):
            app.obey("/trust")
            await until(pilot, lambda: "Esc leaves it as it is" in screen_text(app))
            clock.now += 1.0
            await pilot.press(key)
            await until(pilot, lambda wanted=is_trusted: ("/ship" in environment.commands) == wanted)
            assert look_up(place).is_trusted == is_trusted
        app.leave()
