"""Files that a person has open in an editor: tools see what is not saved yet, and the editor follows changes.

A program that is told of them sets `OPEN_FILES` around its runs; the threads of tools have it from there. The
disk stays what is judged and written: an editor only says what else it has, and takes over what was written.
"""

from contextvars import ContextVar
from typing import Protocol

from msgspec.structs import replace

from swink.messages import Text
from swink.tools import ToolError, ToolResult
from swink.tools.coding.text import detect


class OpenFiles(Protocol):
    """The editor of a workspace; both methods block, and take paths as the workspace names them."""

    @property
    def follows(self) -> bool:
        """Whether the editor takes over what is written."""
        ...

    def text_of(self, path: str) -> str | None:
        """What the editor has of a file; None if it does not say."""
        ...

    def follow(self, path: str) -> str:
        """Have the editor take over what was written; a note for the model if that is something else now."""
        ...


OPEN_FILES: ContextVar[OpenFiles | None] = ContextVar("swink_open_files", default=None)


def with_unsaved(path: str, data: bytes, *, changes: bool = False) -> bytes:
    """What a person has of a file with this content on disk: the same, or what they wrote and have not saved.

    Raises `ToolError` if it is to be changed and the editor would not follow: its text would be lost.
    """
    editor = OPEN_FILES.get()
    encoding = None if editor is None else detect(data)
    if editor is None or encoding is None or (text := editor.text_of(path)) is None:
        return data
    saved = encoding.decode(data)
    if "\r\n" in saved and "\r\n" not in text:
        text = text.replace("\n", "\r\n")
    try:
        unsaved = encoding.encode(text)
    except UnicodeEncodeError:
        unsaved = text.encode("utf-8", "surrogateescape")
    if unsaved != data and changes and not editor.follows:
        raise ToolError(f"{path} has changes in the editor that are not saved; ask the user to save it first")
    return unsaved


def followed(path: str, result: ToolResult) -> ToolResult:
    """The result of a change that the editor has taken over."""
    editor = OPEN_FILES.get()
    if editor is None or not editor.follows or not (note := editor.follow(path)):
        return result
    return replace(result, content=(*result.content, Text(f"\n{note}")))
