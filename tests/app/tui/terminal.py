"""The real program in a real terminal: what it shows, which modes it has set, how it ends.

Terminal    a pseudo-terminal with a screen (pyte) and the command in it; a thread reads what it writes
Tmux        the same in tmux, which has its own idea of keys and sizes; tests are skipped where there is none
"""

import codecs
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyte
import pytest
from command_line import Place
from tests.warm import start_of, warm_process

SECONDS = 60
"""How long a test waits for anything; a machine may be busy."""
KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "f3": "\x1bOR",
    "f4": "\x1bOS",
    "f5": "\x1b[15~",
    "f6": "\x1b[17~",
    "f7": "\x1b[18~",
    "shift+left": "\x1b[1;2D",
    "shift+right": "\x1b[1;2C",
    "ctrl+end": "\x1b[1;5F",
    "alt+enter": "\x1b\r",
    "focus": "\x1b[I",
    "blur": "\x1b[O",
    **{f"alt+{letter}": f"\x1b{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"},
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}
MODES = {
    "1049": "alternate screen",
    "1000": "mouse",
    "1002": "mouse drags",
    "1003": "mouse moves",
    "1004": "focus",
    "1006": "mouse in SGR",
    "1015": "mouse in urxvt",
    "1016": "mouse in pixels",
    "2004": "paste",
    "2026": "synchronized",
    "2048": "sizes in band",
}
_SEQUENCE = re.compile(r"\x1b\[([?<>=]?)([0-9;]*)(\$?[@-~])")
_LEAVE = "\x1b[?1049l"
_MARK = b"\0"
_UNFINISHED = re.compile(r"\x1b(\[[?<>=]?[0-9;]*\$?)?$")


class Terminal:
    """A pseudo-terminal, the command in it, and what can be seen from outside."""

    def __init__(
        self,
        place: Place,
        *arguments: str,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
        is_trusted: bool = True,
    ) -> None:
        if is_trusted:
            place.trust()
        self.screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self.screen)
        self.text = ""
        """Everything that was ever written, with its escape sequences."""
        self.modes: set[str] = set()
        """What is on, in the words of `MODES`; `no cursor`, `no wrap` and `kitty keys` too."""
        self._pushed = 0
        self.is_stalled = False
        """Whether the terminal takes nothing, like one whose connection hangs."""
        self._rest = ""
        self._marks = 0
        self._is_open = True
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._changed = threading.Condition()
        self._mark = f"SWINK_TEST_MARK={uuid.uuid4().hex}"
        # We hold the other end too: the settings can be looked at when the command has ended.
        self.fd, self._hold = pty.openpty()
        self.resize(*size, is_new=True)
        self.before = self.settings()
        environ = {**place.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        environ |= dict([self._mark.split("=")])
        if command is None:
            warm = warm_process(start_of(environ), ("swink.app.cli", "swink.providers", "swink.app.tui"))
            self.process: Any = warm.start_in_terminal(arguments, self._hold, place.here, environ)
        else:
            self.process = subprocess.Popen(
                [*command, *arguments],
                stdin=self._hold,
                stdout=self._hold,
                stderr=self._hold,
                cwd=place.here,
                env=environ,
                start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *failure: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGCONT)
        self._wait(lambda: self.process.poll() is not None, "its end")
        for pid in self.left_behind():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._is_open:
            os.close(self._hold)
            self._thread.join()
            os.close(self.fd)

    # What is seen

    @property
    def lines(self) -> list[str]:
        """The rows of the screen, without spaces at their ends."""
        with self._changed:
            return [line.rstrip() for line in self.screen.display]

    @property
    def shown(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines).rstrip()

    def settings(self) -> list[Any]:
        """The settings of the terminal, as `termios` tells them."""
        return termios.tcgetattr(self._hold)

    def left_behind(self) -> list[int]:
        """The processes that the command started, at any distance, and that still run."""
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self._mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def cpu_seconds(self) -> float:
        """The time that the command has computed."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    # What is done

    def type(self, text: str) -> None:
        """Press one key after the other."""
        os.write(self.fd, text.encode())

    def press(self, *keys: str) -> None:
        """Press keys by their names."""
        for key in keys:
            self.type(KEYS.get(key, key))

    def paste(self, text: str) -> None:
        """Paste as terminals do in bracketed paste mode."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, lines: int, *, is_new: bool = False) -> None:
        """Give the terminal another size."""
        if not is_new:
            with self._changed:
                self.screen.resize(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    # What is waited for

    def wait_for(self, *wanted: str) -> None:
        """Wait until the screen shows all of these."""
        self._wait(lambda: all(each in self.shown for each in wanted), repr(wanted))

    def wait_until_gone(self, unwanted: str) -> None:
        """Wait until the screen does not show this."""
        self._wait(lambda: unwanted not in self.shown, f"the end of {unwanted!r}")

    def wait_until(self, is_so: Callable[[], bool], what: str = "it") -> None:
        """Wait until something is so."""
        self._wait(is_so, what)

    def wait_for_end(self, *, with_others: bool = True) -> int:
        """Wait for the end of the command and of what it started; its exit code."""
        self._wait(lambda: self.process.poll() is not None, "its end")
        if with_others and sys.platform == "linux":
            self._wait(lambda: not self.left_behind(), "the end of all its processes")
        self._wait_for_the_last_words()
        return self.process.poll()

    def assert_is_as_before(self) -> None:
        """No mode is on, and the settings are those from before."""
        self._wait(lambda: not self.modes, f"the end of {self.modes}")
        self._wait(lambda: self.settings() == self.before, "the settings from before")
        assert "Traceback" not in self.text, self.shown

    def pause(self, seconds: float) -> None:
        """Leave the command alone for a moment, or until it ends."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def hang_up(self) -> None:
        """The terminal is gone, like a window that is closed or a connection that breaks."""
        os.close(self._hold)
        self._is_open = False
        os.close(self.fd)

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come; the screen shows:\n{self.shown}")
            with self._changed:
                self._changed.wait(0.05)
            if self.process.poll() is not None and not is_so():
                time.sleep(0.2)  # the last words
                if not is_so() and time.monotonic() > deadline - SECONDS + 20:
                    raise AssertionError(
                        f"{what} did not come; it ended, and the screen shows:\n{self.shown}"
                    )

    def _wait_for_the_last_words(self) -> None:
        """Wait until the thread has read all that was written: a mark, which nobody else writes, is behind it."""
        if self._is_open and not self.is_stalled:
            wanted = self._marks + 1
            os.write(self._hold, _MARK)
            self._wait(lambda: self._marks >= wanted, "the last of what it wrote")

    def _read(self) -> None:
        while True:
            while self.is_stalled:
                time.sleep(0.02)
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return
            text = self._decoder.decode(data.replace(_MARK, b""))
            with self._changed:
                self._marks += data.count(_MARK)
                self.text += text
                self._take(text)
                self._changed.notify_all()

    def _take(self, text: str) -> None:
        """Follow the modes; the screen gets what it understands."""
        text = self._rest + text
        unfinished = _UNFINISHED.search(text)
        self._rest = text[unfinished.start() :] if unfinished else ""
        text = text[: unfinished.start()] if unfinished else text
        for part in re.split(f"(?<={re.escape(_LEAVE)})", text):
            self._stream.feed(_SEQUENCE.sub(self._follow, part))
            if part.endswith(_LEAVE):
                self.screen.reset()  # pyte has no second screen

    def _follow(self, sequence: re.Match[str]) -> str:
        kind, numbers, final = sequence.groups()
        if kind == "?" and final in "hl":
            for number in numbers.split(";"):
                # The cursor and the line wrap are on when nobody says anything.
                name = {"25": "no cursor", "7": "no wrap"}.get(number, MODES.get(number))
                if name and (final == "h") == (number not in ("25", "7")):
                    self.modes.add(name)
                elif name:
                    self.modes.discard(name)
        elif kind in ("<", ">", "=") and final == "u":
            self._pushed = max(
                0, self._pushed + (1 if kind == ">" else -int(numbers or 1) if kind == "<" else 0)
            )
            self.modes = {*self.modes, "kitty keys"} if self._pushed else self.modes - {"kitty keys"}
        return "" if kind in ("<", ">", "=") or "$" in final or final in "tu" else sequence.group()


class Tmux:
    """A tmux server of its own with one window."""

    def __init__(
        self,
        place: Place,
        *arguments: str,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
    ) -> None:
        place.trust()
        program = shutil.which("tmux")
        if program is None:
            pytest.skip("tmux is not installed")
        self._tmux = [program, "-f", os.devnull, "-S", str(place.home / "tmux")]
        self._env = {**place.environ, "TERM": "xterm-256color", **(env or {})}
        self._here = place.here
        shell = ["sh", "-c", f'{sys.executable} -m swink "$@"; echo "ended with $?"; exec cat', "sh"]
        window = ("-x", str(size[0]), "-y", str(size[1]))
        self.tmux("new-session", "-d", *window, *shell, *arguments)

    def __enter__(self) -> "Tmux":
        return self

    def __exit__(self, *failure: object) -> None:
        with suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")

    def tmux(self, *words: str) -> str:
        """One command of tmux; what it prints."""
        done = subprocess.run(
            [*self._tmux, *words], env=self._env, cwd=self._here, capture_output=True, timeout=SECONDS
        )
        done.check_returncode()
        return done.stdout.decode()

    @property
    def shown(self) -> str:
        """What the window shows."""
        return self.tmux("capture-pane", "-p").rstrip()

    def press(self, *keys: str) -> None:
        """Press keys in the words of tmux: `Enter`, `C-c`, `M-Enter`, `BTab`."""
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self.tmux("send-keys", "-l", text)

    def wait_for(self, *wanted: str) -> None:
        """Wait until the window shows all of these."""
        deadline = time.monotonic() + SECONDS
        while not all(each in self.shown for each in wanted):
            if time.monotonic() > deadline:
                raise AssertionError(f"{wanted!r} did not come; the window shows:\n{self.shown}")
            time.sleep(0.1)
