"""What a command runs beyond the files that it names, in words for the question of trust.

npx prettier --write .       runs whatever `npx prettier` finds or fetches
npm run lint                 runs what the script `lint` of package.json says (eslint .)
make check, just fmt         runs what the target `check` of the Makefile says
.venv/bin/python, poetry run, uvx, node_modules/.bin/eslint, python -m tox
                             runs what that environment holds, or what is fetched

What a script says is quoted only where it is certainly the one that runs: not after `cd`, or with `--prefix`.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from swink.messages.redact import redact_text
from swink.system.shorten import clip_end

MOST_NAMES = 64
"""Names that a pattern with braces may stand for."""
_PREFIXES: dict[str, tuple[str, int]] = {
    **dict.fromkeys(("then", "do", "if", "!", "{", "else", "elif", "while", "until", "eval"), ("", 0)),
    **dict.fromkeys(("command", "builtin", "nohup", "setsid", "chronic", "unbuffer"), ("", 0)),
    "env": ("-u --unset -C --chdir", 0),
    "exec": ("-a", 0),
    "sudo": ("-u -g -h -p -r -t -C -D -R -T -U --user --group --host --prompt --chdir --chroot", 0),
    "doas": ("-u -C", 0),
    "time": ("-f -o --format --output", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n --class --classdata", 0),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "timeout": ("-s -k --signal --kill-after", 1),
    "gtimeout": ("-s -k --signal --kill-after", 1),
    "flock": ("-w -E --timeout --wait --conflict-exit-code", 1),
    "xargs": (
        "-a -d -E -I -J -L -n -P -R -S -s --arg-file --delimiter --max-args --max-procs --max-lines",
        0,
    ),
}
"""What may stand before a program: options whose value is the next word, and how many words follow them."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_PACKAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_FETCHERS = frozenset({"npx", "bunx", "uvx", "pnpx"})
_ENVIRONMENTS = frozenset({"poetry", "uv", "pipenv", "hatch", "rye", "pdm", "pixi", "conda"})
_TARGETS = {"make": "Makefile", "gmake": "Makefile", "just": "justfile", "task": "Taskfile"}
_WITH_VALUE = frozenset({"-C", "-f", "--directory", "--file", "--prefix", "--project", "-p", "--package"})
"""Options whose value is the next word."""
_PLACES = frozenset({"-C", "--directory", "--prefix", "--cwd", "--dir"})
"""Options that say in which folder it is done."""
_OF_PACKAGES = frozenset({"--cwd", "--dir", "-w", "--workspace", "-F", "--filter"})
"""More options of packagers whose value is the next word."""
_VERBS = frozenset({"exec", "x", "run", "run-script", "test", "start"})
_OTHER_PACKAGE = re.compile(r"(?:-w|-ws|--workspaces?|-F|--filter|-r|--recursive)(?:=.*)?")
_BUILDERS = frozenset(
    {"cargo", "go", "gradle", "gradlew", "mvn", "mvnw", "tox", "nox", "pre-commit", "docker", "rake",
     "docker-compose", "deno", "dotnet", "bazel", "bundle", "composer", "mix", "turbo", "nx", "lefthook"}
)  # fmt: skip
_BETWEEN = re.compile(r"[;&|()`\n]+")
_EXECS = frozenset({"-exec", "-execdir"})
_REDIRECTION = re.compile(r"\d*[<>]+&?(.*)", re.DOTALL)
_COPIED_OUTPUT = re.compile(r"\d*[<>]&[\d-]+")
_SUBSTITUTED = re.compile(r"\$\(([^)]*)|`([^`]*)")
_HERE = re.compile(r"\$(?:(?:CLAUDE_PROJECT_DIR|PWD)\b|\{(?:CLAUDE_PROJECT_DIR|PWD)(?::?-\.?)?\})")
_BRACES = re.compile(r"\{([^{}]*(?:,|\.\.)[^{}]*)\}")
_VENV = re.compile(r"(?:^|.*/)(\.?v?env[\w.-]*)/(?:bin|Scripts)/([^/]+)$")
_PACKAGE_BIN = re.compile(r"(?:^|.*/)node_modules/\.bin/([^/]+)$")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*|py")
_MODULE = re.compile(r"-[bBdEhiIOPqsSuvVx]*m(.*)")
_MOST_BYTES = 1 << 20


def run_beyond(line: str, project: Path) -> list[str]:
    """What a command line runs that is in no file it names, a phrase each; blocking."""
    phrases: list[str] = []
    known: Path | None = project
    for words in _commands(line):
        if words[0] in ("cd", "pushd", "popd"):
            known = known if _folder(_without_options(words[1:])) == "." else None
        phrases += _phrases(words, known)
    found = list(dict.fromkeys(phrases))
    if any("{" in word for word in _leftover(line)):
        found.append("names files by a pattern in braces that is not followed")
    return found


def with_beyond(label: str, line: str, project: Path) -> str:
    """The label of a command with what it runs beyond its files."""
    beyond = list(map(redact_text, run_beyond(line, project)))
    return f"{label} ({'; '.join(beyond)})" if beyond else label


def expand_braces(word: str) -> list[str]:
    """The names that a pattern with braces stands for; the word alone if there is none, or too many."""
    words = [word]
    while any(_BRACES.search(each) for each in words):
        words = [one for each in words for one in _expand(each)]
        if not 0 < len(words) <= MOST_NAMES:
            return [word]
    return words


def _expand(word: str) -> list[str]:
    """One pair of braces less; nothing if what stands in it is not understood."""
    found = _BRACES.search(word)
    if found is None:
        return [word]
    inner = found[1]
    choices = inner.split(",")
    if len(choices) == 1:
        first, _, last = inner.partition("..")
        if first.isdigit() and last.isdigit() and abs(int(last) - int(first)) <= MOST_NAMES:
            low, high = sorted((int(first), int(last)))
            choices = [str(number) for number in range(low, high + 1)]
        elif re.fullmatch(r"[A-Za-z]\.\.[A-Za-z]", inner):
            choices = [chr(code) for code in range(ord(min(first, last)), ord(max(first, last)) + 1)]
        else:
            choices = []
    return [word[: found.start()] + choice + word[found.end() :] for choice in choices]


def _leftover(line: str) -> Iterator[str]:
    """Words that braces make names of, and of which too many, or none, could be found."""
    for word in re.split(r"[\s;&|()\"']+", line):
        # ${NAME} and { … } are no patterns.
        if _BRACES.search(bare := re.sub(r"\$\{[^}]*\}", "", word)) and expand_braces(bare) == [bare]:
            yield bare


def _commands(line: str, depth: int = 3) -> Iterator[list[str]]:
    """The words of each simple command, also of those in quotes after `sh -c` and of those put into words."""
    current: list[str] = []
    for word in [*_words(line), ";"]:
        if not _BETWEEN.fullmatch(word) and word not in _EXECS:
            current.append(word)
            continue
        command = _without_prefixes(current)
        if any(each.startswith(("-C", "-D", "--chdir")) for each in current[: len(current) - len(command)]):
            yield ["cd"]
        if command:
            yield command
        for inner in _inner_lines(current, command) if depth else ():
            yield from _commands(inner, depth - 1)
        current = []


def _words(line: str) -> list[str]:
    """Words and what stands between commands, as a shell reads them."""
    line = _COPIED_OUTPUT.sub(" ", line.replace("\\\n", " "))
    reader = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=";&|()`")
    reader.whitespace_split = True
    reader.commenters = ""  # a comment ends with its line, and those are joined
    try:
        return list(reader)
    except ValueError:
        return _BETWEEN.sub(" ; ", re.sub("[\"']", " ", line)).split()


def _without_prefixes(words: Sequence[str]) -> list[str]:
    """A command from its program on: without what is set, redirected, and started only to start it."""
    left = list(words)
    while left:
        if found := _REDIRECTION.fullmatch(left[0]):
            del left[: 1 if found[1] else 2]
        elif re.match(r"\w+=", left[0]):
            del left[0]
        elif (name := os.path.basename(left[0])) in _PREFIXES:
            options, arguments = _PREFIXES[name]
            del left[0]
            while left and left[0].startswith("-"):
                del left[: 2 if _takes_next(left[0], options.split()) else 1]
            del left[:arguments]
        else:
            break
    return left


def _takes_next(option: str, with_value: Sequence[str]) -> bool:
    """Whether the value of an option is the next word: of letters together (`-Eu`), that of the last."""
    if option.startswith("--"):
        return option in with_value
    first = next((index for index, letter in enumerate(option) if f"-{letter}" in with_value), 0)
    return first > 0 and first == len(option) - 1


def _inner_lines(words: Sequence[str], command: Sequence[str]) -> Iterator[str]:
    """The command lines that stand in the words of a command."""
    for word in words:
        for found in _SUBSTITUTED.finditer(word):
            yield found[1] or found[2] or ""
    if command and " " in command[0]:  # after `eval` or `env -S`
        yield command[0]
    if command and os.path.basename(command[0]) in _SHELLS:
        asked = next(
            (at for at, word in enumerate(command) if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word)), 0
        )
        before = command[asked] if asked else ""
        for word in command[asked + 1 :] if asked else ():
            if not word.startswith(("-", "+")) and not re.fullmatch(r"[-+][A-Za-z]*[oO]", before):
                yield word
                break
            before = word


def _without_options(words: Sequence[str]) -> str:
    """The first word that is no option; empty if there is none."""
    return next((word for word in words if not word.startswith("-")), "")


def _folder(given: str) -> str:
    """A folder as it is named from the root of the project, which is `.`; empty if it may be any."""
    return os.path.normpath(_HERE.sub(".", given, count=1)) if given else ""


def _phrases(words: Sequence[str], project: Path | None) -> Iterator[str]:
    """What one command runs; `project` is None where it is not certain that it runs in the root."""
    program = os.path.basename(words[0])
    with_value = _WITH_VALUE | _OF_PACKAGES if program in _PACKAGERS else _WITH_VALUE
    rest = [
        word
        for before, word in pairwise(words)
        if not word.startswith("-") and "=" not in word and before not in with_value
    ]
    if found := _VENV.match(words[0]):
        yield f"runs `{found[2]}` of the environment {found[1]} with all that is installed there"
    elif found := _PACKAGE_BIN.match(words[0]):
        yield f"runs `{found[1]}` of node_modules with all that is installed there"
    elif program in _FETCHERS:
        yield f"runs whatever `{program} {_first(rest)}` finds or fetches"
    elif program == "pipx" and rest[:1] == ["run"]:
        yield f"runs whatever `pipx run {_first(rest[1:])}` finds or fetches"
    elif program in _PACKAGERS:
        is_other = any(_OTHER_PACKAGE.fullmatch(word) for word in words)
        yield from _packaged(program, rest, _place(words), None if is_other else project)
    elif program in _ENVIRONMENTS and "run" in rest:
        yield f"runs `{_first(rest[rest.index('run') + 1 :])}` of the environment that `{program} run` has"
    elif program in _TARGETS:
        target = f"the target `{rest[0]}`" if rest else "the first target"
        yield f"runs what {target} of the {_TARGETS[program]}{_place(words)} says"
    elif program in _BUILDERS:
        yield f"runs what `{' '.join([program, *rest[:1]])}` makes of the files of the project"
    elif _PYTHON.fullmatch(program) and (module := _module(words)):
        yield f"runs whatever `{program} -m {module}` finds"


def _place(words: Sequence[str]) -> str:
    """Where it is done if options say so, in words; empty for the root."""
    named: list[str] = []
    for word, after in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if word in _PLACES:
            named.append(after)
        elif equals and name in _PLACES:
            named.append(value)
        elif word.startswith("-C"):
            named.append(word[2:])
    folder = _folder(os.path.join("", *named)) if named else "."
    return "" if folder == "." else f" in {folder or '…'}"


def _module(words: Sequence[str]) -> str:
    """The module that Python is told to run; empty if it runs something else."""
    left = list(words[1:])
    while left and left[0].startswith("-"):
        if found := _MODULE.fullmatch(left[0]):
            return found[1] or _first(left[1:])
        if re.match(r"-[A-Za-z]*c", left[0]):
            break
        del left[: 2 if left[0] in ("-W", "-X") else 1]
    return ""


def _packaged(program: str, rest: Sequence[str], place: str, project: Path | None) -> Iterator[str]:
    match list(rest):
        case ["exec" | "dlx" | "x", *more]:
            yield f"runs whatever `{program} {rest[0]} {_first(more)}` finds or fetches"
        case ["run" | "run-script", script, *_] | ["test" | "start" as script, *_]:
            yield _script(script, place, project)
        case ["workspace", _, *more] if program == "yarn":
            yield from _packaged(program, more, place, None)
        case [script, *_] if program in ("yarn", "pnpm", "bun"):
            yield _script(script, place, project)
        case [_, *more]:  # perhaps the value of an option that is not known here
            verb = next((at for at, word in enumerate(more) if word in _VERBS), len(more))
            yield from _packaged(program, more[verb:], place, None)
        case _:
            return


def _script(script: str, place: str, project: Path | None) -> str:
    """The script of a package.json, with what it says if that is the one of the root and can be read."""
    says = "" if place or project is None else _read_script(script, project)
    shown = f" ({clip_end(says, 200)})" if says else ""
    return f"runs what the script `{script}` of package.json{place} says{shown}"


def _read_script(script: str, project: Path) -> str:
    path = project / "package.json"
    try:
        if not path.is_file():  # to read a pipe would wait for a writer
            return ""
        with path.open("rb") as file:
            found: Any = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return ""
    match found:
        case {"scripts": dict()}:
            return str(cast("dict[str, Any]", found["scripts"]).get(script, ""))
        case _:
            return ""


def _first(words: Sequence[str]) -> str:
    return words[0] if words else "…"
