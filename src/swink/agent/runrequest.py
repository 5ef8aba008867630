"""What one run is asked to do, refused at once if no run could do it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from swink.agent.agentoptions import KEYWORDS
from swink.agent.agentresult import AgentResult
from swink.agent.config import AgentLoopConfig, check_policies
from swink.agent.engine.run import Run
from swink.agent.policy import Answer, Approved, Policy, Rejected
from swink.agent.structured import StructuredOutput, check_capable, check_retries
from swink.errors import BrokenHistory, InvalidContinue, InvalidInput, MisuseError, NoMessages
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Input,
    Message,
    Text,
    UserMessage,
    as_messages,
)
from swink.messages.checks import check_seconds
from swink.messages.history import violations
from swink.messages.records import PendingApproval
from swink.tools import Tool

_OPTIONS = "output, validate, max_output_retries, deadline, deps, policies and approvals"


class RunRequest(Struct, frozen=True):
    """What one run is asked to do, besides its prompts."""

    structured: StructuredOutput | None
    deadline: float | None
    deps: Any
    policies: Sequence[Policy]
    """Those of this run alone."""
    approvals: Mapping[str, Answer] | None

    def result(self, run: Run) -> AgentResult[Any]:
        """What the run came to, with its output if one was asked for."""
        return run.result() if self.structured is None else self.structured.complete(run.result())


def run_request(
    config: AgentLoopConfig,
    tools: Sequence[Any],
    /,
    *,
    output: Any = None,
    validate: Any = None,
    max_output_retries: int = 3,
    deadline: float | None = None,
    deps: Any = None,
    policies: Sequence[Policy] = (),
    approvals: Mapping[str, Answer] | None = None,
    **unknown: Any,
) -> RunRequest:
    """The options of a run as an order; a policy that the agent has anyway is asked once."""
    for name in unknown:
        hint = f"give it to the agent: Agent({name}=…)" if name in KEYWORDS else f"it has {_OPTIONS}"
        raise InvalidInput(f"a run has no option {name!r}; {hint}")
    if deadline is not None:
        check_seconds("deadline", deadline)
    check_retries(max_output_retries)
    if validate is not None and output is None:
        raise InvalidInput("validate= checks the output; say of which type with output=")
    added: Sequence[Policy] = ()
    if policies != ():
        check_policies(policies)
        added = [policy for policy in policies if not any(policy is own for own in config.policies)]
    structured = StructuredOutput(output, max_output_retries, validate) if output is not None else None
    if structured is not None:
        check_capable(config.spec)
        if any(isinstance(tool, Tool) and tool.name == structured.tool.name for tool in tools):
            raise MisuseError(
                f"output= needs the tool name {structured.tool.name!r} for itself; rename your tool"
            )
    return RunRequest(structured, deadline, deps, added, approvals)


def prompts_of(input: Input, messages: Sequence[Message]) -> tuple[Message, ...]:
    """What a run says first, refused if it does not fit the messages before it."""
    if type(input) is str and input and not input.isspace():
        return (UserMessage((Text(input),)),)
    prompts = as_messages(input)
    if not any(
        isinstance(item, CustomMessage)
        or any(not isinstance(block, Text) or block.text.strip() for block in item.content)
        for item in prompts
    ):
        hint = "give some text, an image or a message, or call run() without input to continue"
        raise NoMessages(f"the input is empty or only white space; {hint}")
    if not all(isinstance(item, UserMessage | CustomMessage) for item in prompts):
        broken = violations([*messages, *prompts])
        if broken:
            raise BrokenHistory("the input does not fit the history: " + "; ".join(broken))
    return prompts


def check_continue(messages: Sequence[Message]) -> None:
    """Raise if there is nothing to answer."""
    if not messages:
        raise NoMessages
    last = messages[-1]
    if isinstance(last, AssistantMessage) and not last.failed and not last.tool_calls:
        raise InvalidContinue


def check_approvals(
    approvals: Mapping[str, Answer], input: Input | None, pending: Sequence[PendingApproval]
) -> None:
    """Refuse answers to what nobody asked."""
    if not isinstance(approvals, Mapping):
        raise InvalidInput(f"approvals is a dict of answers by call id, not {type(approvals).__name__}")
    if input is not None:
        raise InvalidInput("a new prompt rejects what is pending: give approvals= without an input")
    asked = {one.call_id: one for one in pending}
    for id, answer in approvals.items():
        if id not in asked:
            waiting = ", ".join(f"{id!r} ({one.name})" for id, one in asked.items()) or "none"
            raise InvalidInput(f"no call {id!r} waits for approval; pending: {waiting}")
        if not isinstance(answer, bool | Approved | Rejected):
            kind = type(answer).__name__
            raise InvalidInput(f"the answer for {id!r} is True, False, Approved or Rejected, not {kind}")
