"""Search, listing and reading in a workspace that somebody filled to stop them: bounded in time and memory, and nothing left."""

import asyncio
import codecs
import os
import resource
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from calling import call, complaint, eventually, named
from tests.counts import MORE, in_cells, left_to_more

from swink.tools import ToolContext, ToolError
from swink.tools.coding.ignore import IgnoreFile, compile_glob
from swink.tools.coding.listing import list_tools
from swink.tools.coding.reading import read_tools
from swink.tools.coding.search import search_tools
from swink.tools.coding.supervisor import match
from swink.tools.coding.walk import walk
from swink.tools.coding.workspace import Workspace

RIPGREP = shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="needs rg (package ripgrep)")
engines = pytest.mark.parametrize(
    "ripgrep", ["", pytest.param(RIPGREP, marks=needs_ripgrep)], ids=["python", "ripgrep"]
)
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """No test of this module makes this process much larger."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


def sparse(path: Path, head: bytes, size: int, tail: bytes = b"") -> None:
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        file.write(tail)


def processes_in(directory: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and os.readlink(entry / "cwd") == str(directory)
                and int(entry.name) != os.getpid()
            ):
                found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return [line for line in found if line]


@engines
async def test_pipes_sockets_and_devices_are_not_opened(tmp_path: Path, ripgrep: str):
    os.mkfifo(tmp_path / "a-pipe")
    (tmp_path / "file").write_text("needle\n")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "b-socket"))
        tool = search_tools(Workspace(tmp_path), ripgrep=ripgrep)[0]
        async with asyncio.timeout(20):
            assert (await call(tool, pattern="needle")).text == "file:1: needle"
            assert "a pipe" in await complaint(tool, pattern="needle", path="a-pipe")
    names = (await call(named(list_tools(Workspace(tmp_path)), "list_files"))).text.split()
    assert names == ["a-pipe", "b-socket", "file"]


class Stuck:
    """A ripgrep that never comes back."""

    def __init__(self, directory: Path) -> None:
        self.program = directory / "rg"
        self.program.write_text("#!/bin/sh\ntouch started\nsleep 300 & wait\n")
        self.program.chmod(0o755)


@needs_proc
async def test_a_cancelled_search_takes_ripgrep_with_it(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("needle\n")
    tool = search_tools(Workspace(root), ripgrep=str(Stuck(tmp_path).program))[0]
    task = asyncio.create_task(
        tool.execute("call", {"pattern": "needle"}, ToolContext("call", "search_text"))
    )
    await eventually((root / "started").exists)
    assert processes_in(root)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, Exception), match=r"cancelled|still be running"):
        await task
    await eventually(
        lambda: not any(thread.name.startswith("swink-tool") for thread in threading.enumerate())
    )
    await eventually(lambda: processes_in(root) == [])


@needs_proc
async def test_a_search_that_takes_too_long_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.tools.coding.walk.SECONDS", 1.0)
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("needle\n")
    async with asyncio.timeout(20):
        result = await call(
            search_tools(Workspace(root), ripgrep=str(Stuck(tmp_path).program))[0], pattern="needle"
        )
    assert "stopped after 1 s" in result.text
    await eventually(lambda: processes_in(root) == [])


@needs_proc
@pytest.mark.more
@pytest.mark.parametrize("pattern", ["needle", "^(a+)+$"])
async def test_the_death_of_the_program_around_ends_a_search(tmp_path: Path, pattern: str):
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("a" * 40 + "b needle\n")
    stuck = str(Stuck(tmp_path).program) if pattern == "needle" else ""
    matcher = Path(match.__file__)
    if not MORE:  # every day the alarm in the middle of a match comes after a second
        source = matcher.read_text()
        assert "ALARM = 15\n" in source
        matcher = tmp_path / "match.py"
        matcher.write_text(source.replace("ALARM = 15\n", "ALARM = 1\n"))
    program = f"""
import asyncio
from swink.tools.coding import matching
matching._MATCH = {str(matcher)!r}
from swink.tools.coding.search import search_tools
from swink.tools.coding.workspace import Workspace
from swink.tools import ToolContext
async def main():
    await search_tools(Workspace({str(root)!r}), ripgrep={stuck!r})[0].execute("1", {{"pattern": {pattern!r}}}, ToolContext("1", "search_text"))
asyncio.run(main())
"""
    around = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    pids: list[str] = []

    def has_started() -> bool:
        pids[:] = [
            pid
            for file in Path(f"/proc/{around.pid}/task").glob("*/children")
            for pid in file.read_text().split()
        ]
        return bool(pids) and (not stuck or (root / "started").exists())

    try:
        await eventually(has_started)
        await asyncio.sleep(0.2)
    finally:
        around.kill()
        await around.wait()
    await eventually(lambda: processes_in(root) == [])
    await eventually(lambda: not any(running(pid) for pid in pids))


def running(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@engines
@in_cells(
    "head",
    [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"text\n", b""],
    ids=["le", "be", "text", "nothing"],
    every=4,
)
async def test_huge_sparse_files_cost_neither_time_nor_memory(tmp_path: Path, ripgrep: str, head: bytes):
    sparse(tmp_path / "huge", head, 40 << 30)
    (tmp_path / "later").write_text("needle\n")
    tools = [*search_tools(Workspace(tmp_path), ripgrep=ripgrep), *read_tools(Workspace(tmp_path))]
    async with asyncio.timeout(20):
        assert (await call(named(tools, "search_text"), pattern="needle")).text == "later:1: needle"
        assert (await call(named(tools, "search_text"), pattern="x?needle|z")).text == "later:1: needle"
    async with asyncio.timeout(20):
        with suppress(ToolError):
            await call(named(tools, "read_file"), path="huge")


@engines
async def test_what_follows_a_hole_is_found(tmp_path: Path, ripgrep: str):
    text = "first\n" * 2000
    sparse(tmp_path / "narrow", text.encode(), 1 << 30, b"\nneedle\n")
    sparse(
        tmp_path / "wide",
        codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
        1 << 30,
        "\nneedle\n".encode("utf-16-le"),
    )
    async with asyncio.timeout(20):
        result = await call(search_tools(Workspace(tmp_path), ripgrep=ripgrep)[0], pattern="^needle$")
    assert result.text == "narrow:2002: needle\nwide:2002: needle"


@engines
async def test_wide_text_is_searched_in_blocks(tmp_path: Path, ripgrep: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.tools.coding.search.BLOCK", 10_001)
    for name in ("utf-16-le", "utf-16-be"):
        text = "".join(f"line {number} é\u0a0a\u0a00\n" for number in range(1, 5_001))
        (tmp_path / name).write_bytes(
            {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}[name] + text.encode(name)
        )
    result = await call(
        search_tools(Workspace(tmp_path), ripgrep=ripgrep)[0], pattern=r"^line (7|3777|5000) é"
    )
    assert [line.split(" ")[0] for line in result.text.splitlines()] == [
        f"{name}:{number}:" for name in ("utf-16-be", "utf-16-le") for number in (7, 3777, 5000)
    ]


@engines
async def test_endless_lines_are_clipped(tmp_path: Path, ripgrep: str):
    with (tmp_path / "long").open("wb") as file:
        for _ in range(20):
            file.write(b"needle " * 150_000)
    async with asyncio.timeout(30):
        result = await call(
            search_tools(Workspace(tmp_path), ripgrep=ripgrep)[0], pattern="needle", context=5
        )
    assert len(result.text) < 100_000
    page = await call(read_tools(Workspace(tmp_path))[0], path="long")
    assert len(page.text) < 10_000


async def test_reading_a_huge_file_can_be_cancelled(tmp_path: Path):
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"text without end " * 1000)
        for _ in range(16):
            file.write(b"x" * (16 << 20))
    tool = read_tools(Workspace(tmp_path))[0]
    task = asyncio.create_task(
        tool.execute("call", {"path": "huge", "offset": 5}, ToolContext("call", "read_file"))
    )
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(
        (asyncio.CancelledError, Exception), match=r"cancelled|still be running|there is no line"
    ):
        await task
    await eventually(
        lambda: not any(thread.name.startswith("swink-tool") for thread in threading.enumerate())
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "{a,b}" * 60,
        "{a,b,c,d}" * 12 + "*",
        "{" * 2000 + "a,b" + "}" * 2000,
        "{a,a}" * 800,
        "{,",
        "{" + "," * 4000,
        "x" * 100_000,
        "{a,{b,{c,d}}}" * 30,
    ],
)
async def test_a_hostile_glob_is_refused_or_takes_no_time(tmp_path: Path, pattern: str):
    (tmp_path / "file").write_text("needle\n")
    tools = [*list_tools(Workspace(tmp_path)), *search_tools(Workspace(tmp_path), ripgrep="")]
    for name, arguments in (
        ("find_files", {"pattern": pattern}),
        ("search_text", {"pattern": "needle", "glob": pattern}),
    ):
        with suppress(ToolError):
            await call(named(tools, name), **arguments)


def test_braces_still_stand_for_either():
    for pattern, path in (
        ("{a,b}{c,d}.txt", "bd.txt"),
        ("{a,{b,c}}/x", "c/x"),
        ("{x}.{py,{ts,js}}", "{x}.js"),
        ("a{,b}", "a"),
        ("a{b,c", "a{b,c"),
    ):
        assert compile_glob(pattern).fullmatch(path), pattern


IGNORE_FILES = {
    "names": "\n".join(f"name-{number}" for number in range(80_000)),
    "paths": "\n".join(f"dir/name-{number}" for number in range(60_000)),
    "suffixes": "\n".join(f"*.suffix{number}" for number in range(60_000)),
    "stars": "\n".join(f"*a*{number}*b" for number in range(60_000)),
    "classes": "\n".join(f"[a-z]{number}[!x]*" for number in range(50_000)),
    "deep": "\n".join(f"**/a/**/b{number}/**" for number in range(40_000)),
    "one line": "*a" * 500_000,
    "spaces": "a" + " " * 900_000 + "b",
    "backslashes": "\\" * 900_000 + " ",
    "brackets": "[" * 900_000,
}


@in_cells("kind", IGNORE_FILES, every=5)
async def test_a_huge_ignore_file_takes_little_time(tmp_path: Path, kind: str):
    (tmp_path / ".gitignore").write_text(IGNORE_FILES[kind] + "\n*.log\n")
    for number in range(1000):
        (tmp_path / f"file-{number}-{'a' * 100}").touch()
    result = await call(named(list_tools(Workspace(tmp_path)), "list_files"))
    assert result.details["count"] == 1001


async def test_a_walk_through_a_huge_ignore_file_can_be_cancelled(tmp_path: Path):
    (tmp_path / ".gitignore").write_text(IGNORE_FILES["stars"])
    for number in range(1000):
        (tmp_path / f"file-{number}-{'a' * 100}").touch()
    tool = named(list_tools(Workspace(tmp_path)), "list_files")
    task = asyncio.create_task(tool.execute("call", {}, ToolContext("call", "list_files")))
    await asyncio.sleep(0.15)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, Exception), match=r"cancelled|still be running"):
        await task
    await eventually(
        lambda: not any(thread.name.startswith("swink-tool") for thread in threading.enumerate())
    )


def test_the_last_of_many_rules_decides():
    many = [f"other-{number}" for number in range(3000)]
    file = IgnoreFile(
        ["*.log", "keep.log", "!keep.log", *many, "/top", "sub/deep", "build/", "pre*", "!pre-kept", "*-end"]
    )
    verdicts = {
        "a.log": True, "keep.log": False, "other-2999": True, "top": True, "sub/top": None, "sub/deep": True, "build": None, "prefix": True,
        "pre-kept": False, "pre-kept-end": True, "unknown": None,
    }  # fmt: skip
    for path, verdict in verdicts.items():
        assert file.verdict(path, path.rsplit("/", 1)[-1], is_directory=False) is verdict, path
    assert file.verdict("build", "build", is_directory=True) is True


@left_to_more
@pytest.mark.more
async def test_a_directory_of_very_many_files(tmp_path: Path):
    count = 100_000 if MORE else 20_000
    for number in range(count):
        os.close(os.open(tmp_path / f"{number}", os.O_CREAT))
    tools = [*list_tools(Workspace(tmp_path)), *search_tools(Workspace(tmp_path))]
    async with asyncio.timeout(30):
        assert (await call(named(tools, "list_files"))).details["count"] == count
        assert (await call(named(tools, "find_files"), pattern="*19999")).text.startswith("19999")
        assert (await call(named(tools, "search_text"), pattern="needle")).text == "[no match]"
    shutil.rmtree(tmp_path)


async def test_links_in_a_circle_end(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/up").symlink_to("..")
    (tmp_path / "sub/file").write_text("needle\n")
    tools = [
        *list_tools(Workspace(tmp_path)),
        *search_tools(Workspace(tmp_path)),
        *read_tools(Workspace(tmp_path)),
    ]
    assert (await call(named(tools, "search_text"), pattern="needle")).text == "sub/file:1: needle"
    assert "too many symbolic links" in await complaint(named(tools, "read_file"), path="a")
    assert (
        await call(named(tools, "search_text"), pattern="needle", path="sub/up/sub/up/sub")
    ).text == "sub/file:1: needle"


async def test_a_pipe_for_an_ignore_file_blocks_nothing(tmp_path: Path):
    os.mkfifo(tmp_path / ".gitignore")
    async with asyncio.timeout(20):
        assert [entry.path for entry in await asyncio.to_thread(lambda: list(walk(Workspace(tmp_path))))] == [
            ".gitignore"
        ]


@needs_ripgrep
def test_ripgrep_gets_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EXAMPLE_API_KEY", "secret")
    (tmp_path / "file").write_text("needle\n")
    spy = tmp_path / "spy"
    spy.write_text(f'#!/bin/sh\nenv > {tmp_path}/seen\nexec {RIPGREP} "$@"\n')
    spy.chmod(0o755)
    asyncio.run(call(search_tools(Workspace(tmp_path), ripgrep=str(spy))[0], pattern="needle"))
    assert "secret" not in (tmp_path / "seen").read_text()
