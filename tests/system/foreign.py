"""A system that is not this one, for a program or for the tests: `python foreign.py win32|darwin PROGRAM.py ...`,
and `pytest -p tests.system.foreign` with the system's name in SWINK_TEST_SYSTEM.

What the standard library needs is imported first. Then the modules that the system lacks cannot be imported any
more, `os` and `signal` have what it has, and `sys.platform` is its name. What Windows has instead of `fcntl` stands
on the locks of this system. The rest is this system: its paths, its files and its processes.
"""

import asyncio
import ctypes
import errno
import importlib
import importlib.metadata
import io
import logging.handlers
import multiprocessing.popen_spawn_posix
import os
import pydoc
import runpy
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import types
import urllib.request
import webbrowser
from contextlib import suppress
from typing import Any

MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
"""What Windows cannot import."""
NAMES = (
    "chown", "chroot", "confstr", "copy_file_range", "ctermid", "eventfd", "fchdir", "fchmod", "fchown",
    "fdatasync", "fork", "forkpty", "fpathconf", "getegid", "geteuid", "getgid", "getgroups", "getloadavg",
    "getpgid", "getpgrp", "getpriority", "getsid", "getuid", "getxattr", "killpg", "lchown", "listxattr", "lockf",
    "memfd_create", "mkfifo", "mknod", "nice", "openpty", "pathconf", "pidfd_open", "pipe2", "posix_spawn",
    "posix_spawnp", "pread", "preadv", "pwrite", "pwritev", "readv", "register_at_fork", "sched_getaffinity",
    "sched_setscheduler", "sendfile", "setpgid", "setsid", "setxattr", "splice", "statvfs", "sync",
    "sysconf", "tcgetpgrp", "tcsetpgrp", "ttyname", "wait", "wait3", "wait4", "writev",
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_SYNC", "SEEK_DATA",
)  # fmt: skip
"""What its `os` has not."""
LINUX_NAMES = (
    "copy_file_range", "eventfd", "fdatasync", "getxattr", "listxattr", "memfd_create", "pidfd_open", "pipe2",
    "sched_getaffinity", "sched_setscheduler", "setxattr", "splice", "O_PATH",
)  # fmt: skip
"""What only Linux has, among them."""
SIGNALS = (
    "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGUSR1",
    "SIGUSR2", "SIGWINCH", "pthread_kill", "pthread_sigmask", "setitimer",
)  # fmt: skip
NEEDED = (
    ctypes, importlib.metadata, logging.handlers, multiprocessing, pydoc, sqlite3, subprocess, tempfile,
    urllib.request,
)  # fmt: skip
"""What chooses by the platform when it is imported."""


def become(system: str) -> None:
    """Take away what the system lacks, and take its name."""
    asyncio.run(asyncio.sleep(0))  # what an event loop imports when it is first used
    sysconfig.get_config_vars()
    with suppress(ImportError):
        importlib.import_module("psutil")
    webbrowser.register("none", None)
    if sys.version_info >= (3, 13):  # which asks on Linux what is taken away
        vars(os)["process_cpu_count"] = os.cpu_count
    if system == "win32":
        _without_posix()
    else:
        _as_on_macos()
    sys.platform = system


def _without_posix() -> None:
    import fcntl

    flock, free, take = fcntl.flock, fcntl.LOCK_UN, fcntl.LOCK_EX | fcntl.LOCK_NB
    usual_open = os.open

    def locking(descriptor: int, mode: int, count: int) -> None:
        """What msvcrt.locking does, by the locks of POSIX: one holder among all who have opened the file."""
        flock(descriptor, free if mode == 0 else take)

    def open_file(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """Directories have no handles."""
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if os.path.isdir(path) and not flags & os.O_EXCL:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return usual_open(path, flags, mode)

    instead = types.ModuleType("msvcrt")
    vars(instead).update(LK_NBLCK=2, LK_UNLCK=0, locking=locking, putwch=sys.stdout.write)
    modules: dict[str, Any] = sys.modules
    modules.update({**dict.fromkeys(MODULES), "msvcrt": instead})
    vars(io)["_WindowsConsoleIO"] = type("_WindowsConsoleIO", (), {})  # pytest asks whether it writes to one
    vars(ssl)["enum_certificates"] = lambda store: ()
    kill = signal.SIGKILL
    subprocess.Popen.kill = lambda process: process.send_signal(kill)  # type: ignore[method-assign]
    asyncio.SelectorEventLoop.add_signal_handler = asyncio.AbstractEventLoop.add_signal_handler  # type: ignore
    _remove(os, NAMES)
    _remove(signal, SIGNALS)
    os.supports_dir_fd.clear()
    vars(shutil).update(_use_fd_functions=False, _USE_CP_SENDFILE=False)
    vars(os)["open"] = open_file


def _as_on_macos() -> None:
    import fcntl

    vars(fcntl)["F_FULLFSYNC"] = fcntl.F_GETFD
    _remove(os, LINUX_NAMES)


def _remove(module: types.ModuleType, names: tuple[str, ...]) -> None:
    for name in names:
        vars(module).pop(name, None)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say where these tests believed to be."""
    terminalreporter.write_line(f"these tests ran as on {sys.platform}")


def main(system: str, program: str, *arguments: str) -> None:
    """Run a program on the system."""
    become(system)
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
elif system := os.environ.get("SWINK_TEST_SYSTEM"):
    become(system)
