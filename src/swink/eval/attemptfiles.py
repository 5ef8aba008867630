"""Workspaces: the directory of one attempt, with its initial files, and what is in it at the end."""

import mimetypes
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

from swink.errors import InvalidInput
from swink.eval.case import Case
from swink.messages.blocks import Audio, Document, Image, Media
from swink.system.aio import call_to_end
from swink.system.threads import Serial, in_thread

_LARGEST = 10_000_000  # bytes of a file that is looked at


@asynccontextmanager
async def workspace(case: Case) -> AsyncGenerator[Path]:
    """A directory of its own with the case's initial files; it is deleted at the end."""
    # A directory is made and removed in microseconds, far faster than a thread is found for it.
    made = Path(tempfile.mkdtemp(prefix="swink-eval-"))
    try:
        if case.initial_files:
            await in_thread(_fill, made, case.initial_files)
        yield made
    finally:
        try:
            os.rmdir(made)
        except OSError:  # the agent left something in it, or removed it
            await call_to_end(Serial(), shutil.rmtree, made, ignore_errors=True)


async def read_files(root: Path, names: Iterable[str]) -> dict[str, str | None]:
    """What those files hold; None: not there, no text, or outside of the workspace."""
    names = tuple(names)
    return await in_thread(lambda: {name: _read(root, name) for name in names}) if names else {}


async def read_attachments(case: Case) -> tuple[Media, ...]:
    """The case's attachments as blocks of a message."""
    return await in_thread(lambda: tuple(map(_block, case.attachments))) if case.attachments else ()


def inside(root: Path, name: str) -> Path:
    """The path of a file of the workspace; one that leads out of it is refused."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or Path(name).is_absolute():
        raise InvalidInput(f"{name!r} is no path inside the workspace; write it relative, without '..'")
    return root.joinpath(*path.parts)


def _fill(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = inside(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="")


def _read(root: Path, name: str) -> str | None:
    try:
        path = inside(root, name).resolve()
        if not path.is_relative_to(root.resolve()) or not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return path.read_bytes().decode()
    except (OSError, ValueError):
        return None


def _block(name: str) -> Media:
    match (mimetypes.guess_type(name)[0] or "").partition("/")[0]:
        case "image":
            return Image.from_file(name)
        case "audio":
            return Audio.from_file(name)
        case _:
            return Document.from_file(name)
