"""git as a program of ours, outside the sandbox: no hooks, no pager, no questions, no variables of others."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from swink.errors import MisuseError
from swink.messages.redact import redact_text
from swink.system.oneline import strip_controls
from swink.system.programs import Command, environment, find_program

_QUIET = (
    "--no-pager", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "gc.auto=0",
    "-c", "core.quotePath=false", "-c", "core.safecrlf=false", "-c", "commit.gpgSign=false",
    "-c", "submodule.recurse=false",
)  # fmt: skip
_SET = {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
_PATIENCE = 600.0
"""Seconds that the checkout of a large repository may take."""


class GitRefused(MisuseError):
    """git did not do what it was asked for; the text is what it said."""


class GitProgram(Struct, frozen=True):
    """git in a directory. Everything here blocks."""

    program: str
    directory: Path

    @classmethod
    def at(cls, directory: Path) -> "GitProgram":
        """git in a directory; raises `MisuseError` if there is none on this machine."""
        program = find_program("git")
        if program is None:
            raise MisuseError("git is not installed; worktrees need it")
        return cls(program, directory)

    def ask(self, *words: str) -> str | None:
        """What git prints, without the last line end; None if it says no."""
        code, said, _ = self._run(words)
        return None if code else said.decode("utf-8", "surrogateescape").rstrip("\n")

    def do(self, *words: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """The same, for what must succeed; raises `GitRefused` with what git said."""
        return self.read(*words, input=input, env=env).decode("utf-8", "surrogateescape").rstrip("\n")

    def read(self, *words: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """What git prints, as bytes; raises `GitRefused` with what git said."""
        code, said, trouble = self._run(words, input, env)
        if code:
            raise GitRefused(f"git {words[0]} failed: {_told(trouble) or f'exit code {code}'}")
        return said

    def names(self, *words: str, env: Mapping[str, str] | None = None) -> list[str]:
        """Names that git prints with a NUL after each."""
        said = self.read(*words, env=env).decode("utf-8", "surrogateescape")
        return [name for name in said.split("\0") if name]

    def _run(
        self, words: tuple[str, ...], input: bytes = b"", env: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, bytes]:
        mine = {name: value for name, value in environment().items() if not name.startswith("GIT_")}
        argv = (self.program, *_QUIET, *words)
        command = Command(argv, str(self.directory), {**mine, **_SET, **(env or {})})
        pipe = subprocess.PIPE
        try:
            process = command.popen(
                stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=os.name == "posix"
            )
        except OSError as error:
            raise GitRefused(f"git could not be started in {self.directory}: {error.strerror}") from error
        with process:
            try:
                said, trouble = process.communicate(input, timeout=_PATIENCE)
            except BaseException:
                process.kill()
                raise
        return process.returncode, said, trouble


def _told(trouble: bytes) -> str:
    """What git said went wrong, in one line."""
    lines = trouble.decode("utf-8", "replace").strip().splitlines()
    marked = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:]
    said = "; ".join(line.partition(": ")[2] if ": " in line else line for line in marked[:3])
    return strip_controls(redact_text(said))
