"""Path rules: nothing a model writes as a path leads out of the workspace, nor into what is guarded in it."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.errors import MisuseError
from swink.tools import ToolError
from swink.tools.coding.workspace import PathRefused, Workspace, lock_spot

LOOKS = ("open", "stat", "fstat", "readlink", "close")
"""The system calls by which a path is followed."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "dir/deep").mkdir(parents=True)
    (root / "file.txt").write_text("inside")
    (root / "dir/file.txt").write_text("inside")
    (tmp_path / "secret").write_text("CANARY")
    (tmp_path / "rootling").mkdir()
    (tmp_path / "rootling/secret").write_text("CANARY")
    return root


def read(workspace: Workspace, path: str) -> str:
    with workspace.at(path) as spot, os.fdopen(spot.open_file(), "r") as file:
        return file.read()


@pytest.mark.parametrize(
    "path",
    [
        "file.txt",
        "./file.txt",
        "dir/../file.txt",
        "dir/deep/../../file.txt",
        "dir//file.txt",
        "dir/./file.txt",
        "{root}/file.txt",
        "{root}//dir/file.txt",
    ],
)
def test_paths_inside_are_found(root: Path, path: str):
    assert read(Workspace(root), path.format(root=root)) == "inside"


@pytest.mark.parametrize(
    "path",
    [
        "../secret", "dir/../../secret", "../root/../secret", "/etc/passwd", "{root}/../secret", "{root}ling/secret", "{parent}/secret", "..", "dir/../..",
        "/proc/self/root/etc/passwd", "/", "//etc/passwd", "{root}/dir/../../secret", "../../../../../../etc/passwd", "file.txt\0/../../secret", "../rootling/secret",
    ],
)  # fmt: skip
def test_paths_outside_are_refused(root: Path, path: str):
    with pytest.raises(ToolError) as refusal:
        read(Workspace(root), path.format(root=root, parent=root.parent))
    assert "CANARY" not in str(refusal.value)
    assert isinstance(refusal.value, PathRefused)


def test_the_refusal_says_where_the_workspace_is(root: Path):
    with pytest.raises(PathRefused, match=str(root)):
        read(Workspace(root), "/etc/passwd")


@pytest.mark.parametrize(
    "target",
    [
        "../secret",
        "../rootling",
        "{parent}",
        "/etc",
        "/",
        "..",
        "dir/../../secret",
        "{parent}/secret",
        "loop-out",
    ],
)
def test_links_out_are_refused(root: Path, target: str):
    (root / "loop-out").symlink_to("../secret")
    (root / "link").symlink_to(target.format(parent=root.parent))
    for path in ("link", "link/secret", "link/passwd", "dir/../link"):
        with pytest.raises(ToolError):
            read(Workspace(root), path)


def test_links_inside_are_followed(root: Path):
    (root / "relative").symlink_to("dir/file.txt")
    (root / "absolute").symlink_to(root / "dir")
    (root / "dir/up").symlink_to("../file.txt")
    (root / "chain").symlink_to("relative")
    workspace = Workspace(root)
    assert {
        read(workspace, path) for path in ("relative", "absolute/file.txt", "dir/up", "chain", "absolute/up")
    } == {"inside"}
    with workspace.at("absolute/deep/../file.txt") as spot:
        assert spot.path == "dir/file.txt"


def test_a_workspace_that_is_no_directory_is_a_mistake_of_the_program(tmp_path: Path):
    with pytest.raises(MisuseError, match="is not a directory"):
        Workspace(tmp_path / "missing")


def test_a_circle_of_links_is_an_error(root: Path):
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(ToolError, match="too many symbolic links"):
        read(Workspace(root), "a")


def test_a_workspace_behind_a_link_is_known_by_both_names(root: Path):
    alias = root.parent / "alias"
    alias.symlink_to(root)
    workspace = Workspace(alias)
    assert read(workspace, str(alias / "file.txt")) == read(workspace, str(root / "file.txt")) == "inside"


def test_what_is_no_regular_file_is_refused_without_blocking(root: Path):
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        for path, said in (
            ("pipe", "a pipe"),
            ("dir", "is a directory; use list_files"),
            ("socket", "socket"),
        ):
            with pytest.raises(ToolError, match=said):
                read(Workspace(root), path)


def test_a_missing_path_names_the_part_that_is_missing(root: Path):
    with pytest.raises(ToolError, match="there is no dir/missing"):
        read(Workspace(root), "dir/missing/file.txt")
    with pytest.raises(ToolError, match=r"nothing.txt does not exist"):
        read(Workspace(root), "nothing.txt")
    with pytest.raises(ToolError, match=r"file.txt is not a directory"):
        read(Workspace(root), "file.txt/x")


def test_secrets_in_the_workspace_are_not_touched(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(root))
    (root / ".ssh").mkdir()
    (root / ".ssh/id_rsa").write_text("CANARY")
    (root / "store").mkdir()
    (root / "store/a").write_text("CANARY")
    (root / "link").symlink_to(".ssh/id_rsa")
    workspace = Workspace(root, hidden=[root / "store"])
    for path in (".ssh/id_rsa", "dir/../.ssh/id_rsa", "link", "store/a"):
        with pytest.raises(PathRefused, match="holds secrets"):
            read(workspace, path)


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", "sub/.git/config", ".GIT/config", "dir/../.git/x", ".git"]
)
def test_git_is_not_written_to(root: Path, path: str):
    with (
        pytest.raises(PathRefused, match="belongs to git"),
        Workspace(root).at(path, write=True, make_parents=True),
    ):
        pass
    assert not (root / ".git").exists()


def test_swapping_a_directory_for_a_link_meanwhile_leads_nowhere(root: Path, monkeypatch: pytest.MonkeyPatch):
    """Whatever another process does between two looks, what is read comes from inside."""
    workspace = Workspace(root)
    victim, moved, evil = root / "dir", root / "moved", root.parent / "evil"
    evil.mkdir()
    (evil / "file.txt").write_text("CANARY")
    looks, swapped, is_link = 0, range(0), False

    def swap() -> None:
        """Put a link there before the first of these looks, and the directory back after the last of them."""
        nonlocal is_link
        if (looks in swapped) == is_link:
            return
        is_link = not is_link
        if is_link:
            os.rename(victim, moved)
            os.symlink(evil, victim)
        else:
            os.unlink(victim)
            os.rename(moved, victim)

    def meanwhile(call: Callable[..., Any]) -> Callable[..., Any]:
        def looking(*arguments: Any, **options: Any) -> Any:
            nonlocal looks
            swap()
            looks += 1
            return call(*arguments, **options)

        return looking

    for name in LOOKS:
        monkeypatch.setattr(os, name, meanwhile(getattr(os, name)))

    def attempt() -> str:
        nonlocal looks
        looks = 0
        try:
            return read(workspace, "dir/file.txt")
        except ToolError:
            return "refused"

    assert attempt() == "inside"
    count = looks
    assert count > 4
    seen: set[str] = set()
    for first in range(count):
        for last in range(first, count):
            swapped = range(first, last + 1)
            seen.add(attempt())
    assert seen == {"inside", "refused"}


parts = st.sampled_from(
    ["..", ".", "", "dir", "deep", "file.txt", "out", "in", "up", "root", "rootling", "secret", "abs"]
)


@tried(50, 200)
@given(st.lists(parts, max_size=8).map("/".join), st.booleans())
def test_no_path_at_all_leads_out(tmp_path_factory: pytest.TempPathFactory, path: str, absolute: bool):
    base = tmp_path_factory.getbasetemp() / "any-path"
    root = base / "root"
    if not base.exists():
        (root / "dir/deep").mkdir(parents=True)
        (root / "dir/deep/file.txt").write_text("inside")
        (base / "secret").write_text("CANARY")
        (base / "rootling").mkdir()
        for name, target in (
            ("out", ".."),
            ("in", "dir/deep"),
            ("abs", str(base)),
            ("dir/up", "../.."),
            ("dir/out", "../../secret"),
        ):
            (root / name).symlink_to(target)
    workspace = Workspace(root)
    try:
        with workspace.at(f"{root}/{path}" if absolute else path) as spot:
            real = os.path.realpath(f"/proc/self/fd/{spot.directory}")
            assert real == str(root) or real.startswith(f"{root}/")
            assert spot.name not in ("..", "")
            assert not os.path.islink(os.path.join(real, spot.name))
    except ToolError:
        pass


def test_one_file_one_lock_whatever_the_path(root: Path):
    (root / "link").symlink_to("dir")
    workspace = Workspace(root)
    entered: list[str] = []
    with workspace.at("dir/file.txt") as first, lock_spot(first):

        def second() -> None:
            with workspace.at("link/../dir/file.txt") as spot, lock_spot(spot):
                entered.append("second")

        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.05)
        assert entered == []
    thread.join()
    assert entered == ["second"]


def test_hidden_places_may_be_relative_and_made_later(root: Path):
    workspace = Workspace(root, hidden=["store", "dir/later", "linked"])
    for name in ("store", "dir/later", "data"):
        (root / name).mkdir()
        (root / name / "a").write_text("CANARY")
    (root / "linked").symlink_to("data")
    for path in ("store/a", "dir/later/a", "dir/../store/a", "linked/a", "data/a"):
        with pytest.raises(PathRefused, match="holds secrets"):
            read(workspace, path)


def test_a_secret_place_of_a_home_that_is_made_later_is_not_touched(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(root))
    workspace = Workspace(root)
    (root / ".ssh").mkdir()
    (root / ".ssh/config").write_text("CANARY")
    with pytest.raises(PathRefused, match="holds secrets"):
        read(workspace, ".ssh/config")


def test_a_system_without_handles_of_directories_is_named_with_the_remedy(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    workspace = Workspace(root)
    root.rename(root.with_name("moved"))  # where there are no handles, a directory cannot be opened at all
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(ToolError, match="use WSL on Windows"), workspace.at("file.txt"):
        pass
