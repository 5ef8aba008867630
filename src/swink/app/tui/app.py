"""The app: widgets on a screen, wired to the driver.

What is typed goes to the driver or to a command; what changes is shown by the widgets, at most twenty
times a second. Neither knows the other.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import TextArea

from swink.agent.runrequest import prompts_of
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.attachedfiles import said_text
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.servermentions import mentions_of, read_resources
from swink.app.assistant.sessionswitcher import SessionSwitcher
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.shell import parse_shell
from swink.app.tui.approval import ApprovalPanel, AskingPanel, DomainPanel, FormPanel, KeyGuard
from swink.app.tui.commands.commandapp import CommandApp
from swink.app.tui.commands.sessioncommands import take_up
from swink.app.tui.conversationdriver import ConversationDriver
from swink.app.tui.editor import Editor, EditorPane, Submitted, TakeBack
from swink.app.tui.firststeps import apply_settings, begin_work, first_look, welcome
from swink.app.tui.keys import KEYS
from swink.app.tui.look import LOOKS, theme, theme_name
from swink.app.tui.screens.whole import Whole
from swink.app.tui.screenupdater import ScreenUpdater
from swink.app.tui.status import StatusBar
from swink.app.tui.statusline import StatusLine
from swink.app.tui.terminal import Attention
from swink.app.tui.throttle import Throttle
from swink.app.tui.view import ActiveTools, TodoPanel, TranscriptView
from swink.events.transcript import Block, ReplyBlock
from swink.events.transcript.blockkinds import counted
from swink.messages import Input
from swink.messages.modelspec import THINKING_LEVELS
from swink.messages.redact import redact_text
from swink.system.oneline import strip_controls
from swink.system.places import NoHome, state_dir

_KEY_ACTIONS = {key.binding().action.partition("(")[0] for key in KEYS}
_EVERYWHERE = {"interrupt", "leave", "suspend", "release_mouse", "command_palette"}
"""Keys that work on every screen."""
_WRITING = {"enter", "backspace", "delete"}  # keys of writing that are no characters
_TWICE = 2.0  # seconds within which a key counts as pressed twice
LAST_LINES, LAST_CHARACTERS = 20, 4_000
"""Of the last reply, what stays on the screen when the interface is gone."""
UNSAVED = "Not saved: the end of this conversation could not be written."


class UpdateDue(Message):
    """There is something new to show."""


class SwinkApp(CommandApp):
    """The terminal interface of one conversation at a time."""

    TITLE = "swink"
    CSS = "Screen { background: $background; } ToastRack { dock: top; align: right top; }"
    BINDINGS: ClassVar[list[BindingType]] = [key.binding() for key in KEYS]

    def __init__(
        self,
        driver: ConversationDriver,
        permissions: Permissions,
        *,
        environment: AgentEnvironment | None = None,
        sessions: SessionSwitcher | None = None,
        settings: UserSettings | None = None,
    ) -> None:
        super().__init__()
        self.driver = driver
        self.permissions = permissions
        self.environment = environment
        self.sessions = sessions
        self.settings = settings
        self.first_prompt = ""
        """What is said by itself once everything is asked and read."""
        wants_calls = settings is None or settings.notifications
        self.attention = Attention(self.send, is_wanted=wants_calls, clock=driver.clock)
        self.status_line = StatusLine(lambda text: driver.say(text, "error"))
        self.look = first_look(settings)
        self._inputs: deque[events.Event] = deque(maxlen=20)  # the last keys, pastes and clicks
        self._handled: events.Event | None = None  # the one that is handled; others may have come since
        self._pressed: tuple[str, float, events.Event | None] = ("", float("-inf"), None)
        # By a message, so that a failure is the app's: what an event loop calls by itself fails in silence.
        self._throttle = Throttle(lambda: self.post_message(UpdateDue()))

    def compose(self) -> ComposeResult:
        yield TranscriptView(look=self.look, clock=self.driver.clock)
        yield ActiveTools(self.driver.clock)
        yield TodoPanel()
        yield ApprovalPanel(self.permissions, guard=KeyGuard(self.driver.clock))
        yield DomainPanel(self.permissions.domains, guard=KeyGuard(self.driver.clock))
        yield FormPanel(self.permissions.forms, guard=KeyGuard(self.driver.clock))
        yield EditorPane(
            None if self.environment is None else self.environment.directory,
            state=None if self.guard is None else _state_dir(),  # nothing is kept where there is no terminal
            commands=self.command_words,
        )
        yield StatusBar()

    def on_mount(self) -> None:
        for look in LOOKS.values():
            self.register_theme(theme(look))
        self.updater = ScreenUpdater(self, self.driver, self.permissions, self.attention, self.status_line)
        if self.environment is not None:
            self.updater.background = self.environment.background
            self.updater.add_spent = self.environment.sub_agents.add_spent
        self.use_look(self.look.name)
        self.driver.changed = self.permissions.changed = self._throttle.touch
        self.driver.refused = lambda input: self.editor.put_back(*map(said_text, prompts_of(input, ())))
        self.screen.set_focus(self.editor)  # at once: what was typed before the first frame is for it
        is_first_run = self.environment is not None and self.environment.is_first_run
        if not self.driver.transcript.blocks and not is_first_run:  # there a model is chosen first
            self.say(welcome(str(self.driver.agent.model)), "welcome")
        self._throttle.touch()
        taken_up = None if self.sessions is None else self.run_worker(take_up(self, self.sessions))
        if self.environment is not None:
            self.run_worker(begin_work(self, self.environment, taken_up, self.first_prompt))
        if self.settings is not None:
            apply_settings(self, self.settings)

    # What commands use

    @property
    def editor(self) -> Editor:
        return self.query_one(Editor)

    @property
    def view(self) -> TranscriptView:
        return self.query_one(TranscriptView)

    @property
    def todo(self) -> TodoPanel:
        return self.query_one(TodoPanel)

    def say(self, text: str, kind: str = "notice") -> None:
        self.driver.say(text, kind)

    def use_look(self, name: str) -> None:
        self.look = LOOKS[name]
        self.theme = theme_name(self.look)
        self.updater.use_look(self.look)

    # What the user does

    async def on_submitted(self, event: Submitted) -> None:
        """Say it to the agent, or obey a command."""
        for panel in self.query(AskingPanel):
            panel.guard.mark_sent()
        try:
            self._take_submitted(event)
        except Exception:
            self.editor.put_back(event.text)
            raise

    def _take_submitted(self, event: Submitted) -> None:
        if event.kind == "command":
            self.obey(event.text)
        elif (command := parse_shell(event.text)) is not None:
            self.driver.commands.run(command[0], shown=command[1])
        else:
            queues = (event.how == "queue") != (
                self.settings is not None and self.settings.busy_enter == "queue"
            )
            send = self.driver.queue if queues else self.driver.send
            if self.environment is not None and mentions_of(event.text, self.environment.servers):
                self.run_worker(self._send_with_resources(event, send), exclusive=False)
            else:
                send(event.input)

    async def _send_with_resources(self, event: Submitted, send: Callable[[Input], object]) -> None:
        """Read the resources of servers that a prompt mentions, then send it."""
        assert self.environment is not None
        found = await read_resources(event.text, self.environment.servers)
        for notice in found.notices:
            self.driver.say(notice)
        send(found.after(event.input))

    async def on_event(self, event: events.Event) -> None:
        """What is written goes to the editor, wherever the focus is, unless something asks for keys."""
        if isinstance(event, events.Key | events.Paste | events.MouseDown):
            self._handled = event
            if not event.is_forwarded and self._left_a_question(event):
                return
            if not event.is_forwarded:
                self._inputs.append(event)
                is_text = not isinstance(event, events.Key) or event.is_printable or event.key in _WRITING
                if is_text and not isinstance(event, events.MouseDown) and not self._takes_text:
                    self.screen.set_focus(self.editor)
        await super().on_event(event)

    def _left_a_question(self, event: events.Event) -> bool:
        """Whether Esc led from a question to the editor: here, so that keys right behind it are no answer."""
        panel = next((panel for panel in self.query(AskingPanel) if panel.escapes), None)
        if panel is None or not isinstance(event, events.Key) or event.key != "escape":
            return False
        panel.is_left = True
        self.screen.set_focus(self.editor)
        return True

    @property
    def _takes_text(self) -> bool:
        """Whether something takes what is written: the editor, a question, or a screen above."""
        is_asked = any(panel.takes_keys for panel in self.query(AskingPanel))
        return len(self.screen_stack) != 1 or self.editor.has_focus or is_asked

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """The user is writing: no question takes the focus now."""
        editor = event.text_area
        if isinstance(editor, Editor) and not editor.is_blank:
            for panel in self.query(AskingPanel):
                panel.guard.mark_typed()

    def on_asking_panel_leave(self, event: AskingPanel.Leave) -> None:
        """Back to the editor, with what was meant for it."""
        self.editor.focus()
        if event.typed:
            self.editor.insert(event.typed)

    def action_scroll_page(self, step: int) -> None:
        """A page of the question that has the focus, else of the conversation."""
        if not any(panel.scroll_pages(step) for panel in self.query(AskingPanel)):
            self.view.scroll_page(step)

    def action_scroll_to_end(self) -> None:
        self.view.scroll_to_end()

    def action_toggle_fold(self) -> None:
        self.view.toggle_fold()

    def action_select_block(self, step: int) -> None:
        """Select the call before or after; while there is text in the editor the keys select in that."""
        if self.editor.has_focus and not self.editor.is_blank:
            raise SkipAction
        self.view.select_block(step)

    def action_toggle_thoughts(self) -> None:
        self.view.cycle_thoughts()

    def action_toggle_todo(self) -> None:
        self.todo.is_wanted = not self.todo.is_wanted
        self.updater.show_changes()  # the conversation has the list where the panel has not

    def action_answer(self) -> None:
        any(panel.take_focus() for panel in self.query(AskingPanel))

    def action_stop(self) -> None:
        """Stop the reply; twice when idle: rewind."""
        is_working = self.driver.abort()
        if queued := self.driver.take_back():
            self.editor.put_back(*map(said_text, queued))
        elif not is_working and self._is_second("stop"):
            self.obey("/rewind")

    def on_take_back(self, event: TakeBack) -> None:
        """Let the user change what was queued last."""
        if (last := self.driver.take_back_last()) is not None:
            self.editor.put_back(said_text(last))

    def action_edit_outside(self) -> None:
        self.editor.action_write_outside()

    def action_interrupt(self) -> None:
        """Copy what is selected, else stop the reply, else clear the editor, else leave."""
        if selected := self.screen.get_selected_text() or self.editor.selected_text:
            self.copy_to_clipboard(selected)
        elif not self.driver.abort() and not self.editor.is_blank:
            self.editor.clear_to_history()
        elif self._is_second("interrupt") and not self.driver.is_running:
            self.leave()
        else:
            self.updater.hint("Ctrl+C again leaves", _TWICE)

    def action_leave(self) -> None:
        self.leave()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the conversation and the editor are not those of another screen above them."""
        return len(self.screen_stack) == 1 or action in _EVERYWHERE or action not in _KEY_ACTIONS

    def action_whole(self) -> None:
        self.push_screen(Whole(self.driver.transcript, self.look))

    def action_next_thinking(self) -> None:
        levels = [*THINKING_LEVELS]
        level = self.driver.agent.thinking_level
        self.driver.think(levels[(levels.index(level) + 1) % len(levels)])

    def _is_second(self, key: str) -> bool:
        """Whether a key was pressed twice: soon after the first time, and nothing in between."""
        now = self.driver.clock()
        before, self._pressed = self._pressed, (key, now, self._handled)
        row = (before[2], self._handled)
        are_neighbours = any(pair == row for pair in pairwise(self._inputs))
        return before[0] == key and now - before[1] < _TWICE and are_neighbours

    # The terminal

    async def wind_up(self) -> None:
        self._throttle.close()
        await self.status_line.close()
        if self.environment is not None:
            await self.environment.sub_agents.aclose()  # first: a report would begin another run
        await self.driver.close()
        if self.environment is not None:
            await self.environment.aclose()

    def farewell(self) -> list[str]:
        resume = None if self.sessions is None else self.sessions.last_resume_command()
        is_saved = self.sessions is None or self.sessions.is_saved
        return farewell(self.driver.transcript.blocks, resume, is_saved=is_saved)

    def resume_command(self) -> str | None:
        id = None if self.sessions is None else self.sessions.saved_id()
        return f"swink --resume {id}" if id else None

    def take_stray(self, lines: list[str]) -> None:
        more = f" (and {counted(len(lines) - 1, 'more line')}: /debug)" if len(lines) > 1 else ""
        self.say(f"{strip_controls(redact_text(lines[0]))}{more}")

    def mouse_released(self, is_released: bool) -> None:
        released = "the terminal has the mouse: select text with it; F6 takes it back"
        self.notify(released if is_released else "the mouse is back", markup=False)

    def on_app_focus(self) -> None:
        self.attention.is_focused = True

    def on_app_blur(self) -> None:
        self.attention.is_focused = False

    def on_update_due(self) -> None:
        if not self.is_leaving:
            try:
                self.updater.show_changes()
                self.update_last_words()
            finally:
                self._throttle.flushed()


def farewell(blocks: Sequence[Block], resume: str | None, *, is_saved: bool = True) -> list[str]:
    """The end of the last reply, whether something of the conversation is lost, and how to go on."""
    replies = (block.text for block in reversed(blocks) if isinstance(block, ReplyBlock) and block.text)
    text = next(replies, "")
    lines = strip_controls(text[-LAST_CHARACTERS:]).strip().splitlines()
    is_cut = len(lines) > LAST_LINES or len(text) > LAST_CHARACTERS
    said = [*(["…"] if is_cut else []), *lines[-LAST_LINES:]]
    told = [*([] if is_saved else [UNSAVED]), *([f"To go on: {resume}"] if resume else [])]
    return [*said, *([""] if said and told else []), *told]


def _state_dir() -> Path | None:
    """Where the editor keeps history and drafts; a user without a home has none."""
    try:
        return state_dir()
    except NoHome:
        return None
