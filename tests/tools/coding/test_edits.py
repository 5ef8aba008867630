"""The edit engine on a corpus of real edits (edits/*.toml) and on whatever hypothesis thinks of; then edit_file and write_file."""

import asyncio
import hashlib
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from calling import call, complaint, named
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.counts import left_to_more, tried

from swink.tools import Tool, ToolContext
from swink.tools.coding.edits import Applied, Edit, EditFailed, apply_edits
from swink.tools.coding.text import detect
from swink.tools.coding.workspace import Workspace
from swink.tools.coding.writing import MAX_CHANGED, write_tools

CORPUS = sorted(Path(__file__).with_name("edits").glob("*.toml"))


@pytest.fixture
def tools(tmp_path: Path) -> list[Tool]:
    return write_tools(Workspace(tmp_path))


@pytest.mark.parametrize("path", CORPUS, ids=[path.stem for path in CORPUS])
async def test_corpus(path: Path, tools: list[Tool], tmp_path: Path):
    """Engine and tool agree; a failure leaves the very bytes and says everything a model needs to repair its call."""
    case: dict[str, Any] = tomllib.loads(path.read_bytes().decode())
    edits = msgspec.convert(case["edits"], list[Edit])
    file = tmp_path / "file"
    file.write_bytes(case["text"].encode())
    edit_file = named(tools, "edit_file")
    if "result" in case:
        applied = apply_edits(case["text"], edits)
        assert applied.text == case["result"]
        assert list(applied.lines) == case.get("lines", list(applied.lines))
        result = await call(edit_file, path="file", edits=case["edits"])
        assert file.read_bytes() == case["result"].encode()
        assert result.details["old_content"] == case["text"]
        assert result.details["new_content"] == case["result"]
    else:
        with pytest.raises(EditFailed) as failure:
            apply_edits(case["text"], edits)
        for said in case["fails"]:
            assert said in str(failure.value)
        before = file.stat()
        assert await complaint(edit_file, path="file", edits=case["edits"]) == str(failure.value)
        assert file.read_bytes() == case["text"].encode()
        assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert os.listdir(tmp_path) == ["file"], "a temporary file was left"


def _applied(text: str, edits: list[Edit]) -> Applied | None:
    try:
        return apply_edits(text, edits)
    except EditFailed:
        return None


line = st.text(st.sampled_from("ab \t(é"), max_size=6)
texts = st.lists(st.tuples(line, st.sampled_from(["\n", "\n", "\r\n", ""])).map("".join), max_size=12).map(
    "".join
)


@tried(37, 150)
@given(
    texts,
    st.lists(
        st.builds(
            Edit,
            old=st.text("ab \t\n(é", min_size=1, max_size=6),
            new=st.text("xy\n", max_size=4),
            replace_all=st.booleans(),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_all_or_nothing_and_untouched_characters_stay(text: str, edits: list[Edit]):
    """What lies outside the changed places is in the result, unchanged and in order."""
    applied = _applied(text, edits)
    if applied is None:
        return
    assert len(applied.lines) >= len(edits)
    for edit in edits:
        exact = text.count(edit.old)
        assert exact == 0 or edit.replace_all or exact == 1
    kept = text
    for edit in edits:  # every character of the old text that no edit mentions is still there
        for char in edit.old:
            kept = kept.replace(char, "")
    rest = iter(applied.text)
    assert all(char in rest for char in kept.replace("\r", "").replace(" ", "").replace("\t", ""))


@tried(25, 60)
@given(
    st.data(),
    st.lists(st.text("abc \té", max_size=8), min_size=3, max_size=20),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_distinct_places_are_replaced_and_nothing_else(
    data: st.DataObject, bodies: list[str], end: str, final: bool
):
    """Numbered lines are unique, so the outcome is known: exactly those lines change."""
    lines = [f"{number}:{body}" for number, body in enumerate(bodies)]
    chosen = data.draw(st.lists(st.sampled_from(range(len(lines))), unique=True, min_size=1, max_size=4))
    new = {number: data.draw(st.text("XYZ\n", max_size=5)) for number in chosen}
    assume(all(lines.count(line) == 1 and sum(line in other for other in lines) == 1 for line in lines))
    text = end.join(lines) + (end if final else "")
    edits = [Edit(lines[number], new[number]) for number in chosen]
    expected = end.join(
        new.get(number, line).replace("\n", end) if number in new else line
        for number, line in enumerate(lines)
    ) + (end if final else "")
    if len(lines) == 1 and not final:
        return
    assert apply_edits(text, edits).text == expected


@tried(12, 60)
@given(st.binary(max_size=200), st.binary(max_size=200))
async def test_bytes_around_an_edit_are_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, after: bytes
):
    """Whatever the encoding, or none: an edit that goes through touches its own bytes alone."""
    assume(b"\0" not in before + after and b"MARK" not in before + after)
    assume(not before.startswith((b"\xff\xfe", b"\xfe\xff")))  # by its mark all of it is UTF-16, MARK too
    root = tmp_path_factory.mktemp("bytes")
    (root / "file").write_bytes(before + b"MARK" + after)
    edit_file = named(write_tools(Workspace(root)), "edit_file")
    arguments = {"path": "file", "edits": [{"old": "MARK", "new": "DONE"}]}
    if detect(before + b"MARK" + after) is None:
        assert "not text" in await complaint(edit_file, **arguments)
        assert (root / "file").read_bytes() == before + b"MARK" + after
    else:
        await call(edit_file, **arguments)
        assert (root / "file").read_bytes() == before + b"DONE" + after


@pytest.mark.parametrize(
    ("encoding", "bom"),
    [
        ("utf-8-sig", ""),
        ("utf-16", ""),
        ("utf-16-le", "\ufeff"),
        ("utf-16-be", "\ufeff"),
        ("cp1252", ""),
        ("utf-8", ""),
    ],
)
async def test_the_encoding_of_a_file_is_kept(tools: list[Tool], tmp_path: Path, encoding: str, bom: str):
    text = "naïve café costs 5 coins\nsecond line of the text\n"
    (tmp_path / "file").write_bytes((bom + text).encode(encoding))
    await call(named(tools, "edit_file"), path="file", edits=[{"old": "café", "new": "crêpe"}])
    assert (tmp_path / "file").read_bytes() == (bom + text.replace("café", "crêpe")).encode(encoding)


async def test_a_character_the_encoding_lacks_is_named(tools: list[Tool], tmp_path: Path):
    (tmp_path / "file").write_bytes("déjà\n".encode("cp1252"))
    said = await complaint(named(tools, "edit_file"), path="file", edits=[{"old": "déjà", "new": "→"}])
    assert "cp1252, which has no '→' (U+2192)" in said
    assert (tmp_path / "file").read_bytes() == "déjà\n".encode("cp1252")


async def test_binary_and_missing_files_are_told_apart(tools: list[Tool], tmp_path: Path):
    (tmp_path / "archive").write_bytes(b"\x1f\x8b\x08" + bytes(50))
    edit = [{"old": "a", "new": "b"}]
    assert "archive is gzip data, not text" in await complaint(
        named(tools, "edit_file"), path="archive", edits=edit
    )
    assert "none.txt does not exist; use write_file" in await complaint(
        named(tools, "edit_file"), path="none.txt", edits=edit
    )
    assert "there is no missing" in await complaint(named(tools, "edit_file"), path="missing/x", edits=edit)
    assert not (tmp_path / "missing").exists()


@left_to_more
async def test_a_huge_file_is_edited_and_a_gigantic_one_refused(tools: list[Tool], tmp_path: Path):
    text = "".join(f"line {number}\n" for number in range(1_000_000))
    (tmp_path / "huge").write_text(text)
    result = await call(
        named(tools, "edit_file"), path="huge", edits=[{"old": "line 777777\n", "new": "changed\n"}]
    )
    assert "at line 777778" in result.text
    assert result.details["old_content"] is None, "too long for a conversation"
    assert (tmp_path / "huge").read_text() == text.replace("line 777777\n", "changed\n")
    said = await complaint(named(tools, "edit_file"), path="huge", edits=[{"old": "line seven", "new": ""}])
    assert "is not in the file" in said
    with open(tmp_path / "gigantic", "wb") as file:
        file.truncate(MAX_CHANGED + 1)
    assert "use sed in bash" in await complaint(
        named(tools, "edit_file"), path="gigantic", edits=[{"old": "a", "new": "b"}]
    )


async def test_concurrent_edits_of_one_file_all_arrive(tools: list[Tool], tmp_path: Path):
    (tmp_path / "file").write_text("".join(f"value{number:02d} = 0\n" for number in range(20)))
    edit_file = named(tools, "edit_file")
    (tmp_path / "link").symlink_to("file")
    await asyncio.gather(
        *[
            call(
                edit_file,
                path="link" if number % 2 else "file",
                edits=[{"old": f"value{number:02d} = 0", "new": f"value{number:02d} = 1"}],
            )
            for number in range(20)
        ]
    )
    assert (tmp_path / "file").read_text() == "".join(f"value{number:02d} = 1\n" for number in range(20))
    assert (tmp_path / "link").is_symlink()


async def test_an_expected_hash_guards_against_a_change_in_between(tools: list[Tool], tmp_path: Path):
    result = await call(named(tools, "write_file"), path="a/file", content="one\n")
    seen = result.details["hash"]
    assert f"[hash {seen}]" in result.text
    assert hashlib.sha256(b"one\n").hexdigest().startswith(seen)
    (tmp_path / "a/file").write_text("two\n")
    for name, arguments in (
        ("edit_file", {"edits": [{"old": "two", "new": "three"}]}),
        ("write_file", {"content": "three"}),
    ):
        said = await complaint(named(tools, name), path="a/file", expected_hash=seen, **arguments)
        assert "read it again" in said
    assert (tmp_path / "a/file").read_text() == "two\n"
    await call(
        named(tools, "edit_file"),
        path="a/file",
        edits=[{"old": "two", "new": "three"}],
        expected_hash=hashlib.sha256(b"two\n").hexdigest(),
    )
    assert (tmp_path / "a/file").read_text() == "three\n"


async def test_writing_makes_parents_and_tells_old_from_new(tools: list[Tool], tmp_path: Path):
    write_file = named(tools, "write_file")
    made = await call(write_file, path="a/b/c.txt", content="first\n")
    assert made.text.startswith("created a/b/c.txt (6 bytes)")
    assert made.details | {"hash": ""} == {
        "path": "a/b/c.txt",
        "is_new_file": True,
        "old_content": None,
        "new_content": "first\n",
        "hash": "",
    }
    replaced = await call(write_file, path="a/b/c.txt", content="")
    assert replaced.text.startswith("replaced a/b/c.txt")
    assert (
        replaced.details["is_new_file"],
        replaced.details["old_content"],
        replaced.details["new_content"],
    ) == (False, "first\n", "")


async def test_writing_is_atomic_and_keeps_the_mode(tools: list[Tool], tmp_path: Path):
    script = tmp_path / "script.sh"
    script.write_text("old")
    script.chmod(0o751)
    other = tmp_path / "other-name"
    os.link(script, other)
    with open(script) as reader:
        await call(named(tools, "write_file"), path="script.sh", content="new")
        assert reader.read() == "old", "whoever had it open sees the old file whole"
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert other.read_text() == "old", "a hard link, which may be outside, is not written through"
    assert sorted(os.listdir(tmp_path)) == ["other-name", "script.sh"]


async def test_a_new_file_gets_the_usual_mode(tools: list[Tool], tmp_path: Path):
    await call(named(tools, "write_file"), path="plain", content="x")
    assert stat.S_IMODE((tmp_path / "plain").stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("path", ["../out", "/etc/x", "link-out", ".git/hooks/x", "dir"])
async def test_writing_outside_or_over_a_directory_is_refused(tools: list[Tool], tmp_path: Path, path: str):
    (tmp_path / "dir").mkdir()
    (tmp_path / "link-out").symlink_to(tmp_path.parent / "escaped")
    await complaint(named(tools, "write_file"), path=path, content="x")
    assert not (tmp_path.parent / "escaped").exists()
    assert not (tmp_path.parent / "out").exists()
    assert sorted(os.listdir(tmp_path)) == ["dir", "link-out"]


@pytest.mark.skipif(os.getuid() == 0, reason="root writes anywhere")
async def test_no_permission_is_said(tools: list[Tool], tmp_path: Path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "permission denied" in await complaint(named(tools, "write_file"), path="locked/x", content="x")


async def test_a_cancelled_call_changes_nothing(tools: list[Tool], tmp_path: Path):
    (tmp_path / "file").write_text("old")
    ctx = ToolContext("call", "write_file")
    ctx.cancel()
    with pytest.raises(Exception, match="nothing was changed: the call was cancelled"):
        await named(tools, "write_file").execute("call", {"path": "file", "content": "new"}, ctx)
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_both_ask_for_approval(tools: list[Tool]):
    assert all(tool.needs_approval({}) for tool in tools)
