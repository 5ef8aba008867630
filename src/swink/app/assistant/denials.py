"""Denials: whether a line for bash runs what a rule denies, certainly or perhaps.

A denial stops commands by name. Where a line is not understood, it is enough that the words of the rule stand
in it. Where the words do not stand there and it is still not known what runs, a person is asked.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from swink.app.assistant.commandlines import runs_others
from swink.app.assistant.runners import Unknown, commands_within, program_name
from swink.tools.coding.syntax import SimpleCommand, Word

_PIECES = re.compile(r"[\w./:@%+=-]+")


class Denied(Struct, frozen=True):
    """The words of a denied command, and whether others may follow them."""

    words: tuple[str, ...]
    is_open: bool

    @property
    def program(self) -> str:
        """The name of the program."""
        return program_name(self.words[0])

    @property
    def names(self) -> frozenset[str]:
        """The names under which the program may be given to another one."""
        return frozenset({self.program, "-".join([self.program, *self.words[1:2]]).casefold()})

    def is_in(self, line: str, commands: Sequence[SimpleCommand] | None) -> bool:
        """Whether the line runs it; one that is not understood, if the words stand in it."""
        if commands is None:
            return self._stands_in(_PIECES.findall(line.replace("\\\n", "")))
        return any(map(self._is_run_by, commands))

    def why_unsure(self, commands: Sequence[SimpleCommand] | None) -> str | None:
        """Why it is not certain that a line, in which it was not found, does not run it."""
        if commands is None:
            return "it is not understood completely"
        try:
            for command in commands:
                for found in commands_within(command, self.names):
                    begins = any(map(self._begins, _without_options(found.words)))
                    if begins and any(map(is_uncertain, found.words)):
                        return "a wildcard or a variable stands among its first words"
        except Unknown as unknown:
            return str(unknown)
        return None

    def _is_run_by(self, command: SimpleCommand) -> bool:
        try:
            within = commands_within(command, frozenset())
            return any(any(map(self._is, _without_options(found.words))) for found in within)
        except Unknown:
            # What a program such as sh runs stands in its words, perhaps several in one.
            given = [word.text for word in command.words]
            is_runner = is_uncertain(command.words[0]) or runs_others(program_name(given[0]))
            return is_runner and self._stands_in(_PIECES.findall(" ".join(given)))

    def _is(self, given: Sequence[Word]) -> bool:
        """Whether a command is the denied one, word for word."""
        fits = self._begins(given) and not any(is_uncertain(word) for word in given[: len(self.words)])
        return fits and (self.is_open or len(given) == len(self.words))

    def _begins(self, given: Sequence[Word]) -> bool:
        """Whether a command may begin with the denied words."""
        if len(given) < len(self.words) and not any(map(is_uncertain, given)):
            return False
        if program_name(given[0].text) != self.program:
            return False
        pairs = zip(self.words[1:], given[1:], strict=False)
        return all(is_uncertain(word) or word.text == text for text, word in pairs)

    def _stands_in(self, given: Sequence[str]) -> bool:
        """Whether the words stand in a row, the first of them perhaps with its path."""
        size, wanted = len(self.words), [self.program, *self.words[1:]]
        rows = [list(given[at : at + size]) for at in range(len(given) - size + 1)]
        return any([program_name(row[0]), *row[1:]] == wanted for row in rows)


def is_uncertain(word: Word) -> bool:
    """Whether a word holds a wildcard or a variable, so that what bash makes of it is not known."""
    return bool(word.wild) or word.varies


def _without_options(given: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """A command as it is, and without options before its second word: `git -C there push` pushes too.

    Which options have a value is not known, so each may have one.
    """
    yield given
    had_value = True
    for at, word in enumerate(given[1:], 1):
        is_option = word.text.startswith("-")
        if had_value and not is_option:
            return
        had_value = not is_option
        yield (given[0], *given[at + 1 :])
