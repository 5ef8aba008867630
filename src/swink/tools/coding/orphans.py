"""Processes of a command whose supervisor and guardian are gone, found by their mark."""

import logging
import os
import secrets
import signal
import sys
import time
from contextlib import suppress

log = logging.getLogger("swink.tools")

_RLIMIT_LOCKS = 10


def make_mark() -> int:
    """A mark for one command (see `confinement.mark`); 0 if processes cannot be marked or already are."""
    if sys.platform != "linux":
        return 0
    import resource

    if resource.getrlimit(_RLIMIT_LOCKS)[1] != resource.RLIM_INFINITY:
        return 0
    return secrets.randbits(61) + 1


def end_marked(mark: int, seconds: float = 2.0) -> None:
    """Kill every process with a mark until none is left."""
    deadline = time.monotonic() + seconds
    while found := _find_marked(mark):
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            log.warning("processes of a command could not be ended: %s", ", ".join(map(str, found)))
            return
        time.sleep(0.005)


def _find_marked(mark: int) -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        place = f"/proc/{name}"
        with suppress(OSError), open(f"{place}/limits", "rb") as limits, open(f"{place}/stat", "rb") as stat:
            is_dead = stat.read().rpartition(b")")[2].split()[:1] == [b"Z"]
            locks = [line.split()[4] for line in limits if line.startswith(b"Max file locks")]
            if not is_dead and b"%d" % mark in locks:
                found.append(int(name))
    return found
