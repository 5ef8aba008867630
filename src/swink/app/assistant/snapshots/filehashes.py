"""Hashes of the files of a directory, kept for the next process, which need not read them again."""

import os
from contextlib import suppress

import msgspec
from msgspec import Struct, field

from swink.app.assistant.snapshots.trees import TreeSnapshot
from swink.app.assistant.snapshots.vault import Vault, hash_of

Signature = tuple[int, int, int, int]
"""Of a file: size, times of its content and of its state, number."""
_Line = tuple[bytes, Signature, str]
_decoder = msgspec.msgpack.Decoder(tuple[int, list[_Line]])


class FileHashes(Struct):
    """The hashes of files by their paths and signatures, as far as the vault has the content."""

    generation: int = 0
    last: TreeSnapshot | None = None
    """The last snapshot that was taken with these hashes."""
    files: dict[str, tuple[Signature, str]] = field(default_factory=dict[str, tuple[Signature, str]])


def load_hashes(vault: Vault, root: str) -> FileHashes:
    """The hashes that were saved last; none if they cannot be read."""
    try:
        with open(_path(vault, root), "rb") as file:
            generation, lines = _decoder.decode(file.read())
    except (OSError, msgspec.MsgspecError):
        return FileHashes()
    files = {os.fsdecode(path): (signature, hash) for path, signature, hash in lines}
    return FileHashes(generation, files=files)


def save_hashes(vault: Vault, root: str, known: FileHashes) -> None:
    """Save the hashes; a file that cannot be written costs time only."""
    lines = [(os.fsencode(path), signature, hash) for path, (signature, hash) in known.files.items()]
    with suppress(OSError):
        vault.write(_path(vault, root), msgspec.msgpack.encode((known.generation, lines)))


def _path(vault: Vault, root: str) -> str:
    return os.path.join(vault.folder, "known", hash_of(os.fsencode(root)))
