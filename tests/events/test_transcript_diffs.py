"""Diffs: what the file tools changed, as numbered lines."""

import difflib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink import Agent, Text, ToolCall
from swink.events.transcript import Diff, Line, ToolBlock, Transcript, diff
from swink.events.transcript.diffs import MOST_LINES, changed_words
from swink.testing import ScriptedModel
from swink.tools import coding_tools

files = st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), max_size=30).map(
    lambda lines: "".join(line + "\n" for line in lines)
)


@tried(150, 1_000)
@given(files, files)
def test_a_diff_leads_from_the_old_file_to_the_new_one(old: str, new: str):
    before, after = old.splitlines(), new.splitlines()
    made = diff("f", old, new)
    patched, at = list[str](), 0
    for hunk in made.hunks:
        first = next((line.old for line in hunk.lines if line.old is not None), None)
        if first is not None:
            patched += before[at : first - 1]
            at = first - 1
        for line in hunk.lines:
            if line.kind != "added":
                assert before[at] == line.text
                assert line.old == at + 1
                at += 1
            if line.kind != "removed":
                patched.append(line.text)
                assert line.new == len(patched)
    assert patched + before[at:] == after
    changed = [line for hunk in made.hunks for line in hunk.lines if line.kind != "same"]
    beside = [
        line for hunk in made.hunks for row in hunk.rows for line in row if line and line.kind != "same"
    ]
    assert sorted(changed, key=repr) == sorted(beside, key=repr)
    assert bool(made.hunks) == (before != after)


def test_the_unified_form_is_the_usual_one():
    old, new = (
        "".join(f"{n}\n" for n in range(30)),
        "".join(f"{n}\n" for n in range(30) if n != 5).replace("20\n", "twenty\n"),
    )
    expected = difflib.unified_diff(old.splitlines(), new.splitlines(), "a/f", "b/f", lineterm="")
    assert diff("f", old, new).unified.splitlines() == list(expected)


def test_side_by_side_puts_what_was_replaced_beside_its_replacement():
    (hunk,) = diff("f", "a\nb\nc\n", "a\nB\nB2\nc\n").hunks
    assert [(left and left.text, right and right.text) for left, right in hunk.rows] == [
        ("a", "a"),
        ("b", "B"),
        (None, "B2"),
        ("c", "c"),
    ]


def test_changed_words_are_found_in_lines_that_are_alike_and_not_in_others():
    assert changed_words("return a + 1", "return b + 1") == ([(7, 8)], [(7, 8)])
    assert changed_words("return a + 1", "import everything") == ([], [])
    assert changed_words("x" * 1000, "y" * 1000) == ([], [])


def test_a_file_that_changed_everywhere_is_not_compared_line_by_line():
    old = "\n".join(f"{n % 7}" for n in range(MOST_LINES * 3))
    new = "\n".join(f"{n % 5}" for n in range(MOST_LINES * 3))
    made = diff("f", old, new)
    assert len(made.hunks) == 1
    assert made.removed > MOST_LINES


async def test_the_file_tools_tell_what_they_changed(tmp_path: Path):
    tmp_path.joinpath("a.py").write_text("one\ntwo\n")
    calls = [
        ToolCall("1", "write_file", {"path": "new.txt", "content": "x\ny\n"}),
        ToolCall("2", "edit_file", {"path": "a.py", "edits": [{"old": "two", "new": "three"}]}),
        ToolCall("3", "delete_file", {"path": "new.txt"}),
        ToolCall("4", "read_file", {"path": "a.py"}),
    ]
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([*calls, "done"]),
        tools=coding_tools(tmp_path),
        approve=lambda request: True,
    )
    transcript = Transcript()
    agent.subscribe(transcript.take)
    await agent.run("go")
    created, changed, deleted, read = [block for block in transcript.blocks if isinstance(block, ToolBlock)]
    assert [
        (made.diff.path, made.diff.kind, made.diff.added, made.diff.removed)
        for made in (created, changed, deleted)
    ] == [
        ("new.txt", "created", 2, 0),
        ("a.py", "changed", 1, 1),
        ("new.txt", "deleted", 0, 2),
    ]
    assert read.diff is None
    assert changed.diff.hunks[0].lines == (
        Line("same", "one", 1, 1),
        Line("removed", "two", 2),
        Line("added", "three", None, 2),
    )


def block(details: Any) -> Diff | None:
    return ToolBlock("1", "c", "edit_file", content=(Text("ok"),), details=details).diff


def test_content_that_was_too_large_or_no_text_has_no_diff():
    known = {"path": "f", "is_new_file": False, "old_content": "a", "new_content": "b", "hash": "h"}
    assert block(known) is not None
    assert block({"full_text": "…", "details": known}) is not None
    assert block({**known, "new_content": None}) is None
    assert block({**known, "old_content": None}) is None
    assert block({"path": "f"}) is None
    assert block("text") is None
