"""The error tree.

AgentError
├── ModelError                     a model call failed; `kind`, `model`, `retry_after` say how
│   ├── ContextWindowOverflow      the input does not fit (the loop compacts once, then gives up)
│   ├── ModelThrottled             rate limited (retried)
│   ├── NetworkError               connection, timeout, 5xx, broken stream (retried)
│   ├── AuthError                  key wrong or out of credit
│   │   └── MissingKey             there is no key to send; also a MisuseError
│   ├── ContentFiltered            the provider refused the content
│   ├── ModelRetired               the model is gone
│   ├── StreamError                anything else a stream function did wrong
│   └── CacheMiss                  a replay was asked for something it did not record
├── StructuredOutputFailed         no valid output within the allowed attempts
├── RunStopped                     a limit or a policy ended the run before its answer
├── Aborted                        the run was aborted
├── HookFailed                     a hook of the application raised
│   └── NotSaved                   a session did not save in time; also a TimeoutError
├── MisuseError                    the call cannot work as written
│   ├── AlreadyRunning             one run at a time
│   ├── NoMessages                 nothing to continue from
│   ├── InvalidContinue            the conversation already has its answer
│   ├── SyncInAsyncContext         run_sync inside a running event loop
│   ├── BrokenHistory              tool calls and results do not pair
│   ├── InvalidInput               a value of the wrong type or out of range; also a TypeError and ValueError
│   ├── InvalidTool                a tool cannot be built from what was given
│   └── UnknownModel               no such provider, or a malformed model string
├── SessionError                   a session cannot be read or written
│   ├── SessionNotFound            there is none with that id
│   ├── SessionConflict            somebody else has written to it meanwhile
│   ├── SessionBusy                another worker holds it
│   └── SessionUnreadable          a foreign or damaged file, or one of a newer version
└── (packages above the core add their own)
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Literal, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

ErrorKind = Literal[
    "context_window_exceeded",
    "throttled",
    "network",
    "auth",
    "content_filtered",
    "model_retired",
    "stream",
    "cache_miss",
    "structured_output_failed",
    "stopped",
    "aborted",
    "hook",
    "misuse",
    "session",
]


class AgentError(Exception):
    """Everything swink raises on purpose."""

    kind: ClassVar[ErrorKind] = "stream"
    retryable: ClassVar[bool] = False


class ModelError(AgentError):
    """A model call failed."""

    advice: ClassVar[str] = ""
    # For subclasses with a constructor of their own that does not call this one.
    message: str = ""
    model: str = ""
    retry_after: float | None = None

    def __init__(self, message: str = "", *, model: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, model, retry_after)
        self.message = message or (type(self).__doc__ or "").strip()
        self.model = model
        self.retry_after = retry_after

    def __str__(self) -> str:
        where = f"{self.model}: " if self.model else ""
        advice = f" ({self.advice})" if self.advice else ""
        return f"{where}{self.message or super().__str__()}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, vars(self))


class ContextWindowOverflow(ModelError):
    """The input does not fit into the model's context window."""

    kind = "context_window_exceeded"
    advice = "shorten the history, call agent.compact(), or use a model with a larger window"


class ModelThrottled(ModelError):
    """The provider limits the rate of requests."""

    kind = "throttled"
    retryable = True
    advice = "wait, lower the request rate, or set fallback_models"


class NetworkError(ModelError):
    """The connection failed, timed out or ended early."""

    kind = "network"
    retryable = True
    advice = "check the connection and the provider's status, or set fallback_models"


class AuthError(ModelError):
    """The provider refused the key."""

    kind = "auth"
    advice = "check the API key, its permissions and the account's credit"


class ContentFiltered(ModelError):
    """The provider's content policy stopped the reply."""

    kind = "content_filtered"
    advice = "rephrase the request"


class ModelRetired(ModelError):
    """The model does not exist or is no longer served."""

    kind = "model_retired"
    advice = "choose another model"


class StreamError(ModelError):
    """The stream function failed."""

    kind = "stream"
    advice = "correct what it names, choose another model, or set fallback_models"


class CacheMiss(ModelError):
    """A replay was asked for a request it has no recording of."""

    kind = "cache_miss"
    advice = "record the conversation again"


class StructuredOutputFailed(AgentError):
    """The model gave no valid output within the allowed attempts."""

    kind = "structured_output_failed"
    advice: ClassVar[str] = "raise max_output_retries, ask for a simpler type, or choose another model"

    def __init__(self, attempts: int, last_error: str, model: str = "") -> None:
        super().__init__(attempts, last_error, model)
        self.attempts = attempts
        self.last_error = last_error
        self.model = model

    def __str__(self) -> str:
        where, s = f"{self.model}: " if self.model else "", "" if self.attempts == 1 else "s"
        what = f"{where}no valid output after {self.attempts} attempt{s}"
        return f"{what}; the last problem: {self.last_error} ({self.advice})"


class RunStopped(AgentError):
    """A limit or a policy ended the run before its answer; `result` is what there is of it."""

    kind = "stopped"

    def __init__(self, reason: str, result: Any = None) -> None:
        super().__init__(reason, result)
        self.reason = reason
        self.result = result

    def __str__(self) -> str:
        return f"the run was stopped before its answer: {self.reason}"


class Aborted(AgentError):
    """The run was aborted."""

    kind = "aborted"


class HookFailed(AgentError):
    """A hook of the application raised; the exception itself is raised from the run."""

    kind = "hook"


class NotSaved(HookFailed, TimeoutError):
    """The session did not save the end of a run in time: its messages are in the agent alone."""


class MisuseError(AgentError):
    """The call cannot work as written."""

    kind = "misuse"


class AlreadyRunning(MisuseError):
    """The agent is already running; steer() or follow_up() it, abort() it, or await wait_for_idle() first."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or ""))


class NoMessages(MisuseError):
    """There is nothing to continue from; give the first run an input."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or ""))


class InvalidContinue(MisuseError):
    """The last message is already the assistant's answer; give the run an input or queue a follow_up()."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or ""))


class SyncInAsyncContext(MisuseError):
    """run_sync() cannot block a running event loop; use `await agent.run(...)` here."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or ""))


class BrokenHistory(MisuseError):
    """The messages break the pairing of tool calls and results."""


class InvalidTool(MisuseError):
    """A tool cannot be built from what was given."""


class InvalidInput(MisuseError, TypeError, ValueError):
    """A value of the wrong type, or out of range; the message says what to pass instead."""


class MissingKey(AuthError, MisuseError):
    """There is no API key to send."""

    advice = ""


class UnknownModel(MisuseError):
    """No such provider, or a malformed model string."""


class SessionError(AgentError):
    """A session cannot be read or written; what was there is still there."""

    kind = "session"


class SessionNotFound(SessionError):
    """There is no session with that id."""


class SessionConflict(SessionError):
    """Somebody else has written to the session since it was opened."""


class SessionBusy(SessionError):
    """Another worker holds the session."""


class SessionUnreadable(SessionError):
    """What is stored is no session, is damaged, or comes from a newer version."""


_BY_KIND: dict[str, type[ModelError]] = {
    cls.kind: cls
    for cls in (
        ContextWindowOverflow,
        ModelThrottled,
        NetworkError,
        AuthError,
        ContentFiltered,
        ModelRetired,
        StreamError,
        CacheMiss,
    )
}

OVERFLOW: tuple[str, ...] = (
    "prompt is too long",  # Anthropic, Fireworks
    "exceeds? context limit",  # Anthropic, with max_tokens
    "input is too long",  # Claude on Bedrock
    "too many input tokens",  # Titan on Bedrock
    "input tokens exceed",  # Nova, Azure
    "maximum context length",  # OpenAI, OpenRouter, vLLM, DeepSeek, Mistral
    "context.(?:length|window|size)(?: has been| was|.limit)?.exceed",  # OpenAI's code; LM Studio, MiniMax
    "exceeds? the (?:model'?s )?context.(?:window|length)",  # OpenAI's Responses
    "room in the model'?s context",
    "exceeds? the maximum number of tokens",  # Gemini
    "(?s)input token count.*exceeds",  # Gemini, Vertex AI
    "too large for model",  # Mistral
    "maximum prompt length",  # xAI
    "reduce the length of (?:the|your) (?:messages|prompt|input)",  # Groq, Cerebras
    "exceeds the available context size",  # llama.cpp
    "greater than the context length",  # LM Studio
    "context length of only",  # LM Studio
    "reached context length of",  # LM Studio
    "prompt too long",  # Ollama
    "too long to fit into the model",  # vLLM
    "longer than the (?:maximum )?model(?:'s context)? length",  # vLLM, SGLang, Together
    "too long and exceeds limit",  # vLLM
    r"`?inputs`? tokens \+ `?max_new_tokens`? must be",  # text-generation-inference
    "exceeded model token limit",  # Kimi
    "prompt exceeds max",  # Z.ai
    "total length of all messages is too long",  # Perplexity
    "range of input length should be",  # Qwen
    "tokens in the prompt cannot exceed",  # Cohere
    "but the configured context size is",
    # Others in the same words; limits of rates and of replies are spoken of in them too.
    r"(?s)^(?!.*(?:rate.?limit|per.(?:min|day|hour|sec)|quota|max_tokens|max_completion|maximum tokens))"
    r".*(?:input|prompt|messages|request|conversation)\b.{0,80}exceed.{0,60}(?:context|token)",
)
"""How providers say that the input does not fit; regular expressions for text in lower case."""

# Regular expressions, tried in this order on the message in lower case.
_WORDING: tuple[tuple[type[ModelError], tuple[str, ...]], ...] = (
    (ContextWindowOverflow, OVERFLOW),
    (
        AuthError,
        (
            "invalid api key",
            "invalid x-api-key",
            "incorrect api key",
            "api key not valid",
            "unauthorized",
            "authentication",
            "permission denied",
            "insufficient.quota",
            "exceeded your current quota",
            "credit balance is too low",
        ),
    ),
    (
        ModelThrottled,
        (
            "rate.limit",
            "too many requests",
            "throttl",
            r"\b429\b",
            "please wait before trying again",
            "resource has been exhausted",
        ),
    ),
    (ContentFiltered, ("content.filter", "content policy", "content management policy")),
    (
        NetworkError,
        (
            "connect",
            "broken pipe",
            "name resolution",
            "timed out",
            "timeout",
            "overloaded",
            "(temporarily|service) unavailable",
            "bad gateway",
            "internal server error",
            "server had an error",
        ),
    ),
)


def message_of(error: BaseException) -> str:
    """The text of an error, whose `__str__` may be somebody else's and raise."""
    try:
        return str(error)
    except Exception:
        return "(it cannot say)"


def plainly(function: Callable[P, T]) -> Callable[P, T]:
    """Let an error that swink raises on purpose be reported at the line that called the function."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except AgentError as error:
            forget_frames(error)
            raise

    return called


def forget_frames(error: AgentError) -> None:
    """Forget through which functions of ours an error came: its sentence says what to do.

    Frames stay if they lead through anybody else's code, and so do causes; where a connection failed, the
    causes keep their texts alone.
    """
    frame = error.__traceback__
    while frame is not None and _is_ours(frame.tb_frame.f_globals.get("__name__", "")):
        frame = frame.tb_next
    if frame is None:
        error.__traceback__ = None
    cause = error.__cause__
    while isinstance(cause, OSError):
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("swink", "asyncio", "contextlib")


def error_for(
    kind: str | None, message: str, *, model: str = "", retry_after: float | None = None
) -> ModelError:
    """The exception of `kind` for a `model`; without one, `message` decides. `retry_after` is in seconds."""
    cls = _BY_KIND.get(kind) if kind else classify(message)
    return (cls or StreamError)(message, model=model, retry_after=retry_after)


def is_overflow(message: str) -> bool:
    """Whether a provider's message says that the input does not fit."""
    return classify(message) is ContextWindowOverflow


def classify(message: str) -> type[ModelError]:
    """The error class a provider's `message` points to: the fallback where there is no structured kind."""
    text = message.lower()
    for cls, phrases in _WORDING:
        if any(re.search(phrase, text) for phrase in phrases):
            return cls
    return StreamError


def _rebuild(cls: type[ModelError], args: tuple[object, ...], attributes: dict[str, object]) -> ModelError:
    """A copy of an error, whatever the constructor of a subclass takes."""
    error = cls.__new__(cls, *args)
    vars(error).update(attributes)
    return error
