"""The journal of a search: a directory from which it goes on after whatever ended it.

DIR/improve.json          what is searched for, with which cases
DIR/rounds.jsonl          a line for each answer of the model that proposes
DIR/runs/NAME/            evaluations, as `swink eval run` writes them
DIR/improvement.json      what it came to; beside it improved.txt and improvement.diff
"""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from swink.errors import MisuseError
from swink.eval.improve.candidates import Improvement, SearchRound
from swink.eval.resultfile import BadResults, OtherRun, read_beside
from swink.messages.jsondata import encode
from swink.system.files import write_whole

SEARCH = "improve.json"
_ROUNDS = "rounds.jsonl"
_RESULT, _TEXT, _DIFF = "improvement.json", "improved.txt", "improvement.diff"


class SearchPlan(Struct, frozen=True, kw_only=True):
    """What is searched for: a directory is gone on with only for the same."""

    target: str
    text: str
    """As it was at the beginning."""
    cases: str
    """A digest of all cases."""
    training: tuple[str, ...]
    holdout: tuple[str, ...]
    repeat: int
    seed: int
    agent: str = ""
    model: str = ""
    reflect: str = ""


class Journal:
    """The directory of a search."""

    def __init__(self, directory: str | Path, plan: SearchPlan, *, resume: bool) -> None:
        self.directory = Path(directory)
        before = read_beside(self.directory / SEARCH, SearchPlan) if resume else None
        if before is None and self.directory.is_dir() and any(self.directory.iterdir()):
            what = "has no search to go on with" if resume else "has files already; resume the search in it"
            raise MisuseError(f"{self.directory} {what}, or name another directory")
        if before is not None and before != plan:
            names = [name for name in plan.__struct_fields__ if getattr(before, name) != getattr(plan, name)]
            told = ", ".join("text of the target" if name == "text" else name for name in names)
            raise OtherRun(f"{self.directory} is a search with another {told}: resume it with the same one")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_whole(self.directory / SEARCH, msgspec.json.format(encode(plan)) + b"\n")
        except OSError as error:
            raise MisuseError(f"{self.directory} cannot be written: {error.strerror or error}") from error
        self.rounds = self._read_rounds()

    def run(self, name: str) -> Path:
        """The directory of an evaluation."""
        return self.directory / "runs" / name

    def add(self, made: SearchRound) -> None:
        """Keep the answer of a round, on the disk before anything is made of it."""
        self.rounds.append(made)
        with open(self.directory / _ROUNDS, "ab") as file:
            file.write(encode(made) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def finish(self, found: Improvement) -> None:
        """Write what the search came to."""
        write_whole(self.directory / _RESULT, msgspec.json.format(encode(found)) + b"\n")
        write_whole(self.directory / _TEXT, found.text.encode())
        write_whole(self.directory / _DIFF, found.diff.encode())

    def _read_rounds(self) -> list[SearchRound]:
        """The rounds so far; a line that a crash cut short is dropped, and its round is asked for again."""
        path = self.directory / _ROUNDS
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return []
        whole, _, torn = data.rpartition(b"\n")
        if torn:
            write_whole(path, whole + b"\n" if whole else b"")
        try:
            rounds = [msgspec.json.decode(line, type=SearchRound) for line in whole.splitlines()]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadResults(f"{path} cannot be read ({error}); begin anew in another directory") from error
        for number, made in enumerate(rounds, 1):
            if made.number != number or not made.cases or (made.text is None) != bool(made.problem):
                why = f"line {number} is no round of this search"
                raise BadResults(f"{path} cannot be read ({why}); begin anew in another directory")
        return rounds
