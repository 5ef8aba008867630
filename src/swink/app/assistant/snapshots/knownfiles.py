"""What is known of the files of a directory, kept for the next process: it need not read them again."""

import os
from contextlib import suppress

import msgspec

from swink.app.assistant.snapshots.survey import Known, Signature
from swink.app.assistant.snapshots.vault import Vault, hash_of

_Line = tuple[bytes, Signature, str]
_decoder = msgspec.msgpack.Decoder(tuple[int, list[_Line]])


def load_known(vault: Vault, root: str) -> Known:
    """What was known when it was saved last; nothing if that cannot be read."""
    try:
        with open(_path(vault, root), "rb") as file:
            generation, lines = _decoder.decode(file.read())
    except (OSError, msgspec.MsgspecError):
        return Known()
    return Known(generation, files={os.fsdecode(path): (signature, hash) for path, signature, hash in lines})


def save_known(vault: Vault, root: str, known: Known) -> None:
    """Keep it; that it cannot be written costs time only."""
    lines = [(os.fsencode(path), signature, hash) for path, (signature, hash) in known.files.items()]
    with suppress(OSError):
        vault.write(_path(vault, root), msgspec.msgpack.encode((known.generation, lines)))


def _path(vault: Vault, root: str) -> str:
    return os.path.join(vault.folder, "known", hash_of(os.fsencode(root)))
