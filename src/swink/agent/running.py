"""The runs of an agent, one at a time: how one begins, what may be done meanwhile, and what it leaves."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from swink.agent.agentoptions import check_no_deps
from swink.agent.engine.ledger import Ledger
from swink.agent.engine.loop import take_turns
from swink.agent.engine.run import End, Run
from swink.agent.engine.turnsetup import TurnSetup
from swink.agent.eventstream import Buffer, Subscribers
from swink.agent.policy import asking
from swink.agent.queues import MessageQueue
from swink.agent.runrequest import RunRequest, check_approvals, check_continue, prompts_of, run_request
from swink.agent.state import AgentState
from swink.agent.transform import compacted
from swink.errors import Aborted, AlreadyRunning, ContextWindowOverflow, MisuseError
from swink.events import CompactionReport, ContextCompacted
from swink.messages import AssistantMessage, CustomMessage, Input, Message, Usage, UserMessage, as_messages
from swink.messages.history import History, Snapshot
from swink.messages.providertools import hosted_for
from swink.messages.records import OpenTurn, pending_of
from swink.system.aio import Turnstile


class Running(Struct, eq=False):
    """Lets one run at a time work on an agent's state; the active one may be read from any thread."""

    _state: AgentState
    active: Run | None = None
    _buffer: Buffer | None = None
    """Where the active run's events go."""
    _turnstile: Turnstile = field(default_factory=Turnstile)
    _compacting: "asyncio.Future[Any] | None" = None

    @property
    def is_running(self) -> bool:
        """Whether a run is active; one whose event loop was closed is ended here."""
        return self._turnstile.is_taken and not self._freed()

    @property
    def messages(self) -> Snapshot:
        """The history as it is now, that of the active run if there is one."""
        run = self.active  # read once, here and below: in another thread the run may end meanwhile
        return (run.ledger.history if run is not None else self._state.history).snapshot()

    @property
    def open(self) -> OpenTurn | None:
        """The turn that was left open."""
        return self._state.open if (run := self.active) is None else run.ledger.open

    @property
    def taken(self) -> Sequence[Message]:
        """What the run has taken from the queues, and not yet into the history."""
        return () if (run := self.active) is None else tuple(run.ledger.inbox.pending)

    def request(
        self, input: Input | None, options: Mapping[str, Any]
    ) -> tuple[RunRequest, tuple[Message, ...] | None]:
        """What is asked of a run, refused at once if it cannot start one; without prompts it continues."""
        config = self._state.config
        if config.output is not None and options.get("output") is None:
            options = {**options, "output": config.output}
        request = run_request(config, self._state.context.tools, **options)
        if self.is_running:
            raise AlreadyRunning
        if request.approvals is not None:
            check_approvals(request.approvals, input, pending_of(self.open))
        if input is not None:
            return request, prompts_of(input, () if type(input) is str else self.messages)
        if not self._state.queues and self._state.open is None:
            check_continue(self.messages)
        return request, None

    def begin(self, request: RunRequest, prompts: tuple[Message, ...] | None, buffer: Buffer) -> Run:
        """Start a run of these prompts; without them it goes on with the conversation as it is."""
        state, session = self._state, self._state.session
        if not self._turnstile.enter():
            raise AlreadyRunning
        try:
            setup, policies = self._setup(request)
            if setup.deps is None:
                check_no_deps(state.config.deps_type, state.context)
            state.config.check_key(*setup.routes[0])
            left = state.open if prompts is None else None
            self._buffer = buffer
            ledger = Ledger(state.config, state.history, buffer.push, policies, left)
            self.active = run = Run(
                setup,
                ledger,
                self._release,
                record=None if session is None else session.record,
                overflow=state.overflow,
                approvals=request.approvals,
            )
            first = self._continuation() if prompts is None else prompts
            if prompts is not None and state.open is not None:
                first = (*state.open.settled(), *prompts)
            run.start(first, take_turns(run), request.deadline, None if session is None else session.id)
        except BaseException:
            self.active = self._buffer = None
            self._turnstile.leave()
            raise
        return run

    def _setup(self, request: RunRequest) -> tuple[TurnSetup, list[Any]]:
        """What the turns work with, and the policies; a run with `output=` has a tool and one more policy."""
        config, context = self._state.config, self._state.context
        policies: list[Any] = [*config.policies, *request.policies]
        if (structured := request.structured) is None:
            return TurnSetup(config, context, deps=request.deps), policies
        # Forced at once, an answer would come before any tool is used.
        hosted = hosted_for(config.hosted, config.spec)
        is_forced = not context.tools and not hosted and config.spec.thinking_level == "off"
        tool = structured.tool
        choice = tool.name if is_forced else None
        setup = TurnSetup(config, context, tools=(tool,), deps=request.deps, tool_choice=choice)
        return setup, [*policies, structured]

    def _continuation(self) -> Sequence[Message]:
        """What a run without input starts with: follow-ups, if the conversation has its answer already."""
        if self._state.open is not None:
            return ()
        try:
            check_continue(self.messages)
        except MisuseError:
            if self._state.queues.steering:
                return ()
            follow_ups = self._state.queues.follow_up()
            if not follow_ups:
                raise
            return follow_ups
        return ()

    def _release(self, run: Run) -> None:
        """The run is over: keep what it came to, let the next one in, and wake the reader."""
        state = self._state
        state.history, state.open = run.ledger.history, run.ledger.open
        error = None if run.ending is None else run.ending.error
        state.overflow = isinstance(error, ContextWindowOverflow)
        state.error = None if error is None else run.error_text
        self.active = None
        buffer, self._buffer = self._buffer, None
        if state.session is not None:
            state.session.release()
        self._turnstile.leave()
        if buffer is not None:
            buffer.wake()

    def queue(self, queue: MessageQueue, message: Input) -> None:
        """Let a message wait; what a policy queues while it is asked counts as its own."""
        messages = as_messages(message)
        if not all(isinstance(item, UserMessage | CustomMessage) for item in messages):
            raise MisuseError("only user and custom messages can be queued")
        if (run := self.active) is not None and asking.get():
            inbox = run.ledger.inbox
            inbox.injected = (*inbox.injected, *messages)
        queue.extend(messages)
        self.save_soon()

    def unqueue(self, message: Message) -> bool:
        """Take back a message that waits; False if it waits no more."""
        queues = self._state.queues
        taken = queues.steering.drop(message) or queues.follow_up.drop(message)
        if taken:
            self.save_soon()
        return taken

    def replace_history(self, history: History) -> None:
        """Have another history: at once, or from the next turn on."""
        if (run := self.active) is not None:
            run.ledger.replace_history(history)
        else:
            self._state.replace_history(history)

    def append(self, messages: Sequence[Message]) -> None:
        """Add to the history: at once, or at the end of the turn."""
        state = self._state
        if (run := self.active) is not None:
            run.ledger.append(messages, by_policy=asking.get())
        else:
            # The history is sound by itself, so that only what is new has to be paired.
            for message in History(state.vetted(messages)).items:
                state.history.append(message)

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """Ids of the calls running now."""
        calls = run.ledger.turn.calls if (run := self.active) is not None else ()
        return frozenset(call.call.id for call in calls if call.task is not None and call.result is None)

    @property
    def streaming_message(self) -> AssistantMessage | None:
        """The reply as far as it has arrived, or None."""
        attempt = None if (run := self.active) is None else run.ledger.attempt
        assembly = None if attempt is None else attempt.assembly
        if attempt is None or assembly is None:
            return None
        return assembly.message(attempt.model, "stop", usage=Usage())

    def pause(self) -> None:
        """Let the run stop after the current turn."""
        if (run := self.active) is not None:
            run.pausing = True

    def abort(self) -> None:
        """End the current run, keeping what arrived, or a compaction; does nothing when idle."""
        run, compacting = self.active, self._compacting
        if run is not None and not self._freed():
            run.life.abort()
        if compacting is not None:
            with suppress(RuntimeError):  # the event loop is closed
                compacting.get_loop().call_soon_threadsafe(compacting.cancel)

    async def wait_for_idle(self) -> None:
        """Return once no run is active."""
        while self.is_running:
            await self._turnstile.wait()

    def refuse_unless_idle(self, what: str) -> None:
        """Refuse what cannot be done while a run is active."""
        if self.is_running:
            raise AlreadyRunning(f"{what}() needs an idle agent; await wait_for_idle() first")

    async def compact(self, subscribers: Subscribers) -> CompactionReport:
        """Run the context transformers now and keep only what they keep; a session is told at once."""
        self.refuse_unless_idle("compact")
        state, history = self._state, self._state.history
        before = history.snapshot()
        work = compacted(state.config, tuple(state.context.tools), before)
        task = self._compacting = asyncio.ensure_future(work)
        try:
            after, report = await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise Aborted("the compaction was aborted; nothing has changed") from None
        finally:
            self._compacting = None
        self.refuse_unless_idle("compact")
        if state.history is not history or len(history) != len(before):
            raise MisuseError("the history changed while it was being compacted; call compact() again")
        state.history = History(state.vetted(after))
        if state.session is not None:
            state.session.note_compaction(report)
        if report.dropped or report.pruned:
            subscribers.notify(ContextCompacted(report))
        await self.save()  # a summary was paid for
        return report

    async def save(self) -> None:
        """Have the session brought up to date while no run is active."""
        state = self._state
        if state.session is not None and self._turnstile.enter():
            try:
                await state.session.save(lambda: (state.history, state.open))
            finally:
                self._turnstile.leave()

    def save_soon(self) -> None:
        """Let what was queued during a run be saved; when idle, it goes with the next append."""
        if self._state.session is not None:
            self._state.session.save_soon()

    def _freed(self) -> bool:
        """Whether the active run's event loop was closed; then the run is ended and its history completed."""
        run = self.active
        if run is None or not run.life.loop.is_closed():
            return False
        run.end(End("aborted"))
        return True


class Paused:
    """A pause already asked for; awaiting it waits for the run to stop and gives the checkpoint."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        yield from self._agent.wait_for_idle().__await__()
        return self._agent.checkpoint()
