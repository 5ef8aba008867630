"""read_file: pages of lines, images, encodings, and what it refuses."""

import base64
from pathlib import Path

import pytest
from calling import call, complaint
from tests.counts import left_to_more

from swink.messages import Base64Source, Image
from swink.tools import Tool
from swink.tools.coding.reading import MAX_IMAGE, MAX_WHOLE, read_tools
from swink.tools.coding.text import detect
from swink.tools.coding.workspace import Workspace

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def read_file(tmp_path: Path) -> Tool:
    return read_tools(Workspace(tmp_path))[0]


async def test_a_small_file_is_given_whole_and_bare(read_file: Tool, tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\n\n  two\n")
    result = await call(read_file, path="a.txt")
    assert result.text == "one\n\n  two"
    assert result.details["lines"] == [1, 3]
    assert result.details["encoding"] == "utf-8"


async def test_lines_can_be_numbered(read_file: Tool, tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert (await call(read_file, path="a.txt", line_numbers=True)).text == "1\tone\n2\ttwo"


async def test_offset_and_limit_page_through(read_file: Tool, tmp_path: Path):
    (tmp_path / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 11)))
    assert (
        await call(read_file, path="a.txt", offset=3, limit=2)
    ).text == "3\n4\n[lines 3 to 4 of 10; go on with offset=5]"
    assert (await call(read_file, path="a.txt", offset=9, limit=50)).text == "9\n10\n[lines 9 to 10 of 10]"
    assert "has 10 lines, so there is no line 11" in await complaint(read_file, path="a.txt", offset=11)


async def test_caps_say_how_to_go_on(read_file: Tool, tmp_path: Path):
    (tmp_path / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 5001)))
    text = (await call(read_file, path="long.txt")).text
    assert text.endswith("line 2000\n[lines 1 to 2000 of 5000; go on with offset=2001]")
    (tmp_path / "wide.txt").write_text("x" * 50_000 + "\nend\n")
    assert (
        await call(read_file, path="wide.txt")
    ).text == "x" * 2000 + " [... line of 50,000 characters cut ...]\nend"
    (tmp_path / "broad.txt").write_text(("y" * 1000 + "\n") * 200)
    assert "[lines 1 to 7" in (await call(read_file, path="broad.txt")).text


@left_to_more
async def test_a_file_too_large_to_hold_is_streamed(read_file: Tool, tmp_path: Path):
    line = "0123456789abcdef" * 4 + "é\n"
    count = MAX_WHOLE // len(line.encode()) + 10
    (tmp_path / "huge.txt").write_text(line * count + "the end")
    result = await call(read_file, path="huge.txt", offset=count + 1, limit=5)
    assert result.text == f"the end\n[lines {count + 1} to {count + 1} of {count + 1}]"
    assert "hash" not in result.details


async def test_an_empty_file_says_so(read_file: Tool, tmp_path: Path):
    (tmp_path / "empty").touch()
    assert (await call(read_file, path="empty")).text == "[the file is empty]"
    (tmp_path / "newline").write_text("\n")
    assert (await call(read_file, path="newline")).text == "[1 blank line]"


async def test_images_are_looked_at(read_file: Tool, tmp_path: Path):
    (tmp_path / "dot").write_bytes(PNG)
    text, image = (await call(read_file, path="dot")).content
    assert isinstance(image, Image)
    assert isinstance(image.source, Base64Source)
    assert (base64.b64decode(image.source.data), image.source.media_type) == (PNG, "image/png")
    with open(tmp_path / "big.png", "wb") as file:
        file.write(PNG)
        file.truncate(MAX_IMAGE + 1)
    assert "make a smaller copy" in await complaint(read_file, path="big.png")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\x7fELF\x02" + bytes(20), "an ELF"),
        (b"PK\x03\x04xx", "a zip archive"),
        (b"\x01\x02\0\x03", "binary data"),
        (b"SQLite format 3\0", "an SQLite database"),
    ],
)
async def test_binary_files_are_refused_by_their_kind(
    read_file: Tool, tmp_path: Path, data: bytes, kind: str
):
    (tmp_path / "thing").write_bytes(data)
    assert f"thing is {kind}" in await complaint(read_file, path="thing")


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"]
)
async def test_encodings_are_recognised(read_file: Tool, tmp_path: Path, encoding: str):
    text = "Smörgåsbord für alle, “quoted” text\nand more of it"
    (tmp_path / "file").write_bytes(text.encode(encoding))
    assert (await call(read_file, path="file")).text == text


async def test_broken_bytes_are_shown_as_such(read_file: Tool, tmp_path: Path):
    (tmp_path / "file").write_bytes("ok é \n".encode() + b"bad \xff\xfe\n")
    result = await call(read_file, path="file")
    assert result.text == "ok é \nbad \ufffd\ufffd"
    result.text.encode()


async def test_windows_line_ends_are_not_shown(read_file: Tool, tmp_path: Path):
    (tmp_path / "file").write_bytes(b"a\r\nb\r\n")
    assert (await call(read_file, path="file")).text == "a\nb"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain",
        "é".encode(),
        b"\xff\xfea\0",
        bytes(range(1, 256)),
        b"caf\xe9",
        "日本".encode("utf-16"),
        b"\xef\xbb\xbfx",
        b"\xff\xfe\0",
    ],
)
def test_decoding_and_encoding_again_changes_no_byte(data: bytes):
    encoding = detect(data)
    assert encoding is None or encoding.encode(encoding.decode(data)) == data
