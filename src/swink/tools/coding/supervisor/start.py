"""The program that runs a command for swink: starts it, watches its limits and ends its process tree.

    guardian ──fork──▶ supervisor ──fork, exec──▶ command ─┬─▶ child ─▶ …

    stdin   the launch, a marshalled dict; then nothing. Another byte, or its end, means: end the command
    stdout  the command's own stdout and stderr; the launch may name a descriptor for its stderr
    stderr  the ending, a marshalled dict

It is run by path in an isolated interpreter (`python -I -S supervisor/start.py`). Its start adds to every
command, so it imports nothing of swink and little of the standard library (json and typing alone cost 10 ms).
A separate process can adopt the command's orphans (as a subreaper) and set limits and filters between fork
and exec without affecting the program that uses swink. It outlives that program only to clean up.

A command that is not sandboxed can kill or stop the supervisor. Its parent, the guardian, notices, ends the
tree and reports; the supervisor in turn ends the tree when the guardian is gone.
"""

import marshal
import os
import select
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from swink.tools.coding.supervisor import cleanup, confinement, memory, reservation, tree

    Launch = dict[str, Any]
else:
    import cleanup
    import confinement
    import reservation
    import tree

    import memory

POLL = 0.1
"""Seconds between two looks at memory, process count, disk and the guardian."""
DIRECTORY_FD = 3
"""Where a shell may leave its last working directory."""

_signals: list[int] = []


def main() -> None:
    """Run one command to its end."""
    launch = _receive(0)
    news_read, news_write = os.pipe()
    guardian = os.getpid()
    try:
        tree.adopt_orphans()
        originals = [cleanup.Originals(watch) for watch in (launch["watch"], *launch["further"]) if watch]
        launch["argv"] = _reserve(launch)
    except OSError as error:
        reservation.release()
        _report(error=str(error))
    supervisor = os.fork()
    if supervisor:
        os.close(news_write)
        _close_output(launch)
        _guard(supervisor, news_read, originals)
    os.close(news_read)
    try:
        _supervise(launch, guardian, news_write, originals)
    except Exception as error:
        # A command may have taken away our descriptors or memory: whatever it is, the guardian ends the tree.
        os.write(news_write, repr(error).encode())
        os._exit(1)


def _guard(supervisor: int, news: int, originals: "list[cleanup.Originals]") -> "NoReturn":
    """Wait for the supervisor's end; should it be killed, stopped or fail, do the rest of its work."""
    _, status = os.waitpid(supervisor, os.WUNTRACED)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        os._exit(0)
    os.set_blocking(news, False)
    try:
        child = os.read(news, 4096).decode(errors="replace").partition("\n")[0]
    except BlockingIOError:
        child = ""
    left = tree.end_all(int(child) if child.isdigit() else 0, 0, 0)
    notes = _put_right(originals)
    if not child.isdigit():
        _report(error=f"its supervisor failed: {child or status}")
    _report(
        code=128 + signal.SIGKILL, signal=int(signal.SIGKILL), reason="supervisor", left=left, notes=notes
    )


def _supervise(
    launch: "Launch", guardian: int, news: int, originals: "list[cleanup.Originals]"
) -> "NoReturn":
    wake_read = tree.catch_signals(_signals)
    directory_read, directory_write = os.pipe()
    try:
        tree.adopt_orphans()
        tree.run_first()
        child = _start(launch, directory_write)
    except OSError as error:
        reservation.release()
        _report(error=str(error))
    os.write(news, f"{child}\n".encode())
    os.close(directory_write)
    _close_output(launch)
    reason = _watch(child, launch, wake_read, guardian)
    left = tree.end_all(child, launch["guards"], 0 if reason in ("processes", "memory") else launch["grace"])
    code, cpu = tree.read_outcome(child)
    _report(
        code=code if code >= 0 else 128 - code,
        signal=-code if code < 0 else None,
        reason=reason,
        cpu=cpu,
        left=left,
        directory=_last_directory(directory_read),
        notes=_put_right(originals),
    )


def _close_output(launch: "Launch") -> None:
    """Leave the output to the command alone, so that its end is the end of the output."""
    os.close(1)
    if launch["errors"] >= 0:
        os.close(launch["errors"])


def _reserve(launch: "Launch") -> list[str]:
    """The command line with a read-only mount for each reserved path, before bubblewrap's `--`."""
    covers = {path: cover for path, _, cover in launch["reserved"]}
    there = reservation.reserve([(path, content) for path, content, _ in launch["reserved"]])
    options = [word for path in there for word in ("--ro-bind", covers[path] or path, path)]
    at = launch["argv"].index("--") if options else 0
    return [*launch["argv"][:at], *options, *launch["argv"][at:]]


def _put_right(originals: "list[cleanup.Originals]") -> tuple[str, ...]:
    """When the last process is gone: remove the reserved names, and undo what the command may not change."""
    reservation.release()
    return tuple(note for each in originals for note in each.put_right())


def _start(launch: "Launch", directory_write: int) -> int:
    """Fork the command; an error between fork and exec comes back through a pipe."""
    failure_read, failure_write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(failure_read)
            _become(launch, directory_write)
        except (OSError, ValueError, TypeError, KeyError) as error:
            os.write(failure_write, marshal.dumps(_explain(error)))
        finally:
            os._exit(127)
    os.close(failure_write)
    with os.fdopen(failure_read, "rb") as pipe:
        failure = pipe.read()
    if failure:
        os.waitpid(child, 0)
        raise OSError(marshal.loads(failure))
    return child


def _explain(error: Exception) -> str:
    if not isinstance(error, OSError) or not error.strerror:
        return f"{type(error).__name__}: {error}"
    return f"{error.strerror}: {error.filename}" if error.filename else error.strerror


def _become(launch: "Launch", directory_write: int) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    # Python ignores the first two, and what is ignored stays ignored across exec.
    caught = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, *caught):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(_open_input(launch["input"]), 0)
    if launch["errors"] >= 0:
        os.dup2(launch["errors"], 2)
        os.close(launch["errors"])
    else:
        os.dup2(1, 2)
    if launch["keep_directory"]:
        os.dup2(directory_write, DIRECTORY_FD)
    os.chdir(launch["cwd"])
    confinement.limit(launch["rlimits"])
    if launch["mark"]:
        confinement.mark(launch["mark"])
    if launch["landlock"]:
        confinement.restrict(launch["landlock"])
    if launch["drop_privileges"]:
        confinement.drop_capabilities()
    if launch["seccomp"]:
        program = launch["seccomp"]
        if launch["seccomp_fd"]:
            confinement.offer_filter(program, launch["seccomp_fd"])
        else:
            confinement.install_filter(program)
    os.execve(launch["argv"][0], launch["argv"], launch["env"])


def _open_input(data: bytes) -> int:
    """What the command reads as its input: a file without a name, so that no one has to write or read it."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY)
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("input")
    else:
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"swink-input-{os.getpid()}-{time.time_ns()}")
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
    while data:
        data = data[os.write(file, data) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _watch(child: int, launch: "Launch", wake: int, guardian: int) -> str | None:
    """Wait until the command ends by itself (None), it is ended from outside, or it breaks a limit."""
    deadline = time.monotonic() + launch["wall"]
    poller = select.poll()
    poller.register(0, select.POLLIN)
    poller.register(wake, select.POLLIN)
    room = _free_space(launch["disks"])
    shared = memory.measure_shared()
    while True:
        tree.reap()
        if tree.has_ended(child):
            return None
        pause = min(POLL, deadline - time.monotonic())
        if pause <= 0:
            return "timeout"
        for fd, _ in poller.poll(pause * 1000):
            if fd != wake:
                return "killed"
            _drain(wake)
        if _signals:
            return "killed"
        if os.getppid() != guardian:
            return "supervisor"
        tree.reap()
        broken = None if tree.has_ended(child) else _find_broken_limit(launch, room, shared)
        if broken:
            return broken


def _find_broken_limit(launch: "Launch", room: dict[str, int], shared: int) -> str | None:
    family = tree.list_descendants()
    if len(family) > launch["processes"]:
        return "processes"
    if memory.exceeds(family, launch["memory"], shared):
        return "memory"
    now = _free_space(launch["disks"])
    if any(room[path] - now[path] > launch["disk"] for path in now if path in room):
        return "disk"
    return None


def _free_space(disks: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in disks:
        try:
            stat = os.statvfs(path)
        except OSError:
            continue
        found[path] = stat.f_bavail * stat.f_frsize
    return found


def _receive(fd: int) -> "Launch":
    return marshal.loads(_exactly(fd, int.from_bytes(_exactly(fd, 8), "big")))


def _exactly(fd: int, size: int) -> bytes:
    """So many bytes and no more: the word to end the command may stand behind them already."""
    data = b""
    while len(data) < size:
        chunk = os.read(fd, size - len(data))
        if not chunk:
            sys.exit(0)  # the program that started this is gone
        data += chunk
    return data


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def _last_directory(fd: int) -> str:
    os.set_blocking(fd, False)
    try:
        return os.read(fd, 4096).split(b"\n")[0].decode(errors="replace")
    except BlockingIOError:
        return ""


def _report(**ending: object) -> "NoReturn":
    data = marshal.dumps(ending)
    os.write(2, len(data).to_bytes(8, "big") + data)
    os._exit(0)  # the interpreter's shutdown takes longer than everything else here


if __name__ == "__main__":
    main()
