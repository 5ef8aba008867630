"""What a person says in an editor, as the agent takes it: words, pictures, recordings, files."""

import binascii
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from swink.app.acp.connection import INVALID_PARAMETERS, RequestRefused
from swink.app.acp.parameters import (
    AudioBlock,
    Contents,
    ImageBlock,
    LinkBlock,
    PromptBlockSent,
    ResourceBlock,
    TextBlock,
)
from swink.app.assistant.attachedfiles import fence
from swink.errors import AgentError
from swink.messages import Audio, Document, Image, Text
from swink.messages.blocks import Base64Source

Said = Text | Image | Audio | Document


def read_prompt(blocks: Sequence[PromptBlockSent]) -> list[Said]:
    """The blocks of a prompt; raises `RequestRefused` for one that cannot be read."""
    if not blocks:
        raise RequestRefused(INVALID_PARAMETERS, "the prompt is empty")
    try:
        return [_read(block) for block in blocks]
    except (AgentError, binascii.Error, ValueError) as error:
        raise RequestRefused(INVALID_PARAMETERS, f"the prompt cannot be read: {error}") from error


def text_of_prompt(said: Sequence[Said]) -> str:
    """The words of a prompt, if it has nothing else; for commands."""
    return "".join([block.text for block in said if isinstance(block, Text)])


def _read(block: PromptBlockSent) -> Said:
    match block:
        case TextBlock(text):
            return Text(text)
        case ImageBlock(data, mime_type):
            return Image(Base64Source(data, mime_type))
        case AudioBlock(data, mime_type):
            return Audio(Base64Source(data, mime_type))
        case LinkBlock(uri, name):
            return Text(f" @{_name_of(uri)} " if uri.startswith("file:") else f" [{name}]({uri}) ")
        case ResourceBlock(resource):
            return _read_resource(resource)


def _read_resource(resource: Contents) -> Said:
    if resource.text is not None:
        return Text(fence(_name_of(resource.uri), resource.text))
    if resource.blob is None:
        raise ValueError(f"{resource.uri} has neither text nor bytes")
    kind = resource.mime_type or "application/octet-stream"
    source: Any = Base64Source(resource.blob, kind)
    if kind.startswith("image/"):
        return Image(source)
    if kind.startswith("audio/"):
        return Audio(source)
    return Document(source, title=resource.uri)


def _name_of(uri: str) -> str:
    """A file by its path, another resource by its address."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.path else uri
