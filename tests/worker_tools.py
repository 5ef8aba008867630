"""Tools for the tests of isolation: the child process imports this module, so it imports little."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from swink.tools import tool

HOLD = "import socket, sys, time; link = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('ready', flush=True); time.sleep(60)"


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Touchy(Exception):
    """Pickles, but cannot be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


@tool(isolation="process")
def add(a: int, b: int = 2) -> int:
    return a + b


@tool(isolation="process")
async def mirrored(point: Point) -> Point:
    return Point(point.y, point.x)


@tool(isolation="process")
def echo(text: str) -> str:
    return text


@tool(isolation="process")
def facts() -> dict[str, Any]:
    return {"pid": os.getpid(), "cwd": os.getcwd(), "stdin": sys.stdin.read(), "argv": len(sys.argv)}


@tool(isolation="process")
def fail(how: str) -> object:
    match how:
        case "value":
            raise ValueError("bad value")
        case "touchy":
            raise Touchy("one", "two")
        case "exit":
            raise SystemExit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "crash":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), 9)
        case "lock":
            import threading

            return threading.Lock()
        case _:
            return lambda: None
    return None


@tool(isolation="process")
def noisy() -> str:
    print("on stdout")
    os.write(1, b"straight to the descriptor\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    return "clean"


@tool(isolation="process")
def hold(port: int) -> None:
    """Connect, let a child of its own connect too, and never come back."""
    subprocess.Popen([sys.executable, "-c", HOLD, str(port)])
    with socket.create_connection(("127.0.0.1", port)):
        time.sleep(60)


@tool(isolation="process")
def wait(port: int) -> None:
    """Connect, and never come back."""
    with socket.create_connection(("127.0.0.1", port)):
        time.sleep(60)


@tool(isolation="process")
def leave_behind(port: int) -> str:
    """Return at once, with a child still running."""
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(port)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child.stdout.readline().strip()


def plain(x: int) -> int:
    return x


def leave_mark(path: str) -> None:
    """Write our process id into a file that is never seen half written."""
    directory, name = os.path.split(path)
    unfinished = os.path.join(directory, f".{name}")
    with open(unfinished, "w") as file:
        file.write(str(os.getpid()))
    os.rename(unfinished, path)


@tool(isolation="process")
def scatter(marks: str, leave: bool = False) -> str:
    """Start children that try to outlive the call: in a session or group of their own, as daemons, deaf to signals."""
    for how in ("plain", "session", "group", "daemon", "deaf daemon", "program"):
        if os.fork() == 0:
            if how == "session":
                os.setsid()
            if how == "group":
                os.setpgid(0, 0)
            if "daemon" in how:
                os.setsid()
                if os.fork():
                    os._exit(0)
            if "deaf" in how:
                for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                    signal.signal(number, signal.SIG_IGN)
            leave_mark(os.path.join(marks, how))
            if how == "program":
                os.setsid()
                os.execvp("sleep", ["sleep", "60"])
            time.sleep(60)
            os._exit(0)
    while len([name for name in os.listdir(marks) if not name.startswith(".")]) < 6:
        time.sleep(0.01)
    if not leave:
        time.sleep(60)
    return "done"


misnamed = tool(isolation="process")(plain)
