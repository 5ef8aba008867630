"""Configuration of the loop, the context it works on, and the result it gives."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from swink.context import SlidingWindow, TransformFn
from swink.events import final_text
from swink.hosts import origin_of
from swink.messages import Cost, LlmMessage, Message, ModelSpec, Price, StopReason, ToolCall, Usage
from swink.policy import Policy
from swink.retry import ExponentialBackoff, RetryStrategy
from swink.stream import StreamFn, StreamOptions
from swink.tool import Tool

ApprovalMode = Literal["enabled", "smart", "bypassed"]
Partition = Callable[[Sequence[ToolCall]], Sequence[Sequence[int]]]
ToolExecution = Literal["concurrent", "sequential", "priority"] | Partition
Poll = Callable[[], Sequence[Message] | Awaitable[Sequence[Message]]]


class KeyOwner(Struct, frozen=True):
    """Whom an API key was given for: a provider, at the address that its stream function names."""

    provider: str
    origin: str | None = None

    @classmethod
    def of(cls, model: ModelSpec, stream_fn: StreamFn) -> "KeyOwner":
        """Who gets the key when this model is asked through this stream function."""
        return cls(
            _SAME_ACCOUNT.get(model.provider, model.provider), origin_of(getattr(stream_fn, "base_url", None))
        )

    def is_also(self, other: "KeyOwner") -> bool:
        """Whether a key given for one may be sent to the other; an address that is not known does not tell them apart."""
        return self.provider == other.provider and (
            self.origin == other.origin or None in (self.origin, other.origin)
        )


_SAME_ACCOUNT = {"openai-responses": "openai"}


class AgentContext(Struct):
    """What a conversation consists of. A running loop reads it at every turn, so a change takes effect at the next."""

    system_prompt: str = ""
    messages: Sequence[Message] = ()
    tools: Sequence[Tool] = ()


class AgentLoopConfig(Struct, kw_only=True):
    """How the loop works. A running loop reads it at every turn, so a change takes effect at the next."""

    model: ModelSpec
    stream_fn: StreamFn
    options: StreamOptions = StreamOptions()
    retry: RetryStrategy = ExponentialBackoff()
    fallbacks: Sequence[tuple[ModelSpec, StreamFn]] = ()
    policies: Sequence[Policy] = ()
    approve: Callable[[Any], Any] | None = None
    approval_mode: ApprovalMode = "smart"
    transform_context: TransformFn | Sequence[TransformFn] = field(default_factory=SlidingWindow)
    convert_to_llm: Callable[[Message], LlmMessage | None] | None = None
    """Per message, None to leave it out; without one, custom messages are left out."""
    get_api_key: Callable[[str], str | Awaitable[str | None] | None] | None = None
    get_steering: Poll | None = None
    get_follow_up: Poll | None = None
    peek_steering: Callable[[], bool] | None = None
    """Whether steering waits, without taking it; without a peek, steering is polled and held until it is delivered."""
    tool_execution: ToolExecution = "concurrent"
    tool_timeout: float | None = None
    price: Callable[[ModelSpec], Price | None] | None = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    save: Callable[[Sequence[Message]], Awaitable[None]] | None = None
    """Called with each turn's messages once they are final."""
    key_owner: KeyOwner | None = None
    """Whom `options.api_key` was given for, and nobody else gets it: the model and stream function that the config is made with."""

    def __post_init__(self) -> None:
        if self.key_owner is None:
            self.key_owner = KeyOwner.of(self.model, self.stream_fn)


class AgentResult(Struct, frozen=True):
    """What a run came to. A model failure is a result with `stop_reason="error"`, not an exception."""

    messages: tuple[Message, ...]
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    cost: Cost | None = None
    error: str | None = None
    error_kind: str | None = None
    reason: str | None = None
    """Why a policy, a deadline or a pause ended the run."""
    output: Any = None

    @property
    def text(self) -> str:
        """The last assistant text."""
        return final_text(self.messages)
