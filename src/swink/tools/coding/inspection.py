"""Which shell commands may run without approval: well-known ones that only look at files of the workspace.

This does not keep a command from doing harm; the sandbox does. It spares people questions whose answer is
always yes. A command that is not understood completely needs approval.
"""

from collections.abc import Iterable

from msgspec import Struct

from swink.tools.coding.expressions import find_only_lists
from swink.tools.coding.gitviews import git_only_looks
from swink.tools.coding.place import Place
from swink.tools.coding.syntax import SimpleCommand, Word, read_commands
from swink.tools.coding.versions import is_version_question
from swink.tools.coding.viewers import BUILTINS, VIEWERS

MAX_COMMANDS = 30

_LOOK_AT_LINKS = frozenset({"ls", "du", "find", "stat", "echo"})
"""Programs whose operands are all of one kind, and that can look at a link itself."""


def only_looks(line: str, place: Place) -> bool:
    """Whether every command of a line for bash, run at that place, only looks at files of the workspace."""
    if not (line.isascii() or place.reads_bytes_as_text()) or not place.has_trusted_environment():
        return False
    commands = read_commands(line)
    if not commands or len(commands) > MAX_COMMANDS:
        return False
    outcome = _Outcome((place,), ())
    for command, following in zip(commands, [*commands[1:], None], strict=True):
        piped = command.link == "|" or (following is not None and following.link == "|")
        after = _run(command, outcome.before(command.link), piped)
        if after is None:
            return False
        outcome = outcome.then(command.link, after)
    return True


class _Outcome(Struct, frozen=True):
    """The places where the shell may be after what has run so far, if it succeeded and if it failed."""

    succeeded: tuple[Place, ...]
    failed: tuple[Place, ...]

    def before(self, link: str) -> tuple[Place, ...]:
        """Where the next command would start."""
        match link:
            case "&&":
                return self.succeeded
            case "||":
                return self.failed
            case _:
                return _distinct((*self.succeeded, *self.failed))

    def then(self, link: str, after: "_Outcome") -> "_Outcome":
        """The outcome with the next command, which was run or skipped."""
        match link:
            case "&&":
                return _Outcome(after.succeeded, _distinct((*self.failed, *after.failed)))
            case "||":
                return _Outcome(_distinct((*self.succeeded, *after.succeeded)), after.failed)
            case _:
                return after


def _distinct(places: Iterable[Place]) -> tuple[Place, ...]:
    return tuple({place.directory: place for place in places}.values())


def _run(command: SimpleCommand, places: tuple[Place, ...], piped: bool) -> _Outcome | None:
    """Where the shell may be after a command that only looks; None if it does more at one of the places."""
    if [word.text for word in command.words[:1]] == ["cd"]:
        entered = [] if piped or command.inputs else [_enter(command.words[1:], place) for place in places]
        moved = tuple(place for place in entered if place is not None)
        return _Outcome(moved, places) if moved and len(moved) == len(entered) else None
    return _Outcome(places, places) if all(_is_harmless(command, place) for place in places) else None


def _enter(words: tuple[Word, ...], place: Place) -> Place | None:
    if (
        len(words) != 1
        or words[0].wild
        or words[0].varies
        or words[0].text.startswith("-")
        or not place.trusts("cd")
    ):
        return None
    return place.enter(words[0].text)


def _is_harmless(command: SimpleCommand, place: Place) -> bool:
    program, *rest = command.words
    if program.wild or program.varies or not all(place.inside(word.text) for word in command.inputs):
        return False
    if any(word.varies for word in rest) and program.text != "echo":
        return False
    words: list[str] = []
    for word in rest:
        expanded = place.expand(word)
        # bash sorts the names by locale, so any of them may become any operand.
        if expanded is None or (
            word.wild and program.text not in _LOOK_AT_LINKS and not all(map(place.inside, expanded))
        ):
            return False
        words += expanded
    if builtin := BUILTINS.get(program.text):
        return builtin(words, place)
    if not place.trusts(program.text):
        return False
    match program.text:
        case "git":
            return git_only_looks(words, place)
        case "find":
            return find_only_lists(words, place)
        case name if viewer := VIEWERS.get(name):
            return viewer.only_looks(words, place)
        case name:
            return is_version_question(name, words, place)
