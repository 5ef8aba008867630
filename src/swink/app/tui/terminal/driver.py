"""The driver: Textual's way to the terminal, made so that the terminal can be given back at any time.

start     modes on, every key is read            stop     as it was
suspend   as it was, for another program          resume   modes on again, everything is drawn anew

Textual's own driver saves the settings whenever it starts, so that a stop it did not see (SIGSTOP) loses the
real ones; it stops alone and not with its process group, so that `make` waits for it for ever; and it blocks
when the terminal takes nothing.
"""

import os
import selectors
import signal
import threading
import time
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from textual import events
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

from swink.app.tui.terminal import sequences
from swink.app.tui.terminal.pastes import Pasted, PasteReader
from swink.app.tui.terminal.tty import PATIENCE, Tty
from swink.system import startup

if TYPE_CHECKING:
    from swink.app.tui.terminal.terminalapp import TerminalApp

MOST_WAITING = 4_000_000
"""Characters that wait for a terminal that takes nothing; when there are more, all is drawn anew later."""
BEGINNINGS = "NOPX"
"""Letters that begin a longer sequence after an escape."""
IMPATIENCE = 3
"""How many times Ctrl+C is pressed, over seconds, without being heard, before the program is ended."""


class KeyParser(XTermParser):
    """Textual's parser, which waits after Alt and a letter for more of a sequence.

    An escape that comes meanwhile made it take the letter for one that was typed: Alt+A would answer `a`.
    """

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        found = list(super()._sequence_to_key_events(sequence, alt))
        if not found and len(sequence) == 2 and sequence[1].isalpha() and sequence[1] not in BEGINNINGS:
            return super()._sequence_to_key_events(sequence[1], alt=True)
        return found


class Driver(LinuxDriver):
    """Reads keys from the terminal and writes frames to it, in threads of their own."""

    def __init__(
        self,
        app: "TerminalApp",
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        cast(Any, super()).__init__(app, debug=debug, mouse=mouse, size=size)
        guard = app.guard
        assert guard is not None, "only run_app gives an app the terminal"
        self._guard = guard
        self._fail, self._endure = app.fail, app.endure
        self._tty = guard.tty
        self.fileno = guard.tty.fd
        self.input_tty = True
        self._size = size or guard.tty.size
        self._writer: Writer | None = None
        self._has_mouse = mouse
        self._is_on = False
        self._resumes = False
        self._unheard = 0
        self._unheard_since = 0.0
        self._woken, self._wake = os.pipe()

    # Modes

    def start_application_mode(self) -> None:
        tty = self._tty
        self._writer = Writer(tty, self._show_anew)
        self._is_on = True
        self._guard.restorer.watch(tty.before, tty.during, sequences.END)
        signal.signal(signal.SIGWINCH, lambda number, frame: self._tell_size())
        tty.set(tty.during)
        self.write(sequences.BEGIN)
        self._claim_mouse()
        self._request_terminal_sync_mode_support()
        self._key_thread = threading.Thread(target=self._run_input_thread, name="textual-input", daemon=True)
        self._key_thread.start()
        self._tell_size()

    def stop_application_mode(self) -> None:
        if not self._is_on:
            return
        self.disable_input()
        self._is_on = False
        writer, self._writer = self._writer, None
        is_done = writer is None or writer.write_last(sequences.END)
        self._tty.drop_input()
        self._tty.set(self._tty.before)
        if is_done:  # else the restorer goes on trying when we are gone
            self._guard.restorer.stand_by()

    def disable_input(self) -> None:
        thread, self._key_thread = self._key_thread, None
        if thread is not None:
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
            os.write(self._wake, b".")
            thread.join()
            os.read(self._woken, 1)

    def resume_application_mode(self) -> None:
        """Take it again; a program that had it meanwhile may have died and left it in any state."""
        self._tty.remember()
        self._tty.write(sequences.RESET, PATIENCE)
        self.start_application_mode()
        self._draw_anew()

    def close(self) -> None:
        """What stop has not done."""
        self.stop_application_mode()

    def _claim_mouse(self) -> None:
        self.write(sequences.TAKE_MOUSE if self._has_mouse else sequences.RELEASE_MOUSE)

    def toggle_mouse(self) -> bool:
        """Release the mouse, or take it again; whether it is ours now."""
        self._has_mouse = not self._has_mouse
        self._claim_mouse()
        return self._has_mouse

    # Stop and continue

    def suspend_process(self) -> None:
        """Stop with the whole process group, as Ctrl+Z does everywhere: `make` must not wait for us."""
        self._stop_by(lambda: os.killpg(0, signal.SIGTSTP))

    def _sigtstp_application(self, *_: object) -> None:
        if self._is_on:
            self._loop.call_soon_threadsafe(self._stop_by, _stop_alone)
        else:  # an editor has the terminal, and the event loop waits for it
            self._stop_by(_stop_alone)

    def _stop_by(self, stop: Callable[[], None]) -> None:
        self._resumes = self._resumes or self._is_on
        self.stop_application_mode()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        try:
            stop()  # the process stops here until SIGCONT
        finally:
            signal.signal(signal.SIGTSTP, handler)
        self._continue()

    def _sigcont_application(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._continue)

    def _continue(self) -> None:
        if not self._tty.is_ours:
            return  # in the background; the SIGCONT of `fg` comes later
        if self._resumes:
            self._resumes = False
            self.resume_application_mode()
        elif self._is_on:  # stopped by SIGSTOP, unseen: the shell had the terminal with all our modes
            self._tty.set(self._tty.during)
            self._show_anew()
            self._tell_size()

    # Output

    def write(self, data: str) -> None:
        """Write without waiting; what is written while the terminal is not ours is lost."""
        if self._writer is not None:
            self._writer.write(data)

    def _show_anew(self) -> None:
        self.write(sequences.SHOW)
        self._claim_mouse()
        self._draw_anew()

    def _draw_anew(self) -> None:
        def draw() -> None:
            if self._app.is_running and self._app.screen_stack:
                self._app.screen.refresh(layout=True)
                self._app.refresh(layout=True)

        self._loop.call_soon_threadsafe(draw)

    def _get_terminal_size(self) -> tuple[int, int]:
        return self._tty.size

    def _tell_size(self) -> None:
        size = Size(*self._tty.size)
        self.send_message(events.Resize(size, size))

    # Input

    def _run_input_thread(self) -> None:
        while True:
            try:
                self.run_input_thread()
            except OSError as error:  # the terminal cannot be read
                self._loop.call_soon_threadsafe(self._fail, error)
            except Exception as error:  # Textual's parser, and whatever was typed: the next key is read anew
                self._loop.call_soon_threadsafe(self._endure, error)
                continue
            return

    def run_input_thread(self) -> None:
        """Read keys until there are no more, or nobody wants them."""
        parser = KeyParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        pastes = PasteReader()
        undecided_until = 0.0
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                # Whether an escape is a key or begins a sequence is decided by time.
                timeout = 0.02 if time.monotonic() < undecided_until else None
                ready = {key.fd for key, _ in selector.select(timeout)}
                if self._woken in ready:
                    break
                if self.fileno in ready:
                    data = self._read()
                    if not data:
                        self._guard.hang_up()
                        break
                    read_at = time.monotonic()
                    undecided_until = read_at + 2 * ESCAPE_DELAY
                    for part in pastes.feed(decode(data)):
                        is_paste = isinstance(part, Pasted)
                        for event in [events.Paste(part.text)] if is_paste else parser.feed(part):
                            event.time = read_at  # what came at once is a paste, however long we take over it
                            self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, 4096)
        except OSError:
            return b""  # the terminal is gone

    def process_message(self, message: Message) -> None:
        """Pass it on; after several Ctrl+C that the event loop did not handle, end the program."""
        if isinstance(message, events.Key) and message.key == "ctrl+c":
            now = time.monotonic()
            self._unheard_since = self._unheard_since if self._unheard else now
            self._unheard += 1
            if self._unheard > IMPATIENCE and now - self._unheard_since > PATIENCE:
                startup.leave(signal.SIGINT)
            self._loop.call_soon_threadsafe(self._hear)
        super().process_message(message)

    def _hear(self) -> None:
        self._unheard = 0


def _stop_alone() -> None:
    os.kill(os.getpid(), signal.SIGTSTP)


class Writer:
    """Writes in a thread, so that nobody waits for a slow terminal."""

    def __init__(self, tty: Tty, behind: Callable[[], None]) -> None:
        self._tty = tty
        self._behind = behind
        self._waiting: deque[str] = deque()
        self._size = 0
        self._is_behind = False
        self._last: str | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="textual-output", daemon=True)
        self._thread.start()

    def write(self, data: str) -> None:
        with self._changed:
            if self._size > MOST_WAITING:
                self._waiting.clear()
                self._size = 0
                self._is_behind = True
            self._waiting.append(data)
            self._size += len(data)
            self._changed.notify()

    def write_last(self, last: str) -> bool:
        """Write the last thing; whether the terminal took it within a moment."""
        with self._changed:
            self._last = last
            self._changed.notify()
        self._thread.join(PATIENCE)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and self._last is None:
                    self._changed.wait()
                data = "".join(self._waiting) + (self._last or "")
                is_last, is_behind, self._is_behind = self._last is not None, self._is_behind, False
                self._waiting.clear()
                self._size = 0
            self._tty.write(data)
            if is_last:
                return
            if is_behind:
                self._behind()
