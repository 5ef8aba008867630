"""A call touches what it was judged by and a person saw, or nothing."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import crossed, tried

from swink import Agent, ToolCall, ToolResultMessage, tool
from swink.agent.policy import ApprovalRequest, PolicyContext, RunKey
from swink.app.assistant.approvalmodes import ApprovalWord
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Always, Once, Question, Refuse
from swink.app.assistant.previews import preview
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import parse_rule
from swink.app.cli.terminalquestions import format_question
from swink.policies import PathGuard
from swink.testing import ScriptedModel
from swink.tools import ToolContext, ToolError, list_tools, read_tools, search_tools, write_tools
from swink.tools.coding.workspace import Workspace

Ask = Callable[[Question], Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in ("notes.md", ".mcp.json", "src/a.md", "other/a.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("one\ntwo\n")
    return root


def permissions(root: Path, word: ApprovalWord = "smart", *rules: str, **options: Any) -> Permissions:
    book = RuleBook(root, path=root.parent / "permissions")
    book.add([parse_rule(rule) for rule in rules], "project")
    return Permissions(word, workspace=Workspace(root), rules=book, **options)


def answering(*replies: Any, meanwhile: Callable[[], Any] = lambda: None) -> tuple[list[Question], Ask]:
    """Replies one after the other; before the first one something happens."""
    seen: list[Question] = []

    async def ask(question: Question) -> Any:
        seen.append(question)
        assert len(seen) < 20, "asked again and again"
        if len(seen) == 1:
            meanwhile()
        return replies[min(len(seen), len(replies)) - 1]

    return seen, ask


async def run(
    root: Path,
    asked: Permissions | None,
    *calls: tuple[str, dict[str, Any]],
    before: Callable[[], Any] = lambda: None,
    policies: Any = (),
) -> list[str]:
    """What one turn's calls say; something happens after they were approved and before they run."""

    @tool(priority=10)
    async def between() -> str:
        """Run before the others."""
        before()
        return ""

    async def approve(request: Any) -> Any:
        return True if request.name == "between" or asked is None else await asked(request)

    named = [ToolCall(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(calls)]
    workspace = Workspace(root)
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([[ToolCall("between", "between", {}), *named], "Done."]),
        tools=[
            between,
            *write_tools(workspace),
            *read_tools(workspace),
            *list_tools(workspace),
            *search_tools(workspace),
        ],
        approve=approve,
        approval_mode="on",
        tool_execution="sequential",
        policies=policies,
    )
    await agent.run("go")
    return [message.text for message in agent.messages if isinstance(message, ToolResultMessage)][1:]


def write(path: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": "three\n"}


def edit(path: str, old: str = "two", new: str = "2") -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "edits": [{"old": old, "new": new}]}


def relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


# ── what people see ──


async def test_a_question_names_the_file_that_a_link_leads_to(root: Path):
    relink(root / "notes.md", ".mcp.json")
    seen, ask = answering(Refuse())
    await run(root, permissions(root, "edits", ask=ask), edit("notes.md"))
    shown = seen[0].preview
    assert shown is not None
    assert shown.diff is not None
    assert shown.summary == "changes notes.md → .mcp.json (link): +1 -1; other programs obey this file"
    assert shown.diff.path == "notes.md → .mcp.json (link)"
    assert seen[0].leads_to == ".mcp.json (link)"
    assert seen[0].suggested == ()


async def test_a_suggested_rule_is_for_the_file_itself(root: Path):
    (root / "link").symlink_to("src")
    seen, ask = answering(Refuse())
    await run(root, permissions(root, ask=ask), write("link/a.md"), write("link/../new.md"))
    assert [[str(rule) for rule in question.suggested] for question in seen] == [
        ["write_file(src/**)"],
        ["write_file(new.md)"],
    ]
    assert [question.leads_to for question in seen] == ["src/a.md (link)", ""]


async def test_a_question_about_reading_names_the_file_too(root: Path):
    relink(root / "notes.md", "/etc/passwd")
    seen, ask = answering(Refuse())
    await run(root, permissions(root, "on", ask=ask), ("read_file", {"path": "notes.md"}))
    assert seen[0].leads_to == "/etc/passwd (link)"


async def test_the_terminal_names_the_file_as_well(root: Path):
    relink(root / "notes.md", ".mcp.json")
    seen, ask = answering(Refuse())
    asked = permissions(root, "on", ask=ask)
    await run(root, asked, ("read_file", {"path": "notes.md"}), edit("notes.md"))
    assert "swink: the path leads to .mcp.json (link)" in format_question(seen[0])
    assert "swink: it changes notes.md → .mcp.json (link): +1 -1" in format_question(seen[1])


async def test_nobody_is_asked_to_delete_a_link_which_the_tool_leaves_alone(root: Path):
    relink(root / "notes.md", ".mcp.json")
    said = await run(root, permissions(root), ("delete_file", {"path": "notes.md"}))
    assert "would fail: notes.md → .mcp.json (link), and only files are deleted" in said[0]
    assert (root / ".mcp.json").exists()


async def test_a_path_that_only_takes_a_detour_is_no_link(root: Path):
    found = preview(Workspace(root), *write("src/../notes.md"))
    assert found is not None
    assert found.summary.startswith("changes src/../notes.md:")


async def test_a_link_that_changes_while_somebody_thinks_is_asked_about_again(root: Path):
    relink(root / "notes.md", "src/a.md")
    seen, ask = answering(Once(), Refuse(), meanwhile=lambda: relink(root / "notes.md", ".mcp.json"))
    await run(root, permissions(root, ask=ask), edit("notes.md"))
    assert [question.leads_to for question in seen] == ["src/a.md (link)", ".mcp.json (link)"]
    assert "has changed" in seen[1].notice


# ── what is written ──


def swap_link(root: Path) -> None:
    relink(root / "notes.md", ".mcp.json")


def swap_file(root: Path) -> None:
    (root / "new").write_text("one\ntwo\n")
    os.replace(root / "new", root / "notes.md")


def change_content(root: Path) -> None:
    (root / "notes.md").write_text("one\n222\n")


def put_pipe(root: Path) -> None:
    (root / "notes.md").unlink()
    os.mkfifo(root / "notes.md")


def put_directory(root: Path) -> None:
    (root / "notes.md").unlink()
    (root / "notes.md").mkdir()


@crossed(
    word=["edits", "off", "smart"],
    change={
        change.__name__: change for change in (swap_link, swap_file, change_content, put_pipe, put_directory)
    },
    call={
        "write": write("notes.md"),
        "edit": edit("notes.md"),
        "delete": ("delete_file", {"path": "notes.md"}),
    },
)
async def test_what_changed_since_it_was_allowed_is_left_alone(
    root: Path, word: ApprovalWord, change: Callable[[Path], None], call: tuple[str, dict[str, Any]]
):
    _, ask = answering(Once())
    before: dict[str, bytes] = {}

    def happen() -> None:
        change(root)
        before.update(contents(root))

    said = await run(root, permissions(root, word, ask=ask), call, before=happen)
    assert contents(root) == before, said
    assert said[0].startswith("nothing was done") or "is a" in said[0] or "not a regular file" in said[0]


async def test_a_directory_that_was_swapped_for_a_link_or_another_one_is_left_alone(root: Path):
    for new in ("src/new.md", "src/deeper/new.md"):
        said = await run(
            root, permissions(root, "edits"), write(new), before=lambda: move_and_link(root, "other")
        )
        assert "since this call was judged" in said[0]
        (root / "src").unlink()
        (root / "kept").rename(root / "src")
    said = await run(
        root, permissions(root, "edits"), write("src/new.md"), before=lambda: move_and_make(root)
    )
    assert "has come to be in another directory" in said[0]
    assert sorted(os.listdir(root / "other")) == ["a.md"]
    assert os.listdir(root / "src") == []


def move_and_link(root: Path, target: str) -> None:
    (root / "src").rename(root / "kept")
    (root / "src").symlink_to(target)


def move_and_make(root: Path) -> None:
    (root / "src").rename(root / "kept")
    (root / "src").mkdir()


async def test_a_link_that_appears_where_a_directory_was_to_be_made_makes_nothing(root: Path):
    (root / ".vscode").mkdir()
    said = await run(
        root,
        permissions(root, "edits"),
        write("new/deep/tasks.json"),
        before=lambda: (root / "new").symlink_to(".vscode"),
    )
    assert "since this call was judged" in said[0]
    assert os.listdir(root / ".vscode") == []


@pytest.mark.parametrize("word", ["edits", "smart"])
async def test_calls_of_one_turn_build_on_each_other(root: Path, word: ApprovalWord):
    _, ask = answering(Once())
    said = await run(
        root,
        permissions(root, word, ask=ask),
        edit("notes.md"),
        edit("notes.md", "one", "1"),
        write("new/a.md"),
        write("new/b.md"),
        write("new/a.md"),
        ("read_file", {"path": "notes.md"}),
        ("delete_file", {"path": "new/b.md"}),
        write("new/b.md"),
    )
    assert (root / "notes.md").read_text() == "1\n2\n"
    assert said[5] == "1\n2"
    assert sorted(os.listdir(root / "new")) == ["a.md", "b.md"] if word == "edits" else ["a.md"]


async def test_a_hard_link_to_a_file_that_is_obeyed_is_broken_and_not_written_through(root: Path):
    (root / "notes.md").unlink()
    (root / "notes.md").hardlink_to(root / ".mcp.json")
    said = await run(root, permissions(root, "edits"), write("notes.md"))
    assert said[0].startswith("replaced notes.md")
    assert (root / ".mcp.json").read_text() == "one\ntwo\n"


async def test_a_directory_that_is_left_again_need_not_exist(root: Path):
    said = await run(root, permissions(root, "edits"), write("missing/../new.md"))
    assert said[0].startswith("created new.md")
    assert not (root / "missing").exists()


@pytest.mark.parametrize("path", ["src/" + "./" * 3_000 + "a.md", "./" * 3_000 + "notes.md"])
async def test_no_path_is_too_long_for_a_denial(root: Path, path: str):
    said = await run(root, permissions(root, "off", "deny write_file(src/**)"), write(path))
    assert "more than 4,096 characters" in said[0]
    assert (root / "src/a.md").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("path", ["SRC/a.md", "Src/A.MD", "sRc/deep/x"])
async def test_a_denial_holds_for_a_file_in_other_letters(root: Path, path: str):
    said = await run(root, permissions(root, "off", "deny write_file(src/**)"), write(path))
    assert "the user's rule: deny write_file(src/**)" in said[0]


async def test_a_person_who_writes_another_path_means_that_one(root: Path):
    _, ask = answering(Once({"path": "src/a.md", "content": "three\n"}))
    said = await run(
        root,
        permissions(root, ask=ask),
        write("notes.md"),
        before=lambda: relink(root / "src/a.md", "../.mcp.json"),
    )
    assert "since this call was judged" in said[0]
    assert (root / ".mcp.json").read_text() == "one\ntwo\n"


async def test_always_binds_this_call_too(root: Path):
    _, ask = answering(Always())
    said = await run(root, permissions(root, ask=ask), write("notes.md"), before=lambda: swap_link(root))
    assert "has come to lead somewhere else" in said[0]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", {"path": "src/a.md", "content": ""}),
        ("read_file", {"path": "src/a.md"}),
        ("list_files", {"path": "src"}),
        ("find_files", {"path": "src", "pattern": "a.md"}),
        ("search_text", {"path": "src", "pattern": "one"}),
    ],
)
async def test_a_path_guard_binds_the_file_tools(root: Path, name: str, arguments: dict[str, Any]):
    guard = PathGuard(root / "src", base=root)
    said = await run(
        root,
        None,
        (name, arguments),
        before=lambda: move_and_link(root, "other"),
        policies=[guard],
    )
    assert "has come to lead somewhere else since this call was judged" in said[0]


async def test_two_judges_must_have_seen_the_same_file(root: Path):
    _, ask = answering(Once(), meanwhile=lambda: swap_link(root))
    said = await run(root, permissions(root, ask=ask), write("notes.md"), policies=[PathGuard(root)])
    assert "has come to lead somewhere else" in said[0]
    assert (root / ".mcp.json").read_text() == "one\ntwo\n"


# ── any arrangement ──

NAMES = ("a", "b", "d")
PLACES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map("/".join)
ASKED = st.lists(st.sampled_from((*NAMES, "..")), min_size=1, max_size=3).map("/".join)
STEPS = st.lists(
    st.tuples(st.sampled_from(("file", "directory", "link", "absolute", "rename", "remove")), PLACES, ASKED),
    max_size=4,
)
CALLS = st.sampled_from(("write_file", "edit_file", "delete_file"))
ARGUMENTS = {"write_file": {"content": "new"}, "edit_file": {"edits": [{"old": "old", "new": "new"}]}}
START = [("directory", "d", ""), *[("file", name, "") for name in ("a", "b", "d/a", "d/b")]]


def arrange(root: Path, steps: list[tuple[str, str, str]]) -> None:
    """Put files, directories and links where something else may be."""
    for number, (kind, place, target) in enumerate(steps):
        path = root / place
        with suppress(OSError, ValueError):
            if kind == "rename":
                path.rename(root / os.path.normpath(f"/{target}")[1:])
                continue
            if os.path.lexists(path):
                path.rename(root / f"gone-{number}-{os.urandom(4).hex()}")
            if kind == "file":
                path.write_text(f"old {place}")
            elif kind == "directory":
                path.mkdir()
            elif kind != "remove":
                path.symlink_to(target if kind == "link" else root / target)


def contents(root: Path) -> dict[str, bytes]:
    """Every regular file by its real path."""
    return {
        os.path.relpath(os.path.join(above, name), root): Path(above, name).read_bytes()
        for above, _, names in os.walk(root)
        for name in names
        if not (path := Path(above, name)).is_symlink() and path.is_file()
    }


@tried(20, 250)
@given(st.data())
async def test_what_the_judgement_names_is_the_file_that_changes_or_nothing_does(data: st.DataObject):
    with TemporaryDirectory() as scratch:
        root = Path(os.path.realpath(scratch), "work")
        root.mkdir()
        arrange(root, START + data.draw(STEPS))
        name, path = data.draw(CALLS), data.draw(ASKED)
        arguments = {"path": path, **ARGUMENTS.get(name, {})}
        seen, ask = answering(Once())
        asked = permissions(root, data.draw(st.sampled_from(("smart", "edits", "off"))), ask=ask)
        context = cast(PolicyContext, SimpleNamespace(tools=(), run=RunKey()))
        answer = await asked(ApprovalRequest("c", name, arguments, arguments, True, context))
        target = asked.workspace and asked.workspace.look(path)
        assert target is not None
        if answer is not True:
            return
        if seen:
            named = seen[0].leads_to.removesuffix(" (link)") or path
            assert os.path.normpath(root / named) == target.path
        arrange(root, data.draw(STEPS))
        before = contents(root)
        tools = {tool.name: tool for tool in write_tools(Workspace(root))}
        try:
            await tools[name].execute("c", arguments, ToolContext("c", name))
        except ToolError:
            assert contents(root) == before
            return
        after = contents(root)
        changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
        assert changed <= {os.path.relpath(target.path, root)}
