"""The agent of one run: made by the application's factory, bound to the conversation and to its clients."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import Struct

from swink.agent.agent import Agent
from swink.agent.policy import Answer, Inject, Policy, PolicyContext, TurnVerdict
from swink.errors import (
    AgentError,
    InvalidContinue,
    InvalidInput,
    MisuseError,
    NoMessages,
    SessionBusy,
    SessionConflict,
    SessionError,
    SessionNotFound,
)
from swink.messages import Input, Message, ToolResult, as_messages
from swink.messages.redact import describe_error, describe_traceback
from swink.serve.hosting.approvals import Approvals
from swink.serve.hosting.clienttools import ClientTool, tools_of
from swink.serve.hosting.recording import RecordingSession
from swink.serve.hosting.terms import AgentRequest, Factory
from swink.serve.wire import Refused
from swink.stream import StreamOptions
from swink.tools import Tool
from swink.tools.definition import call_off_loop

log = logging.getLogger("swink.serve")

_NOT_MADE = "the agent of this conversation could not be made; the server's log says why"
WhenBusy = Literal["queue", "refuse"]


class RunStart(Struct, frozen=True, kw_only=True):
    """What one run is asked to do."""

    input: Input | None = None
    approvals: Mapping[str, Answer] = {}
    client_tools: Sequence[ClientTool] = ()
    tool_results: Mapping[str, ToolResult] = {}
    output: Any = None
    state: Mapping[str, Any] | None = None
    instructions: str | None = None
    """What is added to the agent's system prompt."""
    options: Mapping[str, Any] = {}
    """Changes of the agent's `StreamOptions`, such as `temperature`."""
    policies: Sequence[Policy] = ()
    unanswered: Answer | None = None
    """The answer to calls that a client would have to approve, where it cannot be asked."""

    def run_options(self) -> tuple[Input | None, dict[str, Any]]:
        """The input and the options of `agent.stream`; a prompt beside answers follows what they let run."""
        answers = {**self.approvals, **dict.fromkeys(self.tool_results, True)}
        options: dict[str, Any] = {} if self.output is None else {"output": self.output}
        policies = [*self.policies]
        given = self.input
        if answers:
            options["approvals"] = answers
            if given is not None:
                policies.append(_Prompt(as_messages(given)))
                given = None
        if policies:
            options["policies"] = policies
        return given, options


class _Prompt(Policy):
    """Lets a prompt enter before the first turn that asks the model."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages: Sequence[Message] | None = messages

    def pre_turn(self, ctx: PolicyContext) -> TurnVerdict:
        messages, self._messages = self._messages, None
        return None if messages is None else Inject(messages)


async def make_agent(factory: Factory, request: AgentRequest) -> Agent[Any, Any]:
    """What the factory makes; a bug of it is told to the log, and to the client only that there is one."""
    try:
        made = await call_off_loop(factory, request, name="factory")
    except Refused:
        raise
    except Exception as error:
        # The factory is the application's code.
        log.error("the factory of agents failed: %s\n%s", describe_error(error), describe_traceback(error))
        raise Refused(500, _NOT_MADE) from None
    if not isinstance(made, Agent):
        log.error("the factory of agents returned %s instead of an Agent", type(made).__name__)
        raise Refused(500, _NOT_MADE)
    return cast("Agent[Any, Any]", made)


def bind(
    made: Agent[Any, Any],
    start: RunStart,
    approval_seconds: float,
    *,
    session: RecordingSession | None = None,
    messages: Sequence[Message] = (),
) -> tuple[Agent[Any, Any], Approvals]:
    """A copy of the agent with the conversation's history, and what answers its questions."""
    own = {tool.name for tool in made.tools if isinstance(tool, Tool)}
    names = {tool.name for tool in start.client_tools}
    if clash := own & names:
        text = f"the agent has a tool {min(clash)!r} of its own; give the client's tool another name"
        raise Refused(400, text)
    config = made._config  # pyright: ignore[reportPrivateUsage]
    approvals = Approvals(config.approve, config.approval_mode, names, approval_seconds, start.unanswered)
    changes: dict[str, Any] = {
        "messages": messages,
        "approve": approvals.ask,
        "approval_mode": approvals.mode,
        "tools": [*made.tools, *tools_of(start.client_tools, start.tool_results)],
        "state": {**made.state, **({} if session is None else session.state), **(start.state or {})},
    }
    if session is not None:
        changes["session"] = session
    if start.options:
        changes["options"] = _options(config.options, start.options)
    if start.instructions:
        changes["system_prompt"] = _with_instructions(made.system_prompt, start.instructions)
    return made.copy(**changes), approvals


def refusal_of(error: AgentError) -> Refused:
    """What a client is told that asked for a run which cannot be."""
    if isinstance(error, InvalidInput | NoMessages | InvalidContinue):
        return Refused(400, str(error))
    log.error("a run could not begin: %s", error)
    if isinstance(error, MisuseError):
        return Refused(409, "the conversation cannot go on like this; the server's log says why")
    return Refused(503, "the run could not begin; the server's log says why")


def refusal_of_store(error: SessionError) -> Refused:
    """What a client is told when the store refuses."""
    if isinstance(error, SessionNotFound):
        return Refused(404, "there is no such conversation")
    if isinstance(error, SessionConflict | SessionBusy):
        return Refused(409, "the conversation was continued elsewhere; read its messages and ask again")
    log.error("the store failed: %s", error)
    return Refused(503, "the conversation cannot be stored now; nothing was lost, try again later")


def _options(options: StreamOptions, changes: Mapping[str, Any]) -> StreamOptions:
    values = {name: getattr(options, name) for name in options.__struct_fields__}
    try:
        return StreamOptions(**{**values, **changes})
    except (InvalidInput, TypeError) as error:
        raise Refused(400, str(error)) from None


def _with_instructions(prompt: Any, instructions: str) -> Any:
    if not callable(prompt):
        return f"{prompt}\n\n{instructions}" if prompt else instructions

    async def written(context: Any) -> str:
        return f"{await call_off_loop(prompt, context, name='system_prompt')}\n\n{instructions}"

    return written
