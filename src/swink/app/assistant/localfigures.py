"""What the local models could do when they were measured, for the first screen.

`benchmarks/localtasks.py --write-docs` writes them, and the table of docs/guarantees/measured-local.md.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

FILE = Path(__file__).parent / "data" / "localmodels.json"
_UNKNOWN = "–"


class LocalFigures(Struct, frozen=True):
    """What was measured of one model: seconds, tokens a second, megabytes, bytes; None if it was not."""

    model: str
    solved: int
    tasks: int
    first_start: float | None
    later_prompts: float | None
    writing: float | None
    memory: float | None
    download: int
    day: str
    load: tuple[float, float]
    """The lowest and the highest load average of the machine meanwhile."""
    machine: str

    @property
    def cells(self) -> list[str]:
        """The figures for people, in the order of the table."""
        waits = [_shown(seconds, "s") for seconds in (self.first_start, self.later_prompts)]
        sizes = [_megabytes(self.memory), _megabytes(self.download / 1e6)]
        return [self.model, f"{self.solved}/{self.tasks}", *waits, _shown(self.writing), *sizes]


def read_figures(path: Path = FILE) -> tuple[LocalFigures, ...]:
    """The figures that came with this version."""
    return msgspec.json.decode(path.read_bytes(), type=tuple[LocalFigures, ...])


def figures_text(figures: Sequence[LocalFigures], width: int) -> str:
    """The figures in so many columns: a table, or sentences where that is too wide."""
    lines = _table(figures)
    return "\n".join(lines if len(lines[0]) <= width else map(_sentence, figures))


def figures_source(figures: Sequence[LocalFigures]) -> str:
    """Where the figures are from, and what they are."""
    if not figures:
        return ""
    low, high = min(each.load[0] for each in figures), max(each.load[1] for each in figures)
    return (
        f"Measured on {figures[0].day} with small tasks on files and commands, {figures[0].machine}, load "
        f"average {low:g} to {high:g}. First and later: the wait for the first word after the first start, "
        "and at later prompts."
    )


def _table(figures: Sequence[LocalFigures]) -> list[str]:
    head = ["local model", "solved", "first", "later", "tok/s", "memory", "fetch"]
    rows = [head, *(each.cells for each in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _sentence(figures: LocalFigures) -> str:
    model, solved, *cells = figures.cells
    forms = ("first word after {}", "later {}", "{} tokens/s", "{} of memory", "{} to fetch")
    told = [form.format(cell) for form, cell in zip(forms, cells, strict=True) if cell != _UNKNOWN]
    return ", ".join([f"{model}: {solved} solved", *told])


def _megabytes(value: float | None) -> str:
    return _shown(value / 1e3, "GB") if value and value >= 1e3 else _shown(value, "MB")


def _shown(value: float | None, unit: str = "") -> str:
    if not value:
        return _UNKNOWN
    number = f"{value:.1f}" if value < 10 else f"{value:.0f}"
    return f"{number} {unit}".rstrip()
