"""Image files: read when a message is made, whatever becomes of them later."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, tool
from swink.errors import InvalidInput
from swink.messages import Audio, Base64Source, Document, ToolCall, UserMessage
from swink.messages.blocks import FileSource, Image
from swink.messages.codec import decode_messages, encode_messages
from swink.messages.mediafiles import LARGEST
from swink.testing import ScriptedModel

PNG = b"\x89PNG\r\n\x1a\n rest"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "cat.jpg"
    path.write_bytes(PNG)
    return path


def source_of(message: Any) -> Any:
    return next(block.source for block in message.content if isinstance(block, Image))


def test_a_file_is_read_when_the_block_is_made(picture: Path):
    image = Image.from_file(picture)
    picture.unlink()
    assert image == Image.from_bytes(PNG), "its bytes say what it is, not its name"


@pytest.mark.parametrize(
    "wrap", [lambda image: image, lambda image: ["look", image], lambda image: UserMessage([image])]
)
async def test_a_file_in_a_prompt_is_read_before_the_run(picture: Path, wrap: Any):
    model = ScriptedModel(["a cat"])
    agent = Agent("test:m", stream_fn=model)
    await agent.run(wrap(Image(FileSource(str(picture)))))
    assert isinstance(source_of(agent.messages[0]), Base64Source)


async def test_a_file_that_a_tool_returns_is_read_then(picture: Path):
    @tool
    async def shoot() -> Image:
        return Image(FileSource(str(picture)))

    model = ScriptedModel([ToolCall("1", "shoot"), "a cat"])
    agent = Agent("test:m", stream_fn=model, tools=[shoot])
    await agent.run("go")
    assert isinstance(source_of(agent.messages[2]), Base64Source)


async def test_a_prompt_with_a_file_that_is_not_there_is_refused(tmp_path: Path):
    agent = Agent("test:m", stream_fn=ScriptedModel(["x"]))
    with pytest.raises(InvalidInput, match=r"cannot read image .*gone\.png: No such file"):
        await agent.run([Image(FileSource(str(tmp_path / "gone.png")))])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes with the names of files")
def test_a_pipe_is_refused_without_waiting_for_its_other_end(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(InvalidInput, match="it is not a file"):
        Image.from_file(tmp_path / "pipe.png")


@pytest.mark.parametrize("path", ["/dev/zero", "/", "~nobody-of-that-name/x.png", "a\0b.png"])
def test_what_is_no_file_is_refused(path: str):
    with pytest.raises(InvalidInput, match="cannot read image"):
        Image.from_file(path)


def test_a_file_too_large_for_any_provider_is_refused(tmp_path: Path):
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(InvalidInput, match="more than 50,000,000 bytes"):
        Image.from_file(tmp_path / "large.png")


def test_a_name_that_is_no_text_can_be_read(tmp_path: Path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")
    Path(path).write_bytes(PNG)
    assert Image.from_file(path) == Image.from_bytes(PNG)


def test_documents_and_sound_are_read_in_the_same_three_ways(tmp_path: Path):
    pdf, note, song = tmp_path / "a.pdf", tmp_path / "b.md", tmp_path / "c.bin"
    pdf.write_bytes(b"%PDF-1.7 rest")
    note.write_text("# Tea\n", "utf-8")
    song.write_bytes(b"ID3 rest")
    assert Document.from_file(pdf) == Document.from_bytes(b"%PDF-1.7 rest", title="a.pdf")
    assert Document.from_file(note).text == "# Tea\n"
    (tmp_path / "LICENSE").write_text("Free.", "utf-8")
    assert Document.from_file(tmp_path / "LICENSE").text == "Free."
    assert Document.from_bytes("Tee für alle".encode()).text == "Tee für alle"
    assert Audio.from_file(song) == Audio.from_bytes(b"ID3 rest", "audio/mpeg")
    assert Document.from_url("https://x.example/a.pdf").text is None
    for make, says in (
        (lambda: Document.from_bytes(b"\x00\x01"), "no PDF or text; say what it is"),
        (lambda: Audio.from_bytes(b"nothing"), "no WAV, MP3"),
        (lambda: Document.from_file(tmp_path / "gone.pdf"), "cannot read document"),
        (lambda: Audio.from_url("ftp://x"), "takes an http, https or data URL"),
        (lambda: Document(None), "a document has a source"),  # pyright: ignore
    ):
        with pytest.raises(InvalidInput, match=says):
            make()
    message = UserMessage(["read", Document.from_file(note), Audio.from_file(song)])
    assert decode_messages(encode_messages([message])) == [message]
