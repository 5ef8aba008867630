"""Code checks: the code that an agent produced, run with tests in the sandbox."""

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from math import ceil
from pathlib import Path

from msgspec import Struct

from swink.errors import InvalidInput
from swink.eval.case import Case
from swink.eval.result import Score
from swink.eval.scorers.registry import scorer
from swink.eval.scorers.values import fenced_blocks
from swink.eval.trajectory import Trajectory
from swink.system.aio import wait_through_cancel
from swink.system.threads import in_thread
from swink.tools.coding.process import ExitStatus, HeadAndTail, Limits, run
from swink.tools.coding.sandbox import Level, Sandbox

TIMEOUT = 10.0
"""Seconds that a program may take."""
_OUTPUT = 16_000
_MEMORY = 2 << 30
_DISK = 512 << 20
_PROGRAM = "program.py"
_DRIVER = """
import builtins, os, sys, types

def refuse(event, args):
    if event in ("sys.settrace", "sys.setprofile") or event == "object.__setattr__" and args[1] == "__code__":
        raise RuntimeError("a judged program may not trace or rewrite what runs")

def take(path):
    with open(path, "rb") as file:
        mark = file.read()
    os.unlink(path)
    return mark

def run(path):
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins)
    sys.argv = [path]
    exec(code, main.__dict__)
    sys.stdout.flush()
    return b""

own = sys.modules["__main__"]
sys.addaudithook(refuse)
os.write(1, take(sys.argv[2]) + run(sys.argv[1]))
"""
"""Runs a program, and prints the mark if that comes to its end.

While the program runs, the mark is in no file, variable or object that it could find: it is an operand that
waits on the interpreter's stack, and so does the function that writes it.
"""


class CodeRun(Struct, frozen=True):
    """How a program ended: passed if it ran to its last line."""

    passed: bool
    why: str
    output: str


@scorer("code")
async def code(
    case: Case,
    trajectory: Trajectory,
    *,
    tests: str = "",
    expected_output: str | None = None,
    file: str | None = None,
    timeout: float = TIMEOUT,
    sandbox: Level = "workspace",
) -> Score:
    """Whether the Python code in the response, or in a file of the workspace, runs and passes the tests.

    `tests` is Python code that is run after it, with `assert`; `expected_output` is what it should print.
    """
    written = extract_code(trajectory.response) if file is None else await _read(case, trajectory, file)
    if not written.strip():
        return Score(0.0, "there is no code in the response" if file is None else f"{file} is empty")
    done = await run_python(f"{written}\n\n{tests}\n", timeout=timeout, sandbox=sandbox)
    if done.passed and expected_output is not None and done.output.strip() != expected_output.strip():
        return Score(0.0, f"it printed {done.output[-500:]!r}, not {expected_output[:500]!r}")
    return Score(float(done.passed), done.why)


def extract_code(text: str) -> str:
    """The code in a reply: its longest fenced block of Python, or of no language; without fences, all."""
    blocks = fenced_blocks(text)
    if not blocks:
        return "" if "```" in text else text
    named = [body for name, body in blocks if name in ("python", "py", "python3")]
    return max(named or [body for name, body in blocks if not name], key=len, default="")


async def run_python(
    program: str,
    *,
    timeout: float = TIMEOUT,
    files: Mapping[str, str] | None = None,
    sandbox: Level = "workspace",
) -> CodeRun:
    """Run a program in an empty directory, with `files` beside it; it may write there and nowhere else.

    A program that ends before its last line has not passed, and cannot say that it has, unless it searches
    the memory of its process. Raises `SandboxUnavailable`; `sandbox="none"` runs it with your own rights.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 3_600:
        raise InvalidInput(f"timeout is {timeout!r}; pass seconds, at most 3600")
    mark = secrets.token_hex(16)
    contents = {**(files or {}), _PROGRAM: program, _mark_file(mark): f"\n{mark}\n"}
    root = Path(await in_thread(tempfile.mkdtemp, prefix="swink-code-"))
    try:
        await in_thread(_write, root, contents)
        return await _run(root, timeout, sandbox, mark)
    finally:
        await wait_through_cancel(asyncio.ensure_future(in_thread(shutil.rmtree, root, ignore_errors=True)))


async def _run(root: Path, timeout: float, level: Level, mark: str) -> CodeRun:
    limits = Limits(wall=timeout, cpu=ceil(timeout) + 1, memory=_MEMORY, processes=64, disk=_DISK)
    box = Sandbox(root, level)
    output = HeadAndTail(_OUTPUT)
    try:
        driver = [sys.executable, "-I", "-X", "utf8", "-B", "-c", _DRIVER]
        driver += [str(root / _PROGRAM), str(root / _mark_file(mark))]
        status = await run(await box.launch(driver, limits=limits), output.add)
    finally:
        box.close()
    text = output.text().replace(f"{root}{os.sep}", "")  # the same failure reads the same each time
    printed, found, _ = text.rpartition(f"\n{mark}")
    passed = bool(found) and status.code == 0 and status.reason is None
    shown = (printed if found else text).rstrip()
    return CodeRun(passed, "it ran to its end" if passed else _explain(status, timeout, shown), shown)


def _mark_file(mark: str) -> str:
    """Where the driver finds the mark; the name tells nothing of it."""
    return f".{sha256(mark.encode()).hexdigest()[:16]}"


def _explain(status: ExitStatus, timeout: float, output: str) -> str:
    match status.reason:
        case "timeout":
            return f"it took longer than {timeout:g} s"
        case None if status.code == 0:
            return "it exited before its last line"
        case None:
            return f"it ended with code {status.code}:\n{output[-1_500:]}".removesuffix(":\n")
        case reason:
            return f"it was ended: {reason}"


def _write(root: Path, contents: Mapping[str, str]) -> None:
    for name, text in contents.items():
        path = root / name
        if not path.resolve().is_relative_to(root.resolve()):
            raise InvalidInput(f"{name!r} is not inside the directory of the program")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", errors="surrogateescape", newline="")


async def _read(case: Case, trajectory: Trajectory, file: str) -> str:
    """A file that the agent wrote, as the trajectory or the workspace has it."""
    if (kept := trajectory.files.get(file)) is not None:
        return kept
    if case.workspace is None:
        raise InvalidInput(f"there is no workspace with {file!r}")
    return await in_thread(_read_inside, case.workspace, file)


def _read_inside(workspace: Path, file: str) -> str:
    path = (workspace / file).resolve()
    if not path.is_relative_to(workspace.resolve()):
        raise InvalidInput(f"{file!r} is not inside the workspace")
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file!r} cannot be read: {type(error).__name__}") from error
