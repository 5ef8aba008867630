"""search_text: the same answer with ripgrep and without, whatever the pattern and the files."""

import asyncio
import os
import re
import shutil
import threading
from pathlib import Path

import pytest
from calling import call, complaint, named
from hypothesis import example, given
from hypothesis import strategies as st
from tests.counts import tried

from swink.tools import ToolContext
from swink.tools.coding.listing import list_tools
from swink.tools.coding.search import MAX_MATCHES, Query, Row, Search, search_tools
from swink.tools.coding.text import detect
from swink.tools.coding.workspace import Workspace

RIPGREP = shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="needs rg (package ripgrep)")
engines = pytest.mark.parametrize(
    "ripgrep", ["", pytest.param(RIPGREP, marks=needs_ripgrep)], ids=["python", "ripgrep"]
)


def rows(root: Path, pattern: str, ripgrep: str | None = None, **options) -> list[Row]:
    return list(Search(Workspace(root), Query(pattern, **options), ripgrep or None).rows())


def expected(root: Path, pattern: str, flags: int = 0) -> list[tuple[str, int]]:
    """What Python's re finds in the lines of every text file, the slow and obvious way."""
    found = []
    for path in sorted(root.rglob("*"), key=lambda path: path.relative_to(root).parts):
        data = path.read_bytes() if path.is_file() else b""
        if not data or detect(data) is None:
            continue
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            some = data.decode("utf-8", "ignore")
            text = (
                data.decode("utf-8", "surrogateescape")
                if any(char > "\x7f" for char in some)
                else data.decode("cp1252", "surrogateescape")
            )
        lines = text.removesuffix("\n").split("\n")
        found += [
            (str(path.relative_to(root)), number)
            for number, line in enumerate(lines, 1)
            if re.search(pattern, line.removesuffix("\r"), flags)
        ]
    return found


contents = st.one_of(
    st.lists(st.text("abiIkKsS\u0131\u0130\u017f\u212aé ²_1\t.$(", max_size=12), max_size=6)
    .map("\n".join)
    .map(str.encode),
    st.lists(st.text("abié \r", max_size=8), max_size=5)
    .map("\n".join)
    .map(lambda text: text.encode("cp1252", "replace")),
    st.binary(max_size=40),
    st.lists(st.binary(max_size=6), max_size=4).map(b"ab\xc3\xa9\n".join),
)
atoms = st.sampled_from(
    [
        "a",
        "b",
        "i",
        "I",
        "k",
        "s",
        "é",
        ".",
        r"\w",
        r"\d",
        r"\s",
        r"\W",
        r"\D",
        r"\S",
        "[ab]",
        "[^a]",
        "[a-z]",
        "[é-ü]",
        r"[\w.]",
        r"\.",
        r"\$",
        r"\b",
        "^",
        "$",
        "(?i:a)",
        "(a|b)",
        "(?:ab)",
        "(?=a)",
        "(?!b)",
        "(?<=a)",
        r"(b)\1",
        "²",
        " ",
        "_",
        "ab|ba",
        "()",
        r"\t",
        "[^é]",
        r"[\s\d]",
        "(?>a)",
        "ı",
    ]
)
regexes = st.lists(
    st.tuples(atoms, st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "{0}"])).map("".join),
    min_size=1,
    max_size=4,
).map("".join)


@needs_ripgrep
@tried(10, 60)
@given(st.lists(contents, min_size=1, max_size=4), regexes, st.booleans())
@example(["caf\u00e9".encode("cp1252")], "f\u00e9", False)
@example(["\u0131".encode()], "i", True)
@example(["a\r\nb"], "a$", False)
@example([b"\n\na"], "^$", False)
@example(["K".encode("utf-16")], "K", False)
@example(["K".encode("utf-32"), "K and more of it".encode("utf-16-le")], "K", False)
def test_both_engines_find_what_python_finds(
    tmp_path_factory: pytest.TempPathFactory, files: list[bytes], pattern: str, ignore_case: bool
):
    flags = re.IGNORECASE if ignore_case else 0
    try:
        re.compile(pattern, flags)
    except re.error:
        return
    root = tmp_path_factory.mktemp("search")
    for number, data in enumerate(files):
        (root / f"file{number}").write_bytes(data if isinstance(data, bytes) else data.encode())
    plain = rows(root, pattern, ignore_case=ignore_case)
    assert rows(root, pattern, RIPGREP, ignore_case=ignore_case) == plain
    if not any(path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff") for path in root.iterdir()):
        assert [(row.path, row.number) for row in plain] == expected(root, pattern, flags)
    shutil.rmtree(root)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / "src/main.py").write_text("import os\n\ndef main():\n    print('needle')\n    return os\n")
    (tmp_path / "src/deep/other.ts").write_text("const needle = 1\r\nlet NEEDLE = 2\r\n")
    (tmp_path / "src/deep/wide.txt").write_bytes("a needle in UTF-16\n".encode("utf-16"))
    (tmp_path / "latin.txt").write_bytes("needle é\n".encode("cp1252"))
    (tmp_path / "image.bin").write_bytes(b"needle\0needle")
    (tmp_path / "ignored.log").write_text("needle\n")
    (tmp_path / ".gitignore").write_text("*.log\nnode_modules/\n")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/x.js").write_text("needle\n")
    (tmp_path / ".hidden").write_text("needle\n")
    (tmp_path / "link").symlink_to("src/main.py")
    (tmp_path / "src/out").symlink_to("/etc")
    return tmp_path


@engines
async def test_matches_are_printed_as_grep_does(tree: Path, ripgrep: str):
    tool = search_tools(Workspace(tree), ripgrep=ripgrep)[0]
    result = await call(tool, pattern="needle")
    assert result.text.splitlines() == [
        ".hidden:1: needle",
        "latin.txt:1: needle é",
        "src/deep/other.ts:1: const needle = 1",
        "src/deep/wide.txt:1: a needle in UTF-16",
        "src/main.py:4:     print('needle')",
    ]
    assert result.details == {"count": 5, "cut": False}


@engines
async def test_options_narrow_the_search(tree: Path, ripgrep: str):
    tool = search_tools(Workspace(tree), ripgrep=ripgrep)[0]
    assert len((await call(tool, pattern="needle", path="src", ignore_case=True)).text.splitlines()) == 4
    assert (await call(tool, pattern="needle", glob="*.py")).text == "src/main.py:4:     print('needle')"
    assert (
        await call(tool, pattern="needle", glob="src/**/*.ts")
    ).text == "src/deep/other.ts:1: const needle = 1"
    assert (
        await call(tool, pattern="needle", path="src/main.py")
    ).text == "src/main.py:4:     print('needle')"
    assert (await call(tool, pattern="print('", literal=True)).text == "src/main.py:4:     print('needle')"
    assert (await call(tool, pattern="not there at all")).text == "[no match]"
    assert (
        await call(tool, pattern="return", context=1)
    ).text == "src/main.py-4-     print('needle')\nsrc/main.py:5:     return os"


@engines
async def test_lines_around_matches_are_shown_once(tmp_path: Path, ripgrep: str):
    (tmp_path / "a").write_text(
        "".join(f"{number}{' hit' if number in (3, 5, 12) else ''}\n" for number in range(1, 16))
    )
    result = await call(search_tools(Workspace(tmp_path), ripgrep=ripgrep)[0], pattern="hit", context=2)
    assert result.text.splitlines() == [
        "a-1- 1", "a-2- 2", "a:3: 3 hit", "a-4- 4", "a:5: 5 hit", "a-6- 6", "a-7- 7", "--", "a-10- 10", "a-11- 11", "a:12: 12 hit", "a-13- 13", "a-14- 14",
    ]  # fmt: skip


@engines
async def test_caps_are_said(tmp_path: Path, ripgrep: str):
    (tmp_path / "many").write_text("hit\n" * 500)
    (tmp_path / "long").write_text("hit" + "x" * 100_000)
    result = await call(search_tools(Workspace(tmp_path), ripgrep=ripgrep)[0], pattern="hit")
    lines = result.text.splitlines()
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1].startswith(f"[only the first {MAX_MATCHES} matches")
    assert lines[0].endswith(" [...]")
    assert len(lines[0]) < 450


@engines
async def test_a_large_file_is_searched_in_blocks(
    tmp_path: Path, ripgrep: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.tools.coding.search.BLOCK", 10_000)
    (tmp_path / "large").write_text("".join(f"line {number} é\n" for number in range(1, 20_001)))
    result = await call(
        search_tools(Workspace(tmp_path), ripgrep=ripgrep)[0], pattern=r"^line (7|7777|20000) é$"
    )
    assert result.text == "large:7: line 7 é\nlarge:7777: line 7777 é\nlarge:20000: line 20000 é"


async def test_a_bad_pattern_is_explained(tmp_path: Path):
    assert "set literal" in await complaint(search_tools(Workspace(tmp_path))[0], pattern="(unclosed")


async def test_a_pattern_that_takes_forever_neither_hangs_nor_blocks_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.tools.coding.matching.PATIENCE", 0.5)
    (tmp_path / "file").write_text("a" * 40 + "b\n")
    task = asyncio.create_task(
        complaint(search_tools(Workspace(tmp_path), ripgrep="")[0], pattern=r"^(a+)+$")
    )
    beats = 0
    while not task.done():
        await asyncio.sleep(0.01)
        beats += 1
    assert "takes too long" in await task
    assert beats > 2, "the event loop stood still"


async def test_cancellation_stops_a_search(tmp_path: Path):
    (tmp_path / "file").write_text("a" * 40 + "b\n")
    tool = search_tools(Workspace(tmp_path), ripgrep="")[0]
    task = asyncio.create_task(
        tool.execute("call", {"pattern": r"^(a+)+$"}, ToolContext("call", "search_text"))
    )
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, Exception), match=r"cancelled|still be running"):
        await task
    async with asyncio.timeout(20):
        while any(thread.name.startswith("swink-") for thread in threading.enumerate()):
            await asyncio.sleep(0.01)


async def test_find_and_list(tree: Path):
    tools = list_tools(Workspace(tree))
    assert (
        await call(named(tools, "find_files"), pattern="*.{py,ts}")
    ).text == "src/deep/other.ts\nsrc/main.py"
    assert (
        await call(named(tools, "find_files"), pattern="deep/*", path="src")
    ).text == "src/deep/other.ts\nsrc/deep/wide.txt"
    assert (await call(named(tools, "find_files"), pattern="*.log")).text == "[no file matches *.log]"
    assert (await call(named(tools, "find_files"), pattern="*.log", ignored=True)).text == "ignored.log"
    assert (await call(named(tools, "list_files"))).text.splitlines() == [
        ".gitignore",
        ".hidden",
        "image.bin",
        "latin.txt",
        "link@",
        "src/",
    ]
    assert (await call(named(tools, "list_files"), path="src", depth=2)).text.splitlines() == [
        "src/deep/",
        "src/deep/other.ts",
        "src/deep/wide.txt",
        "src/main.py",
        "src/out@",
    ]
    assert "does not exist" in await complaint(named(tools, "list_files"), path="nowhere")
    assert "out of the workspace" in await complaint(named(tools, "list_files"), path="src/out")


async def test_listing_caps_and_odd_names(tmp_path: Path):
    for number in range(1100):
        (tmp_path / f"{number:04d}").touch()
    result = await call(named(list_tools(Workspace(tmp_path)), "list_files"))
    assert result.text.splitlines()[-1] == "[100 more are not shown; narrow the path or the pattern]"
    assert result.details["count"] == 1100
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "new\nline\x1b[31m").touch()
    with open(os.path.join(os.fsencode(odd), b"caf\xe9"), "wb"):
        pass
    assert (
        await call(named(list_tools(Workspace(tmp_path)), "list_files"), path="odd")
    ).text.splitlines() == [
        "odd/caf\ufffd",
        "odd/new\\nline\\x1b[31m",
    ]
