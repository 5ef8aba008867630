"""Sessions in lines for a terminal: a table that fits it, and the messages of one."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from swink.app.assistant.sessionfacts import format_age, format_cost, short_ids, working_directory
from swink.app.assistant.titles import title_line
from swink.app.assistant.toolcalls import format_call
from swink.app.cli.terminal import add_style, table
from swink.events.transcript.blockkinds import counted
from swink.memory.meta import SessionMeta
from swink.messages import AssistantMessage, Message, Text, ToolResultMessage, UserMessage
from swink.messages.redact import redact_text
from swink.messages.redact.shown import escape_invisible
from swink.system.oneline import shorten, strip_controls, width_of

_LEAST = 10
"""Columns that a title or a directory keeps in a narrow terminal."""

_EXCHANGES, _LINES = 2, 12
"""How many exchanges a resumed chat repeats, and how many lines of each text."""


def list_lines(metas: Sequence[SessionMeta], width: int | None) -> str:
    """A table, one session a line; the directory "." is this one."""
    now, ids = time.time(), short_ids([meta.id for meta in metas])
    here, home = working_directory(), None
    with suppress(RuntimeError):
        home = str(Path.home())
    rows: list[tuple[str, ...]] = [("TITLE", "AGE", "TURNS", "COST", "DIRECTORY", "ID")]
    for meta in metas:
        facts = format_age(now - meta.updated), str(meta.turns), format_cost(meta)
        rows.append((title_line(meta), *facts, _directory(meta.directory, here, home), ids[meta.id]))
    return table(rows if width is None else _fitted(rows, width), numbers=(1, 2, 3))


def all_lines(messages: Mapping[int, Message]) -> Iterator[str]:
    """All messages, each prompt with the number of messages before it."""
    for number, message in messages.items():
        yield from _message_lines(message, None, f"#{number} ")


def last_lines(messages: Iterable[Message]) -> Iterator[str]:
    """The last exchanges, long texts cut."""
    found = list(messages)
    prompts = [index for index, message in enumerate(found) if isinstance(message, UserMessage)]
    start = prompts[-_EXCHANGES:][0] if prompts else 0
    if start:
        yield add_style(f"… {counted(start, 'earlier message')}", "dim", sys.stdout)
    for message in found[start:]:
        yield from _message_lines(message, _LINES)


def _directory(directory: str | None, here: str | None, home: str | None) -> str:
    if directory is None:
        return "-"
    if directory == here:
        return "."
    if home is not None and directory.startswith(home + os.sep):
        directory = f"~{directory[len(home) :]}"
    return escape_invisible(strip_controls(directory))


def _fitted(rows: list[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """The rows with titles and directories short enough for the width."""
    sizes = [max(width_of(row[column]) for row in rows) for column in range(6)]
    room = width - sum(sizes) + sizes[0] + sizes[4] - 2 * 5
    if sizes[0] + sizes[4] <= room:
        return rows
    place = max(_LEAST, min(sizes[4], room // 3))
    title = max(_LEAST, room - min(place, sizes[4]))

    def end_of(path: str) -> str:  # it tells more than the beginning
        return path if width_of(path) <= place else f"…{path[len(path) - place + 1 :]}"

    return [(shorten(row[0], title), *row[1:4], end_of(row[4]), row[5]) for row in rows]


def _message_lines(message: Message, most: int | None, mark: str = "") -> Iterator[str]:
    match message:
        case UserMessage():
            pictures = sum(not isinstance(block, Text) for block in message.content)
            text = message.text + f" [{pictures} attached]" * bool(pictures)
            first, *rest = _cut(text, most)
            yield add_style(f"{mark}> {first}", "bold", sys.stdout)
            yield from rest
        case AssistantMessage():
            if message.text.strip():
                yield from _cut(message.text, most)
            for call in [made.resolved for made in message.tool_calls]:
                yield add_style(shorten(f"→ {format_call(call.name, call.arguments)}"), "dim", sys.stdout)
            if message.error_message:
                yield add_style(shorten(f"✗ {redact_text(message.error_message)}"), "dim", sys.stdout)
        case ToolResultMessage():
            sign = "✗" if message.is_error else "←"
            yield add_style(shorten(f"{sign} {redact_text(message.text)}"), "dim", sys.stdout)
        case _:
            yield add_style(shorten(f"({message.role})"), "dim", sys.stdout)


def _cut(text: str, most: int | None) -> list[str]:
    lines = strip_controls(redact_text(text.rstrip())).split("\n")
    if most is None or len(lines) <= most:
        return lines
    return [*lines[:most], add_style(f"… {counted(len(lines) - most, 'more line')}", "dim", sys.stdout)]
