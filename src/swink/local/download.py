"""One download by a child process: watched while its file grows, stopped on request, one at a time per model."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import IO

from msgspec import Struct

from swink.local.modelerrors import LoadCancelled
from swink.local.states import Downloading
from swink.redact import redact_text

_TICK = 0.1
_LOG = "log.txt"


Report = Callable[[Downloading], None]


class Download(Struct, frozen=True):
    """Whom a download is for: where its progress goes, and the event that stops it."""

    model: str
    report: Report
    stop: Event

    def check(self) -> None:
        """Raise if the download is no longer wanted."""
        if self.stop.is_set():
            raise LoadCancelled(
                f"the download of {self.model} was cancelled; no half file was kept, the next use starts it again"
            )


def run_watched(
    command: Sequence[str],
    environ: Mapping[str, str],
    directory: Path,
    total: int,
    watch: Download,
    *,
    growing: str = "",
) -> tuple[int, str]:
    """Run a downloading command inside a directory; its exit code and the end of what it printed.

    Progress is the size of the largest file in there, or of those whose names end in `growing`.
    """
    log = directory / _LOG
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ, cwd=directory
        )
    try:
        code = _follow(process, directory, total, watch, growing)
        return code, redact_text(log.read_text("utf-8", "replace")[-65536:])
    finally:
        _end(process)
        log.unlink(missing_ok=True)


@contextmanager
def only_one(path: Path, watch: Download) -> Generator[None, None, None]:
    """Hold a lock file; wait for another process or thread that has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        while not _lock(file):
            watch.report(Downloading(watch.model, step="waiting"))
            watch.stop.wait(_TICK)
            watch.check()
        try:
            yield
        finally:
            _unlock(file)


def _follow(
    process: subprocess.Popen[bytes], directory: Path, total: int, watch: Download, growing: str
) -> int:
    began, shown = time.monotonic(), -1
    while True:
        try:
            return process.wait(_TICK)
        except subprocess.TimeoutExpired:
            watch.check()
        done = _largest(directory, growing)
        if done != shown:
            shown = done
            watch.report(
                Downloading(watch.model, min(done, total or done), total, done / (time.monotonic() - began))
            )


def _largest(directory: Path, growing: str) -> int:
    """The size of the file that is being downloaded, wherever the child puts it."""
    largest = 0
    for root, _, names in os.walk(directory):
        for name in names:
            if name == _LOG or not name.endswith(growing):
                continue
            try:
                largest = max(largest, os.lstat(os.path.join(root, name)).st_size)
            except OSError:  # it was moved or deleted meanwhile
                continue
    return largest


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> bool:
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
