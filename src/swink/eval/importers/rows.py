"""Rows: the data of a published benchmark, read from JSON or JSON Lines, also compressed with gzip."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from swink.errors import MisuseError
from swink.eval.case import Case, SourceLine
from swink.messages.jsondata import decode


class BadRows(MisuseError):
    """The data is not in the format it was said to be in; the text says where."""


class BenchmarkRow(Struct, frozen=True):
    """One row and where it stands; what is wrong with it is an error that names the place."""

    data: dict[str, Any]
    place: SourceLine

    def text(self, *names: str) -> str:
        """The text in the first of these fields that is there."""
        for name in names:
            if isinstance(value := self.data.get(name), str) and value.strip():
                return value
        raise self.problem(f"there is no text in {' or '.join(repr(name) for name in names)}")

    def texts(self, name: str) -> list[str]:
        """A list of texts; an absent one is empty."""
        return self._list(name, str, "texts")

    def objects(self, name: str) -> list[dict[str, Any]]:
        """A list of objects; an absent one is empty."""
        return self._list(name, dict, "objects")

    def _list(self, name: str, kind: type, what: str) -> list[Any]:
        value = self.data.get(name)
        items = cast("list[Any]", value) if isinstance(value, list) else [None]
        if value is not None and not all(isinstance(item, kind) for item in items):
            raise self.problem(f"{name!r} is not a list of {what}")
        return [] if value is None else items

    def problem(self, text: str) -> BadRows:
        """An error about this row."""
        return BadRows(f"{self.place}: {text}")


def read_rows(path: Path) -> Iterator[BenchmarkRow | BadRows]:
    """The rows of a file: a list, or one object on each line; what is no row is an error in its place."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise BadRows(f"{path}: cannot be read: {error}") from error
    if text.lstrip().startswith("["):
        yield from _listed(path, text)
        return
    for line, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        place = SourceLine(str(path), line)
        try:
            if not isinstance(item := decode(row), dict):
                raise ValueError(f"it is {type(item).__name__}")
            yield BenchmarkRow(cast("dict[str, Any]", item), place)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            yield BadRows(f"{place}: is no JSON object: {error}")


def make_cases(
    rows: Iterable[BenchmarkRow | BadRows], make: Callable[[int, BenchmarkRow], Case]
) -> Iterator[Case | BadRows]:
    """The case of each row, by its number and the row; what is wrong with a row is an error in its place."""
    for number, row in enumerate(rows):
        if isinstance(row, BadRows):
            yield row
            continue
        try:
            case = make(number, row)
        except BadRows as error:
            yield error
        else:
            yield case


def row_of(case: Case, format: str, *names: str) -> dict[str, Any]:
    """What a scorer needs of the row that a case was made of, from the case's metadata."""
    told: Any = case.metadata.get(format)
    if not isinstance(told, dict) or not all(name in told for name in names):
        lack = f"the case's metadata has no {format!r} with {', '.join(names)}"
        raise ValueError(f"{lack}; import it with import_cases({format!r}, …)")
    return cast("dict[str, Any]", told)


def _listed(path: Path, text: str) -> Iterator[BenchmarkRow | BadRows]:
    try:
        items = decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadRows(f"{path}: is neither a JSON list nor JSON Lines: {error}") from error
    for number, item in enumerate(items, 1):
        if isinstance(item, dict):
            yield BenchmarkRow(cast("dict[str, Any]", item), SourceLine(str(path), 1))
        else:
            yield BadRows(f"{path}: item {number} of the list is no object")
