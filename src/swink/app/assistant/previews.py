"""Previews: what a call of a file tool would change, against the file as it is now."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.events.transcript.diffs import Diff, Hunk, Line, diff
from swink.messages.redact import secret_spans
from swink.messages.redact.shown import escape_invisible, show_arguments
from swink.system.targets import Target
from swink.tools import ToolError
from swink.tools.coding.edits import Edit, apply_edits
from swink.tools.coding.obeyed import warn_if_obeyed
from swink.tools.coding.openfiles import with_unsaved
from swink.tools.coding.text import Encoding, describe_binary, detect, hash_content, make_printable
from swink.tools.coding.workspace import Workspace
from swink.tools.coding.writing import MAX_CHANGED

WRITE, EDIT, DELETE = "write_file", "edit_file", "delete_file"
FILE_TOOLS = (WRITE, EDIT, DELETE)
CONTENT = {WRITE: "content", EDIT: "edits"}
"""The argument that a diff shows better."""
_AT_ONCE = 100


class Preview(Struct, frozen=True):
    """The change a call would make; `state` tells whether the file is still the one that was compared."""

    summary: str
    state: str | None
    """The hash of the file's content; None if there is no file."""
    diff: Diff | None = None
    old: str | None = None
    new: str | None = None
    fails: bool = False
    """Whether the tool would refuse the change; the summary says why."""
    can_review: bool = False
    """Whether parts of the change can be written alone, every other byte kept."""


def preview(
    workspace: Workspace, name: str, arguments: Mapping[str, Any], target: Target | None = None
) -> Preview | None:
    """The change; None for another tool, or for a call that the tool itself will refuse. Reads the file.

    `target` is what the call was judged by; without one the file as it is found counts.
    """
    asked = arguments.get("path")
    if name not in FILE_TOOLS or not isinstance(asked, str):
        return None
    target = target or workspace.look(asked)
    link = "" if target is None else leads_to(workspace, asked, target)
    path = f"{asked} → {link}" if link else asked
    if name == DELETE and os.path.islink(os.path.join(workspace.root, asked.rstrip("/"))):
        return Preview(f"would fail: {path}, and only files are deleted; name the file", None, fails=True)
    with suppress(ToolError, OSError, ValueError):
        data = _read(workspace, asked, target)
        match name, arguments:
            case "write_file", {"content": str(content)}:
                found = _written(path, data, content)
            case "edit_file", {"edits": _} if data is not None:
                found = _edited(path, data, msgspec.convert(arguments["edits"], list[Edit]))
            case "delete_file", _ if data is not None:
                found = _deleted(path, data)
            case _:
                found = None
        if found is None or found.fails:
            return found
        real = asked if target is None else target.path
        return replace(found, summary=found.summary + warn_if_obeyed(real, workspace.root))
    return None


def leads_to(workspace: Workspace, path: str, target: Target) -> str:
    """The file itself, as `.envrc (link)`, where a path leads to it through a link; empty where none does."""
    if target.path == os.path.normpath(os.path.join(workspace.root, path)):
        return ""
    return f"{workspace.inside(target) or target.path} (link)"


def file_state(workspace: Workspace, path: str, target: Target | None = None) -> str | None:
    """The hash of a file's content now; None if there is none that can be read."""
    with suppress(ToolError, OSError, ValueError):
        data = _read(workspace, path, target)
        return None if data is None else hash_content(data)
    return None


def preview_bytes(path: str, old: bytes | None, new: bytes | None) -> Preview:
    """What becomes of a file whose content before and after is known; None where there is none."""
    if new is None:
        return Preview(f"deletes {path}", None) if old is None else _deleted(path, old)
    if (encoding := detect(new)) is None:
        what = "creates" if old is None else "replaces"
        return Preview(f"{what} {path}, which is {describe_binary(new)}", None)
    if old is None:
        return _written(path, None, encoding.decode(new))
    if detect(old) != encoding:
        return Preview(f"replaces {path}, in another encoding or no text before", None)
    return _changed(path, old, encoding.decode(old), encoding.decode(new), True)


def _read(workspace: Workspace, path: str, target: Target | None) -> bytes | None:
    try:
        with workspace.at(path, judged=() if target is None else (target,)) as spot:
            if spot.stat() is None:
                return None
            with open(spot.open_file(), "rb") as file:
                data = file.read(MAX_CHANGED + 1)
            if len(data) <= MAX_CHANGED:
                data = with_unsaved(spot.path, data)
    except ToolError:
        if not (workspace.root / path).parent.exists():  # write_file makes the directories
            return None
        raise
    if len(data) > MAX_CHANGED:
        raise ToolError("too long")
    return data


def _written(path: str, data: bytes | None, content: str) -> Preview:
    if data is None:
        found = _compare(path, None, content)
        return Preview(f"creates {path}, {_lines(content)}", None, found, None, content)
    encoding = detect(data)
    if encoding is None:
        return Preview(f"replaces {path}, which is {describe_binary(data)}", hash_content(data))
    # Without a mark write_file writes UTF-8, so the bytes of lines that are kept may change.
    keeps = encoding == Encoding() or bool(encoding.bom)
    return _changed(path, data, encoding.decode(data), content, keeps)


def _edited(path: str, data: bytes, edits: list[Edit]) -> Preview | None:
    encoding = detect(data)
    if encoding is None:
        return None
    old = encoding.decode(data)
    try:
        new = apply_edits(old, edits).text
    except ToolError as error:
        return Preview(f"would fail: {error}", hash_content(data), fails=True)
    return _changed(path, data, old, new, True)


def _changed(path: str, data: bytes, old: str, new: str, keeps: bool) -> Preview:
    found = _compare(path, old, new)
    count = f"+{found.added} -{found.removed}" if found.hunks else "only white space at line ends"
    summary = f"changes {path}: {count}" if old != new else f"changes nothing in {path}"
    whole = make_printable(old) == old and make_printable(new) == new
    can_review = keeps and whole and bool(found.hunks)
    return Preview(summary, hash_content(data), found, old, new, can_review=can_review)


def _deleted(path: str, data: bytes) -> Preview:
    encoding = detect(data)
    if encoding is None:
        return Preview(f"deletes {path}, which is {describe_binary(data)}", hash_content(data))
    old = encoding.decode(data)
    return Preview(f"deletes {path}, {_lines(old)}", hash_content(data), _compare(path, old, None), old)


def _compare(path: str, old: str | None, new: str | None) -> Diff:
    """The diff as a person sees it, without secrets; its lines are numbered as in the file."""
    found = diff(path, *[None if text is None else make_printable(text) for text in (old, new)])
    return replace(found, hunks=tuple([Hunk(tuple(_show(hunk.lines))) for hunk in found.hunks]))


def _show(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines without secrets; looked at one by one only where there are some, which takes its time."""
    for at in range(0, len(lines), _AT_ONCE):
        some = lines[at : at + _AT_ONCE]
        if secret_spans("\n".join([line.text for line in some])):
            for line in some:
                yield replace(line, text=show_arguments({"content": line.text})["content"])
        else:
            yield from (replace(line, text=escape_invisible(line.text)) for line in some)


def _lines(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n") and text != "")
    return f"{count:,} line{'' if count == 1 else 's'}"
