"""What git ignores, with git itself as the judge."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.counts import tried

from swink.tools.coding.ignore import MAX_COMPLEX, IgnoreFile, compile_glob
from swink.tools.coding.walk import walk
from swink.tools.coding.workspace import Workspace

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git (package git)")


def files(root: Path) -> list[str]:
    return sorted(entry.path for entry in walk(Workspace(root)) if not entry.is_directory)


def git_files(root: Path) -> list[str]:
    if not (root / ".git").exists():
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    done = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    return sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)


def lay_out(root: Path, paths: list[str], ignores: dict[str, str]) -> None:
    for path in paths:
        target = root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("x")
        except OSError:
            continue  # a file of that name stands in the way
    for directory, content in ignores.items():
        if (root / directory).is_dir():
            (root / directory / ".gitignore").write_text(content)


names = st.sampled_from(
    ["a", "b", "ab", "foo", "foo.py", "bar.txt", "build", "a b", "x.tmp", "[z]", "!n", "#c", "ab.c.d", ".hid"]
)
paths = st.lists(st.lists(names, min_size=1, max_size=4).map("/".join), min_size=1, max_size=12)
pieces = st.sampled_from(
    [
        "*",
        "**",
        "?",
        "a",
        "b",
        "foo",
        "*.py",
        "build",
        "[ab]",
        "[!a]",
        "[^a]",
        "[a-c]*",
        "\\a",
        "*.t*",
        "a*b*",
        "**a",
        "foo.*",
        ".*",
        "[[:alpha:]]",
        "[a",
        "[]a]",
        "\\[z]",
        "*.*.*",
        "x?t*",
    ]
)
patterns = st.tuples(
    st.sampled_from(["", "", "!", "/", "!/", "\\!", "\\#", "#"]),
    st.lists(pieces, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/", "/**", " ", "\\ "]),
).map("".join)
ignore_files = st.lists(patterns, max_size=6).map("\n".join)


@needs_git
@tried(15, 40)
@given(
    paths,
    ignore_files,
    st.dictionaries(st.sampled_from(["a", "foo", "build", "a/b"]), ignore_files, max_size=2),
)
@example(["build/x", "a/build/y", "foo.py"], "build/\n!a/build\n", {"a": "build\n"})
@example(["a/b/c", "a/c", "x"], "a/**/c", {})
@example(["foo/a", "foo/b/c"], "foo/*\n!foo/b\n", {})
@example(
    ["caf\u00e9", "caf\u00e9s/x", "k\u00e9"], "caf?\ncaf??s\nk[\u00e9]\n", {}
)  # of bytes, not of characters
@example(["log", "a/log", "a/b/log"], "***/log", {})  # any run of stars from two on
def test_the_same_files_as_git(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], ignored: str, nested: dict[str, str]
):
    root = tmp_path_factory.mktemp("repo")
    lay_out(root, paths, {"": ignored, **nested})
    assert files(root) == git_files(root)
    shutil.rmtree(root)


@needs_git
def test_a_real_ignore_file(tmp_path: Path):
    ignored = "# build\n*.pyc\n__pycache__/\n/dist\nnode_modules\n*.log\n!keep.log\ndoc/**/*.html\n.env*\n!.env.example\n/vendor/*\n!/vendor/ours\nlib/*.so.[0-9]\n"
    paths = [
        "a.pyc", "src/__pycache__/b.py", "dist/x", "src/dist/x", "web/node_modules/m/i.js", "x.log", "keep.log", "doc/a/b/c.html", "doc/c.html", "doc/c.md", ".env", ".env.example",
        "vendor/theirs/a", "vendor/ours/a", "lib/libx.so.1", "lib/libx.so.a", "src/main.py", ".github/workflows/ci.yml",
    ]  # fmt: skip
    lay_out(tmp_path, paths, {"": ignored})
    (tmp_path / ".git/info").mkdir(parents=True)
    found = files(tmp_path)
    assert "src/main.py" in found
    assert ".github/workflows/ci.yml" in found
    shutil.rmtree(tmp_path / ".git")
    assert found == git_files(tmp_path)


def test_walking_from_inside_respects_what_is_above(tmp_path: Path):
    lay_out(tmp_path, ["a/b/x.log", "a/b/y.txt", "a/b/z.tmp"], {"": "*.log", "a": "*.tmp"})
    assert [entry.path for entry in walk(Workspace(tmp_path), "a/b")] == ["a/b/y.txt"]
    assert len(list(walk(Workspace(tmp_path), "a/b", ignored=True))) == 3


def test_an_ignore_file_with_too_many_rules_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    rules = [f"a*{number}*b" for number in range(MAX_COMPLEX + 1)]
    lay_out(tmp_path, ["sub/x"], {"sub": "\n".join(rules)})
    for _ in range(2):
        list(walk(Workspace(tmp_path)))
    (record,) = [record for record in caplog.records if record.name == "swink.tools"]
    where = tmp_path / "sub/.gitignore"
    assert record.getMessage().startswith(f"{where} is too long: only its first 1,048,576 bytes")


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_directory_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    lay_out(tmp_path, ["closed/x", "open"], {})
    (tmp_path / "closed").chmod(0)
    try:
        for _ in range(2):
            assert files(tmp_path) == ["open"]
    finally:
        (tmp_path / "closed").chmod(0o700)
    (record,) = [record for record in caplog.records if record.name == "swink.tools"]
    where = tmp_path / "closed"
    assert record.getMessage() == f"{where} is left out when tools list and search: Permission denied"


def test_links_are_listed_and_not_followed(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "circle").symlink_to(".")
    assert [(entry.path, entry.is_link) for entry in walk(Workspace(tmp_path))] == [
        ("circle", True),
        ("link", True),
        ("real", False),
        ("real/file", False),
    ]


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**/" * 12 + "x", "*?" * 30 + "b"])
def test_a_hostile_pattern_takes_no_time(pattern: str):
    file = IgnoreFile([pattern])
    for name in ("a" * 250, "/".join(["a"] * 60)):
        file.verdict(name, name.rsplit("/", 1)[-1], is_directory=False)
        compile_glob(pattern).fullmatch(name)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a/b.py", True), ("*.py", "b.py", True), ("*.py", "b.pyc", False), ("src/*.py", "src/a.py", True), ("src/*.py", "src/b/a.py", False),
        ("src/**/*.py", "src/a.py", True), ("src/**/*.py", "src/b/c/a.py", True), ("**/test_*.py", "test_a.py", True), ("*.{ts,tsx}", "a/b.tsx", True),
        ("{a,b}/x", "b/x", True), ("/top.txt", "top.txt", True), ("[ab].txt", "b.txt", True), ("a.txt", "b/a.txt", True), ("dir/a.txt", "x/dir/a.txt", False),
    ],
)  # fmt: skip
def test_globs(pattern: str, path: str, expected: bool):
    assert bool(compile_glob(pattern).fullmatch(path)) is expected
