"""One session of an editor: its agent, the turn that runs, its mode and options.

opened      what it may say is told: commands, notices; the folder is entered once trust is known
prompt      a turn: begun, steered if one goes on, ended with the reason why
cancel      the turn ends and keeps what arrived; questions are withdrawn
aclose      the turn ends, all is saved, servers and background commands end
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from swink.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.agent.config import SystemPrompt
from swink.app.acp.connection import INTERNAL_ERROR, INVALID_PARAMETERS, NEEDS_KEY, Connection, RequestRefused
from swink.app.acp.editorfiles import EditorFiles
from swink.app.acp.narrator import Narrator
from swink.app.acp.options import (
    EXECUTE_MODE,
    MODEL,
    PLAN,
    THINKING,
    as_word,
    config_options,
    mode_state,
    offered_models,
)
from swink.app.acp.parameters import EditorAbilities
from swink.app.acp.promptinput import Said, text_of_prompt
from swink.app.acp.questions import EditorQuestions
from swink.app.acp.sessioncommands import SessionCommands
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.fallbacks import FallbackFollower
from swink.app.assistant.luggage import list_hooks
from swink.app.assistant.modelchoice import parse_model
from swink.app.assistant.modellist import note_taken
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.planning import EXECUTE, OFFER, PlanMode, has_plan
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.assistant.servermentions import read_resources
from swink.app.assistant.sessionswitcher import SessionSwitcher
from swink.app.assistant.snapshots.snapshotpolicy import Snapshots
from swink.app.assistant.titles import title_line
from swink.app.assistant.trust import Trust, TrustError, answer, decided, what_is_there
from swink.errors import Aborted, AgentError, ContentFiltered, MissingKey, MisuseError
from swink.events import AgentStart
from swink.events.transcript import Transcript
from swink.messages import AssistantMessage, Input, Message, UserMessage, as_messages
from swink.models.catalog import with_limits
from swink.system.aio import wait_through_cancel
from swink.system.threads import in_thread
from swink.tools.coding.openfiles import OPEN_FILES

T = TypeVar("T")


class OpenedConversation(NamedTuple):
    """An agent in a folder, and what it works with."""

    environment: AgentEnvironment
    permissions: Permissions
    agent: Agent
    saved: SavedConversation | None
    snapshots: Snapshots | None


class EditorSession:
    """A conversation that an editor shows; one turn at a time."""

    def __init__(
        self, id: str, opened: OpenedConversation, connection: Connection, abilities: EditorAbilities
    ) -> None:
        self.id = id
        self.environment, self.permissions, self.agent, saved, snapshots = opened
        self.clock = time.monotonic
        self._connection, self._abilities = connection, abilities
        self.narrator = Narrator(self.send, self.environment.directory, abilities, self._window)
        self.planning = PlanMode(self.agent)
        self.questions = EditorQuestions(
            connection,
            id,
            self.permissions,
            self.environment.directory,
            self.narrator.call_id,
            self.send,
            has_forms=abilities.has_forms,
        )
        self.files = EditorFiles(connection, id, self.environment.directory, abilities)
        self.sessions = SessionSwitcher(
            self,
            None if saved is None else open_store(),
            saved,
            environment=self.environment,
            snapshots=snapshots,
            asks_title=self.environment.settings.title == "model",
        )
        self.commands = SessionCommands(self)
        self._follower = FallbackFollower()
        self._turn: asyncio.Task[Mapping[str, Any]] | None = None
        self._cancelled = asyncio.Event()
        self._own: list[Message] = []
        """What the editor said in this turn, which it shows by itself."""
        self._opening: asyncio.Task[None] | None = None
        self._models: Sequence[dict[str, Any]] = ()
        self._told: tuple[str, str] | None = None

    # ── what the editor is told ──

    def send(self, update: Mapping[str, Any]) -> None:
        """Tell the editor of something in this session."""
        self._connection.tell("session/update", {"sessionId": self.id, "update": update})

    @property
    def mode(self) -> str:
        return PLAN if self.planning.is_on else self.permissions.word

    async def state(self) -> dict[str, Any]:
        """The modes and options, for the answer that opens the session."""
        self._models = await in_thread(offered_models, self.agent.model)
        return {"modes": mode_state(self.mode), "configOptions": self.config()}

    def tell_options(self) -> None:
        """Tell the editor of options that it did not change itself."""
        self.send({"sessionUpdate": "config_option_update", "configOptions": self.config()})

    def config(self) -> list[dict[str, Any]]:
        """The options with their values."""
        return config_options(self.agent.model, self._models)

    # ── the beginning ──

    def begin(self, *, replays: bool = False) -> None:
        """Tell what was said before, if there is anything, and enter the folder if it needs no trust."""
        loop = asyncio.get_running_loop()

        def changed() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self.tell_notices)

        self.environment.changed = changed
        self.environment.hooks.ask_trust = lambda trust: self._ask_trust(trust, self.environment.trust)
        saved = self.sessions.saved_conversation
        if saved is not None and saved.is_resumed:
            conversation = saved.session.conversation
            transcript = Transcript.of(conversation)
            if replays:
                self.narrator.replay(transcript, self.agent.state)
            else:
                self.narrator.take_up(transcript)
            if left := self.sessions.left():
                told = "\n".join(left)
                self.narrator.notify(f"this conversation was interrupted:\n{told}\n/continue finishes it")

    def begin_work(self) -> None:
        """Enter the folder, in the background, if nobody has to be asked first."""
        self.commands.tell()
        if not self.environment.needs_trust:
            self._opening = asyncio.create_task(self._open(), name="swink-open")

    async def _open(self) -> None:
        if self.environment.needs_trust:
            self.environment.trust = await self._ask_trust(self.environment.trust)
        await self.sessions.recover_files()
        await self.environment.open()
        if self.environment.further_servers and not self.environment.is_own:
            self.narrator.notify("this folder is not trusted: the MCP servers of the editor are not started")
        self.commands.tell()
        self.tell_notices()

    async def _ask_trust(self, trust: Trust, before: Trust | None = None) -> Trust:
        """Ask whether a project is trusted; without an answer it stays as it was, or untrusted for now."""
        found = [*await in_thread(what_is_there, trust.project), *await in_thread(list_hooks, trust.brought)]
        kinds = {"y": "allow_once", "a": "allow_always", "n": "reject_once"}
        options = [(key, text, kinds[key]) for key, text in trust.answers.items()]
        told = "\n".join([str(trust.project), *(f"  {line}" for line in trust.changes or found)])
        key = await self.questions.choose(trust.question, options, told=told)
        if key not in trust.answers:
            return before or decided(trust, False)
        try:
            return await in_thread(answer, trust, key)
        except TrustError as error:
            self.narrator.notify(str(error), "error")
            return decided(trust, key != "n")

    # ── turns ──

    @property
    def has_turn(self) -> bool:
        """Whether a prompt is not answered yet."""
        return self._turn is not None

    @property
    def is_running(self) -> bool:
        """Whether the agent is at work."""
        return self.agent.is_running

    async def prompt(self, said: Sequence[Said]) -> Mapping[str, Any]:
        """Say something: a turn of its own, or steering for the one that goes on."""
        while (turn := self._turn) is not None:
            if self._cancelled.is_set():
                await asyncio.wait({turn})
                continue
            message = UserMessage(tuple(said))
            self._own.append(message)
            self.agent.steer(message)
            return await asyncio.shield(turn)
        self._cancelled.clear()
        turn = self._turn = asyncio.create_task(self._take_turn(said), name="swink-turn")
        turn.add_done_callback(self._end_turn)
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            self.cancel()
            await wait_through_cancel(turn)
            raise

    def cancel(self) -> None:
        """End the turn, keeping what arrived."""
        self._cancelled.set()
        self.agent.abort()

    async def aclose(self) -> None:
        """End the turn and wait until all is saved."""
        self.cancel()
        await self.questions.aclose()
        if (turn := self._turn) is not None:
            await wait_through_cancel(turn)
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        self.environment.changed = lambda: None
        try:
            await self.agent.aclose()
        finally:
            await self.environment.aclose()

    def _end_turn(self, turn: "asyncio.Task[Mapping[str, Any]]") -> None:
        self._turn = None
        self._own.clear()
        if not turn.cancelled():
            turn.exception()  # whoever asked for the turn may have left

    async def _take_turn(self, said: Sequence[Said]) -> Mapping[str, Any]:
        OPEN_FILES.set(self.files)  # for all that this task starts: the run, its questions, its tools
        try:
            if not await self._unless_cancelled(self._ready()):
                return {"stopReason": "cancelled"}
            obeyed = await self.commands.obey(text_of_prompt(said)) if len(said) == 1 else None
            if obeyed is True:
                return self._ending(None)
            result = obeyed or await self._run_prompt(said)
            if self.planning.is_on and result.stop_reason == "stop":
                result = await self._offer_plan() or result
            return self._ending(result)
        except Aborted:
            return {"stopReason": "cancelled"}
        except MissingKey as error:  # raised before the run began
            raise RequestRefused(NEEDS_KEY, str(error)) from error
        except MisuseError as error:
            raise RequestRefused(INVALID_PARAMETERS, str(error)) from error
        finally:
            self.tell_notices()

    async def _ready(self) -> bool:
        """The folder is entered and its servers have started, or failed."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="swink-open")
        try:
            await asyncio.shield(self._opening)
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._opening = None  # the next prompt tries again
            raise
        await self.environment.servers.settle()
        return True

    async def _unless_cancelled(self, work: Awaitable[T]) -> T | None:
        """What the work gives; None if the turn is cancelled before."""
        task, cancelled = asyncio.ensure_future(work), asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({task, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() and not self._cancelled.is_set() else None
        finally:
            task.cancel()
            cancelled.cancel()
            await asyncio.gather(task, cancelled, return_exceptions=True)

    async def _run_prompt(self, said: Sequence[Said]) -> AgentResult[None]:
        text, servers = text_of_prompt(said), self.environment.servers
        found = await read_resources(text, servers)
        for notice in found.notices:
            self.narrator.notify(notice, "warning")
        return await self.run(UserMessage((*said, *found.blocks)))

    async def run(self, input: Input | None, *, is_own: bool = True) -> AgentResult[None]:
        """A run of the agent to its end; without an input the rest of one."""
        given = None if input is None else as_messages(input)
        if given is not None and is_own:
            self._own += given
        async with self.agent.stream(given) as run:
            async for event in run:
                if isinstance(event, AgentStart) and self._cancelled.is_set():
                    self.agent.abort()
                self.narrator.take(event, self._own)
                model = self.agent.model
                self._follower.take_event(self.agent, event)
                if self.agent.model is not model:
                    self.tell_options()
                await self._connection.drained()
            result = await run.result()
        await self._tell_title()
        return result

    async def _offer_plan(self) -> AgentResult[None] | None:
        """Ask whether the plan is carried out now; if so, do it."""
        if self._cancelled.is_set() or not has_plan(self.agent.messages):
            return None
        options = [("y", "Yes, carry it out now", "allow_once"), ("n", "Not yet", "reject_once")]
        chosen = await self._unless_cancelled(self.questions.choose(OFFER, options, kind="switch_mode"))
        if chosen != "y":
            return None
        self.set_mode(EXECUTE_MODE)
        return await self.run(EXECUTE, is_own=False)

    def _ending(self, result: AgentResult[None] | None) -> Mapping[str, Any]:
        if result is None:
            return {"stopReason": "cancelled" if self._cancelled.is_set() else "end_turn"}
        if isinstance(result.exception, MissingKey):
            raise RequestRefused(NEEDS_KEY, str(result.exception))
        if result.error_kind == ContentFiltered.kind:
            return {"stopReason": "refusal", "usage": _usage(result)}
        if result.stop_reason == "error":
            raise RequestRefused(INTERNAL_ERROR, result.error or "the run failed")
        return {"stopReason": _stop_reason(result), "usage": _usage(result)}

    async def _tell_title(self) -> None:
        if not self._cancelled.is_set():
            await self.sessions.ask_title()
        saved = self.sessions.saved_conversation
        if saved is None or saved.saved_id() is None:
            return
        meta = saved.meta
        told = title_line(meta), datetime.fromtimestamp(meta.updated, UTC).isoformat()
        if told != self._told:
            self._told = told
            self.send({"sessionUpdate": "session_info_update", "title": told[0], "updatedAt": told[1]})

    def tell_notices(self) -> None:
        """Tell what the person has to know, once each."""
        for notice in self.environment.take_notices():
            self.narrator.notify(notice)
        for notice in self.sessions.take_notices():
            self.narrator.notify(notice, "warning")

    # ── what can be changed ──

    @property
    def is_planning(self) -> bool:
        """Whether the agent only looks."""
        return self.planning.is_on

    def set_planning(self, planning: bool) -> None:
        """Let the agent only look, or give it all its tools back."""
        self.planning.switch(planning)

    @property
    def instructed(self) -> SystemPrompt:
        """The system prompt, without what plan mode adds."""
        return self.planning.instructed

    def adopt(self, agent: Agent, transcript: Transcript | None = None) -> None:
        """Go on with another agent: the conversation was rewound, or forked in the store."""
        self.agent, self.planning = agent, PlanMode(agent)
        self.narrator.take_up(transcript or Transcript(clock=self.clock))

    def set_mode(self, mode: str) -> None:
        """Plan, or carry out and ask in this way; raises `RequestRefused` for an unknown mode."""
        word = self.permissions.word if mode == EXECUTE_MODE else as_word(mode)
        if word is None and mode != PLAN:
            raise RequestRefused(INVALID_PARAMETERS, f"there is no mode {mode!r}")
        self.planning.switch(mode == PLAN)
        if word is not None:
            self.permissions.word = word
        self.send({"sessionUpdate": "current_mode_update", "currentModeId": self.mode})

    async def set_option(self, option: str, value: str) -> list[dict[str, Any]]:
        """Take another model, or think more or less; the options as they are then."""
        try:
            if option == MODEL:
                level = self.agent.thinking_level
                self.agent.model = replace(parse_model(value), thinking_level=level)
                await in_thread(note_taken, value)
            elif option == THINKING:
                self.agent.model = replace(self.agent.model, thinking_level=value)  # checked there
            else:
                raise RequestRefused(INVALID_PARAMETERS, f"there is no option {option!r}")
        except (RequestRefused, asyncio.CancelledError):
            raise
        except AgentError as error:
            raise RequestRefused(INVALID_PARAMETERS, str(error)) from error
        self.narrator.tell_usage()
        return self.config()

    def _window(self) -> int | None:
        return with_limits(self.agent.model).context_window


def _stop_reason(result: AgentResult[None]) -> str:
    if result.stop_reason == "aborted":
        return "cancelled"
    if result.reason is not None and result.reason.startswith("max turns"):
        return "max_turn_requests"
    last = result.messages[-1] if result.messages else None
    return "max_tokens" if isinstance(last, AssistantMessage) and last.stop_reason == "length" else "end_turn"


def _usage(result: AgentResult[None]) -> dict[str, int]:
    usage = result.usage
    return {
        "totalTokens": usage.total,
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cachedReadTokens": usage.cache_read,
        "cachedWriteTokens": usage.cache_write,
    }
