"""The user's own editor: a prompt is written there while the app steps aside."""

import os
import shlex
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from swink.app.tui.editor.drafts import is_left
from swink.app.tui.terminal import TerminalApp
from swink.errors import MisuseError
from swink.system.programs import NEUTRAL, Command, environment, find_program
from swink.system.writable import is_writable_by_model

_PREFIX = "swink-prompt-"
_SET_IT = "set EDITOR to one, as in: export EDITOR=nano"


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """The program to write with, and its arguments; raises `MisuseError` if it cannot be found."""
    name = next((key for key in ("EDITOR", "VISUAL") if environ.get(key, "").strip()), None)
    line = environ[name] if name else "vi"
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise MisuseError(f"{name} is {line!r}, which is no command ({error}); {_SET_IT}") from None
    program = _find(words[0], environ.get("PATH"))
    if program is None:
        called = f"{name} is {line!r}, but there is no program {words[0]}" if name else "there is no vi"
        raise MisuseError(f"{called} on the PATH, outside of the workspace; {_SET_IT}")
    return [program, *words[1:]]


def _find(program: str, path: str | None) -> str | None:
    """The editor; one named by a path must not depend on the directory that swink was started in."""
    if not os.path.dirname(program):
        return find_program(program, path)
    full = os.path.expanduser(program)
    is_usable = os.path.isabs(full) and os.access(full, os.X_OK) and not is_writable_by_model(full)
    return full if is_usable else None


async def edit_outside(app: TerminalApp, text: str) -> str | None:
    """The text as the user left it; None if it was emptied. Raises `MisuseError` if that failed."""
    command = editor_command(os.environ)
    with _temporary(text) as path:
        # Without updates: whatever the agent does meanwhile, the screen is not ours.
        with app.batch_update(), app.suspended():
            code = await _run([*command, str(path)])
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise MisuseError(f"{command[0]} ended with {how}; the prompt is as it was")
        try:
            written = path.read_text("utf-8", errors="replace")
        except OSError as error:
            raise MisuseError(f"what was written cannot be read: {error.strerror}") from error
        return written.removesuffix("\n") if written.strip() else None


def remove_left() -> None:
    """Remove the files of processes that were killed while an editor was open; blocking."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*.md"):
        process = path.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdecimal() and int(process) != os.getpid() and is_left(int(process)):
            with suppress(OSError):
                path.unlink()


async def _run(command: list[str]) -> int:
    """Run an editor, outside the workspace, whose files it may obey; cancelled, it is ended."""
    process = await Command(tuple(command), NEUTRAL, environment()).start()
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.terminate()


@contextmanager
def _temporary(text: str) -> Generator[Path]:
    """A file for the user alone, which is removed in any case."""
    handle, name = tempfile.mkstemp(prefix=f"{_PREFIX}{os.getpid()}-", suffix=".md")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
        yield Path(name)
    finally:
        with suppress(OSError):
            os.unlink(name)
