"""Run a program as on a system without POSIX modules: `python windowslike.py PROGRAM.py [ARGUMENT ...]`.

What the standard library needs is imported first. Then the modules that Windows lacks cannot be imported any
more, `sys.platform` is win32, and the module that Windows has instead stands on the locks of this system.
"""

import asyncio
import ctypes
import importlib.metadata
import logging.handlers
import multiprocessing
import os
import pydoc
import runpy
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import types
import webbrowser
from typing import Any

MISSING = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
NEEDED = (ctypes, importlib.metadata, logging.handlers, multiprocessing, pydoc, sqlite3, subprocess, tempfile)
"""What chooses by the platform when it is imported."""


def locking(descriptor: int, mode: int, count: int) -> None:
    """What msvcrt.locking does, by the locks of POSIX."""
    os.lockf(descriptor, os.F_ULOCK if mode == 0 else os.F_TLOCK, count)


def main(program: str, arguments: list[str]) -> None:
    """Take the modules away, and run."""
    asyncio.run(asyncio.sleep(0))  # what an event loop imports when it is first used
    modules: dict[str, Any] = sys.modules
    for name in MISSING:
        modules[name] = None
    instead = types.ModuleType("msvcrt")
    vars(instead).update(LK_NBLCK=2, LK_UNLCK=0, locking=locking, putwch=sys.stdout.write)
    modules["msvcrt"] = instead
    vars(ssl)["enum_certificates"] = lambda store: ()
    webbrowser.register("none", None)
    sys.platform = "win32"
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
