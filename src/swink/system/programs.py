"""Programs: the one module that finds and starts programs outside the sandbox.

    find_program(name)        a program on the PATH, always the same one ─┐
    packaged_program(…)       one that an installed package brought      ─┤
    python_script(file, …)    a file of ours, in an isolated Python      ─┼─▶ Command ─▶ popen, run, start
    python_module(name, …)    an installed module, with our packages     ─┘

What is started must not depend on what a model can write. So only absolute entries of the PATH count that
lie outside of every workspace, and what was found once is pinned by device and inode; our own Python runs
isolated (`-I`) and in a directory without modules; and the variables that name places of programs and
libraries lose the entries that a model can write.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from swink.errors import AgentError
from swink.system.writable import identify, is_beneath, is_writable_by_model

NEUTRAL = os.path.abspath(os.sep)
"""A working directory that decides nothing: no program of ours looks for a file in it."""

_PLACES = (
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_FALLBACK_FRAMEWORK_PATH", "DYLD_INSERT_LIBRARIES", "GCONV_PATH",
    "LOCPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "PYTHONPATH", "GTK_PATH", "GIO_MODULE_DIR",
    "GIO_EXTRA_MODULES", "QT_PLUGIN_PATH", "OPENSSL_MODULES",
)  # fmt: skip
"""Variables whose entries are places that programs and libraries are taken from."""
_CODE = (
    "BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS",
    "OPENSSL_CONF", "GTK_MODULES", "BROWSER", "NLSPATH",
)  # fmt: skip
"""Variables that have files run or obeyed."""
_HEAD = 256
_LINKS = 40
_SET_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1))\n"
_RUN_MODULE = "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"

Process = subprocess.Popen[bytes]

_pinned: dict[str, tuple[int, int]] = {}
_found: dict[tuple[str, str], str] = {}


class ProgramChanged(AgentError):
    """A program is another one than when it was first used."""


class Command(Struct, frozen=True):
    """A program with its arguments, its directory (None for the caller's own) and its environment."""

    argv: tuple[str, ...]
    cwd: str | None
    env: Mapping[str, str]

    def popen(self, **options: Any) -> Process:
        """Start it; the options are those of `subprocess.Popen`."""
        self._check()
        return Process(self.argv, cwd=self.cwd, env=self.env, **options)

    def run(
        self, *, stdout: int = subprocess.PIPE, stderr: int = subprocess.DEVNULL, timeout: float | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run it to its end, without input; what it prints is kept unless `stdout` says otherwise."""
        self._check()
        return subprocess.run(
            self.argv,
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            timeout=timeout,
            check=False,
            start_new_session=os.name == "posix",
        )

    async def start(self, **options: Any) -> asyncio.subprocess.Process:
        """Start it on the event loop; the options are those of `asyncio.create_subprocess_exec`."""
        self._check()
        env = dict(self.env)  # uvloop takes no other mapping
        return await asyncio.create_subprocess_exec(*self.argv, cwd=self.cwd, env=env, **options)

    def spawn(self, **options: Any) -> int:
        """Start it, in our directory, and leave it to itself; the options are those of `os.posix_spawn`."""
        self._check()
        return os.posix_spawn(self.argv[0], self.argv, self.env, **options)

    def _check(self) -> None:
        program = self.argv[0]
        if not os.path.isabs(program):
            raise FileNotFoundError(f"there is no program {program!r}")
        _check_pin(program)


def find_program(name: str, path: str | None = None) -> str | None:
    """The program that a name means on the PATH, or on another one; None if there is none.

    Raises `ProgramChanged` if it is not the one that was found before.
    """
    searched = os.environ.get("PATH", os.defpath) if path is None else path
    known = _found.get((name, searched))
    if known is not None and not is_writable_by_model(known):
        _check_pin(known)
        return known
    for entry in _trusted_entries(searched):
        for candidate in _candidates(entry, name):
            if not os.path.isfile(candidate) or not os.access(candidate, os.X_OK):
                continue
            if not _leads_astray(candidate) and not _has_foreign_interpreter(candidate):
                _pin(candidate)
                _found[name, searched] = candidate
                return candidate
    return None


def packaged_program(package: str, name: str) -> str | None:
    """The program of that name that an installed package brought, always the same one; None if there is none.

    Neither the PATH nor another variable decides. Raises `ProgramChanged` if it is not the one that it was.
    """
    from importlib.metadata import PackageNotFoundError, files  # takes a while, and few need it

    try:
        brought = files(package) or ()
    except PackageNotFoundError:
        return None
    for file in brought:
        if file.name in (name, f"{name}.exe"):
            program = os.path.abspath(file.locate())
            if os.access(program, os.X_OK) and os.path.isfile(program) and _is_trusted(program):
                _pin(program)
                _check_pin(program)
                return program
    return None


def passed_over(name: str) -> str | None:
    """The program of that name on the PATH that is not used, because a model can write or choose it."""
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for candidate in _candidates(os.path.abspath(entry), name):
            if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
                return candidate
    return None


def python_script(script: str | Path, *arguments: str, env: Mapping[str, str] | None = None) -> Command:
    """A file of ours, run by a Python that has the standard library alone."""
    argv = (sys.executable, "-I", "-S", "-X", "utf8", str(script), *arguments)
    return Command(argv, NEUTRAL, environment() if env is None else env)


def python_code(code: str, *arguments: str, cwd: str | Path, env: Mapping[str, str]) -> Command:
    """A few lines of ours, run by a Python that finds our packages and nothing in its working directory."""
    argv = (
        sys.executable,
        "-I",
        "-X",
        "utf8",
        "-c",
        _SET_PATH + code,
        json.dumps(_search_path()),
        *arguments,
    )
    return Command(argv, str(cwd), env)


def python_module(name: str, *arguments: str, cwd: str | Path, env: Mapping[str, str]) -> Command:
    """An installed module as a program, such as pip."""
    return python_code(_RUN_MODULE, name, *arguments, cwd=cwd, env=env)


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment without the places of programs and libraries that a model can write."""
    found = dict(os.environ if environ is None else environ)
    for name in [name for name in _PLACES if name in found]:
        # The linker takes blanks and semicolons for separators too.
        separators = os.pathsep if name == "PATH" else f"{os.pathsep}; "
        found[name] = os.pathsep.join(_trusted_entries(found[name], separators))
        if not found[name]:
            del found[name]
    for name in [name for name in _CODE if name in found]:
        if any(_leads_astray(word) for word in re.split(r"[\s:;,=]+", found[name]) if os.sep in word):
            del found[name]
    return found


def _trusted_entries(path: str, separators: str = os.pathsep) -> Iterator[str]:
    """The entries that are absolute and that no model can write or choose."""
    for entry in re.split(f"[{re.escape(separators)}]", path):
        if os.path.isabs(entry) and not _leads_astray(entry):
            yield entry


def _candidates(entry: str, name: str) -> Iterator[str]:
    yield os.path.join(entry, name)
    if sys.platform == "win32":
        yield from (
            os.path.join(entry, name + end) for end in os.environ.get("PATHEXT", ".EXE").split(os.pathsep)
        )


def _leads_astray(path: str) -> bool:
    """Whether a path, or a link on its way, lies where a model can write."""
    return any(step is None or is_writable_by_model(step) for step in _steps(path))


def _steps(path: str) -> Iterator[str | None]:
    """Every place on the way to a file, link by link; None where the links have no end."""
    drive, rest = os.path.splitdrive(os.path.abspath(path))
    here, names = drive + os.sep, rest.split(os.sep)
    for _ in range(_LINKS * 100):
        if not names:
            return
        name = names.pop(0)
        here = os.path.normpath(os.path.join(here, name))
        yield here
        if os.path.islink(here):
            drive, rest = os.path.splitdrive(os.path.join(os.path.dirname(here), os.readlink(here)))
            here, names = drive + os.sep, [*rest.split(os.sep), *names]
    yield None


def _has_foreign_interpreter(program: str) -> bool:
    """Whether the first line of a script has it run by a program that a model can write."""
    try:
        with open(program, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False  # it cannot be read, only started: no script
    words = head.split(b"\n")[0].removeprefix(b"#!").split() if head.startswith(b"#!") else []
    return bool(words) and (not os.path.isabs(words[0]) or _leads_astray(os.fsdecode(words[0])))


def _pin(program: str) -> None:
    found = identify(program)
    if found is not None:
        _pinned.setdefault(program, found)


def _check_pin(program: str) -> None:
    pinned = _pinned.get(program)
    if pinned is not None and identify(program) != pinned:
        raise ProgramChanged(
            f"{program} is not the program that it was when swink first used it, so it is not started; "
            "if you have updated it, start swink again"
        )


def _search_path() -> list[str]:
    """Where our packages are, without directories that a model can write."""
    return [place for place in sys.path if os.path.isabs(place) and _is_trusted(place)]


def _is_trusted(place: str) -> bool:
    """Whether no model can write it; where Python itself lies in the workspace, it is read-only there."""
    prefixes = (os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix))
    real = os.path.realpath(place)
    return any(is_beneath(real, prefix) for prefix in prefixes) or not is_writable_by_model(place)


_pin(sys.executable)
