"""Review hunk by hunk: exactly what was approved is written, and the model is told what was not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.counts import tried

from swink import Agent, ToolCall, ToolResultMessage, tool
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Once, Question, Refuse
from swink.app.assistant.previews import Preview, preview
from swink.app.assistant.reviewing import Review, apply_verdicts, note_summary, reason_of, rewrite
from swink.app.assistant.rulebook import RuleBook
from swink.events.transcript.diffs import diff
from swink.testing import ScriptedModel
from swink.tools.coding.edits import Edit, apply_edits
from swink.tools.coding.text import hash_content
from swink.tools.coding.workspace import Workspace
from swink.tools.coding.writing import write_tools

OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = (
    OLD.replace("line 3\n", "line three\nline 3b\n")
    .replace("line 20\n", "")
    .replace("line 38\n", "line XXXVIII\n")
)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text(OLD)
    return tmp_path / "work"


def review(old: str, new: str, *verdicts: Any, name: str = "write_file") -> Review:
    found = diff("a.txt", old, new)
    made = Review(Preview("", hash_content(old.encode()), found, old, new, can_review=True))
    made.verdicts[:] = verdicts
    return made


def test_each_hunk_has_its_own_verdict():
    assert len(diff("a", OLD, NEW).hunks) == 3
    assert review(OLD, NEW, True, True, True).text() == NEW
    assert review(OLD, NEW, False, False, False).text() == OLD
    assert review(OLD, NEW, True, False, False).text() == OLD.replace("line 3\n", "line three\nline 3b\n")
    assert review(OLD, NEW, False, True, None).text() == OLD.replace("line 20\n", "")
    third = review(OLD, NEW, False, False, None)
    written = third.proposed(2).replace("line XXXVIII", "mine")
    third.verdicts[2] = written
    assert third.text() == OLD.replace("line 38\n", "mine\n")


@pytest.mark.parametrize(
    ("old", "new", "verdicts", "result"),
    [
        ("a\r\n" * 9 + "b\r\n" + "a\r\n" * 9, "a\r\n" * 9 + "c\r\n" + "a\r\n" * 9, ("a\na\na\nd\na\na\na",), "a\r\n" * 9 + "d\r\n" + "a\r\n" * 9),
        ("x\ny", "x\nz", ("x\nmine",), "x\nmine"),
        ("x\ny", "x\nz", ("x\nmine\n",), "x\nmine"),
        ("x", "x\ny\n", (True,), "x\ny\n"),
        ("x\n", "", (False,), "x\n"),
        ("x\n", "", ("",), ""),
        ("a\n" * 8 + "end", "b\n" + "a\n" * 8 + "end\nmore", (True, False), "b\n" + "a\n" * 8 + "end"),
        ("a\n" * 8 + "end", "b\n" + "a\n" * 8 + "end\nmore", (False, True), "a\n" * 8 + "end\nmore"),
        ("a\r\n" * 8 + "end", "b\r\n" + "a\n" * 8 + "end", (False,), "a\r\n" * 8 + "end"),
    ],
)  # fmt: skip
def test_line_ends_and_the_missing_last_one_stay(old: str, new: str, verdicts: tuple[Any, ...], result: str):
    assert review(old, new, *verdicts).text() == result


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "é"]), max_size=30)


@tried(50, 1_000)
@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.data())
def test_what_is_approved_and_nothing_else_is_written(
    old: list[str], new: list[str], end: str, ends: bool, data: Any
):
    before = end.join(old) + (end if ends and old else "")
    after = end.join(new) + (end if ends and new else "")
    hunks = diff("x", before, after).hunks
    assume(hunks)
    verdicts = [data.draw(st.booleans()) for _ in hunks]
    text = apply_verdicts(before, after, hunks, verdicts)
    # What is left to do is the rejected hunks, what was done the approved ones.
    left = diff("x", text, after)
    done = diff("x", before, text)
    assert left.added + left.removed <= sum(
        _size(hunk) for hunk, taken in zip(hunks, verdicts, strict=True) if not taken
    )
    assert done.added + done.removed <= sum(
        _size(hunk) for hunk, taken in zip(hunks, verdicts, strict=True) if taken
    )
    if text != before and before:
        arguments = rewrite("edit_file", {"path": "x", "edits": []}, before, text, "0" * 16)
        edits = [Edit(**edit) for edit in arguments["edits"]]
        assert apply_edits(before, edits).text == text


def _size(hunk: Any) -> int:
    return sum(line.kind != "same" for line in hunk.lines)


def permissions(work: Path, judge: Any) -> Permissions:
    """Somebody who reviews each change with `judge`."""

    async def ask(question: Question) -> Any:
        assert question.preview is not None
        assert question.preview.can_review
        found = Review(question.preview)
        judge(found)
        return found.reply(question.request.name, question.request.arguments)

    return Permissions(workspace=Workspace(work), rules=RuleBook(path=work.parent / "permissions"), ask=ask)


def take_first_and_last(found: Review) -> None:
    found.verdicts[:] = [True, False, True]


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("1", "write_file", {"path": "a.txt", "content": NEW}),
        ToolCall(
            "1",
            "edit_file",
            {
                "path": "a.txt",
                "edits": [
                    {"old": "line 3\n", "new": "line three\nline 3b\n"},
                    {"old": "line 20\n", "new": ""},
                    {"old": "line 38\n", "new": "line XXXVIII\n"},
                ],
            },
        ),
    ],
)
async def test_the_tool_writes_the_approved_hunks_byte_for_byte(work: Path, call: ToolCall):
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([[call], "Done."]),
        tools=write_tools(Workspace(work)),
        approve=permissions(work, take_first_and_last),
        approval_mode="on",
    )
    await agent.run("edit")
    assert (work / "a.txt").read_bytes() == NEW.replace("line 19\n", "line 19\nline 20\n").encode()
    result = agent.messages[-2]
    assert isinstance(result, ToolResultMessage)
    assert "the user rejected them (1 of 3)" in result.text
    assert "-line 20" in result.text


def test_the_note_says_what_was_rejected_and_what_was_written_otherwise(work: Path):
    found = preview(Workspace(work), "write_file", {"path": "a.txt", "content": NEW})
    assert found is not None
    judged = Review(found)
    judged.verdicts[:] = [False, True, "mine"]
    reply = judged.reply("write_file", {"path": "a.txt", "content": NEW})
    assert isinstance(reply, Once)
    assert "+line three" in reply.note
    assert "mine" in reply.note
    assert "-line 20" not in reply.note
    assert note_summary(reply.note) == "1 of 3 parts refused, 1 of 3 parts written by you"
    judged.judge(0, False, "three is a number")
    reply = judged.reply("write_file", {"path": "a.txt", "content": NEW})
    assert isinstance(reply, Once)
    assert "(1 of 3):\nbecause: three is a number\n@@" in reply.note
    assert note_summary(reply.note).endswith("1 of 3 parts written by you: three is a number")
    judged.judge(0, True)
    assert judged.reasons == {}
    judged.verdicts[:] = [False, False, False]
    judged.judge(1, False, "not now")
    refusal = judged.reply("write_file", {})
    assert refusal == Refuse("every part of the change was rejected; nothing was written; not now")
    judged.verdicts[:] = [True, True, True]
    assert judged.reply("write_file", {}) == Once()


def test_the_reason_of_a_rejection_is_what_somebody_said():
    assert reason_of("tool call rejected: the user said no: later") == "later"
    assert (
        reason_of("tool call rejected: the user's rule: deny bash(git *)")
        == "the user's rule: deny bash(git *)"
    )
    for unsaid in ("tool call rejected: the user said no", "tool call rejected by the user", "anything else"):
        assert reason_of(unsaid) == ""


async def test_a_file_that_changes_after_the_review_is_left_alone(work: Path):
    approve = permissions(work, take_first_and_last)
    call = ToolCall("1", "write_file", {"path": "a.txt", "content": NEW})
    other = ToolCall("2", "slow", {})

    @tool(priority=10)
    async def slow() -> str:
        """Change the file before the other call runs."""
        (work / "a.txt").write_text("somebody else's\n")
        return ""

    async def judge(request: Any) -> Any:
        return True if request.name == "slow" else await approve(request)

    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([[other, call], "Done."]),
        tools=[slow, *write_tools(Workspace(work))],
        approve=judge,
        approval_mode="on",
        tool_execution="sequential",
    )
    await asyncio.wait_for(agent.run("edit"), 30)
    assert (work / "a.txt").read_text() == "somebody else's\n"
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert "read it again" in results[-1].text


@pytest.mark.parametrize("data", [b"caf\xe9\nb\n", b"ok \xc3\x28 \xc3\xa9\n"])
def test_no_review_where_other_bytes_would_change(work: Path, data: bytes):
    (work / "b.txt").write_bytes(data)
    found = preview(Workspace(work), "write_file", {"path": "b.txt", "content": "new\n"})
    assert found is None or not found.can_review
