"""What an agent and its runs may be given, as type checkers see it: dependencies and outputs have types.

A tool, a prompt or a policy that wants other dependencies than the agent has is a mistake they find.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Generic, Protocol, TypedDict, get_origin, get_type_hints

from msgspec import UnsetType
from typing_extensions import TypeVar

from swink.agent.config import (
    AgentContext,
    ApprovalMode,
    Model,
    PlainSession,
    PromptContext,
    QueueMode,
    SystemPrompt,
    ToolExecution,
    Validate,
)
from swink.agent.context.compaction import Transform
from swink.agent.policy import Answer, Approve, Policy
from swink.agent.retry import RetryStrategy
from swink.errors import InvalidInput, MisuseError
from swink.messages import LlmMessage, Message, ThinkingLevel
from swink.messages.providertools import Hosted
from swink.stream import StreamFn, StreamOptions, ToolSpec
from swink.tools import Tool, ToolContext, ToolSource, WantsT
from swink.tools.schema.signature import wanted

DepsT = TypeVar("DepsT", default=None, contravariant=True)
OutputT = TypeVar("OutputT", default=None)
T = TypeVar("T", default=Any)
D = TypeVar("D", default=Any)


class PlainFunction(Protocol):
    """A function or a method; a `Tool` is none, so that its dependencies are checked."""

    @property
    def __code__(self) -> Any:
        """Its code, which a `Tool` has not."""
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        ...


class ToolLike(ToolSpec, Protocol[WantsT]):
    """An object shaped like a tool."""

    def execute(self, call_id: str, arguments: Any, ctx: ToolContext[WantsT], /) -> Any:
        """Run the tool."""
        ...


def check_no_deps(deps_type: Any, context: AgentContext) -> None:
    """Refuse a run without dependencies if the agent, a tool or the prompt wants some."""
    hint = "pass deps= to Agent(…) or to the run"
    if deps_type is not None and deps_type is not NoneType:
        name = getattr(deps_type, "__name__", None) or str(deps_type)
        raise MisuseError(
            f"the agent was made with deps_type={name}, and this run has no dependencies; {hint}"
        )
    for tool in context.tools:
        if type(tool) is Tool and tool.signature is not None and (wants := tool.signature.wants) is not None:
            taken = f"ToolContext[{wants}]"
            raise MisuseError(f"tool {tool.name!r} takes a {taken}, and this run has no dependencies; {hint}")
    if type(context.system_prompt) is not str and (wants := _wanted_by(context.system_prompt)) is not None:
        taken = f"PromptContext[{wants}]"
        raise MisuseError(f"the system prompt takes a {taken}, and this run has no dependencies; {hint}")


def _wanted_by(prompt: Any) -> str | None:
    """The dependencies that the function of a prompt says it wants."""
    try:
        hints = get_type_hints(prompt)
    except (NameError, AttributeError, SyntaxError, TypeError):
        return None
    return next((wanted(hint) for hint in hints.values() if get_origin(hint) is PromptContext), None)


class AgentOptions(TypedDict, Generic[D], total=False):
    """The keywords of `Agent(…)` besides the dependencies and the output."""

    name: str | None
    thinking_level: ThinkingLevel | None
    system_prompt: SystemPrompt[D] | UnsetType
    tools: Sequence[Tool[D] | PlainFunction | ToolSource | ToolLike[D]] | ToolSource
    messages: Sequence[Message]
    stream_fn: StreamFn | None
    options: StreamOptions
    retry: RetryStrategy
    fallback_models: Sequence[Model | tuple[Model, StreamFn]]
    policies: Sequence[Policy[D]]
    approve: Approve | None
    approval_mode: ApprovalMode
    transform_context: Transform | None
    convert_to_llm: Callable[[Message], LlmMessage | None] | None
    get_api_key: Callable[[str], str | Awaitable[str | None] | None] | None
    steering_mode: QueueMode
    follow_up_mode: QueueMode
    tool_execution: ToolExecution
    tool_timeout: float | None
    hosted: Hosted
    session: PlainSession | None
    state: dict[str, Any] | None


KEYWORDS = ("model", *AgentOptions.__annotations__, "deps", "deps_type", "output")
"""The keywords of `Agent(…)`."""
_OTHER_WORDS = {
    **dict.fromkeys(("instruction", "instructions", "prompt", "system", "system_message"), "system_prompt="),
    **dict.fromkeys(("llm", "model_id", "model_name"), "model="),
    **dict.fromkeys(("function", "functions", "tool", "toolset", "toolsets"), "tools="),
    **dict.fromkeys(("output_type", "response_format", "response_model", "result_type", "schema"), "output="),
    **dict.fromkeys(("chat_history", "history", "message_history"), "messages="),
    **dict.fromkeys(("memory", "session_id", "store"), "session=await store.create()"),
    **dict.fromkeys(("context", "dependencies"), "deps="),
    **dict.fromkeys(("effort", "reasoning", "reasoning_effort", "thinking"), "thinking_level="),
    **dict.fromkeys(("callbacks", "guardrails", "hooks", "middleware"), "policies="),
    **dict.fromkeys(("max_iterations", "max_steps", "max_turns"), "policies=[MaxTurns(…)]"),
    **dict.fromkeys(("budget", "max_cost"), "policies=[Budget(…)]"),
    **dict.fromkeys(("max_retries", "retries"), "retry=ExponentialBackoff(max_attempts=…)"),
    **dict.fromkeys(("base_url", "client", "provider"), "stream_fn=, e.g. OpenAIStreamFn(base_url=…)"),
    **dict.fromkeys(("mcp", "mcp_servers"), "tools=servers.tools of an McpServers"),
    **{name: f"options=StreamOptions({name}=…)" for name in StreamOptions.__struct_fields__},
}
"""What other libraries call a keyword, and what it is here."""


def check_keywords(unknown: Mapping[str, Any]) -> None:
    """Refuse what is no keyword of an agent, with the one that is meant."""
    for name in unknown:
        if (near := _OTHER_WORDS.get(name)) is None:
            from difflib import get_close_matches  # only this message needs it

            near = next((f"{found}=" for found in get_close_matches(name, KEYWORDS, 1)), None)
        hint = f"write {near}" if near else f"it has {', '.join(KEYWORDS)}"
        raise InvalidInput(f"an agent has no keyword {name!r}; {hint}")


class RunOptions(TypedDict, Generic[T, D], total=False):
    """What one run may be given besides its input and the type of its output."""

    validate: Validate[T] | None
    max_output_retries: int
    deadline: float | None
    deps: D | None
    policies: Sequence[Policy[D]]
    approvals: Mapping[str, Answer] | None
