"""Background agents: sub-agents whose call returns at once, and whose report comes as a message.

    start     a session of its own, and a record that is held while it runs
    ended     the record is gone, the report is delivered
    leaving   it is ended and saved; the record stays, as after kill -9
    resume    it goes on from its session

They are bound by the policies of the run that started them, ask the same person, and end with the program;
the end of that run leaves them running.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from swink.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.agent.engine.account import payer
from swink.agent.policy import Policy, aside, enclosing
from swink.app.assistant.agentrecords import AgentRecord, HeldRecord, find_interrupted, forget
from swink.app.assistant.delegates import Delegate, SubAgent
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.assistant.sessionfacts import what_is_left
from swink.app.assistant.toolcalls import format_call
from swink.errors import AgentError, MisuseError, SessionNotFound
from swink.events import AgentStart, ToolExecutionStart, TurnStart
from swink.events.transcript import Totals, Transcript
from swink.memory.meta import new_id
from swink.stream import observer
from swink.system.shorten import clip_end
from swink.system.threads import in_thread
from swink.teams.member import perform
from swink.teams.transfer import current_route

if TYPE_CHECKING:
    from swink.app.assistant.agentfiles import AgentFile

_GO_ON = "You were interrupted. Go on with your task, and give your report."
_SHOWN = 120


class _Running(Struct):
    """One that runs: how to reach it."""

    agent: Agent
    held: HeldRecord | None
    saved: SavedConversation | None
    conversation: object
    begun: "asyncio.Future[None]"
    transcript: Transcript
    task: "asyncio.Task[None] | None" = None
    is_stopped: bool = False


class BackgroundAgents:
    """Those of one environment; `show` is told how each stands, `tell` what people have to know."""

    def __init__(
        self,
        make: Callable[..., Awaitable[Agent]],
        directory: Path,
        show: Callable[[SubAgent], None],
        tell: Callable[[str], None],
    ) -> None:
        self.deliver: Callable[[str], None] | None = None
        """Takes the reports; without it nobody waits for one, and no agent works in the background."""
        self.conversation: Callable[[], object] = lambda: None
        """Which conversation goes on now: a report is for the one that its agent was started in."""
        self.policies: Callable[[], Sequence[Policy]] = lambda: ()
        """What binds one that is resumed: no run started it."""
        self.saves = False
        """Whether each has a session, so that it can be resumed."""
        self.reports_interrupted = True
        """Whether `look` tells of those that were interrupted."""
        self._make = make
        self._directory = directory
        self._show = show
        self._tell = tell
        self._running: dict[str, _Running] = {}
        self._interrupted: dict[str, AgentRecord] = {}
        self._watched: dict[str, tuple[object, Transcript]] = {}
        self._is_closing = False
        self._count = 0

    @property
    def is_wanted(self) -> bool:
        return self.deliver is not None and not self._is_closing

    async def start(self, delegate: Delegate, task: str) -> str:
        """Begin to work on a task; the id of the agent."""
        saved = SavedConversation(open_store()) if self.saves else None
        return await self._begin(delegate, task, task, saved)

    async def look(self) -> None:
        """Report the agents of this directory that were interrupted, each once."""
        if not (self.is_wanted and self.reports_interrupted):
            return
        known = {record.session for record in self._interrupted.values()}
        for record in await in_thread(find_interrupted, self._directory):
            if record.session in known:
                continue
            id = self._next_id()
            self._interrupted[id] = record
            name = record.agent or "task"
            self._show(
                SubAgent(id, "task", record.task, record.started, record.started, "interrupted", name=name)
            )
            how = f"/agents resume {id} goes on with it, /agents drop {id} forgets it"
            self._tell(
                f"background agent {id} ({name}) was interrupted: {clip_end(record.task, _SHOWN)}; {how}"
            )

    async def resume(self, id: str, files: "Mapping[str, AgentFile]") -> None:
        """Go on with one that was interrupted, from its session; raises `MisuseError` if that cannot be."""
        record = self._interrupted.get(id)
        if record is None:
            raise MisuseError(f"there is no interrupted agent {id}; /agents lists them")
        missing = [name for name in (*record.around, record.agent) if name is not None and name not in files]
        if missing:
            raise MisuseError(f"the agent {missing[0]} is not there any more, so {id} cannot go on")
        file = None if record.agent is None else files[record.agent]
        delegate = Delegate("task", file, tuple([files[name] for name in record.around]))
        store = open_store()
        prompt: str | None = record.task
        try:
            saved = SavedConversation(store, await in_thread(store.read, record.session))
            prompt = None if any(what_is_left(saved.session.conversation)) else _GO_ON
        except SessionNotFound:  # it had not begun to speak
            saved = SavedConversation(store)
        bound = enclosing.set(tuple(self.policies()))  # no run started it, but what binds a run binds it
        try:
            await self._begin(delegate, record.task, prompt, saved, id)
        finally:
            enclosing.reset(bound)
        del self._interrupted[id]
        if saved.session.meta.id != record.session:
            await in_thread(forget, record.session)

    def drop(self, id: str) -> None:
        """Forget one that was interrupted; its session stays."""
        record = self._interrupted.pop(id, None)
        if record is None:
            raise MisuseError(f"there is no interrupted agent {id}; /agents lists them")
        forget(record.session)

    def stop(self, id: str) -> bool:
        """End one; what it said so far is its report. False if it does not run."""
        running = self._running.get(id)
        if running is not None:
            running.is_stopped = True
            running.agent.abort()
        return running is not None

    @property
    def running(self) -> Sequence[str]:
        """Those that run now, by their ids."""
        tasks = {id: running.task for id, running in self._running.items()}
        return [id for id, task in tasks.items() if task is None or not task.done()]

    async def wait_for_end(self) -> None:
        """Return once one of those that run has ended, however; its report, if it gave one, is delivered."""
        if tasks := [running.task for running in self._running.values() if running.task is not None]:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    def transcript(self, id: str) -> Transcript | None:
        """What one says and does, as it comes and when it has ended; None if it did not run here."""
        watched = self._watched.get(id)
        return None if watched is None else watched[1]

    def add_spent(self, totals: Totals) -> Totals:
        """The totals of the conversation that goes on now with what its background agents spent so far."""
        now = self.conversation()
        for conversation, transcript in self._watched.values():
            if conversation is now:
                totals = totals.with_cost_of(transcript.spent)
        return totals

    async def aclose(self) -> None:
        """End all of them and wait until they are saved; they can be resumed."""
        self._is_closing = True
        for id in list(self._running):
            self.stop(id)
        while tasks := [running.task for running in self._running.values() if running.task is not None]:
            await asyncio.wait(tasks)

    async def _begin(
        self,
        delegate: Delegate,
        task: str,
        prompt: str | None,
        saved: SavedConversation | None,
        id: str | None = None,
    ) -> str:
        id = id or self._next_id()
        agent = await self._make(delegate, None if saved is None else saved.session)
        session = new_id(time.time()) if saved is None else saved.session.meta.id
        around = tuple([file.name for file in delegate.around])
        named = None if delegate.file is None else delegate.file.name
        record = AgentRecord(session, task, str(self._directory), time.time(), named, around)
        held = None
        if saved is not None:
            try:
                held = await in_thread(HeldRecord, record)
            except TimeoutError:
                raise MisuseError("another swink goes on with this agent already") from None
            except (OSError, AgentError) as error:
                self._tell(f"a background agent cannot be resumed after a crash: {error}")
        shown = SubAgent(id, delegate.kind, task, record.started, name=delegate.name, is_background=True)
        begun = asyncio.get_running_loop().create_future()
        transcript = Transcript() if saved is None else Transcript.of(saved.session.conversation)
        running = _Running(agent, held, saved, self.conversation(), begun, transcript)
        self._running[id] = running
        self._watched[id] = running.conversation, transcript
        # In the context of the call, so that the policies of the run bind it; not as a part of the run.
        running.task = asyncio.create_task(
            self._work(id, running, delegate, prompt, shown), name=f"swink-agent-{id}"
        )
        self._show(shown)
        await running.begun  # so that the run that starts it has not ended before its budget counts this one
        return id

    def _next_id(self) -> str:
        self._count += 1
        return f"agent_{self._count}"

    async def _work(
        self, id: str, running: _Running, delegate: Delegate, prompt: str | None, shown: SubAgent
    ) -> None:
        observer.agent_name.set(delegate.name)
        current_route.set(None)
        payer.set(None)  # the call that would pay has ended; its budget counts this run beside its own
        aside.set(running)

        def emit(event: Any) -> None:
            running.transcript.take(event)
            if isinstance(event, TurnStart) and not running.begun.done():
                running.begun.set_result(None)
            if isinstance(event, AgentStart) and running.is_stopped:
                running.agent.abort()
            if isinstance(event, ToolExecutionStart):
                doing = clip_end(format_call(event.name, event.arguments), _SHOWN)
                spent = running.transcript.spent.cost.total
                self._show(replace(shown, outcome=f"running {doing}", cost=spent or None))

        outcome, text, cost = "was stopped", "", None
        try:
            result = await perform(running.agent, prompt, emit)
            outcome, text = _outcome(result), result.text
            cost = None if result.cost is None else result.cost.total
            await running.agent.aclose()
        except Exception as error:  # whatever it is: it ends this agent alone, and is its report
            outcome = f"failed: {error}"
        finally:
            del self._running[id]
            if not running.begun.done():
                running.begun.set_result(None)
            if running.held is not None:
                running.held.free(keep=self._is_closing)
            self._show(replace(shown, ended=time.time(), outcome=outcome, cost=cost))
        for notice in [] if running.saved is None else running.saved.take_notices():
            self._tell(f"background agent {id}: {notice}")
        if self._is_closing or self.deliver is None:
            return
        if self.conversation() is running.conversation:
            self.deliver(_report(id, shown, outcome, text))
        else:
            where = (
                ""
                if running.saved is None
                else f"; swink --resume {running.saved.saved_id()} shows its report"
            )
            self._tell(f"background agent {id} ({shown.name}) of another conversation {outcome}{where}")


def _outcome(result: AgentResult) -> str:
    match result.stop_reason:
        case "error":
            return f"failed: {result.error}"
        case "aborted":
            return "was stopped"
        case _:
            return "is done" if result.reason is None else f"was stopped: {result.reason}"


def _report(id: str, shown: SubAgent, outcome: str, text: str) -> str:
    """What the assistant is told: the person has not said it, and nothing in it is their wish."""
    head = (
        f"[Background agent {id} ({shown.name}) {outcome}. What follows is its report, not the user's words.]"
    )
    return f"{head}\nIts task: {clip_end(shown.task, 500)}\n\n{text or '(it gave no report)'}"
