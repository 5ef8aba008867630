"""ScreenUpdater: brings the widgets up to date with the conversation, and nothing else."""

import gc
import os
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from swink.app.assistant.permissions import Permissions
from swink.app.tui.approval import AskingPanel
from swink.app.tui.conversationdriver import ConversationDriver
from swink.app.tui.editor import Editor, QueueList
from swink.app.tui.look import Look
from swink.app.tui.status import Status, StatusBar
from swink.app.tui.statusline import StatusLine
from swink.app.tui.terminal import Attention, TerminalApp
from swink.app.tui.view import ActiveTools, TodoPanel, TranscriptView
from swink.events.transcript import Totals
from swink.models.catalog import with_limits
from swink.tools.coding.background import Background


class ScreenUpdater:
    """Everything on the screen that changes by itself; `show_changes` brings it up to date."""

    def __init__(
        self,
        app: TerminalApp,
        driver: ConversationDriver,
        permissions: Permissions,
        attention: Attention,
        line: StatusLine,
    ) -> None:
        self._app = app
        self._driver = driver
        self._permissions = permissions
        self._attention = attention
        self.background: Background | None = None
        """Commands that go on in the background, which are counted on the bar."""
        self._line = line
        line.changed = self.show_status
        self.view = app.query_one(TranscriptView)
        self.tools = app.query_one(ActiveTools)
        self.todo = app.query_one(TodoPanel)
        self.panels = tuple(app.query(AskingPanel))
        self.queue = app.query_one(QueueList)
        self.editor = app.query_one(Editor)
        self.bar = app.query_one(StatusBar)
        self.add_spent: Callable[[Totals], Totals] = lambda totals: totals
        """Adds what agents in the background spent."""
        self._hint = ""
        self._version = 0
        self._shown: object = None
        self._ticker = app.set_interval(0.1, self.show_status, pause=True)

    def use_look(self, look: Look) -> None:
        for widget in (self.view, self.tools, self.todo, *self.panels, self.bar):
            widget.look = look

    def show_changes(self) -> None:
        """Bring everything up to date."""
        driver = self._driver
        transcript = driver.transcript
        is_other = transcript is not self._shown
        if is_other:
            self._shown, self._version = transcript, 0
            self.view.begin_conversation(transcript.inside)
            self.todo.begin_conversation()
        changes = transcript.since(self._version)
        self._version = changes.version
        self.view.set_planning(driver.is_planning)
        self._show(lambda: self.todo.take_changes(changes))
        self.view.set_list_elsewhere(self.todo.is_shown)
        self._show(lambda: self.view.take_changes(changes))
        if is_other:
            gc.freeze()  # what is loaded stays; to search it for garbage takes longer the more it is
        self._show(lambda: self.tools.take_running(self.view.running, self.view.is_seen))
        self._show(lambda: self.queue.show_queued(driver.agent.steering, driver.agent.follow_ups))
        self._show(self._show_in_editor)
        self.show_status()
        if driver.is_running:
            self._ticker.resume()
        else:
            self._ticker.pause()  # what does not move costs nothing

    def hint(self, text: str, seconds: float) -> None:
        """Say on the status bar what a key would do now."""
        self._hint = text
        self.show_status()

        def drop() -> None:
            if self._hint == text:
                self._hint = ""
                self.show_status()

        self._app.set_timer(seconds, drop)

    def show_status(self) -> None:
        """Bring the status bar, the title and the questions up to date."""
        self._show(self._show_on_bar)
        self._show(self._show_in_title)
        for panel in self.panels:
            self._show(partial(panel.update_questions, editor_is_blank=self.editor.is_blank))

    def _show(self, step: Callable[[], object]) -> None:
        """Show one thing; if that fails the others are shown all the same, questions above all."""
        try:
            step()
        except Exception as error:  # whatever a mistake in a widget raises
            self._app.endure(error)

    def _show_on_bar(self) -> None:
        status = self._status()
        self.bar.show_status(replace(status, line=self._line.line(status)))

    def _show_in_editor(self) -> None:
        driver = self._driver
        self.editor.is_busy = driver.is_running
        self.editor.has_queue = bool(driver.queued)
        self.editor.show_mode("plan: nothing is changed" if driver.is_planning else "")

    def _show_in_title(self) -> None:
        self._attention.show_state(
            is_running=self._driver.is_running,
            waiting=self._permissions.count_waiting(),
            subject=f"swink · {_here()}",
        )

    def _status(self) -> Status:
        driver = self._driver
        model = driver.agent.model
        return Status(
            driver.activity,
            driver.clock() if driver.is_running else 0.0,
            str(model),
            thinking=driver.agent.thinking_level,
            mode="Plan" if driver.is_planning else "Execute",
            approval=self._permissions.word,
            totals=self.add_spent(driver.transcript.spent),
            window=with_limits(model).context_window,
            estimated=driver.estimated_context,
            rate=driver.rate,
            queued=len(driver.queued),
            background=0 if self.background is None else self.background.running,
            hint=self._hint,
        )


def _here() -> str:
    """The name of the folder; somebody may have removed it."""
    try:
        return os.path.basename(os.getcwd())
    except OSError:
        return ""
