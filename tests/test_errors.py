"""The error tree (E1, E2, C4): kinds, what a text says, which class a provider's wording points to."""

import copy
import pickle
import re
import traceback
from typing import get_args

import pytest

from swink import Agent, ExponentialBackoff, PromptContext, errors
from swink.errors import (
    AgentError,
    AlreadyRunning,
    AuthError,
    BrokenHistory,
    CacheMiss,
    ContentFiltered,
    ContextWindowOverflow,
    ErrorKind,
    InvalidContinue,
    InvalidTool,
    MisuseError,
    ModelError,
    ModelRetired,
    ModelThrottled,
    NetworkError,
    NoMessages,
    StreamError,
    StructuredOutputFailed,
    SyncInAsyncContext,
    UnknownModel,
    classify,
    error_for,
    is_overflow,
)
from swink.testing import ScriptedModel

MODEL_ERRORS = [
    ContextWindowOverflow,
    ModelThrottled,
    NetworkError,
    AuthError,
    ContentFiltered,
    ModelRetired,
    StreamError,
    CacheMiss,
]
ALL = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, AgentError)]


def test_every_error_is_an_agent_error_of_a_known_kind():
    assert len(ALL) > 15
    for cls in ALL:
        assert cls.kind in get_args(ErrorKind), cls


def test_the_tree_in_the_docstring_is_the_tree():
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or "")) | {"AgentError"}
    assert drawn == {cls.__name__ for cls in ALL}


def test_only_throttled_and_network_are_retryable():
    assert {cls for cls in ALL if cls.retryable} == {ModelThrottled, NetworkError}


@pytest.mark.parametrize("cls", MODEL_ERRORS)
def test_a_model_error_says_what_happened_to_which_model_and_what_to_do(cls):
    text = str(cls("it broke", model="acme:m1"))
    assert text.startswith("acme:m1: it broke")
    assert cls.advice
    assert text.endswith(f"({cls.advice})")


@pytest.mark.parametrize("cls", MODEL_ERRORS)
def test_a_model_error_without_words_still_says_something(cls):
    assert len(str(cls())) > 10


@pytest.mark.parametrize("cls", [AlreadyRunning, NoMessages, InvalidContinue, SyncInAsyncContext])
def test_misuse_says_what_to_do_instead(cls):
    assert len(str(cls())) > 30
    assert str(cls("other words")) == "other words"
    assert isinstance(cls(), MisuseError)


@pytest.mark.parametrize("cls", MODEL_ERRORS)
@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_a_model_error_survives_pickling(cls, again):
    error = cls("text", model="acme:m1", retry_after=3.5)
    back = again(error)
    assert type(back) is cls
    assert (str(back), back.message, back.model, back.retry_after, back.kind) == (
        str(error),
        "text",
        "acme:m1",
        3.5,
        cls.kind,
    )
    assert str(again(cls())) == str(cls())


@pytest.mark.parametrize(
    "cls",
    [
        AlreadyRunning,
        NoMessages,
        InvalidContinue,
        SyncInAsyncContext,
        BrokenHistory,
        InvalidTool,
        UnknownModel,
    ],
)
def test_misuse_survives_pickling(cls):
    assert str(pickle.loads(pickle.dumps(cls("words")))) == "words"


def test_structured_output_failed_keeps_attempts_and_the_last_problem():
    error = StructuredOutputFailed(4, "$.age: missing", "acme:m1")
    back = pickle.loads(pickle.dumps(error))
    assert str(error).startswith("acme:m1: ")
    assert "max_output_retries" in str(error)
    assert (back.attempts, back.last_error, str(back)) == (4, "$.age: missing", str(error))
    assert "4 attempts" in str(error)
    assert "$.age: missing" in str(error)


@pytest.mark.parametrize("cls", MODEL_ERRORS)
def test_the_kind_alone_gives_the_class(cls):
    error = error_for(cls.kind, "some text", model="acme:m1", retry_after=2.0)
    assert type(error) is cls
    assert (error.model, error.retry_after) == ("acme:m1", 2.0)


def test_a_structured_kind_outweighs_the_wording():
    assert type(error_for("auth", "prompt is too long: 429 rate limit")) is AuthError


def test_a_kind_nobody_knows_is_a_stream_error_whatever_the_wording():
    assert type(error_for("acme_special", "rate limit reached")) is StreamError


OVERFLOW = [
    "The total length of all messages is too long. Please shorten your messages.",
    "prompt is too long: 210001 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000, decrease input length or `max_tokens` and try again",
    "Input is too long for requested model.",
    "Too many input tokens. Max input tokens: 8192, request input token count: 9001",
    "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens. Please reduce the length.",
    "Error code: 400 - {'error': {'code': 'context_length_exceeded', 'param': 'messages'}}",
    "Context length exceeded (4096)",
    "Context size has been exceeded.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Codex ran out of room in the model's context window. Start a new conversation.",
    "The text exceeds the maximum number of tokens allowed (1048575).",
    "The input token count (1196265) exceeds the limit of 1048575.",
    "Prompt contains 40958 tokens and 0 draft tokens, too large for model with 32768 positions",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion.",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10247 >= n_ctx: 4096).",
    "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens",
    "Reached context length of 4096 tokens with model (arch: qwen3) that does not currently support mid-generation context overflow.",
    "prompt too long; exceeded max context length by 12 tokens",
    "the input length exceeds the context length",
    "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    "Input prompt (35247 tokens) is too long and exceeds limit of 1000",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens",
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
    "invalid params, context window exceeds limit (2013)",
    "Prompt exceeds max length",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30000]",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000",
    "Prompt has 5000 tokens, but the configured context size is 4096 tokens",
    "Requested token count of the messages exceeds the model's limit of 127072 tokens",
    "prompt token count of 130000 exceeds the limit of 128000 tokens",
]
THROTTLED = [
    "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 2s.",
    "Number of request tokens has exceeded your per-minute rate limit",
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute",
    "Too Many Requests",
    "ThrottlingException: Rate exceeded",
    "An error occurred (ThrottlingException): Too many tokens, please wait before trying again.",
    "Too many tokens, please wait before trying again.",
    "HTTP 429",
    "status_code=429, body=''",
    "Resource has been exhausted (e.g. check quota).",
    "rate_limit_error",
]
AUTH = [
    "invalid x-api-key",
    "Incorrect API key provided: [redacted].",
    "Invalid API Key",
    "401 Unauthorized",
    "authentication_error",
    "Your credit balance is too low to access the Anthropic API.",
    "You exceeded your current quota, please check your plan and billing details.",
    "insufficient_quota",
    "API key not valid. Please pass a valid API key.",
    "permission denied",
]
NETWORK = [
    "Connection reset by peer",
    "ServerDisconnectedError: Server disconnected",
    "ClientConnectorError: Cannot connect to host api.example.com:443 ssl:default [Name or service not known]",
    "ConnectError: [Errno -3] Temporary failure in name resolution",
    "peer closed connection without sending complete message body (incomplete chunked read)",
    "ReadTimeout: ",
    "The read operation timed out",
    "Overloaded",
    "The engine is currently overloaded, please try again later",
    "503 Service Unavailable",
    "502 Bad Gateway",
    "504 Gateway Timeout",
    "Internal server error",
    "The server had an error while processing your request. Sorry about that!",
    "BrokenPipeError: [Errno 32] Broken pipe",
]
FILTERED = [
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "content_filter",
    "Output blocked by content filtering policy",
]
OTHER = [
    "max_tokens: 100000 exceeds the limit of 8192 tokens for the input",
    "The maximum tokens you requested exceeds the model limit of 4096. Try again with a lower value.",
    "request 84297 failed: unknown parameter 'foo'",
    "tool_choice: unexpected value",
    "AssertionError: the script has 1 replies",
]


@pytest.mark.parametrize("message", OVERFLOW)
def test_the_wording_of_overflow_is_known(message):
    assert classify(message) is ContextWindowOverflow
    assert is_overflow(message.upper())


@pytest.mark.parametrize("row", errors.OVERFLOW)
def test_every_row_of_the_table_of_overflows_is_needed(row):
    others = [other for other in errors.OVERFLOW[:-1] if other != row]  # the last takes what is left
    assert [
        text
        for text in map(str.lower, OVERFLOW)
        if re.search(row, text) and not any(re.search(other, text) for other in others)
    ]


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (cls, text)
        for cls, texts in (
            (ModelThrottled, THROTTLED),
            (AuthError, AUTH),
            (NetworkError, NETWORK),
            (ContentFiltered, FILTERED),
            (StreamError, OTHER),
        )
        for text in texts
    ],
)
def test_the_wording_decides_where_there_is_no_kind(cls, message):
    assert classify(message) is cls
    assert type(error_for(None, message)) is cls


def test_a_connection_error_never_hides_an_overflow():
    assert classify("connection closed: prompt is too long") is ContextWindowOverflow


def test_model_error_is_caught_as_agent_error():
    with pytest.raises(AgentError):
        raise error_for(None, "whatever")
    assert issubclass(ModelError, AgentError)


def test_every_error_of_ours_is_an_agent_error():
    assert issubclass(MisuseError, AgentError)


def test_frames_that_lead_through_code_of_others_are_kept():
    def write(context: PromptContext) -> str:
        return Agent("nope").system_prompt  # pyright: ignore[reportReturnType]

    agent = Agent("test:m", stream_fn=ScriptedModel(["Hi."]), system_prompt=write)
    with pytest.raises(UnknownModel) as raised:
        agent.run_sync("x")
    assert 'return Agent("nope")' in "".join(traceback.format_exception(raised.value))


def test_a_cause_is_kept_with_its_own_frames():
    def fail() -> ModelError:
        raise RuntimeError("broken gateway")

    agent = Agent("test:m", stream_fn=ScriptedModel([lambda context: fail()]), retry=ExponentialBackoff(max_attempts=1))  # fmt: skip
    with pytest.raises(StreamError) as raised:
        agent.run_sync("x").raise_for_error()
    assert 'raise RuntimeError("broken gateway")' in "".join(traceback.format_exception(raised.value))
    assert isinstance(raised.value.__cause__, RuntimeError)
