"""The observer: what is told of runs, turns, requests to models and tool calls as they begin and end.

    run ( turn ( request* tool call ( run … )* ) | request )*

As a rule there is none, and the engine pays one look at `current` wherever it would tell it something. What
has begun ends exactly once for the observer, in every outcome; a second `end` does nothing. An observer
never raises.
"""

from collections.abc import Mapping, Sequence
from contextvars import Context, ContextVar
from typing import Any, Protocol

from swink.errors import AgentError
from swink.messages import Cost, Message, ModelSpec, StopReason, ToolCall, ToolResult, TurnEndReason, Usage
from swink.stream import Assembly, BlockWriter, LlmContext, StreamOptions


class ObservedRun(Protocol):
    """A run that has begun, until its end is told."""

    @property
    def context(self) -> Context | None:
        """The context variables in which its task runs, if not in a copy of the caller's."""
        ...

    def end(
        self,
        stop_reason: StopReason,
        error: AgentError | None,
        usage: Usage,
        cost: Cost | None,
        messages: Sequence[Message],
    ) -> None:
        """It has ended, and this came of it."""
        ...


class ObservedTurn(Protocol):
    """A turn under way; what the run's task does is inside it."""

    def end(self, reason: TurnEndReason) -> None:
        """It has ended for this reason."""
        ...


class ObservedRequest(Protocol):
    """A request to a model under way; what the task that made it does is inside it."""

    @property
    def options(self) -> StreamOptions:
        """The options to send it with."""
        ...

    def end(self, assembly: Assembly, error: AgentError | None, usage: Usage, cost: Cost | None) -> None:
        """It has ended; with neither an error nor a terminal event it was cut off."""
        ...


class ObservedCall(Protocol):
    """A tool call under way."""

    @property
    def context(self) -> Context | None:
        """The context variables in which its task runs, if not in a copy of the caller's."""
        ...

    def failed(self, error: BaseException) -> None:
        """The tool raised this; its end is told next."""
        ...

    def end(self, result: ToolResult, why: str) -> None:
        """It is settled; `why` says who ended it, if anybody did."""
        ...


class Observer(Protocol):
    """What is told. What begins does so inside of what is current in the caller's context variables."""

    def run(self, model: ModelSpec, session_id: str | None, prompts: Sequence[Message]) -> ObservedRun:
        """A run begins, with these prompts."""
        ...

    def turn(self, number: int) -> ObservedTurn:
        """A turn of a run begins."""
        ...

    def request(self, model: ModelSpec, context: LlmContext, options: StreamOptions) -> ObservedRequest:
        """A model is asked, by a run or by a context transformer."""
        ...

    def call(self, call: ToolCall, arguments: Mapping[str, Any], description: str) -> ObservedCall:
        """A tool begins to run."""
        ...

    def exchange(self, url: str, reply: BlockWriter) -> None:
        """The request under way is sent to this address; the writer will know what came back."""
        ...

    def remote(self, server: str, tool: str, url: str | None) -> None:
        """The call under way is one of an MCP server's tool; without an address the server is a process."""
        ...


current: Observer | None = None
"""The observer of this process."""

agent_name: ContextVar[str | None] = ContextVar("swink.agent_name", default=None)
"""What the agent that runs next in this context is called by the code that starts it."""


def observe(observer: Observer | None) -> None:
    """Tell this observer of all that begins from now on, or nobody."""
    global current
    current = observer
