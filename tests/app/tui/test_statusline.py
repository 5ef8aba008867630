"""A status line of one's own: a template, a command, and what happens where they fail."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from apps import app_of, screen_text, until
from command_line import Place, Provider
from terminal import Terminal

from swink.app.assistant.settings import UserSettings, load_settings
from swink.app.assistant.statustemplate import STATUS_FIELDS, parse_template
from swink.app.tui.activity import Activity
from swink.app.tui.firststeps import apply_settings
from swink.app.tui.status import NEEDS, Status
from swink.app.tui.statusline import StatusLine
from swink.events.transcript import Totals
from swink.messages import Cost, Usage

STATUS = Status(
    Activity(),
    0.0,
    "test:m",
    totals=Totals(usage=Usage(input=7, output=3), cost=Cost(input=0.5), context=10),
    window=100,
)


def line_of(told: list[str], **settings: Any) -> StatusLine:
    line = StatusLine(told.append, interval=0.01)
    line.use(UserSettings(Path("config.toml"), **settings))
    return line


async def shown(line: StatusLine, status: Status = STATUS) -> str | None:
    """What the command says, once it has said something or was given up."""
    changed = asyncio.Event()
    line.changed = changed.set
    line.line(status)
    await changed.wait()
    return line.line(status)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "swink").mkdir()
    return tmp_path / "swink" / "config.toml"


def test_unknown_fields_are_told_with_their_line_and_the_rest_applies(file: Path):
    file.write_text('save = true\nstatus_line = "{model} {modle} {cost:5} {} {0}"\n')
    settings = load_settings()
    assert [problem.partition(" for")[0] for problem in settings.problems] == [
        f"{file}, line 2: there is no field {{{name}}}" for name in ("modle", "cost:5", "", "0")
    ]
    assert line_of([], status_line=settings.status_line).line(STATUS) == "test:m"


@pytest.mark.parametrize("broken", ["{model", "model}", "{model!}"])
def test_a_template_that_cannot_be_read_is_told_and_the_line_is_the_usual_one(file: Path, broken: str):
    file.write_text(f'status_line = "{broken}"\n')
    settings = load_settings()
    assert f"{file}, line 1: status_line cannot be read" in settings.problems[0]
    assert line_of([], status_line=settings.status_line).line(STATUS) is None


def test_every_field_is_on_the_bar_and_the_other_way_round():
    assert {*STATUS_FIELDS} - {"directory"} == {*NEEDS} - {"hint"}


def test_a_template_is_filled_and_what_is_empty_leaves_no_gap():
    line = line_of([], status_line="in {directory}: {model} {retry} {cost} | {mode}")
    assert line.line(STATUS) == f"in {Path.cwd().name}: test:m $0.5000 | Execute"
    assert parse_template("{{x}} {state}").fill({"state": "idle"}) == "{x} idle"
    assert line_of([]).line(STATUS) is None


async def test_a_command_is_given_the_state_and_its_first_line_is_shown_without_controls():
    line = line_of(
        [], status_command="read -r all; printf '\\033]0;x\\007\\n'; echo \"$all\"; echo more # end"
    )
    said = await shown(line)
    await line.close()
    assert said == "]0;x"
    line = line_of([], status_command="cat")
    state = json.loads(await shown(line) or "")
    await line.close()
    assert state["model"] == "test:m"
    assert (state["cost"], state["context_window"], state["input_tokens"]) == (0.5, 100, 7)


@pytest.mark.parametrize("command", ["exit 3", "/nowhere/x", "echo no; false"])
async def test_a_command_that_fails_is_told_once_and_the_template_holds(command: str):
    told: list[str] = []
    line = line_of(told, status_command=command, status_line="{model}")
    assert await shown(line) == "test:m"
    assert line.line(Status(Activity(), 0.0, "other")) == "other"
    await line.close()
    assert len(told) == 1
    assert "/reload" in told[0]


async def test_one_that_hangs_is_ended_in_time_and_with_the_program(tmp_path: Path):
    told: list[str] = []
    line = StatusLine(told.append, seconds=0.3)
    line.use(UserSettings(tmp_path, status_command="sleep 1000"))
    assert await shown(line) is None
    assert "timeout" in told[0]
    pid = tmp_path / "pid"
    hanging = line_of(told, status_command=f"echo $$ > {pid}; sleep 1000")
    hanging.line(STATUS)
    while not pid.exists() or not pid.read_text().strip():
        await asyncio.sleep(0.01)
    await hanging.close()
    assert not Path("/proc", pid.read_text().strip()).exists()
    assert len(told) == 1


async def test_it_runs_only_when_something_has_changed_and_one_at_a_time(tmp_path: Path):
    runs = tmp_path / "runs"
    line = line_of([], status_command=f"echo run >> {runs}; wc -l < {runs}")
    assert await shown(line) == "1"
    for _ in range(50):
        assert line.line(STATUS) == "1"
    await asyncio.sleep(0.1)
    assert line.line(STATUS) == "1"
    other = Status(Activity(), 0.0, "other")
    assert await shown(line, other) == "2"
    await line.close()


async def test_where_the_folder_is_not_trusted_the_command_starts_elsewhere():
    line = line_of([], status_command="pwd")
    assert await shown(line) == "/"
    await line.close()
    line = line_of([], status_command="pwd")
    line.is_trusted = lambda: True
    assert await shown(line) == str(Path.cwd())
    await line.close()


async def test_the_bar_shows_it_cut_to_its_width_and_a_hint_before_it(tmp_path: Path):
    app = app_of([])
    async with app.run_test(size=(40, 24)) as pilot:
        apply_settings(app, UserSettings(tmp_path, status_line="{model} " + "long " * 20))
        app.updater.show_status()
        await until(pilot, lambda: "scripted:model long" in screen_text(app))
        assert screen_text(app).splitlines()[-1].rstrip().endswith("…")
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "Ctrl+C again leaves" in screen_text(app).splitlines()[-1])
        apply_settings(app, UserSettings(tmp_path))
        app.updater.show_status()
        await until(pilot, lambda: "Execute" in screen_text(app).splitlines()[-1])


def test_in_a_terminal_the_command_of_the_settings_is_shown_and_ended_with_it(
    place: Place, provider: Provider
):
    place.configure('status_command = \'sed "s/.*model\\": *\\"\\([^\\"]*\\).*/at \\1/"; sleep 0.1\'\n')
    with Terminal(place, "--model", "openai:m", env=provider.env, size=(100, 30)) as terminal:
        terminal.wait_for("at openai:m")
        terminal.type("hi\r")
        terminal.wait_for("Hello there.", "at openai:m")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert terminal.left_behind() == []


def test_the_page_names_every_field():
    page = (Path(__file__).parents[3] / "docs" / "coding-agent" / "tui.md").read_text("utf-8")
    assert ", ".join(f"`{name}`" for name in STATUS_FIELDS) in page
