"""The window: whatever happens, the window shows the lines of the blocks, and what is read does not jump."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.app.tui.look import LOOKS
from swink.app.tui.view.folds import Folds
from swink.app.tui.view.linewindow import LineWindow
from swink.app.tui.view.painters import Setting
from swink.events import RetryScheduled
from swink.events.transcript import (
    AgentStopped,
    Block,
    Ended,
    Notice,
    NoticeBlock,
    PromptBlock,
    ReplyBlock,
    Retrying,
    Spent,
    ThinkingBlock,
    ToolBlock,
    Transcript,
)
from swink.events.transcript.blocklist import BlockList
from swink.messages import Text, Usage


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_window(width: int = 40, height: int = 10, clock: Clock | None = None) -> LineWindow:
    clock = clock or Clock()
    window = LineWindow(Setting(width, LOOKS["dark"]), Folds(clock), clock)
    window.height = height
    return window


def told(*blocks: Block) -> BlockList:
    kept = BlockList()
    for block in blocks:
        kept.append(block)
    return kept


def prompt(number: int, text: str = "question") -> PromptBlock:
    return PromptBlock(str(number), (Text(text),))


def call(number: int, state: str = "done", text: str = "one\ntwo\nthree", **fields) -> ToolBlock:
    return ToolBlock(
        str(number), f"c{number}", "bash", {"command": "ls"}, None, state, (Text(text),), **fields
    )


def texts(window: LineWindow) -> list[str]:
    return [shown.strip.text.rstrip() for shown in window.window()]


def everything(window: LineWindow) -> list[str]:
    places = [place for place in range(len(window.blocks)) if not window.is_hidden_at(place)]
    return [strip.text.rstrip() for place in places for strip in window.painted(place).strips]


words = st.sampled_from(
    ["a ", "word ", "日本 ", "\n", "\n\n", "x" * 30, "👍🏽 ", "\t", "\x1b[31m", "**b** ", "```\n"]
)
texts_of = st.lists(words, max_size=30).map("".join)
some_blocks = st.one_of(
    texts_of.map(lambda text: PromptBlock("", (Text(text),))),
    st.builds(ReplyBlock, st.just(""), texts_of, is_complete=st.booleans()),
    st.builds(ThinkingBlock, st.just(""), texts_of, is_complete=st.booleans()),
    st.builds(lambda text, state: call(0, state, text, output=text, started=99.0), texts_of,
              st.sampled_from(["waiting", "running", "done", "failed", "rejected", "approval"])),
    st.just(NoticeBlock("", Spent("m", Usage(1, 2)))),
    st.just(NoticeBlock("", Ended("error", "it broke", "auth"))),
    st.just(NoticeBlock("", Retrying(1, 2.0, "busy"))),
)  # fmt: skip
steps = st.one_of(
    st.tuples(st.just("append"), some_blocks),
    st.tuples(st.just("put"), st.integers(0, 30), some_blocks),
    st.tuples(st.just("cut"), st.integers(0, 30)),
    st.tuples(st.just("scroll"), st.integers(-15, 15)),
    st.tuples(st.just("size"), st.integers(20, 120), st.integers(1, 40)),
    st.tuples(st.just("toggle"), st.integers(0, 30)),
    st.tuples(st.just("thinking"), st.sampled_from(["hidden", "collapsed", "shown"])),
    st.tuples(st.just("wait"), st.sampled_from([0.05, 1.0, 4.0])),
    st.tuples(st.just("end")),
)


@tried(60, 1_000)
@given(st.lists(steps, max_size=40))
def test_any_order_of_events_leaves_a_window_of_the_painted_lines(changes):
    clock = Clock()
    window = a_window(clock=clock)
    kept, version = BlockList(), 0
    number = 0
    for change in changes:
        match change:
            case ("append", block):
                number += 1
                kept.append(renamed(block, str(number)))
            case ("put", place, block) if len(kept):
                place %= len(kept)
                kept.put(place, renamed(block, kept.items[place].id))
            case ("cut", length):
                kept.cut(length)
            case ("scroll", lines):
                window.move_to(window.top + lines)
            case ("size", width, height):
                window.height = height
                window.setting = Setting(width, window.setting.look, window.setting.thinking)
            case ("toggle", place) if window.blocks:
                window.toggle(place % len(window.blocks))
            case ("thinking", thinking):
                window.setting = Setting(window.setting.width, window.setting.look, thinking)
            case ("wait", seconds):
                clock.now += seconds
                window.fold_due()
            case ("end",):
                window.follow()
        told = kept.since(version)
        version = told.version
        window.take_changes(told)
        was_following = window.is_following
        shown = texts(window)
        assert window.is_following == was_following  # only scrolling changes it
    assert list(window.blocks) == kept.items
    shown = texts(window)
    lines = everything(window)
    for place in range(len(window.blocks)):
        window.measure(place)
    assert window.total == len(lines)
    assert len(shown) == min(window.height, len(lines))
    assert shown == texts(window) == lines[window.top : window.top + window.height]
    if window.is_following:
        assert shown == lines[-window.height :]
    for place in range(len(window.blocks)):
        assert all(strip.cell_length == window.setting.width for strip in window.painted(place).strips)


def renamed(block: Block, id: str) -> Block:
    from msgspec.structs import replace

    return replace(block, id=id)


def test_what_is_read_stays_in_place_while_more_arrives_and_heights_above_are_learned():
    window = a_window(height=6)
    blocks = told(*[prompt(n, f"question {n} " + "word " * (n % 40)) for n in range(300)])
    window.take_changes(blocks.since(0))
    texts(window)
    window.move_to(window.top - 40)
    reading = texts(window)
    version = blocks.version
    for n in range(20):
        blocks.append(prompt(1000 + n, "more " * 30))
        window.take_changes(blocks.since(version))
        version = blocks.version
        assert texts(window) == reading
    assert window.unseen > 20
    window.follow()
    assert window.unseen == 0
    assert texts(window)[-1].endswith("more")


def test_scrolling_up_line_by_line_shows_every_line_once():
    window = a_window(height=5)
    window.take_changes(
        told(*[prompt(n, f"question {n} " + "long word " * (n * 7 % 23)) for n in range(60)]).since(0)
    )
    seen = texts(window)
    while window.top > 0:
        window.move_to(window.top - 1)
        above = texts(window)
        assert above[1:] == seen[: len(above) - 1]
        seen = [above[0], *seen]
    assert seen == everything(window)


def test_a_call_opens_while_it_runs_and_folds_three_seconds_after_its_end():
    clock = Clock()
    window = a_window(clock=clock)
    blocks = told(call(1, "running", "", output="working\n", started=100.0))
    window.take_changes(blocks.since(0))
    assert len(texts(window)) == 2
    assert window.is_moving
    blocks.put(0, call(1, "done", started=100.0, duration=1.0))
    window.take_changes(blocks.since(1))
    assert len(texts(window)) == 4
    clock.now += 2.9
    window.fold_due()
    assert len(texts(window)) == 4
    clock.now += 0.2
    window.fold_due()
    assert texts(window) == ["✓ bash  ls  1.0 s  one"]
    assert not window.is_moving


def test_a_call_that_ended_before_it_was_seen_is_open_for_as_long_once():
    clock = Clock()
    window = a_window(clock=clock)
    blocks = told(prompt(1))
    window.take_changes(blocks.since(0))
    blocks.append(call(2, started=100.0, duration=0.0))
    window.take_changes(blocks.since(1))
    assert texts(window)[-2:] == ["  │ two", "  │ three"]
    clock.now += 3.1
    window.fold_due()
    assert texts(window)[-1].startswith("✓ bash")
    blocks.put(1, call(2, started=100.0, duration=0.0, text="one\ntwo"))
    window.take_changes(blocks.since(2))
    assert texts(window)[-1].startswith("✓ bash")


def test_a_call_that_was_touched_stays_as_it_was_left():
    clock = Clock()
    window = a_window(clock=clock)
    blocks = told(call(1, "running", "", output="working\n", started=100.0))
    window.take_changes(blocks.since(0))
    window.toggle(0)
    assert len(texts(window)) == 1
    window.toggle(0)
    blocks.put(0, call(1, "done", started=100.0, duration=1.0))
    window.take_changes(blocks.since(1))
    clock.now += 10
    window.fold_due()
    assert len(texts(window)) > 3


def test_the_first_line_of_what_is_opened_stays_where_it_is_and_folding_it_follows_the_end_again():
    window = a_window(height=8)
    many = "\n".join(f"line {n}" for n in range(50))
    window.take_changes(told(*[prompt(n) for n in range(20)], call(100, text=many), prompt(101)).since(0))
    before = texts(window)
    row = next(y for y, line in enumerate(before) if "bash" in line)
    window.toggle(20)
    after = texts(window)
    assert after[: row + 1][0] == before[0]
    assert after[row].startswith("✓ bash")
    assert after[row + 1].endswith("line 0")
    assert not window.is_following
    window.toggle(20)
    assert texts(window) == before
    assert window.is_following


def test_calls_of_a_saved_session_are_folded():
    window = a_window()
    window.take_changes(told(call(1), call(2)).since(0))
    assert [line[:6] for line in texts(window)] == ["✓ bash", "✓ bash"]


def test_far_blocks_keep_no_lines():
    window = a_window(height=20)
    window.take_changes(told(*[prompt(n, "word " * 50) for n in range(3_000)]).since(0))
    for _ in range(300):
        texts(window)
        window.move_to(max(0, window.top - 20))
    assert window.kept_lines < 1_500


def test_a_reply_that_grows_below_the_window_is_counted():
    window = a_window(height=4)
    blocks = told(*[prompt(n) for n in range(10)], ReplyBlock("99", "start", is_complete=False))
    window.take_changes(blocks.since(0))
    texts(window)
    window.move_to(2)
    reading = texts(window)
    for count in (2, 10):
        version = blocks.version
        blocks.put(10, ReplyBlock("99", "line\n\n" * count, is_complete=False))
        window.take_changes(blocks.since(version))
        assert texts(window) == reading
    assert window.unseen >= 15


def todo(number: int, text: str, **fields) -> ToolBlock:
    return ToolBlock(str(number), f"c{number}", "todo", {}, None, "done", (Text(text),), **fields)


def test_only_the_newest_list_of_tasks_is_open_and_not_where_it_is_shown_elsewhere():
    window = a_window(width=60)
    blocks = told(prompt(1), todo(2, "[>] a\n[ ] b"))
    window.take_changes(blocks.since(0))
    opened = ["✓ todo  reads the list", "  │ ▸ a", "  │ · b"]
    assert texts(window)[-3:] == opened
    version = blocks.version
    blocks.append(todo(3, "[x] a\n[>] b", started=90.0, duration=1.0))
    window.take_changes(blocks.since(version))
    assert window.is_moving
    window.fold_due()
    assert texts(window)[-4:] == [
        "✓ todo  reads the list  0 of 2 done",
        "✓ todo  reads the list  1.0 s",
        "  │ ✓ a",
        "  │ ▸ b",
    ]
    window.folds.show_list_elsewhere(True)
    assert texts(window)[-1] == "✓ todo  reads the list  1.0 s  1 of 2 done"
    # A person decides for good.
    window.toggle(1)
    assert texts(window)[-5:-2] == opened
    window.folds.show_list_elsewhere(False)
    assert texts(window)[-3:] == ["✓ todo  reads the list  1.0 s", "  │ ✓ a", "  │ ▸ b"]
    # When the newest is gone, the one before is the newest.
    window.toggle(1)
    version = blocks.version
    blocks.cut(2)
    window.take_changes(blocks.since(version))
    assert texts(window)[-1] == "✓ todo  reads the list  0 of 2 done"  # as the person left it
    window.begin_conversation()
    window.take_changes(told(prompt(1), todo(2, "[>] a\n[ ] b")).since(0))
    assert texts(window)[-3:] == opened


def test_a_call_that_was_dropped_while_it_ran_leaves_nothing_behind():
    window = a_window()
    blocks = told(prompt(1), call(2, "running", "", output="x", started=99.0))
    window.take_changes(blocks.since(0))
    version = blocks.version
    blocks.cut(1)
    window.take_changes(blocks.since(version))
    assert not window.is_moving
    assert not window.running
    version = blocks.version
    blocks.append(call(2))
    window.take_changes(blocks.since(version))
    assert texts(window)[-1] == "✓ bash  ls  one"
    assert not window.is_moving


def test_a_retry_counts_down_to_the_next_attempt():
    clock = Clock()
    window = a_window(width=60, clock=clock)
    window.take_changes(told(NoticeBlock("~1", Retrying(1, 2.0, "busy"))).since(0))
    assert "trying again in 2.0 s" in texts(window)[0]
    clock.now += 1
    assert "trying again in 1.0 s" in texts(window)[0]
    clock.now += 1.5
    assert not window.is_moving
    assert texts(window)[0].endswith("busy · attempt 1 failed")


def test_attempts_in_a_row_are_one_notice_that_counts_down_anew():
    clock, transcript = Clock(), Transcript()
    window = a_window(width=60, clock=clock)
    for attempt, delay in ((1, 1.0), (2, 2.0), (3, 4.0)):
        version = transcript.since(0).version
        transcript.take(RetryScheduled(attempt, delay, "busy"))
        window.take_changes(transcript.since(version if attempt > 1 else 0))
        clock.now += delay / 2
    assert texts(window) == ["↻ busy · attempt 3 failed, trying again in 2.0 s"]


@pytest.mark.parametrize("end", [Ended("aborted"), AgentStopped("the run was aborted")])
def test_no_retry_counts_down_after_the_end_of_its_run(end: Notice):
    window, blocks = a_window(width=60), told(NoticeBlock("~1", Retrying(1, 30.0, "busy")))
    window.take_changes(blocks.since(0))
    assert "trying again" in texts(window)[0]
    version = blocks.version
    blocks.append(NoticeBlock("~2", end))
    window.take_changes(blocks.since(version))
    assert texts(window)[0].endswith("busy · attempt 1 failed")
    assert not window.is_moving


def test_a_call_that_a_killed_process_began_does_not_seem_to_run():
    window = a_window()
    window.take_changes(told(call(1, "running", "")).since(0))
    assert "outcome unknown" in texts(window)[0]
    assert not window.running
    assert not window.is_moving
