"""The view on a screen: what is painted, scrolled, opened, selected and copied."""

import asyncio
from collections.abc import Callable

from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import Selection

from swink.app.tui.look import LOOKS
from swink.app.tui.view import ActiveTools, TodoPanel, TranscriptView
from swink.app.tui.view.copying import copied
from swink.app.tui.view.folds import Folds
from swink.app.tui.view.linewindow import LineWindow
from swink.app.tui.view.painters import Setting
from swink.events.transcript import PromptBlock, ReplyBlock, ToolBlock
from swink.events.transcript.blocklist import BlockList
from swink.messages import Text


class Scene(App[None]):
    """A conversation on a screen, and nothing else."""

    def __init__(self, *blocks, clock: Callable[[], float] = lambda: 100.0) -> None:
        super().__init__()
        self.kept = BlockList()
        self.clock = clock
        for block in blocks:
            self.kept.append(block)
        self.version = 0

    def compose(self) -> ComposeResult:
        yield TranscriptView(clock=self.clock)
        yield ActiveTools(self.clock)
        yield TodoPanel()

    def on_mount(self) -> None:
        self.view.focus()
        self.flush()

    @property
    def view(self) -> TranscriptView:
        return self.query_one(TranscriptView)

    def flush(self) -> None:
        changes = self.kept.since(self.version)
        self.version = changes.version
        self.view.take_changes(changes)
        self.query_one(ActiveTools).take_running(self.view.running, self.view.is_seen)
        self.query_one(TodoPanel).take_changes(changes)

    @property
    def lines(self) -> list[str]:
        """What is on the screen: lines that the view did not report as changed are old."""
        region = self.view.region
        strips = self.screen._compositor.render_strips()[region.y : region.bottom]
        return [strip.text[: region.width - 1].rstrip() for strip in strips]


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")


def prompt(number: int, text: str = "") -> PromptBlock:
    return PromptBlock(str(number), (Text(text or f"question {number}"),))


def call(number: int, state: str = "done", text: str = "one\ntwo", **fields) -> ToolBlock:
    return ToolBlock(
        str(number), f"c{number}", "bash", {"command": "ls"}, None, state, (Text(text),), **fields
    )


async def test_only_the_users_scrolling_decides_whether_the_end_is_followed():
    app = Scene(*[prompt(n) for n in range(100)])
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        assert app.lines[-1] == "▌ question 99"
        await pilot.press("pageup", "up")
        reading = app.lines
        assert not app.view.is_following
        for n in range(100, 110):
            app.kept.append(prompt(n))
        app.flush()
        await pilot.pause()
        assert app.lines[:-1] == reading[:-1]
        assert "↓ 20 new lines" in app.lines[-1]
        await pilot.press("end")
        assert app.lines[-1] == "▌ question 109"
        app.kept.append(prompt(110))
        app.flush()
        assert app.lines[-1] == "▌ question 110"
        await pilot.press("home")
        assert app.lines[0] == "▌ question 0"
        app.view.post_message(events_wheel(app.view, 1))
        await until(lambda: app.lines[0] != "▌ question 0")
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        assert not app.view.is_following
        assert app.view.size.height == len(app.lines) == 8
        await pilot.click(TranscriptView, offset=(5, 7))  # on the hint, if there is one
        await pilot.press("end")
        await pilot.resize_terminal(90, 30)
        await pilot.pause()
        assert app.view.is_following
        assert app.lines[-1] == "▌ question 110"


def events_wheel(view: TranscriptView, y: int):
    from textual.events import MouseScrollDown

    return MouseScrollDown(view, 3, 3, 0, y, 0, False, False, False)


async def test_a_storm_of_sizes_leaves_the_lines_of_the_last_one():
    app = Scene(*[prompt(n, f"question {n} " + "and more words " * (n % 9)) for n in range(40)])
    async with app.run_test(size=(60, 12)) as pilot:
        for number, size in enumerate([(20, 3), (200, 60), (1, 1), (61, 15), (300, 100), (33, 2), (80, 24)]):
            await pilot.resize_terminal(*size)
            app.kept.append(prompt(100 + number, "more " * 20))
            app.flush()
        await pilot.resize_terminal(50, 10)
        await until(lambda: len(app.view.render_line(0).text) == 49 and app.lines[-1].endswith("more"))
        assert len(app.lines) == 10
        assert all(len(line) <= 49 for line in app.lines)


async def test_calls_open_by_key_and_click_and_running_ones_are_listed():
    now = [100.0]
    app = Scene(prompt(1), call(2), call(3), clock=lambda: now[0])
    async with app.run_test(size=(70, 20)) as pilot:
        await pilot.pause()
        assert app.lines[2:4] == ["✓ bash  ls  one", "✓ bash  ls  one"]
        app.view.toggle_fold()  # the last one
        assert app.lines[3:6] == ["✓ bash  ls", "  │ one", "  │ two"]
        app.view.toggle_fold()
        app.view.select_block(-1)
        app.view.select_block(-1)
        app.view.toggle_fold()
        assert app.lines[3] == "  │ one"
        await pilot.click(TranscriptView, offset=(4, 2))
        assert app.lines[3] == "✓ bash  ls  one"
        app.kept.append(call(4, "running", "", output="step 1\nstep 2\n", started=98.0))
        app.flush()
        await pilot.pause()
        assert not app.query_one(ActiveTools).display
        app.kept.put(3, call(4, "done", "fine", started=98.0, duration=2.0))
        app.flush()
        await pilot.pause()
        assert any("fine" in line for line in app.lines)
        now[0] += 3.5
        await until(lambda: app.lines[4:6] == ["✓ bash  ls  2.0 s  fine", ""])


async def test_a_call_that_runs_is_shown_once_in_its_block_or_out_of_sight_in_the_panel():
    running = call(9, "running", "", output="step 1\nstep 2\n", started=98.0)
    asking = ToolBlock("10", "c10", "ask_user", {}, None, "running", started=98.0)
    app = Scene(*map(prompt, range(1, 9)), running, asking)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        panel = app.query_one(ActiveTools)
        await until(lambda: not panel.display)
        assert sum("bash" in line for line in app.lines) == 1
        app.view.action_scroll_home()
        await until(lambda: panel.display)
        assert not any("bash" in line for line in app.lines)
        await until(lambda: panel.size.height == 1)  # what asks is seen in its form
        assert panel.render_line(0).text.rstrip().endswith("bash  2.0 s  ls  step 2")
        app.view.scroll_to_end()
        await until(lambda: not panel.display)
        assert sum("bash" in line for line in app.lines) == 1
        app.view.action_scroll_home()
        await until(lambda: panel.display)
        app.kept.put(8, call(9, started=98.0, duration=2.0))
        app.flush()
        assert not panel.display


async def test_the_list_of_tasks_is_shown_until_all_are_done():
    todo = ToolBlock("1", "c", "todo", {}, None, "done", (Text("[x] read\n[>] write\n[ ] test"),))
    app = Scene(todo)
    async with app.run_test(size=(70, 20)) as pilot:
        await pilot.pause()
        panel = app.query_one(TodoPanel)
        assert [panel.render_line(y).text.strip()[:9] for y in range(4)] == [
            "Tasks 1/3",
            "✓ read",
            "▸ write",
            "· test",
        ]
        panel.is_wanted = False
        assert not panel.display
        panel.is_wanted = True
        app.kept.append(ToolBlock("2", "c", "todo", {}, None, "done", (Text("[x] read\n[x] write"),)))
        app.flush()
        assert not panel.display


async def test_what_is_selected_by_mouse_is_copied_as_it_was_written():
    text = "The quick brown fox jumps over the lazy dog and **never** comes back again to this place."
    app = Scene(prompt(1, "first line\nsecond line"), ReplyBlock("2", text))
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        await pilot.mouse_down(TranscriptView, offset=(2, 3))
        await pilot.hover(TranscriptView, offset=(30, 4))
        await pilot.mouse_up(TranscriptView, offset=(30, 4))
        chosen = app.screen.get_selected_text()
        assert chosen is not None
        assert text.startswith(chosen)
        assert "\n" not in chosen
        assert len(chosen) > 40
        everything = app.view.get_selection(Selection(None, None))
        assert everything == ("first line\nsecond line\n\n" + text, "\n")
        app.view.get_selection(Selection(Offset(0, 0), Offset(5, 0)))


def a_window(*blocks, width: int = 40) -> LineWindow:
    window = LineWindow(Setting(width, LOOKS["dark"]), Folds(lambda: 0.0), lambda: 0.0)
    window.height = 50
    kept = BlockList()
    for block in blocks:
        kept.append(block)
    window.take_changes(kept.since(0))
    return window


CODE = """Look:

```python
def f():
    if True:
        return "a long line of code that does not fit into the width of the screen"
    return None
```

- one **bold** word
- two `code`
"""


def test_a_copy_of_part_of_a_reply_is_its_source():
    window = a_window(ReplyBlock("1", CODE))
    lines = [strip.text for strip in window.painted(0).strips]

    def line_with(text: str) -> int:
        return next(number for number, line in enumerate(lines) if text in line)

    start, end = line_with("def f"), line_with("return None")
    assert copied(window, (0, start, 0), (0, end, 40)) in CODE
    assert copied(window, (0, start, 0), (0, end, 40)).startswith("def f():\n    if True:\n        return")
    one, two = line_with("bold"), line_with("two")
    assert copied(window, (0, one, 0), (0, two, 40)) == "- one **bold** word\n- two `code`"
    assert copied(window, None, None) == CODE


def test_a_copy_of_a_wrapped_prompt_has_no_breaks_of_the_screen():
    text = "one two three four five six seven eight nine ten eleven twelve"
    window = a_window(prompt(1, text), width=30)
    assert len(window.painted(0).strips) > 2
    lines = [strip.text[2:].rstrip() for strip in window.painted(0).strips]
    assert copied(window, (0, 0, 2 + 4), (0, 1, 2 + 3)) == f"{lines[0][4:]} {lines[1][:3]}"
    assert copied(window, (0, 0, 0), (0, 2, 30)) == text
