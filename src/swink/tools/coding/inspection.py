"""Which shell commands may run without approval: well-known ones that only look at files of the workspace.

This does not keep a command from doing harm; the sandbox does. It spares people questions whose answer is
always yes. A command that is not understood completely needs approval.
"""

import os
from collections.abc import Iterable, Sequence

from msgspec import Struct

from swink.tools.coding.expressions import find_only_lists
from swink.tools.coding.gitviews import git_only_looks
from swink.tools.coding.shellcontext import ShellContext
from swink.tools.coding.syntax import SimpleCommand, Word, read_commands
from swink.tools.coding.viewers import BUILTINS, VIEWERS

MAX_COMMANDS = 30

_LOOK_AT_LINKS = frozenset({"ls", "du", "find", "stat", "echo"})
"""Programs whose operands are all of one kind, and that can look at a link itself."""
_TELL_VERSION = frozenset({"python", "python3", "node", "gcc", "g++", "clang", "cc", "make", "cmake", "bash"})
_FAMILY = {
    "cc": ("gcc", "cc", "clang", "x86_64", "aarch64"),
    "gcc": ("gcc", "x86_64", "aarch64"),
    "g++": ("g++", "x86_64", "aarch64"),
}
"""What the file that a program's name leads to may be called."""
_CHOOSE_VERSION = (
    ".python-version", ".node-version", ".nvmrc", ".tool-versions", "mise.toml", ".mise.toml", ".mise",
    ".config/mise",
)  # fmt: skip


def only_looks(line: str, shell: ShellContext) -> bool:
    """Whether every command of a line for bash, run in that context, only looks at files of the workspace."""
    if not (line.isascii() or shell.reads_bytes_as_text()) or not shell.has_trusted_environment():
        return False
    commands = read_commands(line)
    if not commands or len(commands) > MAX_COMMANDS:
        return False
    outcome = _Outcome((shell,), ())
    for command, following in zip(commands, [*commands[1:], None], strict=True):
        piped = command.link == "|" or (following is not None and following.link == "|")
        after = _run(command, outcome.before(command.link), piped)
        if after is None:
            return False
        outcome = outcome.then(command.link, after)
    return True


class _Outcome(Struct, frozen=True):
    """The contexts that the shell may be in after what has run so far, if it succeeded and if it failed."""

    succeeded: tuple[ShellContext, ...]
    failed: tuple[ShellContext, ...]

    def before(self, link: str) -> tuple[ShellContext, ...]:
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


def _distinct(shells: Iterable[ShellContext]) -> tuple[ShellContext, ...]:
    return tuple({shell.directory: shell for shell in shells}.values())


def _run(command: SimpleCommand, shells: tuple[ShellContext, ...], piped: bool) -> _Outcome | None:
    """Where the shell may be after a command that only looks; None if it does more in one of the contexts."""
    if [word.text for word in command.words[:1]] == ["cd"]:
        entered = [] if piped or command.inputs else [_enter(command.words[1:], shell) for shell in shells]
        moved = tuple(shell for shell in entered if shell is not None)
        return _Outcome(moved, shells) if moved and len(moved) == len(entered) else None
    return _Outcome(shells, shells) if all(_is_harmless(command, shell) for shell in shells) else None


def _enter(words: tuple[Word, ...], shell: ShellContext) -> ShellContext | None:
    match words:
        case [word] if not (word.wild or word.varies or word.text.startswith("-")) and shell.trusts("cd"):
            return shell.enter(word.text)
        case _:
            return None


def _is_harmless(command: SimpleCommand, shell: ShellContext) -> bool:
    program, *rest = command.words
    if program.wild or program.varies or not all(shell.inside(word.text) for word in command.inputs):
        return False
    if any(word.varies for word in rest) and program.text != "echo":
        return False
    words: list[str] = []
    for word in rest:
        expanded = shell.expand(word)
        # bash sorts the names by locale, so any of them may become any operand.
        is_read = word.wild and program.text not in _LOOK_AT_LINKS
        if expanded is None or (is_read and not all(map(shell.inside, expanded))):
            return False
        words += expanded
    if builtin := BUILTINS.get(program.text):
        return builtin(words, shell)
    if not shell.trusts(program.text):
        return False
    match program.text:
        case "git":
            return git_only_looks(words, shell)
        case "find":
            return find_only_lists(words, shell)
        case name if viewer := VIEWERS.get(name):
            return viewer.only_looks(words, shell)
        case name:
            return _asks_for_version(name, words, shell)


def _asks_for_version(program: str, words: Sequence[str], shell: ShellContext) -> bool:
    """Whether a program is only asked for its version, and no file in the workspace selects the program."""
    questions = ("--version", "-V") if program.startswith("python") else ("--version",)
    if program not in _TELL_VERSION or len(words) != 1 or words[0] not in questions:
        return False
    found = shell.find(program)
    if found is None:
        return True
    real = os.path.realpath(found)
    try:
        with open(real, "rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError:
        return False
    if is_script:
        # pyenv, asdf and the like: a file in or above the working directory selects the version.
        return os.path.basename(os.path.dirname(real)) == "shims" and not shell.has_above(_CHOOSE_VERSION)
    return os.path.basename(real).startswith(_FAMILY.get(program, program))
