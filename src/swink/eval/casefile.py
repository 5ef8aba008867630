"""Case files: YAML, JSON or Python → a suite, or every problem at once, with its line."""

from collections.abc import Sequence
from pathlib import Path

from swink.errors import MisuseError
from swink.eval.case import Case, Suite


class BadCases(MisuseError):
    """Cases that cannot be run; the text has every problem on a line of its own: file:line: what to do."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def load_suite(path: str | Path) -> Suite:
    """The suite of a file, or of the case files of a directory."""
    raise NotImplementedError(path)


def load_cases(path: str | Path) -> list[Case]:
    """The cases of a file, or of the case files of a directory."""
    return list(load_suite(path).cases)
