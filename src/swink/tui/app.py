"""The app: widgets on a screen, wired to the conductor."""

import asyncio
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from swink.catalog import with_limits
from swink.engine.waiting import resolve
from swink.errors import AgentError
from swink.tui.approval import ApprovalPanel, Questions
from swink.tui.bridge import Bridge
from swink.tui.commands import find_command
from swink.tui.conductor import Conductor
from swink.tui.editor import Editor, Submitted
from swink.tui.status import Status, StatusBar
from swink.tui.view import TranscriptView


class SwinkApp(App[int]):
    """The terminal interface of one conversation at a time."""

    TITLE = "swink"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop", show=False),
        Binding("ctrl+c", "interrupt", "stop, twice: leave", show=False, priority=True),
        Binding("ctrl+q", "leave", "leave", priority=True),
    ]

    def __init__(self, conductor: Conductor, questions: Questions) -> None:
        super().__init__()
        self.conductor = conductor
        self.questions = questions
        self._version = 0
        self._shown: object = None
        self._is_leaving = False
        self._bridge = Bridge(self._show_changes)

    def compose(self) -> ComposeResult:
        """The conversation, what waits for an answer, the editor, the status bar."""
        yield TranscriptView()
        yield ApprovalPanel(self.questions)
        yield Editor()
        yield StatusBar()

    def on_mount(self) -> None:
        """Begin."""
        self.conductor.changed = self._bridge.touch
        self.questions.changed = self._bridge.touch
        self.editor.focus()
        self.set_interval(0.1, self._tick)
        self._bridge.touch()

    @property
    def editor(self) -> Editor:
        """Where the user writes."""
        return self.query_one(Editor)

    def say(self, text: str, kind: str = "notice") -> None:
        """Show something among the blocks."""
        self.conductor.say(text, kind)

    async def ask(self, screen: Screen[Any]) -> Any:
        """Show a screen until it is left; what it was left with."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def left(result: Any) -> None:
            if not answer.done():
                answer.set_result(result)

        await self.push_screen(screen, left)
        return await answer

    def leave(self, code: int = 0) -> None:
        """End the run, save, and end the program."""
        if not self._is_leaving:
            self._is_leaving = True
            self.run_worker(self._leave(code), exclusive=False)

    async def _leave(self, code: int) -> None:
        self._bridge.close()
        await self.conductor.close()
        self.exit(code, return_code=code)

    async def on_submitted(self, event: Submitted) -> None:
        """Say it to the agent, or obey a command."""
        if event.text.startswith(("/", "#")):
            self.run_worker(self._obey(event.text), exclusive=False)
        elif event.how == "queue":
            self.conductor.queue(event.input)
        else:
            self.conductor.send(event.input)

    async def _obey(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        try:
            await resolve(find_command(name).action(self, rest.strip()))
        except AgentError as error:
            self.say(str(error), "error")

    def action_stop(self) -> None:
        """Escape: end the run."""
        self.conductor.abort()

    def action_interrupt(self) -> None:
        """Ctrl+C: end the run, or leave when idle."""
        if not self.conductor.abort():
            self.leave(130)

    def action_leave(self) -> None:
        """Ctrl+Q: leave."""
        self.leave()

    def _show_changes(self) -> None:
        transcript = self.conductor.transcript
        if transcript is not self._shown:
            self._shown, self._version = transcript, 0
        changes = transcript.since(self._version)
        self._version = changes.version
        self.query_one(TranscriptView).take(changes)
        self.query_one(ApprovalPanel).update_questions()
        self._tick()

    def _tick(self) -> None:
        self.query_one(StatusBar).show(self._status())

    def _status(self) -> Status:
        conductor = self.conductor
        model = conductor.agent.model
        running = conductor.is_running
        return Status(
            conductor.activity,
            conductor.clock() if running else 0.0,
            str(model),
            totals=conductor.transcript.totals,
            window=with_limits(model).context_window,
            queued=len(conductor.queued),
        )
