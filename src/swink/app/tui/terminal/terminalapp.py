"""An app that has the terminal: how it begins, how it ends, and what it asks the terminal for."""

import asyncio
import signal
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

from textual._context import active_message_pump
from textual.app import App
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import Screen
from textual.worker import WorkerFailed

from swink.app.tui.terminal.driver import Driver
from swink.app.tui.terminal.failures import EnduringPart, EnduringScreen, FailureLog, failed_nodes
from swink.app.tui.terminal.guard import TerminalGuard
from swink.app.tui.terminal.sequences import copy_sequences
from swink.app.tui.terminal.streams import Streams
from swink.app.tui.terminal.tty import PATIENCE as PATIENCE_OF_TTY
from swink.messages.redact import redact_text
from swink.system.interrupts import interruptible
from swink.system.oneline import strip_controls
from swink.system.threads import run_to_end

PATIENCE = 10.0
"""Seconds that a conversation gets to end and to be saved when the program ends."""


class TerminalApp(App[int]):
    """An app whose end, however it comes, leaves the terminal as it was."""

    guard: TerminalGuard | None = None
    failure: Exception | None = None
    """The unexpected error that ended the app."""
    _leaving: asyncio.Task[None] | None = None
    _last_words: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self._failures = FailureLog()

    # What an app says itself

    async def wind_up(self) -> None:
        """End what goes on and save it."""

    def farewell(self) -> Iterable[str]:
        """The lines that stay on the screen when the app is gone."""
        return ()

    def resume_command(self) -> str | None:
        """What goes on where this ends."""
        return None

    def take_failure(self, error: Exception, *, closed_screen: bool) -> None:
        """Tell of an unexpected error, which may have closed a screen; all else goes on."""

    def take_stray(self, lines: list[str]) -> None:
        """Lines that a tool or a library wrote to where the terminal was."""

    @property
    def stray(self) -> Sequence[str]:
        """The last lines that were written there."""
        lines = [] if self.guard is None else [*self.guard.streams.lines]
        return [strip_controls(redact_text(line)) for line in lines]

    def update_last_words(self) -> None:
        """Let the restorer know what to tell a user who finds the app killed."""
        command = self.resume_command()
        if self.guard is not None and command != self._last_words:
            self._last_words = command
            self.guard.restorer.say_at_death(f"swink was killed.\nTo go on: {command}\n" if command else "")

    # Ways out

    @property
    def is_leaving(self) -> bool:
        return self._leaving is not None

    def leave(self, code: int = 0) -> None:
        """End the run, save, and end the program."""
        if self._leaving is None:
            self._leaving = asyncio.get_running_loop().create_task(self._leave(code))

    async def _leave(self, code: int) -> None:
        await self._wind_up()
        self.exit(code, return_code=code)

    async def _wind_up(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self.wind_up()
        except TimeoutError:
            pass  # what was saved is saved
        except Exception as error:  # whatever an agent and its tools do at their end
            self.failure = self.failure or error

    def fail(self, error: Exception) -> None:
        """End the app because of an unexpected error."""
        self.failure = self.failure or error
        super()._handle_exception(error)

    def endure(self, error: Exception) -> None:
        """Tell of an unexpected error and go on; it ends the app only while that begins or ends."""
        self._handle_exception(error)

    def get_default_screen(self) -> Screen[Any]:
        return EnduringScreen(id="_default")

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:  # whatever a key, a command or a change on the screen comes to
            if not self._can_endure:
                raise
            self._handle_exception(error)

    @property
    def _can_endure(self) -> bool:
        """Whether there is a screen to tell of an error, and somebody who goes on."""
        return self._dom_ready and self._running and not self._exit and not self.is_leaving

    def _handle_exception(self, error: Exception) -> None:
        # Textual shows a page with the values of variables, which may be secret.
        if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
            error = error.error
        nodes = [each for node in self._failed(error) for each in node.ancestors_with_self]
        screen = next((screen for screen in self.screen_stack[1:] if screen in nodes), None)
        if screen is None and not self._can_endure:
            self.fail(error)
            return
        if screen is not None:
            while screen in self.screen_stack:
                self.screen.dismiss(None)
        for part in dict.fromkeys(node for node in nodes if isinstance(node, EnduringPart)):
            part.give_up()
        if self._failures.is_news(error):
            self.take_failure(error, closed_screen=screen is not None)

    def _failed(self, error: Exception) -> list[DOMNode]:
        """The screens and widgets in whose code or worker an error was raised."""
        node: object = active_message_pump.get(None)
        worker = import_module("textual.worker").active_worker.get(None)
        if node is self and worker is not None:
            node = worker.node  # workers run in the app's context
        return [*failed_nodes(error), *([node] if isinstance(node, DOMNode) else [])]

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()

    def _print_error_renderables(self) -> None:
        self._exit_renderables.clear()

    async def live(self, guard: TerminalGuard) -> int:
        """Run to the end; the exit code."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._report)
        stray = Stray(guard.streams, self.take_stray)
        guard.streams.told = lambda: loop.call_soon_threadsafe(stray.tell_soon, loop)
        with interruptible(self.leave) as interruption:
            guard.listen(interruption)
            await self.run_async()
            guard.streams.told = lambda: None
            if self._leaving is None:
                await self._wind_up()
            if interruption.signal is not None:
                return interruption.exit_code
        return 1 if self.failure is not None else self.return_code or 0

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        # Callbacks of the event loop are ours; connections that break are reported by those who use them.
        if "handle" in context and isinstance(error, Exception):
            self._handle_exception(error)

    # What it asks the terminal for

    @property
    def terminal_driver(self) -> Driver | None:
        """The way to the terminal; none in tests without one."""
        return self._driver if isinstance(self._driver, Driver) else None

    def send(self, sequence: str) -> None:
        if self.terminal_driver is not None:
            self.terminal_driver.write(sequence)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy because the user asked for it; nothing else reaches the clipboard."""
        self._clipboard = text
        for sequence in copy_sequences(text):
            self.send(sequence)

    def action_release_mouse(self) -> None:
        """Leave the mouse to the terminal, or take it back."""
        if self.terminal_driver is not None:
            self.mouse_released(not self.terminal_driver.toggle_mouse())

    def mouse_released(self, is_released: bool) -> None:
        """Tell the user who has the mouse."""

    def action_suspend(self) -> None:
        if self.terminal_driver is not None:
            self.terminal_driver.suspend_process()

    @contextmanager
    def suspended(self) -> Generator[None, None, None]:
        """While the block runs another program may have the terminal, whatever state it leaves it in."""
        terminal_driver, guard = self.terminal_driver, self.guard
        if terminal_driver is None or guard is None:
            yield
            return
        terminal_driver.suspend_application_mode()
        # Ctrl+C is meant for the other program; a signal that is ignored would be ignored there too.
        handler = signal.signal(signal.SIGINT, lambda number, frame: None)
        try:
            with terminal_driver.no_automatic_restart(), guard.streams.lent():
                yield
        finally:
            signal.signal(signal.SIGINT, handler)
            terminal_driver.resume_application_mode()


class Stray:
    """Tells of lines that were written past the screen, ever more seldom the more there are."""

    def __init__(self, streams: Streams, take: Callable[[list[str]], None]) -> None:
        self._streams = streams
        self._take = take
        self._told = 0
        self._pause = 0.25
        self._is_due = False

    def tell_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell of new lines after a pause, unless that is due already."""
        if not self._is_due:
            self._is_due = True
            loop.call_later(self._pause, self._tell)
            self._pause = min(60.0, self._pause * 2)

    def _tell(self) -> None:
        self._is_due = False
        new, self._told = self._streams.count - self._told, self._streams.count
        if new:
            self._take([*self._streams.lines][-new:])


def run_app(app: TerminalApp) -> int:
    """Run an app until it ends; its exit code. An error that ended it is raised when all is as it was."""
    app.driver_class = cast(Any, Driver)
    app.guard = guard = TerminalGuard(app.resume_command)
    guard.take_terminal()
    try:
        code = run_to_end(app.live(guard))
        guard.tty.write("".join(f"{line}\n" for line in app.farewell()), PATIENCE_OF_TTY)
    finally:
        guard.give_back()
    if app.failure is not None:
        raise app.failure
    return code
