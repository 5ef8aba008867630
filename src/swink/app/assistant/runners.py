"""Runners: which commands a command runs beside itself, by its words alone.

env nice timeout time command exec nohup stdbuf xargs sudo …   the command in their words, as of uv run
find                                                           those of -exec and its like
sh, eval, python -c, git -c and an alias of git, awk, …        unknown: it is not a command in words
make, python script.py, npm run, a program of yours            themselves: a denial stops commands by name
"""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from swink.app.assistant.commandlines import RUNS_OTHERS, WORKS_BY_FILE, is_interpreter, word_set
from swink.tools.coding import expressions
from swink.tools.coding.declared import find_declared
from swink.tools.coding.options import OptionTable, declare_options, read_arguments
from swink.tools.coding.syntax import SimpleCommand, Word
from swink.tools.coding.viewers import VIEWERS

MOST = 20
"""Commands within commands that are looked at."""


class Unknown(Exception):
    """What a command runs is not certain; the text says why."""


def _runner(options: str = "", operands: int = 0) -> tuple[OptionTable, int]:
    """The options of a runner, and how many operands stand before the command it runs."""
    return declare_options(options), operands


_RUNNERS = {
    "builtin": _runner(), "choom": _runner("-n=number --adjust=number"), "command": _runner("-p"),
    "dbus-run-session": _runner(), "doas": _runner("-n -u=text"),
    "env": _runner("-i0v -u=text -C=text --ignore-environment --null --debug --unset=text --chdir=text"),
    "exec": _runner("-cl -a=text"), "ionice": _runner("-t -c=text -n=number"), "nice": _runner(
        "-# -n=number --adjustment=number"
    ),
    **dict.fromkeys(["i386", "linux32", "linux64", "x86_64"], _runner("-R --addr-no-randomize")),
    "nohup": _runner(), "setsid": _runner("-cfw --ctty --fork --wait"),
    "ssh-agent": _runner("-cDdks -a=path -t=text"),
    "stdbuf": _runner("-i=text -o=text -e=text --input=text --output=text --error=text"),
    "sudo": _runner("-nEHk -u=text -g=text --non-interactive --set-home --user=text --group=text"),
    "time": _runner("-p"),
    "timeout": _runner("-v -k=text -s=text --foreground --preserve-status --verbose --kill-after=text "
        "--signal=text", 1),
    "valgrind": _runner("-qv --quiet --verbose --tool=text --leak-check=text --error-exitcode=number"),
    "xargs": _runner("-0rtx -n=number -P=number -L=number -s=number -d=text -a=path -I=text --null "
        "--no-run-if-empty --verbose --max-args=number --max-procs=number --delimiter=text --arg-file=path"),
}  # fmt: skip
_PROJECT_RUNNERS = {
    "hatch": _runner(), "pdm": _runner(), "pipenv": _runner(), "poetry": _runner(), "rye": _runner(),
    "uv": _runner("-qv --quiet --verbose --all-extras --dev --exact --frozen --isolated --locked --no-dev "
        "--no-project --no-sync --offline -p=text --extra=text --group=text --python=text --with=text"),
}  # fmt: skip
"""Programs that run a command in the surroundings of a project, by their word `run`."""
_KEYWORDS = word_set(
    "! case coproc do done elif else esac fi for function if in select then until while { } [[ (( let"
    " declare typeset local export readonly alias hash enable fc bind complete compgen mapfile readarray"
    " read set shopt unalias unset - coreutils"
)
"""What begins or ends something larger, or changes what later words mean."""
_SPEAK = frozenset({"echo", "true", "false", ":", "pwd", "type", "cd"})
_SCRIPTS = re.compile(r"python|pypy|node|deno|bun|perl|ruby|php|lua|rscript|java|julia|tclsh")
_CODE_MODULES = word_set(
    "asyncio bdb cProfile code coverage doctest idlelib IPython pdb profile ptpython runpy timeit trace"
)
"""Modules of Python that run code, or another module, that they are given."""
_ELSEWHERE = re.compile(r"(?:.*/)?(?:stdin|fd/.*|proc/.*|\d+)", re.S)
"""Paths of a script that may be what is piped to it."""
_TELLS = frozenset({"--version", "-V", "--help"})
_TAKE_ANYTHING = word_set(
    "basename cat chmod cp cut dirname du egrep fgrep file grep head ls md5sum mkdir mv rmdir sha1sum"
    " sha256sum stat tail touch wc"
)
"""Programs that no argument makes run another one."""
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_GIT_BEFORE = frozenset({"--no-pager", "--no-optional-locks", "-P", "--bare", "--literal-pathspecs"})
_GIT = word_set(
    "add am apply archive blame branch bundle cat-file check-ignore checkout cherry cherry-pick clean clone"
    " commit count-objects describe diff diff-tree fetch for-each-ref format-patch fsck gc grep init log"
    " ls-files ls-remote ls-tree merge merge-base mv name-rev notes prune pull push range-diff rebase"
    " reflog remote reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref"
    " sparse-checkout stash status switch symbolic-ref tag update-index update-ref version worktree"
)
"""Git's own commands, which no alias replaces, that run nothing but by an option."""
_GIT_RUNS = word_set(
    "--config --config-env --exec --exec-path --ext-diff --extcmd --open-files-in-pager --receive-pack"
    " --template --textconv --upload-archive --upload-pack"
)
"""Options of git with a command, or a setting that may be one, as their value."""
_GIT_TEXTS = word_set(
    "--author --branch --committer --date --exclude --format --grep --message --pretty --since --until"
)
"""Options of git whose value is only read."""
_GIT_LETTERS = {"clone": "cu", "ls-remote": "u", "rebase": "x", "grep": "O"}
_GIT_PROGRAM = re.compile(r"git-([a-z][a-z-]*)")
_EXTENSION = re.compile(r".*\.[A-Za-z]\w*", re.S)
_TARGET = re.compile(r"[\w.][\w./:@%+-]*|-(?:[ksnBi]|j\d*)")
_CODE = re.compile(r"[$`]|\s.*[*?\[{~]|[*?\[{~].*\s", re.S)
_PIECES = re.compile(r"[\w.+-]+")
_UNQUOTED = str.maketrans("", "", "\\'\"")


def program_name(program: str) -> str:
    """The name of a program by whatever path; systems that ignore case, or add `.exe`, find it so too."""
    return os.path.basename(program).casefold().removesuffix(".exe")


def commands_within(command: SimpleCommand, denied: frozenset[str]) -> Iterator[SimpleCommand]:
    """A command and those that it certainly runs; raises `Unknown` where there may be others.

    `denied` are names of programs that no other program is given unnoticed.
    """
    waiting = [command]
    for _ in range(MOST):
        if not waiting:
            return
        found = waiting.pop()
        yield found
        if (spelled := _as_git(found)) is not None:
            found = spelled
            yield found
        waiting += _inner(found, denied)
    raise Unknown("it runs commands within commands")


def _as_git(command: SimpleCommand) -> SimpleCommand | None:
    """`git-push`, by whatever path, as `git push`."""
    program, *rest = command.words
    match = _GIT_PROGRAM.fullmatch(program_name(program.text))
    return SimpleCommand("", (Word("git"), Word(match[1]), *rest)) if match else None


def _inner(command: SimpleCommand, denied: frozenset[str]) -> list[SimpleCommand]:
    program, *rest = command.words
    if program.wild or program.varies:
        raise Unknown("a wildcard or a variable stands where the name of a command is")
    name, words = program_name(program.text), [word.text for word in rest]
    if name in _KEYWORDS:
        raise Unknown(f"{name!r} is more than a command")
    if name in _SPEAK or words == ["--version"] or (name == "command" and words[:1] in (["-v"], ["-V"])):
        return []
    if name == "find":
        return list(_found(rest))
    if name in _RUNNERS:
        return _run_by(name, _RUNNERS[name], rest)
    if name in _PROJECT_RUNNERS and "run" in words:
        if words[0] != "run" or name == "hatch":  # it gives the words to a shell
            raise Unknown(f"what {name} runs is not certain")
        return _run_by(name, _PROJECT_RUNNERS[name], rest[1:])
    if name not in _TAKE_ANYTHING:
        is_known = name in VIEWERS or name in _JUDGES
        if any(word.varies or _finds_anything(word, denied, is_known) for word in rest):
            raise Unknown(f"what {name} is given is not certain")
        _check_arguments(name, words, denied)
    elif name not in VIEWERS:
        if any(word.wild and _is_far(word.text) and _may_name(word, denied) for word in rest):
            raise Unknown(f"what {name} is given is not certain")
        _check_names(name, words, denied)
    return []


def _finds_anything(word: Word, denied: frozenset[str], is_known: bool) -> bool:
    """Whether a wildcard may find an option or, for a program that may be a runner, a program."""
    if not word.wild:
        return False
    if word.wild[0] == 0 or word.text.startswith("-"):
        return True
    may_be_program = "/" in word.text and not _EXTENSION.fullmatch(word.text[word.wild[-1] + 1 :])
    return not is_known and (may_be_program or _may_name(word, denied))


def _may_name(word: Word, denied: frozenset[str]) -> bool:
    """Whether a word with a wildcard may find a program of a denied name."""
    last = word.text.rpartition("/")[2].casefold()
    return any(fnmatchcase(name, last) for name in denied)


def _is_far(path: str) -> bool:
    """Whether a path may leave the directory: a copy of what it names has another name."""
    return path.startswith(("/", "~")) or ".." in path.split("/")


def _check_arguments(name: str, words: Sequence[str], denied: frozenset[str]) -> None:
    """Raise `Unknown` if the words of a command that is no runner may be, or hold, something to run."""
    if (judge := _JUDGES.get(name)) is not None:
        if not judge(words):
            raise Unknown(f"{name} may run what is in its words")
        if name == "git":
            _check_names(name, list(_git_values(words)), denied)
        return
    declared = find_declared([name, *words])
    if declared is not None and declared.takes(words[len(declared.words) - 1 :]):
        return
    if name in RUNS_OTHERS:
        raise Unknown(f"{name} runs what it is given")
    if is_interpreter(name) and not (_SCRIPTS.match(name) and _names_script(name, words)):
        raise Unknown(f"{name} runs the code that it is given")
    if name in WORKS_BY_FILE and not all(map(_TARGET.fullmatch, words)):
        raise Unknown(f"{name} is given more than targets")
    if any(map(_CODE.search, words)):
        raise Unknown(f"what {name} is given may hold a command")
    _check_names(name, words, denied)


def _check_names(name: str, words: Sequence[str], denied: frozenset[str]) -> None:
    if named := denied.intersection(_names_within(words)):
        raise Unknown(f"{name} is given the name {min(named)}")


def _names_script(name: str, words: Sequence[str]) -> bool:
    """Whether an interpreter is given a file, or a module that runs no code from elsewhere."""
    if words[:1] == ["-m"]:
        modules = {word.partition(".")[0] for word in words[1:]}
        return name.startswith(("python", "pypy")) and not modules & _CODE_MODULES
    if not words or words[0] in _TELLS:
        return bool(words)
    return not words[0].startswith("-") and not _ELSEWHERE.fullmatch(os.path.normpath(words[0]))


def _names_within(words: Sequence[str]) -> Iterator[str]:
    """The names that may be programs in the arguments of a command, also in one that holds code."""
    for word in words:
        for piece in _PIECES.findall(word.translate(_UNQUOTED)):
            yield piece.casefold()
            if re.match(r"-\w\w", piece):  # an option of one letter with its value
                yield piece[2:].casefold()


def _run_by(name: str, runner: tuple[OptionTable, int], words: Sequence[Word]) -> list[SimpleCommand]:
    """The command that a runner runs."""
    table, operands = runner
    at = _count_options(table, [word.text for word in words])
    if at is None or any(word.wild or word.varies for word in words[: at + operands]):
        raise Unknown(f"what {name} runs is not certain")
    options = read_arguments(table, [word.text for word in words[:at]])
    inner = list(words[at + operands :])
    if name == "xargs":
        marks = () if options is None else options.options.get("-I", ())
        inner = [_varying(word, marks) for word in inner] or [Word("echo")]
        inner += [] if marks else [Word("", varies=True)]
    if inner and "=" in inner[0].text:
        raise Unknown(f"{name} sets variables")
    return [SimpleCommand("", tuple(inner))] if inner else []


def _count_options(options: OptionTable, words: Sequence[str]) -> int | None:
    """How many words before the first operand are options and their values; None if one is not declared."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            return at + 1
        if read_arguments(options, words[at : at + 1]) is not None:
            at += 1
        elif read_arguments(options, words[at : at + 2]) is not None:
            at += 2
        else:
            return None
    return at


def _varying(word: Word, marks: Sequence[str]) -> Word:
    return Word(word.text, word.wild, True) if any(mark in word.text for mark in marks) else word


def _found(words: Sequence[Word]) -> Iterator[SimpleCommand]:
    """The commands that find runs for the files it finds."""
    if any(word.varies for word in words):
        raise Unknown("what find does is not certain")
    inner: list[Word] | None = None
    for word in words:
        if inner is None:
            # A wildcard before the expression may find a name that is a part of it.
            if word.wild and (word.wild[0] == 0 or word.text.startswith(("-", "(", "!"))):
                raise Unknown("what find does is not certain")
            inner = [] if word.text in _FIND_RUNS else None
        elif word.text in (";", "+") and inner:
            yield SimpleCommand("", tuple(inner))
            inner = None
        else:
            inner.append(_varying(word, ("{}",)))
    if inner is not None:
        raise Unknown("what find runs is not certain")


def _git_runs_nothing(words: Sequence[str]) -> bool:
    """Whether git is given one of its own commands, no setting, and no option with a command in it."""
    waiting = list(words)
    while waiting and waiting[0] in (*_GIT_BEFORE, "-C"):
        del waiting[: 2 if waiting[0] == "-C" else 1]
    if not waiting or waiting[0] in _TELLS:
        return True
    name, *rest = waiting
    if name in _GIT and not any(map(_is_command_for_git, rest)):
        letters = "".join(word for word in rest if word.startswith("-") and not word.startswith("--"))
        return not set(_GIT_LETTERS.get(name, "")) & set(letters)
    declared = find_declared(["git", *waiting])
    return declared is not None and declared.takes(waiting[len(declared.words) - 1 :])


def _is_command_for_git(word: str) -> bool:
    """Whether a word is an option that runs its value, perhaps shortened, or a remote that is a command."""
    name = word.partition("=")[0]
    is_option = len(name) > 2 and name.startswith("--")
    return "ext::" in word or (is_option and any(option.startswith(name) for option in _GIT_RUNS))


def _git_values(words: Sequence[str]) -> Iterator[str]:
    """The values of long options that may be more than text."""
    for word in words:
        name, _, value = word.partition("=")
        if name.startswith("--") and name not in _GIT_TEXTS:
            yield value


def _sed_runs_nothing(words: Sequence[str]) -> bool:
    arguments = read_arguments(VIEWERS["sed"].options, [word for word in words if not word.startswith("-i")])
    if arguments is None:
        return words[:1] == ["--version"]
    given = [*arguments.options.get("-e", ()), *arguments.options.get("--expression", ())]
    return all(map(expressions.is_harmless_sed, given or arguments.operands[:1]))


def _awk_runs_nothing(words: Sequence[str]) -> bool:
    arguments = read_arguments(VIEWERS["awk"].options, words)
    return arguments is not None and all(map(expressions.is_harmless_awk, arguments.operands[:1]))


_JUDGES = {"git": _git_runs_nothing, "sed": _sed_runs_nothing, "awk": _awk_runs_nothing}
