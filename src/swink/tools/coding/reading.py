"""read_file: text as lines, images as images; other files are refused with their type."""

import base64
import os
from collections.abc import Iterator
from typing import IO, Annotated, Any

from msgspec import Meta

from swink.messages import Base64Source, Image, Text
from swink.system.shorten import clip_end
from swink.tools import Tool, ToolContext, ToolError, ToolResult, tool
from swink.tools.coding.openfiles import with_unsaved
from swink.tools.coding.text import (
    SAMPLE,
    Encoding,
    describe_binary,
    detect,
    detect_image,
    hash_content,
    make_printable,
    read_past_holes,
)
from swink.tools.coding.walk import StopCheck, make_stop_check
from swink.tools.coding.workspace import Workspace

MAX_LINES = 2000
MAX_CHARACTERS = 80_000
MAX_LINE = 2000
MAX_WHOLE = 16 << 20
"""Bytes of the largest file that is read whole; of larger ones only the lines asked for are kept."""
MAX_IMAGE = 5 << 20


def read_tools(workspace: Workspace) -> list[Tool]:
    """read_file for a workspace: text with line numbers, images as images."""

    @tool(idempotent=True, read_only=True)
    def read_file(
        path: str,
        ctx: ToolContext,
        offset: Annotated[int, Meta(ge=1)] = 1,
        limit: Annotated[int, Meta(ge=1)] = MAX_LINES,
        line_numbers: bool = False,
    ) -> ToolResult:
        """Read a text file, or look at an image (png, jpeg, gif, webp).

        Args:
            path: The file, relative to the workspace.
            offset: The first line to read, from 1.
            limit: How many lines to read at most.
            line_numbers: Put its number and a tab before every line.
        """
        judged = workspace.judged(ctx, path)
        with workspace.at(path, judged=judged) as spot, os.fdopen(spot.open_file(), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(SAMPLE)
            if kind := detect_image(head):
                return _read_image(spot.path, file, head, size, kind)
            details: dict[str, Any] = {"path": spot.path, "size": size}
            if size <= MAX_WHOLE:
                data = with_unsaved(spot.path, head + file.read(MAX_WHOLE))
                encoding = detect(data)
                details["hash"] = hash_content(data)
            else:
                data, encoding = head, detect(head[: head.rfind(b"\n") + 1] or head)
            if encoding is None:
                raise ToolError(
                    f"{spot.path} is {describe_binary(head)}, {size:,} bytes, not text; "
                    "use bash with a program for it",
                    details,
                )
            file.seek(0)
            lines = _split_lines(data, encoding) if size <= MAX_WHOLE else _stream_lines(file, encoding, ctx)
            text, shown = _select_lines(lines, offset, limit, line_numbers, counted=size <= MAX_WHOLE)
            return ToolResult((Text(text),), {**details, "encoding": str(encoding), "lines": shown})

    return [read_file]


def _read_image(path: str, file: IO[bytes], head: bytes, size: int, kind: str) -> ToolResult:
    if size > MAX_IMAGE:
        raise ToolError(
            f"{path} is {kind} of {size:,} bytes; images up to {MAX_IMAGE:,} can be looked at, "
            "so make a smaller copy first"
        )
    data = base64.b64encode(head + file.read()).decode()
    said = Text(f"{path} ({kind}, {size:,} bytes)")
    return ToolResult((said, Image(Base64Source(data, kind))), {"path": path, "size": size})


def _split_lines(data: bytes, encoding: Encoding) -> Iterator[str]:
    text = encoding.decode(data)
    if text:
        yield from text.removesuffix("\n").split("\n")


def _stream_lines(file: IO[bytes], encoding: Encoding, ctx: ToolContext) -> Iterator[str]:
    """Lines of a file too large to hold; of an endless line only the beginning is kept."""
    if encoding.name not in ("utf-8", "cp1252"):
        raise ToolError(
            f"a file of this size is read only in a one-byte encoding or utf-8, and this is {encoding}; "
            "convert it with iconv in bash"
        )
    file.seek(len(encoding.bom))
    check_stop = make_stop_check(ctx)
    while line := file.readline(4 * MAX_LINE):
        check_stop()
        if not line.endswith(b"\n"):
            _skip_line(file, check_stop)
        yield Encoding(encoding.name).decode(line.rstrip(b"\n"))


def _skip_line(file: IO[bytes], check_stop: StopCheck) -> None:
    """Go to the beginning of the next line."""
    while data := read_past_holes(file, 1 << 20):
        check_stop()
        end = data.find(b"\n") + 1
        if end:
            file.seek(end - len(data), os.SEEK_CUR)
            return


def _select_lines(
    lines: Iterator[str], offset: int, limit: int, numbered: bool, *, counted: bool
) -> tuple[str, list[int]]:
    """The lines asked for, within the caps, and a note of what is missing; `counted` if all are counted."""
    kept: list[str] = []
    size = total = 0
    full = False
    for total, line in enumerate(lines, 1):
        if total < offset or full:
            continue
        line = line.removesuffix("\r")
        line = clip_end(line, MAX_LINE, f" [... line of {len(line):,} characters cut ...]")
        if len(kept) == limit or size + len(line) > MAX_CHARACTERS:
            full = True
            if counted:
                continue
            break
        kept.append(f"{total}\t{line}" if numbered else line)
        size += len(kept[-1]) + 1
    if not kept and total == 0:
        return "[the file is empty]", [0, 0]
    if not kept:
        raise ToolError(f"the file has {total} line{'' if total == 1 else 's'}, so there is no line {offset}")
    last = offset + len(kept) - 1
    text = make_printable("\n".join(kept))
    if not text.strip():
        text = f"[{len(kept)} blank line{'s' if len(kept) > 1 else ''}]"
    if offset > 1 or last < total:
        after = f"; go on with offset={last + 1}" if last < total else ""
        count = total if counted or not full else f"{total:,} or more"
        text += f"\n[lines {offset} to {last} of {count}{after}]"
    return text, [offset, last]
