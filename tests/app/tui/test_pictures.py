"""Pictures of the main screens, drawn by the program itself; the pages show them.

PICTURES_INTO=docs/pictures pytest tests/app/tui/test_pictures.py draws them anew: look at them before you keep them.
"""

import re
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from apps import app_of, screen_text, until
from msgspec.structs import replace
from tests.counts import MORE, in_cells
from tests.pages import PICTURES_INTO, ROOT
from textual.pilot import Pilot

from swink import tool
from swink.app.assistant.forms import question_tools
from swink.app.assistant.modellist import ModelMemory, remember
from swink.app.assistant.networkrules import NetworkRules
from swink.app.assistant.person import Refuse
from swink.app.assistant.reviewing import Review
from swink.app.assistant.shellsettings import ShellSettings
from swink.app.assistant.toolcalls import SessionTrust
from swink.app.tui import SwinkApp
from swink.app.tui.approval import DomainPanel, FormPanel
from swink.app.tui.approval.answerfield import AnswerField
from swink.app.tui.screens.serverform import ServerForm
from swink.app.tui.screens.wizard import Wizard
from swink.messages import Thinking, ToolCall, Usage
from swink.testing import ScriptedModel
from swink.tools import FINAL_OUTPUT, Workspace, read_tools, todo_tools, write_tools
from swink.tools.coding.wishes import Wish

Scene = Callable[[Pilot[Any], SwinkApp], Awaitable[None]]
SIZES = [(80, 24), (120, 40), (200, 60)]

ANSWER = """\
The parser dropped the **last line** of a file without a newline at its end. Two things were wrong:

1. `read_lines` split at `"\\n"` and threw the rest away.
2. No test had such a file.

| file | before | after |
|---|---:|---:|
| `empty.txt` | 0 | 0 |
| `one.txt` | 0 | 1 |

```python
def read_lines(text: str) -> list[str]:
    \"\"\"The lines of a text, also one that is not ended.\"\"\"
    return text.splitlines()
```

All 42 tests pass now.
"""
OLD = 'def read_lines(text):\n    """The lines of a text."""\n    lines = text.split("\\n")\n    return lines[:-1]\n'
NEW = 'def read_lines(text):\n    """The lines of a text, also one that is not ended."""\n    return text.splitlines()\n'


@tool
def bash(command: str) -> str:
    """Run a command."""
    return "42 passed in 1.31s"


def _tasks(id: str, *states: str) -> ToolCall:
    texts = ("ask what it has to support", "simplify read_lines", "run the tests")
    tasks = [{"text": text, "status": state} for text, state in zip(texts, states, strict=True)]
    return ToolCall(id, "todo", {"tasks": tasks})


READ = ToolCall("1", "read_file", {"path": "lines.py"})
EDIT = ToolCall("2", "edit_file", {"path": "lines.py", "edits": [{"old": OLD, "new": NEW}]})
TEST = ToolCall("3", "bash", {"command": "pytest -q"})


async def type_prompt(pilot: Pilot[Any], app: SwinkApp, text: str) -> None:
    app.editor.insert(text)
    await pilot.press("enter")


async def welcome(pilot: Pilot[Any], app: SwinkApp) -> None:
    pass


async def answer(pilot: Pilot[Any], app: SwinkApp) -> None:
    app.permissions.trusted[SessionTrust("edit_file")] = None
    await type_prompt(pilot, app, "The last line of a file is missing. Why?")
    await until(pilot, lambda: app.driver.transcript.totals.replies == 4 and not app.driver.is_running)


async def approval(pilot: Pilot[Any], app: SwinkApp) -> None:
    await type_prompt(pilot, app, "The last line of a file is missing. Why?")
    await until(pilot, lambda: bool(app.permissions.waiting))


async def planning(pilot: Pilot[Any], app: SwinkApp) -> None:
    await pilot.press("shift+tab")
    await until(pilot, lambda: app.driver.is_planning)


async def looks(pilot: Pilot[Any], app: SwinkApp) -> None:
    app.obey("/theme")
    await until(pilot, lambda: len(app.screen_stack) > 1)


async def models(pilot: Pilot[Any], app: SwinkApp) -> None:
    remember(ModelMemory(("openai:gpt-5",), ("xai:grok-4",)))
    app.obey("/model")
    await until(pilot, lambda: len(app.screen_stack) > 1)


async def first(pilot: Pilot[Any], app: SwinkApp) -> None:
    app.push_screen(Wizard())
    await until(pilot, lambda: "here yet." in screen_text(app))


async def server(pilot: Pilot[Any], app: SwinkApp) -> None:
    app.push_screen(ServerForm())
    await until(pilot, lambda: len(app.screen_stack) > 1)


async def help(pilot: Pilot[Any], app: SwinkApp) -> None:
    app.obey("/help")
    await until(pilot, lambda: len(app.screen_stack) > 1)


async def question(pilot: Pilot[Any], app: SwinkApp) -> None:
    await type_prompt(pilot, app, "Tidy the parser up.")
    await until(pilot, lambda: app.query_one(FormPanel).query_one(AnswerField).has_focus)


async def command(pilot: Pilot[Any], app: SwinkApp) -> None:
    await question(pilot, app)
    panel = app.query_one(FormPanel)
    app.permissions.forms.answer(app.permissions.forms.waiting[0], ["keep Python 3.11"])
    await until(pilot, lambda: bool(app.permissions.waiting) and not panel.display)


async def refused(pilot: Pilot[Any], app: SwinkApp) -> None:
    await command(pilot, app)
    app.permissions.questions.answer(app.permissions.waiting[0], Refuse("the tests are slow; lint it"))
    await until(pilot, lambda: bool(app.permissions.waiting) and "edit_file" in str(app.permissions.waiting))
    asked = app.permissions.waiting[0]
    assert asked.preview is not None
    parts = Review(asked.preview)
    parts.judge(0, True)
    parts.judge(1, False, "the name is part of the interface")
    app.permissions.questions.answer(asked, parts.reply("edit_file", asked.request.arguments))
    await until(pilot, lambda: app.driver.transcript.totals.replies == 6 and not app.driver.is_running)


def make_repository() -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)


async def review(pilot: Pilot[Any], app: SwinkApp) -> None:
    make_repository()
    app.obey("/review")
    await until(pilot, lambda: bool(app.driver.findings))


async def findings(pilot: Pilot[Any], app: SwinkApp) -> None:
    await review(pilot, app)
    app.obey("/findings")
    await until(pilot, lambda: len(app.screen_stack) > 1)


async def host(pilot: Pilot[Any], app: SwinkApp) -> None:
    rules = NetworkRules(app.permissions, ShellSettings(), Path.cwd(), lambda text: None)
    wish = Wish("index.corp", 8080, ("10.0.0.5",))
    app.run_worker(rules.refuses(wish, "pip install --index-url http://index.corp:8080/simple six"))
    panel = app.query_one(DomainPanel)
    await until(pilot, lambda: panel.has_focus and panel.guard.is_shown)


async def permissions(pilot: Pilot[Any], app: SwinkApp) -> None:
    app.permissions.trusted[SessionTrust("edit_file")] = None
    app.permissions.shell = ShellSettings()
    app.obey("/permissions")
    await until(pilot, lambda: len(app.screen_stack) > 1)


FOUND = [
    {
        "file": "lines.py",
        "line": 4,
        "severity": "high",
        "text": "The last line is dropped: for a text without a newline at its end, split leaves it in the last "
        "place, and the slice throws that away. Use splitlines.",
    },
    {"file": "lines.py", "line": 1, "severity": "low", "text": "There is no test of an empty text."},
]
REPLIES = [
    [Thinking("Where are lines read?"), "Let me look at how lines are read. ", READ],
    ["Here it is. ", EDIT],
    TEST,
    ANSWER,
]
LONG_OLD = OLD + "".join(
    f"\n\ndef part_{number}(lines):\n    return lines[{number}:]\n" for number in range(4)
)
LONG_NEW = NEW + LONG_OLD[len(OLD) :].replace("part_3(lines)", "rest_of(lines)")
TIDY = [
    ["First a list. ", _tasks("t1", "in_progress", "pending", "pending")],
    ToolCall("2", "ask_user", {"questions": [{"question": "Which version of Python shall it support?"}]}),
    [_tasks("t3", "done", "in_progress", "pending"), TEST],
    ToolCall("4", "edit_file", {"path": "lines.py", "edits": [{"old": LONG_OLD, "new": LONG_NEW}]}),
    _tasks("t5", "done", "done", "done"),
    "It is tidy, but for the name that you want to keep.",
]
REVIEWED = [READ, ToolCall("2", FINAL_OUTPUT, {"findings": FOUND})]
SCENES: dict[Scene, list[Any]] = {
    **dict.fromkeys(
        [welcome, answer, approval, planning, looks, models, first, server, help, host, permissions], REPLIES
    ),
    **dict.fromkeys([question, command, refused], TIDY),
    **dict.fromkeys([review, findings], REVIEWED),
}


@pytest.mark.more
@in_cells("scene", SCENES, ids=lambda scene: scene.__name__, every=4)
async def test_the_screen_looks_as_it_should(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = tmp_path / "lines"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("NO_COLOR", "COLORFGBG", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for size in SIZES if MORE else SIZES[1:2]:
        is_tidy = SCENES[scene] is TIDY
        (project / "lines.py").write_text(LONG_OLD if is_tidy else OLD)
        workspace = Workspace(project)
        tools = [*read_tools(workspace), *write_tools(workspace), replace(bash, requires_approval=is_tidy)]
        model = ScriptedModel(SCENES[scene], usage=Usage(input=9_210, output=155))
        app = app_of(
            model, tools=tools, clock=lambda: 1000.0, model="anthropic:claude-sonnet-4-6", workspace=workspace
        )
        app.driver.agent.tools = [*tools, *todo_tools(), *question_tools(app.permissions.forms.ask)]
        async with app.run_test(size=size) as pilot:
            app.editor.cursor_blink = app.query_one(FormPanel).query_one(AnswerField).cursor_blink = False
            # Heights of what was never painted are guessed, and the scrollbar shows it.
            app.view.styles.scrollbar_size_vertical = 0
            await scene(pilot, app)
            await compare(pilot, app, f"{scene.__name__}-{size[0]}x{size[1]}.svg", tmp_path)
            app.leave()


def drawn(app: SwinkApp) -> str:
    """The screen as an SVG that needs nothing from elsewhere."""
    svg = app.export_screenshot(title="swink")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


async def compare(pilot: Pilot[Any], app: SwinkApp, name: str, tmp_path: Path) -> None:
    """Wait until the picture is the one that is kept; on a busy machine that takes a while."""
    if PICTURES_INTO:
        (PICTURES_INTO / name).write_text(await settled(pilot, app), "utf-8")
        return
    kept = ROOT / "docs" / "pictures" / name
    wanted = kept.read_text("utf-8") if kept.exists() else ""
    try:
        await until(pilot, lambda: drawn(app) == wanted)
    except TimeoutError:
        new = tmp_path / name
        new.write_text(drawn(app), "utf-8")
        raise AssertionError(
            f"{kept} looks different now: compare it with {new}; PICTURES_INTO=docs/pictures takes it over"
        ) from None


async def settled(pilot: Pilot[Any], app: SwinkApp) -> str:
    """The picture once it does not change any more."""
    before, svg = "", drawn(app)
    while svg != before:
        for _ in range(5):
            await pilot.pause(0.05)
        before, svg = svg, drawn(app)
    return svg
