"""Which tools may run, and where their paths may lead."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import Scene, call

from swink import ToolCall
from swink.policies import Sandbox, ToolAllowList, ToolDenyList


async def _ran(policy: Any, names: list[str]) -> tuple[list[str], list[str]]:
    scene = Scene(policy, [[call(number, name) for number, name in enumerate(names)], "done"], names=names)
    await scene.run()
    return [name for name, _ in scene.ran], [message.text for message in scene.agent.messages if message.role == "tool_result"]


async def test_a_deny_list_skips_by_name_glob_and_regex_and_tells_the_model():
    policy = ToolDenyList("bash", "fs_*", re.compile(r"db_(drop|delete)"))
    ran, texts = await _ran(policy, ["bash", "bash_history", "fs_write", "db_drop", "db_dropped", "read"])
    assert ran == ["bash_history", "db_dropped", "read"]
    assert "'bash' is not allowed" in texts[0]


async def test_an_allow_list_skips_everything_else_and_says_what_is_allowed():
    ran, texts = await _ran(ToolAllowList(["read", "search_*"]), ["read", "reader", "search_text", "bash"])
    assert ran == ["read", "search_text"]
    assert "allowed: read, search_*" in texts[1]


async def test_an_allow_list_does_not_break_structured_output():
    scene = Scene(ToolAllowList("read"), [call(name="final_output", value=3)])
    assert (await scene.agent.run("How many?", output=int)).output == 3


async def test_an_empty_allow_list_allows_nothing():
    assert await _ran(ToolAllowList(), ["read"]) == ([], ["tool call not run: 'read' is not allowed here; allowed: none"])


def skipped(policy: Sandbox, **arguments: Any) -> bool:
    return policy.pre_dispatch(None, ToolCall("1", "act", arguments)) is not None  # type: ignore[arg-type]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "file_link").symlink_to(tmp_path / "outside" / "secret")
    (tmp_path / "root" / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "root" / "inner_link").symlink_to(tmp_path / "root" / "sub")
    (tmp_path / "root-other").mkdir()
    return tmp_path / "root"


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret",
        "sub/../../outside",
        "/etc/passwd",
        "~/.ssh/id_rsa",
        "~root/x",
        "link/secret",
        "link/../secret",
        "file_link",
        "dangling",
        "inner_link/../../outside",
        "../root-other/x",
        " /etc/passwd",
        "/etc/passwd ",
        "file:///etc/passwd",
        "FILE:///etc/%70asswd",
        "sub\0/../../x",
        "sub/\ud800",
        "/proc/self/root/etc/passwd",
        "//etc/passwd",
        "sub/./.././../outside",
    ],
)
def test_a_path_that_leads_outside_is_not_run(root: Path, path: str):
    assert skipped(Sandbox(root), path=path)
    assert not Sandbox(root).contains(path)


@pytest.mark.parametrize("path", ["a.txt", "sub/new/file", "sub/../a", ".", "", "inner_link/x", "...", "a..b", "sub/..hidden", "no such"])
def test_a_path_inside_is_let_pass(root: Path, path: str):
    assert not skipped(Sandbox(root), path=path)
    assert not skipped(Sandbox(root), path=str(root / path))


@pytest.mark.parametrize(
    "arguments",
    [
        {"target_file": "link/secret"},
        {"sourceDir": "link"},
        {"new-path": "link"},
        {"edits": [{"file": "a"}, {"file": "link/x"}]},
        {"files": ["a", "../x"]},
        {"files": {"../x": "content"}},
        {"files": [{"name": "link/x", "content": "fine"}]},
        {"options": {"deep": {"cwd": "/"}}},
        {"whatever": "/etc/passwd"},
        {"x": "a/../../b"},
        {"url": "file:///etc/passwd"},
    ],
)
def test_paths_are_found_wherever_they_stand(root: Path, arguments: dict[str, Any]):
    assert skipped(Sandbox(root), **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "/etc/passwd"},
        {"command": "/bin/ls ../x"},
        {"file_content": "/etc"},
        {"query": "../"},
        {"pattern": "/api/.*"},
        {"url": "https://example.com/a/../b"},
        {"note": "see\n/etc/passwd"},
        {"count": 3, "flag": True, "nothing": None},
        {"path": "a", "content": "x = '../..'"},
        {"language": "French", "target": "French"},
    ],
)
def test_what_is_no_path_is_let_pass(root: Path, arguments: dict[str, Any]):
    assert not skipped(Sandbox(root), **arguments)


def test_an_argument_can_be_ignored(root: Path):
    assert not skipped(Sandbox(root, ignore=["route"]), route="/api/users")


def test_relative_paths_are_taken_from_the_base(root: Path, tmp_path: Path):
    assert skipped(Sandbox(root, base=tmp_path), path="outside/secret")
    assert not skipped(Sandbox(root, base=tmp_path), path="root/sub")


def test_a_root_that_is_a_link_is_resolved(root: Path, tmp_path: Path):
    (tmp_path / "alias").symlink_to(root)
    assert not skipped(Sandbox(tmp_path / "alias"), path=str(tmp_path / "alias" / "sub"))


@given(st.lists(st.sampled_from(["..", ".", "sub", "a", "~", "/", "", "sub/", "file:", " "]), max_size=8).map("/".join))
def test_what_passes_is_inside_once_resolved(path: str):
    policy = Sandbox("/nonexistent/root")
    if not skipped(policy, path=path) and path:
        resolved = os.path.realpath(os.path.join("/nonexistent/root", os.path.expanduser(path)))
        assert Path(resolved).is_relative_to("/nonexistent/root")


async def test_the_sandbox_tells_the_model_and_the_batch_goes_on(root: Path):
    scene = Scene(Sandbox(root), [[call(0, path="/etc/passwd"), call(1, path="a")], "done"])
    result = await scene.run()
    assert [arguments for _, arguments in scene.ran] == [{"path": "a"}]
    assert "outside" in result.messages[2].text
    assert result.messages[2].is_error
