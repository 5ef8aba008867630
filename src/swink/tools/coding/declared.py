"""Declared commands: programs and sub-commands, with the options under which they only look.

The tables are those that decide what runs unasked. Here only the words count, not the files they name.
"""

from collections.abc import Sequence

from msgspec import Struct

from swink.tools.coding.gitviews import VIEWS, runs_no_gpg, view_name
from swink.tools.coding.options import Arguments, OptionTable, read_arguments
from swink.tools.coding.viewers import VIEWERS


class Declared(Struct, frozen=True):
    """A command with declared options; `is_free` if, with any operands, it changes and prints no file."""

    words: tuple[str, ...]
    options: OptionTable
    is_free: bool
    git: str | None = None
    most: int | None = None
    """How many operands it may have; with others it may change something."""

    def takes(self, rest: Sequence[str]) -> bool:
        """Whether the words after it bring nothing beyond what is declared and print no file."""
        arguments = read_arguments(self.options, rest)
        if arguments is None or (self.most is not None and len(arguments.operands) > self.most):
            return False
        if self.git is None:
            return True
        shows = VIEWS[self.git].shows
        return runs_no_gpg(arguments) and (shows(_NOTHING) or not shows(arguments))


_NOTHING = Arguments({}, (), (), ())


def find_declared(words: Sequence[str]) -> Declared | None:
    """The declared command that words begin with."""
    program, *rest = words
    if viewer := VIEWERS.get(program):
        return Declared((program,), viewer.options, viewer.is_free, most=viewer.most)
    name = view_name(rest)
    if program != "git" or (view := VIEWS.get(name)) is None:
        return None
    return Declared(("git", *name.split()), view.options, view.is_free and not view.shows(_NOTHING), name)
