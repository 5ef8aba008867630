"""What a command runs beyond the files that it names, in words for the question of trust.

npx prettier --write .       runs whatever `npx prettier` finds or fetches
npm run lint                 runs what the script `lint` of package.json says (eslint .)
make check, just fmt         runs what the target `check` of the Makefile says
.venv/bin/python, poetry run, uvx
                             runs what that environment holds, or what is fetched
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
_PREFIXES = frozenset(
    {"env", "exec", "sudo", "time", "command", "nohup", "nice", "xargs", "then", "do", "if", "!"}
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_PACKAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_FETCHERS = frozenset({"npx", "bunx", "uvx", "pnpx"})
_ENVIRONMENTS = frozenset({"poetry", "uv", "pipenv", "hatch", "rye", "pdm", "pixi", "conda"})
_TARGETS = {"make": "Makefile", "gmake": "Makefile", "just": "justfile", "task": "Taskfile"}
_WITH_VALUE = frozenset({"-C", "-f", "--directory", "--file", "--prefix", "--project", "-p", "--package"})
"""Options whose value is the next word."""
_BUILDERS = frozenset(
    {"cargo", "go", "gradle", "gradlew", "mvn", "mvnw", "tox", "nox", "pre-commit", "docker", "rake",
     "docker-compose", "deno", "dotnet", "bazel", "bundle", "composer", "mix", "turbo", "nx", "lefthook"}
)  # fmt: skip
_BETWEEN = re.compile(r"[;&|()\n]+")
_BRACES = re.compile(r"\{([^{}]*(?:,|\.\.)[^{}]*)\}")
_VENV = re.compile(r"(?:^|.*/)(\.?v?env[\w.-]*)/(?:bin|Scripts)/([^/]+)$")
_MOST_BYTES = 1 << 20


def run_beyond(line: str, project: Path) -> list[str]:
    """What a command line runs that is in no file it names, a phrase each; blocking."""
    found = list(dict.fromkeys(phrase for words in _commands(line) for phrase in _phrases(words, project)))
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
    """The words of each simple command, also of those in quotes after `sh -c`."""
    reader = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=";&|()")
    reader.whitespace_split = True
    try:
        words = list(reader)
    except ValueError:
        words = _BETWEEN.sub(" ; ", line).split()
    current: list[str] = []
    for word in [*words, ";"]:
        if not _BETWEEN.fullmatch(word):
            current.append(word)
            continue
        while current and (current[0] in _PREFIXES or re.match(r"\w+=", current[0])):
            del current[0]
        if current:
            yield current
            if depth and os.path.basename(current[0]) in _SHELLS and "-c" in current[1:]:
                for inner in current[current.index("-c") + 1 :][:1]:
                    yield from _commands(inner, depth - 1)
        current = []


def _phrases(words: Sequence[str], project: Path) -> Iterator[str]:
    program = os.path.basename(words[0])
    rest = [
        word
        for before, word in pairwise(words)
        if not word.startswith("-") and "=" not in word and before not in _WITH_VALUE
    ]
    if found := _VENV.match(words[0]):
        yield f"runs `{found[2]}` of the environment {found[1]} with all that is installed there"
    elif program in _FETCHERS:
        yield f"runs whatever `{program} {_first(rest)}` finds or fetches"
    elif program == "pipx" and rest[:1] == ["run"]:
        yield f"runs whatever `pipx run {_first(rest[1:])}` finds or fetches"
    elif program in _PACKAGERS:
        yield from _packaged(program, rest, project)
    elif program in _ENVIRONMENTS and "run" in rest:
        yield f"runs `{_first(rest[rest.index('run') + 1 :])}` of the environment that `{program} run` has"
    elif program in _TARGETS:
        target = f"the target `{rest[0]}`" if rest else "the first target"
        yield f"runs what {target} of the {_TARGETS[program]} says"
    elif program in _BUILDERS:
        yield f"runs what `{' '.join([program, *rest[:1]])}` makes of the files of the project"


def _packaged(program: str, rest: Sequence[str], project: Path) -> Iterator[str]:
    match list(rest):
        case ["exec" | "dlx" | "x", *more]:
            yield f"runs whatever `{program} {rest[0]} {_first(more)}` finds or fetches"
        case ["run" | "run-script", script, *_] | ["test" | "start" as script, *_]:
            yield _script(script, project)
        case [script, *_] if program in ("yarn", "pnpm", "bun"):
            yield _script(script, project)
        case _:
            return


def _script(script: str, project: Path) -> str:
    """What a script of package.json says, if it can be read."""
    says = ""
    try:
        with open(project / "package.json", "rb") as file:
            found: Any = json.loads(file.read(_MOST_BYTES))
        match found:
            case {"scripts": dict()}:
                says = str(cast("dict[str, Any]", found["scripts"]).get(script, ""))
            case _:
                pass
    except (OSError, ValueError, RecursionError):
        pass
    shown = f" ({clip_end(says, 200)})" if says else ""
    return f"runs what the script `{script}` of package.json says{shown}"


def _first(words: Sequence[str]) -> str:
    return words[0] if words else "…"
