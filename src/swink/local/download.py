"""One download by a child process: its progress reported, stopped on request, one at a time per model."""

import os
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from msgspec import Struct

from swink.local.states import Downloading, LoadCancelled
from swink.messages.redact import redact_text
from swink.system.filelock import locked
from swink.system.programs import Command, Process

_LOG = "log.txt"

Report = Callable[[Downloading], None]


class Download(Struct, frozen=True):
    """A download: of which model, who is told of its progress, and the event that stops it."""

    model: str
    report: Report
    stop: Event

    def check(self) -> None:
        """Raise if the download is no longer wanted."""
        if self.stop.is_set():
            raise LoadCancelled(
                f"the download of {self.model} was cancelled; no half file was kept, "
                "the next use starts it again"
            )

    @contextmanager
    def hold(self, path: Path) -> Generator[None, None, None]:
        """Hold a lock file, so that two processes or threads never download the same model at once."""

        def waiting() -> None:
            self.report(Downloading(self.model, step="waiting"))
            self.check()

        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file, locked(file, waiting=waiting):
            yield

    def run(self, command: Command, total: int, *, growing: str = "", before: int = 0) -> tuple[int, str]:
        """Run a downloading command in its directory; its exit code and the end of what it printed.

        Progress is the size of the largest file in the directory whose name ends in `growing`, after the
        bytes that came before.
        """
        directory = Path(command.cwd or ".")
        log = directory / _LOG
        with log.open("wb") as output:
            process = command.popen(stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            code = self._follow(process, directory, total, growing, before)
            return code, redact_text(log.read_text("utf-8", "replace")[-65536:])
        finally:
            _end_process(process)
            log.unlink(missing_ok=True)

    def _follow(self, process: Process, directory: Path, total: int, growing: str, before: int) -> int:
        began, shown = time.monotonic(), -1
        while True:
            try:
                return process.wait(0.1)
            except subprocess.TimeoutExpired:
                self.check()
            done = _largest(directory, growing)
            if done != shown:
                shown = done
                rate, done = done / (time.monotonic() - began), before + done
                self.report(Downloading(self.model, min(done, total or done), total, rate))


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


def _end_process(process: Process) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
