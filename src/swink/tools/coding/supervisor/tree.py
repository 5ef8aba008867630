"""The processes below the supervisor: listing and ending them."""

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from swink.tools.coding.supervisor import confinement
else:
    import confinement

_LISTED_BY_KERNEL = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
_reaped: "dict[int, tuple[int, Any]]" = {}


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that none can leave the tree."""
    if sys.platform == "linux":
        confinement.become_subreaper()


def catch_signals(signals: list[int]) -> int:
    """Collect signals in the list from now on; the pipe that is returned is readable when one has come."""
    wake, wake_write = os.pipe()
    for end in (wake, wake_write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def note(number: int, frame: object) -> None:
        if number != signal.SIGCHLD:
            signals.append(number)

    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, note)
    return wake


def run_first() -> None:
    """Get the processor even if a command forks without end, where that is allowed; not inherited."""
    try:  # noqa: SIM105  contextlib would be an import more
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        pass  # not root, or not Linux; the limit of processes still holds


def reap() -> None:
    """Collect every child that has ended."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _reaped[pid] = (status, usage)


def has_ended(child: int) -> bool:
    """Whether this child was reaped."""
    return child in _reaped


def read_outcome(child: int) -> tuple[int, float]:
    """Exit code (negative: the signal) and CPU seconds of a child; killed if it could not be ended."""
    if child not in _reaped:
        return -signal.SIGKILL, 0.0
    status, usage = _reaped[child]
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def end_all(child: int, guards: int, grace: float) -> int:
    """End every descendant: TERM, after `grace` KILL until none is left. Returns how many are still alive.

    `guards` is the number of generations at the top that belong to the sandbox. They get no TERM, because
    their end kills all the others at once.
    """
    reap()
    if grace:
        for pid, depth in list_descendants(child).items():
            if depth > guards:
                _send(pid, signal.SIGTERM)
                _send(pid, signal.SIGCONT)
        _gone_within(grace, child, guards)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        _kill_all(child)
        if _gone_within(0, child, 0):
            return 0
        time.sleep(0.001)
    return len(list_descendants(child))


def _kill_all(child: int) -> None:
    """Kill every descendant once: whole process groups first, since a bomb forks faster than one can kill."""
    killed = {os.getpgrp()}
    for pid, _ in _walk_with_depth(child):
        try:
            group = os.getpgid(pid)
            if group not in killed:
                killed.add(group)
                os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        # Parents first: a dead parent forks no more, and we adopt its children.
        _send(pid, signal.SIGKILL)


def list_descendants(leader: int = 0) -> dict[int, int]:
    """Every process below this one with its depth; if orphans are not adopted, also the leader's group."""
    return dict(_walk_with_depth(leader))


def _walk_with_depth(leader: int) -> "Iterator[tuple[int, int]]":
    """The descendants, each as soon as it is seen."""
    if not _LISTED_BY_KERNEL:
        yield from _descendants_by_listing(leader).items()
        return
    seen = {os.getpid()}
    order = [(os.getpid(), 0)]
    for pid, depth in order:
        for below in _children(pid):
            if below not in seen:
                seen.add(below)
                yield below, depth + 1
                order.append((below, depth + 1))


def _gone_within(seconds: float, child: int, guards: int) -> bool:
    deadline = time.monotonic() + seconds
    pause = 0.002
    while True:
        reap()
        if not any(depth > guards for depth in list_descendants(child).values()):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def _send(pid: int, number: int) -> None:
    try:  # noqa: SIM105  contextlib would be an import more
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += [int(child) for child in file.read().split()]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass  # it ended while we looked: we have adopted its children
    return found


def _descendants_by_listing(leader: int) -> dict[int, int]:
    import subprocess

    program = next(path for path in ("/bin/ps", "/usr/bin/ps") if os.path.exists(path))
    ps = subprocess.Popen([program, "-A", "-o", "pid=,ppid=,pgid=,stat="], stdout=subprocess.PIPE, text=True)
    below: dict[int, list[int]] = {}
    for line in ps.communicate()[0].splitlines():
        pid, parent, group, state = line.split(None, 3)
        if int(pid) != ps.pid and not state.startswith("Z"):
            below.setdefault(int(parent), []).append(int(pid))
            if leader and int(group) == leader and int(pid) != leader:
                below.setdefault(leader, []).append(int(pid))
    found: dict[int, int] = {}
    order = [(pid, 1) for pid in {*below.get(os.getpid(), []), *(below.get(leader, []) if leader else [])}]
    for pid, depth in order:
        if pid not in found and pid != os.getpid():
            found[pid] = depth
            order += [(child, depth + 1) for child in below.get(pid, [])]
    return found
