"""Attaching: what a prompt sends besides its text: images, and the files that it mentions."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from swink.app.assistant.attachedfiles import fence
from swink.app.tui.editor.mentions import mentioned, readings
from swink.app.tui.editor.typed import Typed
from swink.errors import InvalidInput
from swink.messages import Image, Input, Text
from swink.messages.mediafiles import media_type_of
from swink.system.writable import is_beneath
from swink.tools import ToolError
from swink.tools.coding.text import detect
from swink.tools.coding.workspace import PathRefused, Workspace

LARGEST_TEXT = 100_000
"""Bytes of a mentioned file whose content is attached; of larger ones only the name is sent."""
LARGEST_IMAGE = 20_000_000
"""Bytes of an image."""
MOST_FILES = 20
"""Files of one prompt whose content is attached."""

_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


class Composed(Struct, frozen=True):
    """What a prompt sends, and what its writer should know about it."""

    input: Input
    notices: tuple[str, ...] = ()


def needs_files(typed: Typed) -> bool:
    """Whether files must be read to send a prompt."""
    return bool(typed.images) or next(mentioned(typed.text), None) is not None


def compose(typed: Typed, root: Path) -> Composed:
    """The whole text, then what it mentions; reads files. An image that cannot be read is `InvalidInput`."""
    text = typed.whole()
    notices: list[str] = []
    blocks: list[Text | Image] = [read_image(path) for path in typed.shown_images()]
    blocks += _attach(dict.fromkeys(mentioned(typed.text)), root, notices)
    return Composed([Text(text), *blocks] if blocks else text, tuple(notices))


def read_image(path: str) -> Image:
    """An image of a file; a larger one than models take is refused."""
    size = os.path.getsize(path) if os.path.exists(path) else 0
    if size > LARGEST_IMAGE:
        most = f"at most {LARGEST_IMAGE // 1_000_000} MB can be sent; make it smaller"
        raise InvalidInput(f"{Path(path).name} is too large: it has {size / 1e6:.1f} MB, {most}")
    return Image.from_file(path)


def pasted_images(text: str) -> list[str]:
    """The image files that a paste consists of: paths as a terminal writes them when files are dropped."""
    text = text.strip()
    if not text or len(text) > 8_000 or not text.lower().rstrip("'\"").endswith(_SUFFIXES):
        return []
    return _existing([text]) or _existing(_words(text))


def _attach(paths: dict[str, None], root: Path, notices: list[str]) -> Iterator[Text | Image]:
    if not paths:
        return
    workspace = Workspace(root)
    count = 0
    for mention in paths:
        try:
            block = _read_mention(mention, workspace)
        except ToolError as error:
            notices.append(f"@{mention} is not attached: {error}")
            continue
        if block is None:
            continue
        count += 1
        if count > MOST_FILES:
            notices.append(f"only the first {MOST_FILES} files are attached; the others are named")
            return
        yield block


def _read_mention(mention: str, workspace: Workspace) -> Text | Image | None:
    """The content of a mentioned file; None if there is none to attach. Refusals are raised."""
    for path in readings(mention):
        full = os.path.expanduser(path)
        if not os.path.lexists(os.path.join(workspace.root, full)):
            continue
        try:
            return _read(full, workspace)
        except PathRefused as error:
            if is_beneath(os.path.realpath(os.path.join(workspace.root, full)), str(workspace.root)):
                raise
            said = f"it is outside {workspace.root}; paste what matters of it into the prompt"
            raise PathRefused(said) from error
    return None


def _read(path: str, workspace: Workspace) -> Text | Image | None:
    with workspace.at(path) as spot:
        if os.path.isdir(workspace.root / spot.path):
            return None
        with os.fdopen(spot.open_file(), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(LARGEST_TEXT + 1)
            if (kind := media_type_of(data[:16])) is not None:
                if size > LARGEST_IMAGE:
                    raise ToolError(f"it has {size / 1e6:.1f} MB, more than models take")
                return Image.from_bytes(data + file.read(LARGEST_IMAGE), kind)
        if len(data) > LARGEST_TEXT:
            raise ToolError(f"it has {size:,} bytes; the model reads what it needs of it")
        encoding = detect(data)
        return None if encoding is None else Text(fence(spot.path, encoding.decode(data)))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _existing(words: list[str]) -> list[str]:
    """The words as paths, if every one of them is an image file."""
    paths = [path for path in map(_path, words) if path is not None and path.lower().endswith(_SUFFIXES)]
    return paths if len(paths) == len(words) and all(map(os.path.isfile, paths)) else []


def _path(word: str) -> str | None:
    if word.startswith("file://"):
        address = urlsplit(word)
        return unquote(address.path) if address.netloc in ("", "localhost") else None
    path = os.path.expanduser(word.strip("'\""))
    return path if os.path.isabs(path) and "\0" not in path else None
