"""search_text: lines that match a pattern; the same with and without ripgrep, which makes it faster."""

import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Annotated

from msgspec import Meta, Struct

from swink.messages import Text
from swink.system.programs import ProgramChanged, find_program
from swink.system.shorten import clip_end
from swink.system.targets import Target
from swink.tools import Tool, ToolContext, ToolError, ToolResult, tool
from swink.tools.coding.credentials import is_known_place, is_unsuspicious
from swink.tools.coding.ignore import compile_glob
from swink.tools.coding.listing import escape_path
from swink.tools.coding.matching import Matcher
from swink.tools.coding.ripgrep import Literal, find_literal, widen_pattern
from swink.tools.coding.text import SAMPLE, Encoding, detect, make_printable, read_past_holes
from swink.tools.coding.walk import StopCheck, TooLong, make_stop_check, walk, warn_once
from swink.tools.coding.workspace import Spot, Workspace

MAX_MATCHES = 200
MAX_LINE = 400
BLOCK = 1 << 20
"""Bytes of a file that are searched at a time."""
MAX_RIPGREP = 64 << 20
"""Bytes of the largest file that ripgrep gets: it reads all of it, holes too."""
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_RIPGREP_OPTIONS = (
    "--no-config", "--files-with-matches", "--null", "--text", "--no-messages", "--no-ignore", "--hidden",
    "--no-mmap",
)  # fmt: skip
_BATCH = 500_000  # characters of file names given to one ripgrep


class Query(Struct, frozen=True):
    """What to look for, and where; `pattern` is a regular expression of Python's."""

    pattern: str
    path: str = "."
    glob: str | None = None
    ignore_case: bool = False
    context: int = 0

    @property
    def flags(self) -> int:
        return int(re.IGNORECASE) if self.ignore_case else 0


class Row(Struct, frozen=True):
    """One line of the answer: a match, or a line near one."""

    path: str
    number: int
    line: str
    is_match: bool = True


def search_tools(workspace: Workspace, *, ripgrep: str | None = None) -> list[Tool]:
    """search_text for a workspace; `ripgrep` is the program, by default the one on the PATH, "" for none."""

    @tool(idempotent=True, read_only=True)
    def search_text(
        pattern: str,
        ctx: ToolContext,
        path: str = ".",
        glob: str | None = None,
        ignore_case: bool = False,
        literal: bool = False,
        context: Annotated[int, Meta(ge=0, le=10)] = 0,
    ) -> ToolResult:
        """Search the text of files, line by line. What git ignores, and binary files, are left out.

        Args:
            pattern: A regular expression (Python's).
            path: The file or directory to search, relative to the workspace.
            glob: Only files like this, e.g. `*.py` or `src/**/*.ts`.
            ignore_case: Do not tell capital and small letters apart.
            literal: Take the pattern as plain text.
            context: How many lines to show around each match.
        """
        query = Query(re.escape(pattern) if literal else pattern, path, glob, ignore_case, context)
        rows: list[Row] = []
        matches = 0
        notes: list[str] = []
        try:
            for row in Search(workspace, query, _find_ripgrep(ripgrep), ctx).rows():
                matches += row.is_match
                if matches > MAX_MATCHES:
                    notes.append(
                        f"[only the first {MAX_MATCHES} matches are shown; "
                        "narrow the pattern, the path or the glob]"
                    )
                    break
                rows.append(row)
        except TooLong as error:
            notes.append(f"[{error}]")
        lines = [*_print_rows(rows), *notes] or ["[no match]"]
        return ToolResult((Text("\n".join(lines)),), {"count": min(matches, MAX_MATCHES), "cut": bool(notes)})

    return [search_text]


def _find_ripgrep(chosen: str | None) -> str | None:
    """The program to search with; None for Python, also where ripgrep was replaced since its first use."""
    if chosen is not None:
        return chosen or None
    try:
        return find_program("rg")
    except ProgramChanged as error:
        warn_once(f"search_text works without ripgrep: {error}")
        return None


class Search:
    """One search of a workspace."""

    def __init__(
        self, workspace: Workspace, query: Query, ripgrep: str | None = None, ctx: ToolContext | None = None
    ) -> None:
        try:
            re.compile(query.pattern, query.flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise ToolError(
                f"{query.pattern!r} is not a regular expression: {error}; "
                "set literal to search for plain text"
            ) from error
        self._workspace = workspace
        self._query = query
        self._ripgrep = ripgrep
        self._judged = () if ctx is None else workspace.judged(ctx, query.path)
        self._check_stop = make_stop_check(ctx)

    def rows(self) -> Iterator[Row]:
        """Every match with the lines around it, in the order of paths and lines."""
        literal = find_literal(self._query.pattern, ignore_case=self._query.ignore_case)
        with Matcher(self._query.pattern, self._query.flags, self._check_stop) as matcher:
            for spot in self._worth_reading(matcher):
                yield from self._search_file(spot, literal, matcher)

    def _worth_reading(self, matcher: Matcher) -> Iterator[Spot]:
        """The files to read; each is open only while the search stands on it."""
        query = self._query
        needle = widen_pattern(query.pattern, ignore_case=query.ignore_case) if self._ripgrep else None
        if needle is None:
            yield from self._files()
            return
        sizes = {spot.path: _size(spot) for spot in self._files()}
        small = [path for path, size in sizes.items() if 0 < size <= MAX_RIPGREP]
        named = self._named_by_ripgrep(matcher, needle, small)
        for path, size in sizes.items():
            if size and (named is None or size > MAX_RIPGREP or path in named):
                self._check_stop()
                with suppress(ToolError), self._workspace.at(path, judged=self._at(path)) as spot:
                    yield spot

    def _at(self, path: str) -> list[Target]:
        """What a path without links leads to: itself, or nothing if a link has come into its way."""
        return [Target(os.path.normpath(os.path.join(self._workspace.root, path)))]

    def _files(self) -> Iterator[Spot]:
        """The regular files the query is about: to open anything else may block, or do something."""
        with self._workspace.at(self._query.path, judged=self._judged) as spot:
            found = spot.stat()
            if found is None:
                raise ToolError(f"{spot.path} does not exist")
            if not stat.S_ISDIR(found.st_mode):
                os.close(spot.open_file())  # says what it is, if it is no regular file
                yield spot
                return
            start = spot.path
        regex = compile_glob(self._query.glob) if self._query.glob else None
        skip = 0 if start == "." else len(start) + 1
        directory, in_known_place = "", False
        for entry in walk(self._workspace, start, check_stop=self._check_stop, judged=self._at(start)):
            path = entry.path
            if entry.is_file and (regex is None or regex.fullmatch(path, skip) or regex.fullmatch(path)):
                spot = Spot(entry.parent, entry.name, path)
                above = path[: -len(entry.name)]
                if above != directory:
                    directory, in_known_place = above, is_known_place(above)
                # Most names are clear at once; `may_show` is expensive.
                if (not in_known_place and is_unsuspicious(entry.name)) or self._workspace.may_show(spot):
                    yield spot

    def _named_by_ripgrep(self, matcher: Matcher, needle: str, paths: list[str]) -> set[str] | None:
        """The files in which ripgrep finds something; None if it refuses the pattern."""
        named: set[str] = set()
        for batch in _batches(paths):
            self._check_stop()
            files = [path if os.path.isabs(path) else f"./{path}" for path in batch]
            argv = [str(self._ripgrep), *_RIPGREP_OPTIONS, "-e", needle, "--", *files]
            code, output = matcher.run(argv, str(self._workspace.root))
            if code not in (0, 1) and not output:
                return None
            named.update(os.fsdecode(name).removeprefix("./") for name in output.split(b"\0") if name)
        return named

    def _search_file(self, spot: Spot, literal: Literal, matcher: Matcher) -> Iterator[Row]:
        before: deque[tuple[int, str]] = deque(maxlen=self._query.context)
        after = 0
        for number, line, is_match in self._match_lines(spot, literal, matcher):
            if is_match:
                yield from (Row(spot.path, at, text, False) for at, text in before)
                before.clear()
                yield Row(spot.path, number, line)
                after = self._query.context
            elif after:
                yield Row(spot.path, number, line, False)
                after -= 1
            else:
                before.append((number, line))

    def _match_lines(self, spot: Spot, literal: Literal, matcher: Matcher) -> Iterator[tuple[int, str, bool]]:
        """The lines of a file and whether each matches; blocks without a line to show are left out."""
        number = 0
        for data, encoding in _read_blocks(spot, literal, self._check_stop):
            is_ruled_out = not _is_wide(encoding) and not literal.may_be_in(data)
            matching = frozenset(() if is_ruled_out else matcher.lines(data, encoding))
            if matching or self._query.context:
                lines = encoding.decode(data).removesuffix("\n").split("\n")
                for index, line in enumerate(lines):
                    yield number + index + 1, line.removesuffix("\r")[: MAX_LINE + 1], index in matching
            number += encoding.decode(data).count("\n") if _is_wide(encoding) else data.count(b"\n")


def _size(spot: Spot) -> int:
    found = spot.stat()
    return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else 0


def _read_blocks(spot: Spot, literal: Literal, check_stop: StopCheck) -> Iterator[tuple[bytes, Encoding]]:
    """A file's text in blocks of whole lines; nothing if it is binary, unreadable, gone or cannot match."""
    check_stop()
    try:
        fd = spot.open_file()
    except ToolError as error:
        if isinstance(error.__cause__, PermissionError):
            warn_once(f"{spot.path} is not searched: permission denied")
        return
    with os.fdopen(fd, "rb") as file, suppress(OSError):
        data = file.read(BLOCK)
        if len(data) < BLOCK and not data.startswith(_WIDE_MARKS) and not literal.may_be_in(data):
            return
        encoding = detect(data if len(data) < BLOCK else data[:SAMPLE])
        if data and encoding is not None and _is_searchable(encoding):
            yield from _whole_lines(data, file, encoding, check_stop)


def _is_searchable(encoding: Encoding) -> bool:
    """Whether ripgrep reads it as we do: of wide encodings it knows UTF-16 with a byte order mark only."""
    return not _is_wide(encoding) or (encoding.name.startswith("utf-16") and bool(encoding.bom))


def _is_wide(encoding: Encoding) -> bool:
    return encoding.name.startswith(("utf-16", "utf-32"))


def _whole_lines(
    data: bytes, file: IO[bytes], encoding: Encoding, check_stop: StopCheck
) -> Iterator[tuple[bytes, Encoding]]:
    """Blocks that end at the end of a line; a line longer than a block is split."""
    has_more = len(data) == BLOCK
    data = data[len(encoding.bom) :]
    plain = Encoding(encoding.name)
    newline = "\n".encode(plain.name)
    while has_more and (more := read_past_holes(file, BLOCK)):
        check_stop()
        end = _line_end(data, newline) or len(data) - len(data) % len(newline)
        yield data[:end], plain
        data = data[end:] + more
    if data:
        yield data, plain


def _line_end(data: bytes, newline: bytes) -> int:
    """Where the last whole line ends; 0 if no line does."""
    at = data.rfind(newline)
    while at >= 0 and at % len(newline):
        at = data.rfind(newline, 0, at + len(newline) - 1)
    return at + len(newline) if at >= 0 else 0


def _batches(paths: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        if size > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += len(path) + 3
    if batch:
        yield batch


def _print_rows(rows: list[Row]) -> list[str]:
    """The rows as grep prints them: `path:1: text` a match, `path-2- text` near one, `--` between groups."""
    near = any(not row.is_match for row in rows)
    lines: list[str] = []
    for index, row in enumerate(rows):
        last = rows[index - 1] if index else row
        if near and index and (row.path != last.path or row.number != last.number + 1):
            lines.append("--")
        mark = ":" if row.is_match else "-"
        line = clip_end(make_printable(row.line), MAX_LINE, " [...]")
        lines.append(f"{escape_path(row.path)}{mark}{row.number}{mark} {line}")
    return lines
