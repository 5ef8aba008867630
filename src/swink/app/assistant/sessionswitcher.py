"""SessionSwitcher: which conversation is shown, and how it goes on with another. It knows nothing of screens.

new      an empty one                          resume   one of the store
fork     the same one, from here on apart      rewind   a fork from before a prompt, with the files of then
redo     back to before the rewind
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from swink.agent import Agent
from swink.agent.checkpoint import placeholders
from swink.agent.config import SystemPrompt
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.attachedfiles import said_text
from swink.app.assistant.exporting import Source, export_to
from swink.app.assistant.planning import without_plan
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.sessionfacts import what_is_left, working_directory
from swink.app.assistant.shell import told_command
from swink.app.assistant.snapshots.rewinding import FileChange
from swink.app.assistant.snapshots.snapshotpolicy import Restored, Snapshots
from swink.app.assistant.titles import ask_title
from swink.errors import AgentError, MisuseError, SessionError
from swink.events.transcript import Diff, Transcript
from swink.memory.backend import Stored
from swink.memory.meta import SessionMeta
from swink.memory.session import Session
from swink.memory.store import SyncStore
from swink.messages import UserMessage
from swink.messages.records import saved
from swink.models import catalog
from swink.system.threads import in_thread
from swink.tools import Tool


class NumberedPrompt(Struct, frozen=True):
    """Something the user said, by the number of its message in the session."""

    number: int
    message: UserMessage

    @property
    def text(self) -> str:
        """Its text as it was typed, without the files that went along."""
        text = said_text(self.message)
        told = told_command(text)
        return text if told is None else f"!{told[0]}"


class Rewound(Struct, frozen=True):
    """What a rewind came to: the prompt to write anew, and what became of the files."""

    prompt: UserMessage | None = None
    files: Restored | None = None


class ConversationFace(Protocol):
    """What shows the conversation, and goes on with another one when it is given one."""

    agent: Agent
    clock: Callable[[], float]

    @property
    def is_planning(self) -> bool:
        """Whether the agent only looks."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether the agent is at work."""
        ...

    @property
    def instructed(self) -> SystemPrompt:
        """The system prompt, without what plan mode adds."""
        ...

    def adopt(self, agent: Agent, transcript: Transcript | None = None) -> None:
        """Go on with another agent and its transcript."""
        ...

    def set_planning(self, planning: bool) -> None:
        """Let the agent only look, or give it all its tools back."""
        ...


class SessionSwitcher:
    """The conversation that is shown, and the store with the others; without a store only this one."""

    def __init__(
        self,
        driver: ConversationFace,
        store: SyncStore | None,
        saved_conversation: SavedConversation | None,
        *,
        environment: AgentEnvironment | None = None,
        snapshots: Snapshots | None = None,
        asks_title: bool = False,
        is_choosing: bool = False,
    ) -> None:
        self.is_choosing = is_choosing  # whether the user wants to choose one before anything else
        self._asks_title = asks_title
        self._titled: str | None = None
        """The session that has its title, or for which none is asked."""
        self.driver = driver
        self.store = store
        self.saved_conversation = saved_conversation
        self._last_talk: SavedConversation | None = None
        """The one before this, in which something was said."""
        self.snapshots = snapshots
        self._environment = environment
        self._prompt = driver.instructed
        """What a conversation begins with; /system changes it for one alone."""

    # ── what is there ──

    def saved_id(self) -> str | None:
        """The id of the session, once there is something in it that can be resumed."""
        return None if self.saved_conversation is None else self.saved_conversation.saved_id()

    @property
    def is_saved(self) -> bool:
        """Whether nothing that was to be saved is missing."""
        return self.saved_conversation is None or self.saved_conversation.is_complete

    def resume_command(self) -> str | None:
        """The command that goes on with this conversation, if it is saved."""
        return _resume_command(self.saved_conversation)

    def last_resume_command(self) -> str | None:
        """The command that goes on with this conversation, or with the last one if this one is empty."""
        return self.resume_command() or _resume_command(self._last_talk)

    @property
    def meta(self) -> SessionMeta | None:
        """What is known of the session."""
        return None if self.saved_conversation is None else self.saved_conversation.session.meta

    def left(self) -> list[str]:
        """What an interruption left undone, a line each."""
        current = self.saved_conversation
        return [] if current is None else list(what_is_left(current.session.conversation))

    def prompts(self) -> list[NumberedPrompt]:
        """What the user said, in order; also what was compacted away."""
        if self.saved_conversation is None:
            messages = enumerate(self.driver.agent.messages)
        else:
            # At once: a thread that saves may add to it.
            messages = [*self.saved_conversation.session.conversation.everything.items()]
        return [NumberedPrompt(number, each) for number, each in messages if isinstance(each, UserMessage)]

    def take_notices(self) -> list[str]:
        """What people have to know, each once."""
        notices = [] if self.saved_conversation is None else self.saved_conversation.take_notices()
        return notices + ([] if self.snapshots is None else self.snapshots.take_notices())

    # ── another one ──

    async def recover_files(self) -> None:
        """Look after what a process that was killed left; call it once at the start."""
        if self.snapshots is not None:
            await self.snapshots.recover()

    async def new(self) -> None:
        """Begin an empty conversation; this one stays in the store."""
        await self._leave("/new")
        another = None if self.saved_conversation is None else self.saved_conversation.begin_another()
        self._adopt(another, Transcript(clock=self.driver.clock), self._prompt)

    async def resume(self, session: Stored | str) -> None:
        """Go on with a conversation of the store, given or by its id."""
        store = self._store()
        await self._leave("/resume")
        stored = await in_thread(store.read, session) if isinstance(session, str) else session
        resumed = SavedConversation(store, stored)
        if self.snapshots is not None:
            await self.snapshots.recover(resumed)
        prompt = without_plan(resumed.session.conversation.system_prompt)
        self._adopt(resumed, Transcript.of(stored.records), prompt or self._prompt)

    async def fork(self, at: int | None = None) -> None:
        """Go on with a copy of the first `at` messages, or of all; this one stays as it is."""
        self._refuse_if_empty("forked")
        await self._leave("/fork")
        await self._split(at)

    async def rewind(
        self, number: int, *, chat: bool = True, files: bool = True, confirmed: Collection[str] = ()
    ) -> Rewound:
        """Go back to before a prompt; files that others changed meanwhile are left unless confirmed."""
        prompt = next((prompt for prompt in self.prompts() if prompt.number == number), None)
        if prompt is None:
            raise MisuseError(f"there is no prompt {number} in this conversation")
        await self._leave("/rewind")
        restored = None
        if files and self.snapshots is not None:
            restored = await self.snapshots.rewind(number, confirmed)
        if chat:
            await self._split(number)
        return Rewound(prompt.message if chat else None, restored)

    async def preview(self, number: int) -> Sequence[FileChange]:
        """What rewinding to a prompt does to the files."""
        return [] if self.snapshots is None else await self.snapshots.preview(number)

    async def diff(self, change: FileChange) -> Diff | None:
        """What rewinding does to one of them, if it is a text."""
        return None if self.snapshots is None else await self.snapshots.diff(change)

    async def changed(self) -> Sequence[tuple[FileChange, Diff | None]]:
        """What the tools of this conversation changed, against what it was at first."""
        return [] if self.snapshots is None else await self.snapshots.changed()

    async def can_redo(self) -> bool:
        """Whether the last thing that was done was a rewind."""
        files = self.snapshots is not None and self.snapshots.can_redo
        return files or await self._rewound_from() is not None

    async def redo(self, confirmed: Collection[str] = ()) -> Rewound:
        """Undo the last rewind of the conversation, of files, or of both."""
        source = await self._rewound_from()
        files = self.snapshots is not None and self.snapshots.can_redo
        if source is None and not files:
            raise MisuseError("there is nothing to redo: the last thing that was done was no rewind")
        await self._leave("/redo")
        restored = await self.snapshots.redo(confirmed) if files and self.snapshots is not None else None
        if source is not None:
            fork = self.saved_id()
            await self._go_on(source)
            if fork is not None:  # nothing was said in it
                await in_thread(self._store().delete, fork)
        return Rewound(None, restored)

    async def ask_title(self) -> None:
        """Ask the model for a title after the first reply, if the settings want that."""
        current, agent, id = self.saved_conversation, self.driver.agent, self.saved_id()
        if not self._asks_title or current is None or current.is_resumed or id in (None, self._titled):
            return
        self._titled = id
        with suppress(AgentError):  # then the first words of the prompt are its title
            title, _ = await ask_title(agent.model, agent.messages)
            await in_thread(current.rename, title)

    async def rename(self, title: str) -> None:
        if self.saved_conversation is None or (id := self.saved_id()) is None:
            raise MisuseError("this conversation is not saved yet, so it has no title; say something first")
        self._titled = id
        await in_thread(self.saved_conversation.rename, title)

    async def export(self, path: str | Path, format: str | None = None) -> Path:
        """Write this conversation to a file, which must not be there yet; returns where it is."""
        self._refuse_if_empty("exported")
        return await in_thread(export_to, path, await self._source(), format)

    # ── how ──

    def _store(self) -> SyncStore:
        if self.store is None:
            raise MisuseError("conversations are not saved here, so there are no others")
        return self.store

    def _refuse_if_empty(self, done: str) -> None:
        if not (self.driver.agent.messages or self.prompts()):
            raise MisuseError(f"nothing was said in this conversation yet, so it cannot be {done}")

    async def _leave(self, command: str) -> None:
        """Have all saved before another conversation takes the place of this one."""
        if self.driver.is_running:
            raise MisuseError(f"the agent is at work; Esc stops it, then {command}")
        if self.saved_id() is not None:
            await self.driver.agent.aclose()

    async def _split(self, at: int | None) -> None:
        current = self.saved_conversation
        if current is None:
            messages = list(self.driver.agent.messages)[:at]
            transcript = Transcript.of([saved(message, number) for number, message in enumerate(messages)])
            self._replace_agent(lambda before: before.copy(messages=messages), transcript)
            return
        if (id := current.saved_id()) is None or not current.is_complete:
            raise SessionError("this conversation is not saved, so it can be neither forked nor rewound")
        stored = await in_thread(self._store().split, id, at)
        await self._go_on(stored)

    async def _go_on(self, stored: Stored) -> None:
        other = SavedConversation(self._store(), stored)
        if self.snapshots is not None:
            await in_thread(self.snapshots.carry_over, other)
        self._adopt(other, Transcript.of(stored.records), self.driver.instructed)

    def _adopt(self, other: SavedConversation | None, transcript: Transcript, prompt: SystemPrompt) -> None:
        session = None if other is None else other.session

        def copy(before: Agent) -> Agent:
            before.clear_queues()  # they are saved with the conversation they belong to
            tools = _with_gone(before, session)
            agent = before.copy(session=session, messages=(), state={}, tools=tools, system_prompt=prompt)
            model = None if session is None else session.model
            if model is not None and catalog.has_provider(model.provider):
                agent.model = model
            return agent

        said = self.driver.agent.messages
        self._replace_agent(copy, transcript)
        if self._environment is not None:
            how = "clear" if other is None or not other.is_resumed else "resume"
            self._environment.hooks.go_on_with(session, how, said)
        if self.saved_id() is not None:
            self._last_talk = self.saved_conversation
        self.saved_conversation = other
        if self.snapshots is not None:
            self.snapshots.saved = other

    def _replace_agent(self, copy: Callable[[Agent], Agent], transcript: Transcript) -> None:
        """Let a copy of the agent take its place, made while it has all its tools; or leave all as it was."""
        planning = self.driver.is_planning
        self.driver.set_planning(False)
        try:
            agent = copy(self.driver.agent)
            self.driver.adopt(agent, transcript)
        finally:
            self.driver.set_planning(planning)
        if self._environment is not None:
            self._environment.agent = agent

    async def _rewound_from(self) -> Stored | None:
        """The conversation that this one was rewound from, if nothing was said since."""
        meta = self.meta
        if meta is None or self.store is None or meta.parent is None or meta.messages != meta.forked_at:
            return None
        try:
            source = await in_thread(self.store.read, meta.parent)
        except SessionError:
            return None
        return source if source.meta.messages > meta.messages else None

    async def _source(self) -> Source:
        current = self.saved_conversation
        if current is None:
            return [saved(message, number) for number, message in enumerate(self.driver.agent.messages)]
        if (id := current.saved_id()) is None or not current.is_complete:
            return current.session
        return await in_thread(self._store().read, id)


def _resume_command(saved: SavedConversation | None) -> str | None:
    return None if saved is None or saved.saved_id() is None else f"swink --resume {saved.short_id()}"


def is_elsewhere(meta: SessionMeta) -> bool:
    """Whether a conversation took place in another directory."""
    return meta.directory not in (None, working_directory())


def _with_gone(agent: Agent, session: Session | None) -> list[object]:
    """The tools of an agent, and what stands in for those that a session used and that are not there."""
    offers = agent.tools
    if session is None:
        return [*offers]
    known = [tool for offer in offers for tool in ([offer] if isinstance(offer, Tool) else offer.tools())]
    turn = session.conversation.open
    return [*offers, *placeholders([*session.messages, *([] if turn is None else [turn.reply])], known)]
