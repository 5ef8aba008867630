"""The editor on a screen: keys, pastes, completion, history, drafts, the user's own editor."""

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from test_editor_models import PNG
from textual import events
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widgets import TextArea

from swink.app.tui.editor import (
    CommandWord,
    EditorPane,
    QueueList,
    Submitted,
    TakeBack,
    Typed,
    kind_of,
)
from swink.app.tui.editor.bursts import HOLD
from swink.app.tui.editor.drafts import Drafts
from swink.app.tui.editor.external import _run as external_run
from swink.app.tui.editor.external import editor_command, remove_left
from swink.app.tui.editor.prompthistory import Said, append
from swink.app.tui.keys import SPELLINGS
from swink.app.tui.terminal import TerminalApp
from swink.app.tui.terminal.driver import KeyParser
from swink.errors import MisuseError
from swink.messages import Image, Text, UserMessage
from swink.system.writable import mark_writable

WORDS = [
    CommandWord("/help", "", "what there is"),
    CommandWord("/model", "[NAME]", "another model", lambda: ["local:one", "local:two"]),
    CommandWord("/fork", "NUMBER", "go on from there"),
    CommandWord("/mcp", "", "servers"),
]


class Host(TerminalApp):
    """Nothing but an editor."""

    def __init__(self, directory: Path, state: Path | None = None) -> None:
        super().__init__()
        self.pane = EditorPane(directory, state=state, commands=lambda: WORDS)
        self.said: list[Submitted] = []
        self.wanted_back = self.changes = 0

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_submitted(self, event: Submitted) -> None:
        self.said.append(event)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.changes += 1

    def on_take_back(self, event: TakeBack) -> None:
        self.wanted_back += 1

    @property
    def warnings(self) -> list[str]:
        return [each.message for each in self._notifications]


NAMED = ("enter", "escape", "tab", "up", "down", "left", "right", "backspace")
NAMES = {
    " ": "space",
    "?": "question_mark",
    "/": "slash",
    "@": "at",
    "!": "exclamation_mark",
    "\\": "backslash",
}


class Scene:
    """An editor, and somebody who types."""

    def __init__(self, app: Host, pilot: Pilot[int]) -> None:
        self.app, self.pilot, self.editor = app, pilot, app.pane.editor

    async def type(self, *keys: str) -> None:
        """Press keys; a text of several letters is typed letter by letter."""
        for key in keys:
            for each in [key] if "+" in key or key in NAMED else key:
                char = each if len(each) == 1 else None
                self.app.post_message(events.Key(NAMES.get(each, each), char))
        await self.settle()

    async def settle(self) -> None:
        """Wait until the app, and then the editor, have seen to everything; twice, for what that caused."""
        for pump in (self.app, self.editor, self.editor, self.editor):
            done = asyncio.Event()
            pump.call_later(done.set)
            await done.wait()

    async def paste(self, text: str) -> None:
        self.editor.post_message(events.Paste(text))
        await self.settle()

    async def until(self, condition: Callable[[], object]) -> None:
        for _ in range(6_000):
            if condition():
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"it did not come true; the editor holds {self.editor.text!r}")

    @property
    def sent(self) -> list[tuple[str, str]]:
        return [(said.text, said.how) for said in self.app.said]

    @property
    def labels(self) -> list[str]:
        return [item.label for item in self.app.pane.choices._items]


@asynccontextmanager
async def scene(directory: Path, state: Path | None = None) -> AsyncIterator[Scene]:
    app = Host(directory, state)
    async with app.run_test(size=(60, 15)) as pilot:
        app.pane.editor.focus()
        yield Scene(app, pilot)


async def test_enter_sends_and_other_keys_make_lines(tmp_path: Path):
    async with scene(tmp_path) as it:
        await it.type("one", "shift+enter", "two", "ctrl+j", "three\\", "enter", "four", "alt+enter", "five")
        assert it.editor.text == "one\ntwo\nthree\nfour\nfive"
        await it.until(lambda: it.app.changes)  # an app knows that somebody types, and asks nothing meanwhile
        await it.type("escape")
        assert it.editor.text == "one\ntwo\nthree\nfour\nfive"
        assert it.editor.size.height <= 15 // 3
        await it.type("enter")
        await it.until(lambda: it.sent)
        it.editor.is_busy = True
        await it.type("later", "alt+enter", "enter", "now", "enter")
        await it.until(lambda: len(it.sent) == 3)
        assert it.sent == [("one\ntwo\nthree\nfour\nfive", "send"), ("later", "queue"), ("now", "send")]
        # Emacs keys
        await it.type("cut this", "ctrl+w", "alt+b", "ctrl+y", "ctrl+e", "ctrl+u")
        assert it.editor.text == ""
        await it.type("ctrl+y")
        assert it.editor.text == "thiscut "
        await it.type("ctrl+underscore")
        assert it.editor.text == ""
        await it.type("alt+r")
        assert it.editor.text == "thiscut "


async def test_arrows_walk_through_history_and_ctrl_r_searches_it(tmp_path: Path):
    state = tmp_path / "state"
    for directory, text in (
        ("elsewhere", "deploy to staging"),
        ("here", "first"),
        ("here", "second\nprompt"),
    ):
        append(state / "history.jsonl", Said(Typed(text), 1.0, str(tmp_path / directory)))
    async with scene(tmp_path / "here", state) as it:
        await it.until(lambda: len(it.editor._recall.history.all) == 3)
        await it.type("half", "up")
        assert it.editor.text == "second\nprompt"
        await it.type("up")
        assert it.editor.text == "first"
        await it.type("up", "down", "down", "down")
        assert it.editor.text == "half"
        it.editor.clear_to_history()
        await it.type("up")
        assert it.editor.text == "half"
        await it.type("ctrl+r", "stag")
        await it.until(lambda: it.labels == ["deploy to staging"])
        await it.type("escape")
        assert it.editor.text == "half"
        await it.type("ctrl+r", "zzz")
        it.editor.clear_to_history()  # Ctrl+C leaves a search
        assert it.editor.text == "half"
        await it.type("ctrl+r", "dep", "enter")
        assert it.editor.text == "deploy to staging"
        assert not it.app.said
        await it.type("enter", "dep")
        await it.until(lambda: it.editor.suggestion == "loy to staging")
        await it.type("right")
        assert it.editor.text == "deploy to staging"
        # An empty editor takes the last queued message back.
        it.editor.clear_to_history()
        it.editor.has_queue = True
        await it.type("up")
        await it.until(lambda: it.app.wanted_back == 1)
        assert it.editor.text == ""


async def test_a_long_paste_is_one_piece_that_can_be_opened_and_is_sent_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = "x = 1\n" * 57
    async with scene(tmp_path, tmp_path / "state") as it:
        await it.type("see ")
        await it.paste(long)
        await it.until(lambda: it.editor.text == "see [pasted #1, 57 lines]")
        await it.type("left", "!", "right", "right")
        assert it.editor.text == "see ![pasted #1, 57 lines]"
        await it.type("backspace")
        assert it.editor.text == "see !"
        await it.type("ctrl+underscore")
        assert it.editor.text == "see ![pasted #1, 57 lines]"
        await it.paste("a\r\x1b[31mb\n" * 6)
        await it.until(lambda: "[pasted #2, 12 lines]" in it.editor.text)
        await it.type("tab")
        assert it.editor.text == "see ![pasted #1, 57 lines]" + "a\nb\n" * 6
        await it.type("enter")
        await it.until(lambda: it.sent)
        assert it.sent == [(("see !" + long + "a\nb\n" * 6).strip(), "send")]
        await it.type("mine")
        it.editor.put_back(it.sent[0][0])
        assert it.editor.text.startswith("see ![pasted #1, 57 lines]a\nb\n")
        assert it.editor.text.endswith("\n\nmine")
        it.editor.clear_to_history()
        # What terminals write when an image is dropped on them.
        (tmp_path / "a shot.png").write_bytes(PNG)
        (tmp_path / "broken.png").mkdir()
        await it.paste(f"'{tmp_path}/a shot.png'")
        await it.until(lambda: it.editor.text == "[image #1 a shot.png] ")
        await it.type("?", "enter")
        await it.until(lambda: len(it.app.said) == 2)
        blocks = it.app.said[1].input
        assert isinstance(blocks, list)
        assert blocks[0] == Text("[image #1 a shot.png] ?")
        assert isinstance(blocks[1], Image)
        # An image in the clipboard, which a program of the system knows.
        program = tmp_path / "bin" / "wl-paste"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nexec cat '{tmp_path}/a shot.png'\n")
        program.chmod(0o700)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
        await it.type("ctrl+v")
        await it.until(lambda: it.editor.text.startswith("[image #1 clipboard-"))
        [image] = (tmp_path / "state" / "images").iterdir()
        assert stat.S_IMODE(image.stat().st_mode) == 0o600
        it.editor.clear_to_history()
        # A line that no screen can show folds too, and is too long to be opened.
        await it.paste("y" * 10_000_000)
        await it.until(lambda: it.editor.text == "[pasted #1, 10,000,000 characters]")
        await it.type("tab")
        await it.until(lambda: it.app.warnings)
        assert "Ctrl+G" in it.app.warnings[0]


async def test_keys_that_come_at_once_are_a_paste(tmp_path: Path):
    async with scene(tmp_path) as it:
        it.editor.detects_bursts = True

        def burst(keys: str, at: float) -> None:
            for char in keys:
                name = {"\n": "enter", "\t": "tab"}.get(char, char)
                key = events.Key(name, "\r" if char == "\n" else char)
                key.time = at
                it.editor.post_message(key)

        burst("one\ntwo\n", 1.0)
        await it.until(lambda: it.editor.text == "one\ntwo\n")
        assert not it.app.said
        burst("x\t\n" * 30 + "y", 5.0)
        await it.until(lambda: "[pasted #1" in it.editor.text)
        assert it.editor.typed.whole() == "one\ntwo\n" + "x\t\n" * 30 + "y"
        it.editor.clear_to_history()
        burst("fix it\n", 9.0)  # a program that types
        await it.until(lambda: it.sent == [("fix it", "send")])
        burst("/mod\n", 12.0)
        burst("z", 12.0 + HOLD * 2)  # typed by hand after that
        await it.until(lambda: len(it.sent) == 2 and it.editor.text == "z")
        assert it.sent[1] == ("/mod", "send")


async def test_commands_are_offered_by_use_which_the_next_start_remembers(tmp_path: Path):
    state = tmp_path / "state"
    async with scene(tmp_path, state) as it:
        await it.type("/")
        await it.until(lambda: it.labels == ["/fork NUMBER", "/help", "/mcp", "/model [NAME]"])
        await it.type("ctrl+u")
        for number, line in enumerate(("/mcp", "/model local:one", "hello", "/model local:two", "/help"), 1):
            it.editor.insert(line)
            await it.type("escape", "enter")
            await it.until(lambda number=number: len(it.sent) == number)
        await it.type("/")
        await it.until(lambda: it.labels == ["/model [NAME]", "/help", "/mcp", "/fork NUMBER"])
        await it.type("ctrl+u", "/m")
        await it.until(lambda: it.labels == ["/model [NAME]", "/mcp"])
        await it.type("ctrl+u")
    async with scene(tmp_path, state) as it:
        await it.until(lambda: len(it.editor._recall.history.all) == 5)
        await it.type("/")
        await it.until(lambda: it.labels == ["/model [NAME]", "/help", "/mcp", "/fork NUMBER"])


async def test_commands_and_mentions_are_completed(tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("print(1)\n")
    (tmp_path / "notes.md").write_text("note\n")
    async with scene(tmp_path) as it:
        await it.type("/mo")
        await it.until(lambda: it.labels == ["/model [NAME]"])
        assert it.editor.suggestion == "del"
        await it.type("escape")
        assert it.labels == []
        await it.type("d")
        assert it.labels == []  # dismissed until something else is typed
        await it.type("ctrl+u", "/m", "down", "tab")
        assert it.editor.text == "/model "
        await it.type("ctrl+u", "/m")
        await it.pilot.click(it.app.pane.choices, offset=(4, 0))
        await it.until(lambda: it.editor.text == "/mcp" and it.editor.has_focus)
        await it.type("ctrl+u", "/model ")
        await it.until(lambda: it.labels == ["local:one", "local:two"])
        await it.type("tw", "enter")
        await it.until(lambda: it.sent == [("/model local:two", "send")])
        await it.type("/hel", "enter")  # nothing more to type: Enter takes it and runs it
        await it.until(lambda: len(it.sent) == 2)
        await it.type("/fo", "enter")  # a number is missing
        assert it.editor.text == "/fork "
        await it.type("ctrl+u", "/usr/bin/x is missing", "enter")
        await it.until(lambda: len(it.sent) == 3)
        assert [said.kind for said in it.app.said] == ["command", "command", "prompt"]
        await it.type("read @ap")
        await it.until(lambda: it.labels == ["src/app.py"])
        await it.type("tab", "and @sr")
        await it.until(lambda: it.labels[:1] == ["src/"])
        await it.type("enter")
        assert it.editor.text == "read @src/app.py and @src/"
        await it.until(lambda: it.labels[:2] == ["src/", "src/app.py"])
        await it.type("escape", "enter")
        await it.until(lambda: len(it.sent) == 4)
        assert it.sent[3] == ("read @src/app.py and @src/", "send")
        blocks = it.app.said[3].input
        assert isinstance(blocks, list)
        assert "print(1)" in str(blocks[1])
        await it.type("!ls")
        await it.until(lambda: it.editor.has_class("-shell"))
        assert [kind_of(text) for text in ("!ls", "!!ls", "# Title", "#keys", "/help", "/")] == [
            "shell", "private shell", "prompt", "command", "command", "command",
        ]  # fmt: skip


async def test_a_draft_comes_back_after_a_crash_and_the_queue_is_shown(tmp_path: Path):
    state = tmp_path / "state"
    async with scene(tmp_path, state) as it:
        await it.type("half a thought")
        await it.until(lambda: list((state / "drafts").glob("*.json")))
        it.app.query_one(QueueList).show_queued([UserMessage("one")], [UserMessage("two\nlines")])
        await it.pilot.pause()
        shown = "\n".join(
            "".join(part.text for part in line) for line in it.app.screen._compositor.render_strips()
        )
        assert "queued  one" in shown
        assert "queued, after  two … +1 line" in shown
    [left] = (state / "drafts").glob("*.json")
    assert left.read_text() == '{"text":"half a thought"}'
    async with scene(tmp_path, state) as it:
        await it.until(lambda: it.editor.text == "half a thought")
        await it.type("enter")
        await it.until(lambda: it.sent)
    assert not list((state / "drafts").iterdir())
    assert await Drafts(state / "drafts", str(tmp_path)).restore() is None


async def test_a_prompt_is_written_in_the_users_own_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script = tmp_path / "my editor"
    script.write_text(
        f"#!/bin/sh\ncp \"$2\" '{tmp_path}/seen'; ls -l \"$2\" > '{tmp_path}/mode'; echo \"$2\" > '{tmp_path}/path'\n"
        'case $1 in add) echo added >> "$2";; empty) : > "$2";; fail) exit 3;; esac\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    async with scene(tmp_path) as it:
        await it.type("see ")
        await it.paste("x\n" * 11)
        for way, text in (("add", "see [pasted #1, 11 lines]added"), ("empty", "see"), ("fail", "see")):
            monkeypatch.setenv("EDITOR", f"'{script}' {way}")
            await it.editor.write_outside()
            assert it.editor.text.startswith(text)
            assert (tmp_path / "mode").read_text().startswith("-rw-------")
            assert not os.path.exists((tmp_path / "path").read_text().strip())
        assert (tmp_path / "seen").read_text() == "see " + "x\n" * 11 + "added"
        it.editor.clear_to_history()
        for way in ("empty", "add"):  # as /editor does
            monkeypatch.setenv("EDITOR", f"'{script}' {way}")
            await it.editor.write_outside(sends=True)
        await it.until(lambda: it.sent)
        assert it.sent == [("added", "send")]
        await it.until(lambda: it.app.warnings)
        assert "exit code 3" in it.app.warnings[0]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = [tmp_path / f"swink-prompt-{process}-x.md" for process in (999_999_999, os.getpid(), os.getppid())]
    for path in left:
        path.touch()
    remove_left()
    assert [path.exists() for path in left] == [
        False,
        True,
        True,
    ]  # of a killed process, ours, and one that runs


def test_the_users_editor_is_found_or_said_to_be_missing():
    path = os.environ["PATH"]
    assert editor_command({"EDITOR": "sh -e", "VISUAL": "no", "PATH": path}) == [shutil.which("sh"), "-e"]
    assert editor_command({"EDITOR": " ", "VISUAL": "sh", "PATH": path}) == [shutil.which("sh")]
    for environ, said in (
        ({"EDITOR": "no-such-editor -w"}, "EDITOR is 'no-such-editor -w', but there is no program"),
        ({"EDITOR": "'open"}, "no command"),
        ({"PATH": "/nowhere"}, "there is no vi on the PATH, outside of the workspace; set EDITOR"),
        ({"EDITOR": "bin/ed"}, "EDITOR is 'bin/ed', but there is no program"),
    ):
        with pytest.raises(MisuseError, match=said):
            editor_command({"PATH": path, **environ})


async def test_what_the_editor_itself_starts_is_not_taken_from_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for place, says in ((workspace, "planted"), (outside, "real")):
        place.mkdir()
        (place / "run-it").write_text(f"#!/bin/sh\necho {says} > {tmp_path}/said\n")
        (place / "run-it").chmod(0o755)
    (outside / "ed-it").write_text("#!/usr/bin/env run-it\n")
    (outside / "ed-it").chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace}:{outside}:{os.environ['PATH']}")
    held = mark_writable(workspace)
    (command,) = editor_command({"EDITOR": "ed-it", "PATH": os.environ["PATH"]})
    assert await external_run([command]) == 0
    assert (tmp_path / "said").read_text() == "real\n"
    with pytest.raises(MisuseError, match="there is no program"):
        editor_command({"EDITOR": str(workspace / "run-it")})
    assert held


@pytest.mark.parametrize("letter", "aqyz")
def test_alt_and_a_letter_are_one_key_whatever_follows_at_once(letter: str):
    keys = KeyParser().feed(f"\x1b{letter}\x05\x1b[27u")
    assert [key.key for key in keys if isinstance(key, events.Key)] == [f"alt+{letter}", "ctrl+e", "escape"]


def test_alt_enter_is_known_as_terminals_send_it():
    for sequence in ("\x1b\r", "\x1b[13;3u"):
        [key] = KeyParser().feed(sequence)
        assert isinstance(key, events.Key)
        assert key.key == "alt+enter"
    [key] = KeyParser().feed("\x1b[27;2;13~")  # tmux, with extended keys in xterm's way
    assert isinstance(key, events.Key)
    assert SPELLINGS[key.key] == "shift+enter"
