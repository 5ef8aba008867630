"""Calls as an editor shows them, from the blocks of a transcript: title, kind, files, whole diffs."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swink.app.assistant.previews import DELETE, EDIT, WRITE, Preview
from swink.app.assistant.rules import BASH
from swink.app.assistant.toolcalls import format_call
from swink.events.transcript import ReplyBlock, ToolBlock, ToolState, Transcript
from swink.messages import Audio, Document, Extension, Image, Text
from swink.messages.blocks import Base64Source
from swink.system.shorten import clip, clip_end

KINDS = {
    **dict.fromkeys(("read_file", "list_files"), "read"),
    **dict.fromkeys(("find_files", "search_text"), "search"),
    **dict.fromkeys((WRITE, EDIT), "edit"),
    **dict.fromkeys(("fetch_url", "web_search"), "fetch"),
    **dict.fromkeys(("todo", "explore", "task"), "think"),
    DELETE: "delete",
    BASH: "execute",
}
"""What kind of work the tools do; others are "other"."""
STATUS: Mapping[ToolState, str] = {
    **dict.fromkeys(("waiting", "approval"), "pending"),
    "running": "in_progress",
    "done": "completed",
    **dict.fromkeys(("failed", "rejected", "cancelled"), "failed"),
}
_TITLE = 200
_LONGEST = 100_000
"""Characters of a result that are shown; the conversation has the whole of it."""
_INNER = 20
"""Calls of a sub-agent that are shown, the last ones."""
_MARKS = {"completed": "✓", "failed": "✗", "in_progress": "▸", "pending": "·"}


def title_of(name: str, shown: Mapping[str, Any]) -> str:
    """A call in one line: a command as it is, work on a file by its path, others by name and arguments."""
    command, path = shown.get("command"), shown.get("path")
    if name == BASH and isinstance(command, str):
        return clip(command, _TITLE)
    if name in KINDS and isinstance(path, str):
        return clip(f"{name}: {path}", _TITLE)
    return clip(format_call(name, shown), _TITLE)


def describe(block: ToolBlock, directory: Path) -> dict[str, Any]:
    """What a call is about, before it has a result."""
    shown = block.shown
    return {
        "title": title_of(block.name, shown) if shown or block.partial is None else block.name,
        "kind": KINDS.get(block.name, "other"),
        "status": STATUS[block.state],
        "rawInput": shown,
        **_locations(shown, directory),
    }


def _locations(shown: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    path, line = shown.get("path"), shown.get("offset")
    if not isinstance(path, str):
        return {}
    location: dict[str, Any] = {"path": absolute(path, directory)}
    if isinstance(line, int) and line > 0:
        location["line"] = line
    return {"locations": [location]}


def absolute(path: str, directory: Path) -> str:
    """A path as the editor names files."""
    return os.path.normpath(directory / os.path.expanduser(path))


def text_content(text: str) -> dict[str, Any]:
    """A text as content of a call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def diff_content(path: str, old: str | None, new: str | None) -> dict[str, Any]:
    """A change of a file, whole; of a file that is deleted nothing is left."""
    return {"type": "diff", "path": path, "oldText": old, "newText": new or ""}


def preview_content(found: Preview, path: str) -> Iterator[dict[str, Any]]:
    """What a call would do to a file."""
    if found.diff is not None:
        yield diff_content(path, found.old, found.new)
    else:
        yield text_content(found.summary)


def result_content(block: ToolBlock, directory: Path) -> list[dict[str, Any]]:
    """What a call came to: the diff of a file that it changed, else what it said."""
    if (change := _file_change(block.details)) is not None:
        path, old, new = change
        told = [text_content(block.note)] if block.note else []
        return [diff_content(absolute(path, directory), old, new), *told]
    text = clip_end(block.text, _LONGEST, "\n…")
    content = [text_content(text)] if text else []
    return content + [{"type": "content", "content": image} for image in images(block.content)]


def progress_content(block: ToolBlock, inside: Mapping[str, Transcript]) -> list[dict[str, Any]]:
    """What a running call has printed so far, and what the agents in it do."""
    lines = [line for name, inner in inside.items() for line in _inner_lines(name, inner)]
    text = "\n".join(lines) or block.output
    return [text_content(text)] if text else []


def _inner_lines(name: str, inner: Transcript) -> Iterator[str]:
    calls = [block for block in inner.blocks if isinstance(block, ToolBlock)]
    for call in calls[-_INNER:]:
        yield f"{_MARKS[STATUS[call.state]]} {name}: {title_of(call.name, call.shown)}"
    last = inner.blocks[-1] if inner.blocks else None
    if isinstance(last, ReplyBlock) and last.text:
        yield clip(last.text, _TITLE)


def _file_change(details: Any) -> tuple[str, str | None, str | None] | None:
    """The path of a file that a call changed, and its text before and after; None for another call."""
    match details:
        case {"full_text": str(), "details": inner}:
            return _file_change(inner)
        case {
            "path": str() as path,
            "is_new_file": bool() as is_new,
            "old_content": str() | None as old,
            "new_content": str() | None as new,
        } if (is_new or old is not None) and (new is not None or details.get("hash", "") is None):
            return path, None if is_new else old, new
        case _:
            return None


def images(content: Sequence[Text | Image | Document | Audio | Extension]) -> Iterator[dict[str, Any]]:
    """The images of some content, as the protocol has them."""
    for block in content:
        if isinstance(block, Image) and isinstance(block.source, Base64Source):
            yield {"type": "image", "data": block.source.data, "mimeType": block.source.media_type}
