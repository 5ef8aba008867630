"""How an agent is run, by itself or as a stream of events: outputs have the type that was asked for."""

from __future__ import annotations  # help(Agent) shows the names of types

from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, Unpack, overload

from typing_extensions import TypeForm, TypeVar

from swink.agent.agentoptions import DepsT, OutputT, RunOptions
from swink.agent.agentresult import AgentResult
from swink.agent.config import AgentLoopConfig
from swink.agent.eventstream import Buffer, EventStream, Subscribers
from swink.agent.policy import Approve
from swink.agent.running import Running
from swink.errors import AgentError, SyncInAsyncContext, forget_frames, plainly
from swink.messages import Input
from swink.system.aio import running_loop
from swink.system.shorten import clip
from swink.system.threads import run_to_end

T = TypeVar("T", default=None)
D = TypeVar("D")
Schema = Mapping[str, Any]


class TypedAgent(Generic[DepsT, OutputT]):
    """An agent as far as it is run: a result has the type that was asked for."""

    # Without a dict: an assignment that would change nothing (agent.policies = …) is an AttributeError.
    __slots__ = ("__weakref__", "_config", "_running", "_subscribers")
    _config: AgentLoopConfig
    _running: Running
    _subscribers: Subscribers

    @property
    def name(self) -> str | None:
        """What people call the agent: in logs, spans and the events of teams."""
        return self._config.name

    @property
    def deps(self) -> Any:
        """What tools, prompt and policies are given, unless a run has its own."""
        return self._config.deps

    @property
    def output_type(self) -> Any:
        """The type of every run's output, or its JSON Schema; None if the agent answers in text."""
        return self._config.output

    @property
    def approve(self) -> Approve | None:
        """What is asked about calls that need approval; assign to change it."""
        return self._config.approve

    @approve.setter
    def approve(self, approve: Approve | None) -> None:
        self._config.approve = approve

    def __repr__(self) -> str:
        name = "" if self.name is None else f", name={clip(repr(self.name), 30)}"
        model, count = clip(repr(str(self._config.spec)), 50), len(self._running.messages)
        return f"<Agent {model}{name}, {count} message{'' if count == 1 else 's'}>"

    @overload
    async def run(
        self, input: Input | None = None, *, output: TypeForm[T], **options: Unpack[RunOptions[T, DepsT]]
    ) -> AgentResult[T]: ...
    @overload
    async def run(
        self, input: Input | None = None, *, output: Schema, **options: Unpack[RunOptions[Any, DepsT]]
    ) -> AgentResult[Any]: ...
    @overload
    async def run(
        self,
        input: Input | None = None,
        *,
        output: None = None,
        **options: Unpack[RunOptions[OutputT, DepsT]],
    ) -> AgentResult[OutputT]: ...
    async def run(self, input: Input | None = None, **options: Any) -> AgentResult[Any]:
        """Run to the end and return an `AgentResult`; without input, continue from the history.

        Args:
            input: a text, a message, or a list with images and documents
            output: the type of the answer, or its JSON Schema; the result's `output` is a value of it
            validate: a function of that value; it may change it, or raise `ToolError` to have it tried again
            max_output_retries: how often the model may try again
            deadline: seconds after which the run ends
            deps: what tools, prompt and policies of this run may use
            policies: more policies, for this run
            approvals: answers to the calls in `pending`, by their ids; the run goes on with them
        """
        try:
            request, prompts = self._running.request(input, options)
            run = self._running.begin(request, prompts, Buffer(self._subscribers, closed=True))
        except AgentError as error:
            forget_frames(error)
            raise
        await run.life.wait()
        if run.life.failure is not None:
            raise run.life.failure
        return request.result(run)

    @overload
    def run_sync(
        self, input: Input | None = None, *, output: TypeForm[T], **options: Unpack[RunOptions[T, DepsT]]
    ) -> AgentResult[T]: ...
    @overload
    def run_sync(
        self, input: Input | None = None, *, output: Schema, **options: Unpack[RunOptions[Any, DepsT]]
    ) -> AgentResult[Any]: ...
    @overload
    def run_sync(
        self,
        input: Input | None = None,
        *,
        output: None = None,
        **options: Unpack[RunOptions[OutputT, DepsT]],
    ) -> AgentResult[OutputT]: ...
    @plainly
    def run_sync(self, input: Input | None = None, **options: Any) -> AgentResult[Any]:
        """`run` for code without an event loop.

        >>> agent = Agent("anthropic:claude-sonnet-4-6")
        >>> print(agent.run_sync("A haiku, please.").text)
        """
        if running_loop() is not None:
            raise SyncInAsyncContext
        return run_to_end(self.run(input, **options))

    @overload
    def stream(
        self, input: Input | None = None, *, output: TypeForm[T], **options: Unpack[RunOptions[T, DepsT]]
    ) -> EventStream[T]: ...
    @overload
    def stream(
        self, input: Input | None = None, *, output: Schema, **options: Unpack[RunOptions[Any, DepsT]]
    ) -> EventStream[Any]: ...
    @overload
    def stream(
        self,
        input: Input | None = None,
        *,
        output: None = None,
        **options: Unpack[RunOptions[OutputT, DepsT]],
    ) -> EventStream[OutputT]: ...
    @plainly
    def stream(self, input: Input | None = None, **options: Any) -> EventStream[Any]:
        """A run as a stream of events; it takes what `run` takes. `run.text()` gives the text alone.

        >>> async with Agent("anthropic:claude-sonnet-4-6").stream("A haiku, please.") as run:
        ...     async for event in run:
        ...         print(event)
        >>> print((await run.result()).cost)
        """
        request, prompts = self._running.request(input, options)
        begin = partial(self._running.begin, request, prompts)
        growing = None if request.structured is None else request.structured.grow
        return EventStream(begin, self._subscribers, request.result, growing=growing)
