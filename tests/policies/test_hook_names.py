"""The other program's names of tools and arguments, there and back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried
from tests.strategies import json_values, words

from swink.policies.hooks.hook import Hook
from swink.policies.hooks.hooknames import TOOLS, CannotTranslate, foreign_tool, to_foreign, to_ours

HERE = "/work/project"
edits = st.lists(
    st.fixed_dictionaries({"old": words, "new": words}, optional={"replace_all": st.booleans()}),
    min_size=1,
    max_size=3,
)
arguments = st.dictionaries(
    st.sampled_from(
        ["path", "command", "timeout", "content", "pattern", "ignore_case", "context", "task", "url"]
    ),
    json_values,
)


def test_the_tools_have_their_names():
    assert foreign_tool("bash") == "Bash"
    assert foreign_tool("delete_file") == "Write"
    assert foreign_tool("files_read", "files") == "mcp__files__read"
    assert foreign_tool("my_server_read", "my server") == "mcp__my server__read"
    assert foreign_tool("weather") == "weather"


def test_a_path_behind_a_link_is_shown_as_it_is_opened(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    shown = to_foreign("read_file", {"path": "link/../secret.txt"}, str(tmp_path))
    assert shown == {"file_path": str(tmp_path / "a" / "secret.txt")}


def test_arguments_have_their_names_and_paths_are_absolute():
    assert to_foreign("bash", {"command": "ls", "timeout": 2.0}, HERE) == {"command": "ls", "timeout": 2000}
    assert to_foreign("write_file", {"path": "a.py", "content": "x"}, HERE) == {
        "file_path": f"{HERE}/a.py",
        "content": "x",
    }
    assert to_foreign("delete_file", {"path": "a.py"}, HERE) == {"file_path": f"{HERE}/a.py", "content": ""}
    assert to_foreign("edit_file", {"path": "a", "edits": [{"old": "1", "new": "2"}]}, HERE) == {
        "file_path": f"{HERE}/a",
        "old_string": "1",
        "new_string": "2",
        "replace_all": False,
    }
    tasks = [{"text": "go", "status": "done"}]
    assert to_foreign("todo", {"tasks": tasks}, HERE) == {"todos": [{"content": "go", "status": "completed"}]}


def test_a_hook_sees_the_text_of_every_edit():
    several = [{"old": "1", "new": "2"}, {"old": "3", "new": "key"}]
    found = to_foreign("edit_file", {"path": "a", "edits": several}, HERE)
    assert "key" in found["new_string"]
    assert [edit["new_string"] for edit in found["edits"]] == ["2", "key"]


@tried(200, 1_000)
@given(st.sampled_from([*TOOLS, "weather"]), arguments, edits)
def test_what_is_not_changed_comes_back_as_it_was(name: str, given_arguments: dict, given_edits: list):
    if name == "edit_file":
        given_arguments = {**given_arguments, "edits": given_edits}
    assert to_ours(name, to_foreign(name, given_arguments, HERE), given_arguments, HERE) == given_arguments


def test_a_changed_input_is_ours():
    before = {"command": "rm x", "timeout": 0.1, "directory": "src"}
    told = to_foreign("bash", before, HERE)
    assert to_ours("bash", {**told, "command": "ls"}, before, HERE) == {**before, "command": "ls"}
    edit = {"path": "a", "edits": [{"old": "1", "new": "2", "near_line": 4}]}
    told = to_foreign("edit_file", edit, HERE)
    changed = to_ours("edit_file", {**told, "file_path": f"{HERE}/b", "new_string": "3"}, edit, HERE)
    assert changed == {"path": "b", "edits": [{"old": "1", "new": "3", "near_line": 4, "replace_all": False}]}
    outside = to_ours("read_file", {"file_path": "/etc/passwd"}, {"path": "a"}, HERE)
    assert outside == {"path": "/etc/passwd"}


def test_a_change_that_has_no_meaning_is_refused():
    several = {"path": "a", "edits": [{"old": "1", "new": "2"}, {"old": "3", "new": "4"}]}
    told = to_foreign("edit_file", several, HERE)
    with pytest.raises(CannotTranslate):
        to_ours("edit_file", {**told, "new_string": "5"}, several, HERE)
    with pytest.raises(CannotTranslate):
        to_ours("delete_file", {"file_path": "a", "content": "not empty"}, {"path": "a"}, HERE)


def test_a_plain_matcher_is_that_tool_alone_and_another_one_a_pattern():
    assert Hook("PreToolUse", "x", "Edit|Write").matches("Write")
    assert not Hook("PreToolUse", "x", "Edit").matches("NotebookEdit")
    assert Hook("PreToolUse", "x", "mcp__.*__write.*").matches("mcp__files__write_file")
    assert Hook("PreToolUse", "x", "*").matches("anything")
    assert Hook("PreToolUse", "x").matches("anything")
    assert not Hook("PreToolUse", "x", "bash").matches("Bash")


def test_a_matcher_that_is_no_pattern_matches_every_tool():
    broken = Hook("PreToolUse", "x", "Bash(")
    assert broken.matches("anything")
    assert "matches every tool" in broken.problem
