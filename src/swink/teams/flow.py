"""Flow: several agents in some order, sharing the `Agent` interface: `run`, `run_sync`, `stream`, `abort`.

Aborting a run aborts the members at work, so that each ends its own run in its own way; none starts then.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from swink.agent.agentresult import AgentResult
from swink.agent.engine.account import total_cost
from swink.agent.engine.runlifetime import Lifetime
from swink.agent.eventstream import Buffer, EventStream, Subscribers
from swink.errors import AlreadyRunning, MisuseError, SyncInAsyncContext
from swink.events import MessageUpdate
from swink.messages import AssistantMessage, Cost, Input, StopReason, Text, Usage
from swink.messages.checks import check_seconds
from swink.stream import Update, observer
from swink.system.aio import running_loop, start_task, started
from swink.system.threads import run_to_end
from swink.teams.member import Emit, Member, NestedEvent, check_members, inside, perform, start_over

Body = Callable[["Flow", Input, Emit], Awaitable[AgentResult]]
NestedStream = EventStream[None, NestedEvent]
"""A flow's run as a stream of `NestedEvent`s."""


class Flow:
    """Members and their order; made by `sequential`, `parallel` and `loop`, and may be a member itself.

    Args:
        members: agents, teams and flows by name
        body: lets them work
    """

    def __init__(self, members: Mapping[str, Member], body: Body) -> None:
        if not members:
            raise MisuseError("a pipeline needs at least one member")
        self.members = dict(members)
        self._body = body
        self._active: FlowRun | None = None

    async def run(self, input: Input, *, deadline: float | None = None) -> AgentResult:
        """Run on `input` to the end; the result has everybody's messages, usage and cost. `deadline` is in
        seconds.
        """
        return await self.perform(input, lambda event: None, deadline=deadline)

    def run_sync(self, input: Input, *, deadline: float | None = None) -> AgentResult:
        """`run`, with its `input` and `deadline`, for code without an event loop."""
        if running_loop() is not None:
            raise SyncInAsyncContext
        return run_to_end(self.run(input, deadline=deadline))

    def stream(self, input: Input, *, deadline: float | None = None) -> NestedStream:
        """A run on `input` as a stream of events, each with the path of the agent it comes from (`deadline`:
        seconds).
        """

        def begin(buffer: Buffer) -> FlowRun:
            return self._begin_run(input, buffer.push, deadline, buffer.wake)

        return EventStream(begin, Subscribers(), FlowRun.outcome, delta_of=_delta_of)

    async def perform(self, input: Input, emit: Emit, *, deadline: float | None = None) -> AgentResult:
        """Run on `input` to the end, or to the `deadline` in seconds, telling every event to `emit`."""
        run = self._begin_run(input, emit, deadline, lambda: None)
        await run.life.wait()
        return run.outcome()

    def abort(self) -> None:
        """End the current run, keeping what arrived; does nothing when idle. Safe from any thread."""
        if (active := self._active) is not None:
            active.life.abort()

    @property
    def is_running(self) -> bool:
        """Whether a run is active; one whose event loop was closed is not."""
        return self._active is not None and not self._active.life.loop.is_closed()

    def start_over(self) -> "Flow":
        """Another one of the same kind, of members as they were made."""
        return Flow({name: start_over(member) for name, member in self.members.items()}, self._body)

    async def step(self, name: str, input: Input | None, emit: Emit) -> AgentResult:
        """Let the member `name` work on `input`, telling `emit` its events, unless the run was aborted."""
        active = self._active
        assert active is not None
        if (why := active.life.aborted) is not None:
            return AgentResult((), "aborted", cost=Cost(), error=why, error_kind="aborted", reason=why)
        member = self.members[name]
        active.working.append(member)
        observer.agent_name.set(name)
        try:
            return await perform(member, input, lambda event: emit(inside(name, event)))
        finally:
            observer.agent_name.set(None)
            active.working.remove(member)

    def _begin_run(
        self, input: Input, emit: Emit, deadline: float | None, over: Callable[[], None]
    ) -> "FlowRun":
        if deadline is not None:
            check_seconds("deadline", deadline)
        if self.is_running:
            raise AlreadyRunning
        self._active = run = FlowRun()

        def finished() -> None:
            if self._active is run:
                self._active = None
            over()

        run.start(lambda: self._body(self, input, emit), finished, deadline)
        return run


class FlowRun:
    """One run of a flow, in a task of its own."""

    def __init__(self) -> None:
        self.life = Lifetime(self._interrupt)
        self.working: list[Member] = []
        self._result = AgentResult(())

    def start(
        self, body: Callable[[], Awaitable[AgentResult]], over: Callable[[], None], deadline: float | None
    ) -> None:
        """Begin; `over` is called at the end, whatever it is."""
        start_task(self.life.loop, self._drive(body, over))
        self.life.limit(deadline)

    def outcome(self) -> AgentResult:
        """What the run came to; an exception of a member's hook is raised."""
        if self.life.failure is not None:
            raise self.life.failure
        return self._result

    async def _drive(self, body: Callable[[], Awaitable[AgentResult]], over: Callable[[], None]) -> None:
        try:
            await started()
            self._result = result = await body()
            why = self.life.aborted
            if why is not None and result.stop_reason in ("aborted", "error"):
                aborted = failed([result], why, stop_reason="aborted", kind="aborted")
                self._result = replace(aborted, reason=why)
        except Exception as error:
            # A hook of a member is the user's code; the caller that awaits the run gets what it raised.
            self.life.failure = error
        except BaseException as error:
            self.life.failure = error
            raise
        finally:
            self.life.finish()
            over()

    def _interrupt(self) -> None:
        """An abort: abort the members at work; none starts any more."""
        for member in self.working:
            member.abort()


def named(members: Sequence[Member | Mapping[str, Member]]) -> dict[str, Member]:
    """Members by name: the names of a mapping, the position of what stands alone."""
    by_name: dict[str, Member] = {}
    for item in members:
        for name, member in item.items() if isinstance(item, Mapping) else [(str(len(by_name) + 1), item)]:
            if name in by_name:
                raise MisuseError(f"two members are named {name!r}")
            by_name[name] = member
    check_members(by_name)
    return by_name


def _delta_of(nested: NestedEvent) -> Update | None:
    return nested.event.delta if isinstance(nested.event, MessageUpdate) else None


def summed(results: Iterable[AgentResult], **fields: Any) -> AgentResult:
    """One result for many: the last one's outcome, all messages, usage and cost, and the given fields."""
    every = list(results)
    last = every[-1] if every else AgentResult(())
    messages = tuple(message for result in every for message in result.messages)
    usage = sum((result.usage for result in every), Usage())
    cost = total_cost(result.cost for result in every)
    whole = replace(last, messages=messages, usage=usage, cost=cost)
    return replace(whole, **fields)


def failed(
    results: Sequence[AgentResult], error: str, *, stop_reason: StopReason = "error", kind: str = "misuse"
) -> AgentResult:
    """The results so far, ended by a failure that none of them is to blame for."""
    return summed(results, stop_reason=stop_reason, error=error, error_kind=kind, reason=None)


def blamed(name: str, result: AgentResult) -> AgentResult:
    """The result with its failure or early end put down to a member."""
    error = None if result.error is None else f"{name}: {result.error}"
    return replace(result, error=error, reason=None if result.reason is None else f"{name}: {result.reason}")


def closing(text: str) -> AgentResult:
    """A result that only says something, so that it becomes the text of a sum."""
    return AgentResult((AssistantMessage((Text(text),)),), cost=Cost())
