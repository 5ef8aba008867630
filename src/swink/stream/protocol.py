"""What models say: the events of one reply, and how a model is asked for it.

    Start ( TextStart TextDelta* TextEnd | ThinkingStart ThinkingDelta* ThinkingEnd
          | ToolCallStart ToolCallDelta* ToolCallEnd | BlockAdded | PromptProgress | UsageUpdate )*
    then exactly one of  Done | Error

A block's index is the number of blocks before it. Blocks may interleave. At `Done("length")` and at `Error`
blocks may still be open; anywhere else an open block is a violation.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, cast, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from swink.errors import ErrorKind, InvalidInput, ModelError
from swink.messages import Citation, Cost, Extension, LlmMessage, Media, ModelSpec, StopReason, Usage
from swink.messages.checks import check_hook, check_positive, check_type, check_word, is_number
from swink.messages.jsondata import read
from swink.messages.providertools import HostedTool
from swink.messages.redact import MARK, redact_value
from swink.stream.urls import checked_headers

TransportName = Literal["sse", "websocket", "auto"]
_TRANSPORTS: tuple[str, ...] = get_args(TransportName)


class Start(Struct, frozen=True, gc=False, tag="start", tag_field="type"):
    """The first event of a reply, before anything is sent."""


class TextStart(Struct, frozen=True, gc=False, tag="text_start", tag_field="type"):
    """A text block opens at this index; its deltas follow."""

    index: int = field(name="content_index")


class TextDelta(Struct, frozen=True, gc=False, tag="text_delta", tag_field="type"):
    """A piece of text for the open text block at this index."""

    index: int = field(name="content_index")
    text: str = field(name="delta")


class TextEnd(Struct, frozen=True, gc=False, tag="text_end", tag_field="type", omit_defaults=True):
    """A text block closes, with where it comes from and what its provider wants back with it.

    Args:
        index: the number of the block
        signature: what the provider wants back
        citations: where the text comes from
    """

    index: int = field(name="content_index")
    signature: str | None = None
    citations: tuple[Citation, ...] = ()


class ThinkingStart(Struct, frozen=True, gc=False, tag="thinking_start", tag_field="type"):
    """A thinking block opens at this index; its deltas follow."""

    index: int = field(name="content_index")


class ThinkingDelta(Struct, frozen=True, gc=False, tag="thinking_delta", tag_field="type"):
    """A piece of thinking for the open thinking block at this index.

    Args:
        text: the piece
    """

    index: int = field(name="content_index")
    text: str = field(name="delta")


class ThinkingEnd(Struct, frozen=True, gc=False, tag="thinking_end", tag_field="type", omit_defaults=True):
    """A thinking block closes; redacted thinking carries only its signature.

    Args:
        index: the number of the block
    """

    index: int = field(name="content_index")
    signature: str | None = None
    redacted: bool = False


class ToolCallStart(Struct, frozen=True, gc=False, tag="tool_call_start", tag_field="type"):
    """A tool call opens: its id and the name of its tool are known.

    Args:
        index: the number of the block
    """

    index: int = field(name="content_index")
    id: str
    name: str


class ToolCallDelta(Struct, frozen=True, gc=False, tag="tool_call_delta", tag_field="type"):
    """More of a call's arguments, as JSON text.

    Args:
        index: the number of the block
        json: the piece
    """

    index: int = field(name="content_index")
    json: str = field(name="delta")


class ToolCallEnd(Struct, frozen=True, gc=False, tag="tool_call_end", tag_field="type", omit_defaults=True):
    """A tool call closes: its arguments are complete.

    Args:
        index: the number of the block
        signature: what the provider wants back
    """

    index: int = field(name="content_index")
    signature: str | None = None


class BlockAdded(Struct, frozen=True, tag="block_added", tag_field="type"):
    """A block that arrives whole: an image, or what a provider's own tool did.

    Args:
        index: the number of the block
    """

    index: int = field(name="content_index")
    block: Media | Extension


class PromptProgress(Struct, frozen=True, gc=False, tag="prompt_progress", tag_field="type"):
    """How much of the prompt the model has read, in tokens, where that takes a while.

    Args:
        done: tokens so far
        total: tokens in all
    """

    done: int
    total: int


UNREPORTED = Usage(unknown=True)
"""The usage of a reply whose provider has said nothing about it."""


class UsageUpdate(Struct, frozen=True, gc=False, tag="usage_update", tag_field="type", omit_defaults=True):
    """What the reply has used so far, which is kept if it is cut off; a later one replaces it.

    Args:
        usage: the tokens
        cost: what they cost, if the provider says so
    """

    usage: Usage
    cost: Cost | None = None


class Done(Struct, frozen=True, gc=False, tag="done", tag_field="type", omit_defaults=True):
    """The last event of a complete reply: why it ended, its usage, its cost where the provider says so.

    Args:
        stop_reason: why it ended
    """

    stop_reason: StopReason = "stop"
    usage: Usage = UNREPORTED
    cost: Cost | None = None


class Error(Struct, frozen=True, dict=True, tag="error", tag_field="type", omit_defaults=True):
    """The reply failed; without a kind the wording of the message decides.

    `usage` is what it has used all the same: `Usage()` if nothing was generated.

    Args:
        retry_after: seconds that the provider asks to wait
    """

    message: str
    kind: ErrorKind | None = None
    retry_after: float | None = None
    usage: Usage = UNREPORTED

    @property
    def cause(self) -> BaseException | None:
        """What was raised below, such as an exception of the HTTP client; it is no part of the value."""
        return vars(self).get("cause")

    @classmethod
    def of(cls, error: ModelError, usage: Usage = UNREPORTED) -> "Error":
        """The event that says what an exception `error` says, with its cause and the `usage` so far."""
        made = cls(error.message, error.kind, error.retry_after, usage)
        vars(made)["cause"] = error.__cause__
        return made


Delta = TextDelta | ThinkingDelta | ToolCallDelta
Update = Delta | ToolCallStart | BlockAdded
"""What is shown of a reply while it arrives."""
AssistantMessageEvent = (
    Start
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | BlockAdded
    | PromptProgress
    | UsageUpdate
    | Done
    | Error
)


class Timeout(Struct, frozen=True, gc=False):
    """Seconds without content after which a stream is given up; pings and comments are not content.

    Args:
        idle: between two pieces of content
        first: until the first piece of content
        connect: until there is a connection
    """

    idle: float = 120.0
    first: float = 300.0
    connect: float = 30.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_positive(f"Timeout({name}=…)", getattr(self, name))


class StreamOptions(Struct, frozen=True):
    """How to ask. An adapter reports, by name and once, each option it cannot honour.

    Args:
        temperature: randomness
        max_tokens: tokens that a reply may have
        api_key: the key, for the provider of the agent's model alone
        session_id: what the provider may tell conversations apart by
        timeout: seconds without content, or a `Timeout`
        extra: fields of the request as the provider knows them
        on_raw_payload: called with each request and each event as JSON
        top_p: tokens that make up so much of the probability
        seed: for the same reply twice, where a provider can
        service_tier: such as "flex" or "priority"
        verbosity: how long answers are
        parallel_tool_calls: whether a reply may have several calls
    """

    temperature: float | None = None
    max_tokens: int | None = None
    api_key: str | None = None
    session_id: str | None = None
    transport: TransportName = "sse"
    """The protocol to prefer: "sse" is a streamed HTTP answer, in the provider's own framing if it has one;
    "auto" leaves it to the adapter."""
    tool_choice: str | None = None
    """None (the provider's default), "auto", "none", "required" or the name of a tool."""
    cache: bool | Literal["5m", "1h"] = True
    """Whether the prompt is cached, and for how long where that can be said."""
    timeout: float | Timeout | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    on_raw_payload: Callable[[Any], None] | None = None
    http: Any = None
    """An `HttpClient` (`swink.providers.http`) to send requests with, instead of the shared one."""
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    """Texts at which the reply ends."""
    seed: int | None = None
    service_tier: str | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    parallel_tool_calls: bool | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers of every request; they win over those of the adapter."""

    def __post_init__(self) -> None:
        if self.temperature is not None and not (is_number(self.temperature) and self.temperature >= 0):
            raise InvalidInput(f"temperature is a number of 0 or more, not {self.temperature!r}")
        if self.max_tokens is not None and not (type(self.max_tokens) is int and self.max_tokens > 0):
            raise InvalidInput(f"max_tokens is a whole number above 0, or None, not {self.max_tokens!r}")
        if self.api_key is not None:
            _check_key(self.api_key)
        if self.session_id is not None:
            check_type("session_id", self.session_id, str)
        if self.transport != "sse":
            check_word("transport", self.transport, _TRANSPORTS, " (an HTTP client is passed as http=)")
        if self.tool_choice is not None and not (type(self.tool_choice) is str and self.tool_choice):
            raise InvalidInput(
                f"tool_choice is 'auto', 'none', 'required' or a tool's name, not {self.tool_choice!r}"
            )
        if self.cache is not True and self.cache is not False and self.cache not in ("5m", "1h"):
            raise InvalidInput(f"cache is True, False, '5m' or '1h', not {self.cache!r}")
        if self.timeout is not None and type(self.timeout) is not Timeout:
            check_positive("timeout", self.timeout)
        if type(self.extra) is not dict:
            check_type("extra", self.extra, Mapping)
        if self.on_raw_payload is not None:
            check_hook("on_raw_payload", self.on_raw_payload)
        if self.http is not None and (isinstance(self.http, type) or not hasattr(self.http, "send")):
            raise InvalidInput(f"http is an HttpClient, which has send and aclose, not {self.http!r:.80}")
        if self.top_p is not None and not (is_number(self.top_p) and 0 <= self.top_p <= 1):
            raise InvalidInput(f"top_p is a number between 0 and 1, not {self.top_p!r}")
        if self.stop:
            force_setattr(self, "stop", _stops(self.stop))
        if self.seed is not None and type(self.seed) is not int:
            raise InvalidInput(f"seed is a whole number, not {self.seed!r}")
        if self.service_tier is not None:
            check_type("service_tier", self.service_tier, str)
        if self.verbosity is not None:
            check_word("verbosity", self.verbosity, ("low", "medium", "high"))
        if self.parallel_tool_calls is not None:
            check_type("parallel_tool_calls", self.parallel_tool_calls, bool)
        if self.headers:
            force_setattr(self, "headers", checked_headers(self.headers, "headers"))

    def __repr__(self) -> str:
        return "StreamOptions(" + ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__()) + ")"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        fields = [(name, getattr(self, name)) for name in self.__struct_fields__ if name != "api_key"]
        return [
            (name, dict.fromkeys(value, MARK) if name == "headers" else redact_value(value))
            for name, value in fields
            if value not in (None, {}, (), "sse")
        ]


def _check_key(key: object) -> None:
    """Refuse what is no key, without showing it."""
    check_type("api_key", key, str)
    if not str(key).strip():
        raise InvalidInput(
            "api_key is empty; leave it out to use the key of the environment or the stored one, "
            "or, for a server without keys, pass api_key='' to its stream function"
        )


def _stops(stop: object) -> tuple[str, ...]:
    texts = (stop,) if isinstance(stop, str) else tuple(cast("Iterable[Any]", stop))
    if not all(type(text) is str and text for text in texts):
        raise InvalidInput(f"stop is texts at which the reply ends, such as ('END',), not {stop!r:.80}")
    return cast("tuple[str, ...]", texts)


class ToolSpec(Protocol):
    """What a model is told about a tool."""

    @property
    def name(self) -> str:
        """What the model calls it by."""
        ...

    @property
    def description(self) -> str:
        """What the model is told it does."""
        ...

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        ...


class OutputSchema(Struct, frozen=True):
    """The JSON Schema of an answer, and its name.

    Args:
        schema: the schema
    """

    name: str
    schema: Mapping[str, Any]


class LlmContext(Struct, frozen=True):
    """What a model is asked: a snapshot that later turns never change.

    Args:
        system_prompt: the prompt
        messages: the history, as it is sent
        tools: what the model may call
    """

    system_prompt: str
    messages: Sequence[LlmMessage]
    tools: Sequence[ToolSpec] = ()
    hosted: Sequence[HostedTool] = ()
    """Tools that the provider runs itself."""
    output: OutputSchema | None = None
    """What the text of the final answer has to be; set only for a stream function whose `native_output`
    says that it can see to that."""


class StreamFn(Protocol):
    """Ask a model for one reply, yielding it as it arrives.

    Yield `Start`, then blocks, then exactly one `Done` or `Error`; or raise an `AgentError`. A provider that
    counts tokens on the way: yield a `UsageUpdate` at once. Cancellation is asyncio's: release connections in
    `finally`.
    """

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncIterator[AssistantMessageEvent]: ...


def encode_event(event: AssistantMessageEvent) -> bytes:
    """A stream event as JSON."""
    return msgspec.json.encode(event)


def decode_event(data: bytes | str) -> AssistantMessageEvent:
    """A stream event from JSON `data`; an unknown type is an `InvalidInput` that names it."""
    return read(_decoder, data, "a stream event")


_decoder: msgspec.json.Decoder[AssistantMessageEvent] = msgspec.json.Decoder(AssistantMessageEvent)
