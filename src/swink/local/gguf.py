"""The head of a GGUF file: facts about a model that are needed before it is loaded."""

import mmap
import struct
from pathlib import Path

from msgspec import Struct

from swink.local.states import LoadFailed

_EARLY, _LATE = 1 << 20, 64 << 20
"""How far a key is searched for: the numbers are before the vocabulary, the chat template is behind it."""

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # types of tokens


class GgufHead(Struct, frozen=True):
    """What a model file says about its model."""

    architecture: str = ""
    context_length: int | None = None
    chat_template: str = ""
    pooling: int | None = None
    control_tokens: tuple[str, ...] = ()
    """The texts that the tokenizer takes for marks of the chat, wherever they stand."""
    end_token: int | None = None
    """The number of the token that ends a reply."""

    @property
    def knows_tools(self) -> bool:
        return "tools" in self.chat_template

    @property
    def has_channels(self) -> bool:
        """Whether replies have a format of their own that a grammar of ours would break."""
        return "<|channel" in self.chat_template or ">>>all" in self.chat_template

    @property
    def knows_thinking(self) -> bool:
        """Whether the chat template can turn thinking on and off."""
        return "enable_thinking" in self.chat_template


def read_head(path: Path) -> GgufHead:
    """The head of a model file; raises `LoadFailed` for what is not one."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise LoadFailed(f"{path} is not a GGUF model file")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                architecture = _text(data, "general.architecture")
                template = _text(data, "tokenizer.chat_template")
                return GgufHead(
                    architecture,
                    _number(data, f"{architecture}.context_length"),
                    template,
                    _number(data, f"{architecture}.pooling_type"),
                    _control_tokens(data, template),
                    _number(data, "tokenizer.ggml.eos_token_id", _LATE),
                )
    except FileNotFoundError:
        raise LoadFailed(f"{path} does not exist") from None
    except OSError as error:
        raise LoadFailed(f"{path} cannot be read: {error.strerror or error}") from error
    except struct.error:
        raise LoadFailed(f"{path} ends within its metadata: it is not whole") from None


def _find(data: mmap.mmap, key: str, end: int) -> tuple[int, int]:
    """Type (-1 for none) and position of a value; a search is faster than a walk over the vocabulary."""
    needle = struct.pack("<Q", len(key)) + key.encode()
    at = data.find(needle, 0, end)
    if at < 0:
        return -1, 0
    (kind,) = struct.unpack_from("<I", data, at + len(needle))
    return kind, at + len(needle) + 4


def _text(data: mmap.mmap, key: str) -> str:
    kind, at = _find(data, key, _LATE)
    if kind != 8:
        return ""
    (length,) = struct.unpack_from("<Q", data, at)
    return data[at + 8 : at + 8 + min(length, 1 << 20)].decode("utf-8", "replace")


def _number(data: mmap.mmap, key: str, end: int = _EARLY) -> int | None:
    kind, at = _find(data, key, end)
    form = {4: "<i", 5: "<i", 10: "<q", 11: "<q"}.get(kind)
    return None if form is None else int(struct.unpack_from(form, data, at)[0])


def _control_tokens(data: mmap.mmap, template: str) -> tuple[str, ...]:
    """The control tokens, and those of the user's own that the chat template writes."""
    kinds = _array(data, "tokenizer.ggml.token_type", 5)
    tokens = _array(data, "tokenizer.ggml.tokens", 8)
    if kinds is None or tokens is None or kinds[1] != tokens[1]:
        return ()
    at, count = tokens
    found: list[str] = []
    for kind in struct.unpack_from(f"<{count}i", data, kinds[0]):
        (length,) = struct.unpack_from("<Q", data, at)
        if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED):
            text = data[at + 8 : at + 8 + length].decode("utf-8", "replace")
            if len(text) > 1 and (kind != _USER_DEFINED or (not text.isspace() and text in template)):
                found.append(text)
        at += 8 + length
    return tuple(found)


def _array(data: mmap.mmap, key: str, item: int) -> tuple[int, int] | None:
    """Position and length of a list of this type."""
    kind, at = _find(data, key, _LATE)
    if kind != 9:
        return None
    of, count = struct.unpack_from("<IQ", data, at)
    return (at + 12, count) if of == item else None
