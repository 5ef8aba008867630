"""The memory a command uses: pages of its processes, and shared memory that none of them maps."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def exceeds(pids: "Iterable[int]", limit: int, shared_before: int) -> bool:
    """Whether the processes together use more bytes than the limit.

    Shared memory need not be mapped by a process (a memfd, a file in a tmpfs), so the growth of all shared
    memory since the command began counts as the command's.
    """
    pids = list(pids)
    grown = max(0, measure_shared() - shared_before)
    if sum(map(_resident, pids)) + grown <= limit:
        return False
    # Resident sizes count shared pages once per process; the exact sum is expensive, hence only here.
    total = mapped = 0
    for pid in pids:
        proportional, of_shared = _proportional(pid)
        total += proportional
        mapped += of_shared
    return total + max(0, grown - mapped) > limit


def measure_shared() -> int:
    """Bytes of shared memory in our control group, or without one on the whole machine."""
    for path, name, unit in ((_own_group(), b"shmem ", 1), ("/proc/meminfo", b"Shmem:", 1024)):
        try:
            with open(path, "rb") as file:
                for line in file:
                    if line.startswith(name):
                        return int(line.split()[1]) * unit
        except OSError:
            pass
    return 0


def _own_group() -> str:
    try:
        with open("/proc/self/cgroup") as file:
            groups = [line.strip()[3:] for line in file if line.startswith("0::")]
    except OSError:
        return ""
    return f"/sys/fs/cgroup{groups[0].rstrip('/')}/memory.stat" if groups else ""


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> tuple[int, int]:
    """A process's share of the pages it maps, and how much of that is shared memory."""
    found = {b"Pss:": 0, b"Pss_Shmem:": 0}
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                name, value, *_ = line.split()
                if name in found:
                    found[name] = int(value) * 1024
    except OSError:
        return _resident(pid), 0
    return found[b"Pss:"], found[b"Pss_Shmem:"]
