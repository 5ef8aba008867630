"""Ollama: `POST {base_url}/api/chat`, streamed as newline-delimited JSON.

Every line carries the next piece of the message; tool calls come whole; the last line says `done`, why, and
the counts.
"""

import logging
import os
import uuid
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from swink.errors import ContextWindowOverflow, MisuseError, ModelError, StreamError
from swink.keys.accounts import ACCOUNTS
from swink.messages import ModelSpec, Usage
from swink.providers.convert import prepare
from swink.providers.endpoint import Endpoint, check_base_url
from swink.providers.exchange import cut_short, decode_json, encode_body, exchange, malformed, merge_objects
from swink.providers.failure import failure, parse_error
from swink.providers.http import Request, Response, client_for
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.ollama.body import context_size, estimated_tokens, request_body
from swink.providers.sse import LineParser
from swink.stream import AssistantMessageEvent, BlockWriter, LlmContext, StreamOptions, Timeout

PORT = 11434
FAR_BELOW = 0.7
"""The share of the estimate below which a reported prompt must have been cut."""

_PORTS = {"http": 80, "https": 443}

logger = logging.getLogger("swink.providers")


class OllamaStreamFn:
    """Models that an Ollama server runs; `base_url` is what Ollama's own SDK calls the host.

    `num_ctx` fixes the size of the context; without it the size follows the conversation.
    """

    honours = ALL_OPTIONS - {"session_id", "cache"}

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        num_ctx: int | None = None,
        keep_alive: str | int | None = None,
        allow_http: bool = False,
    ) -> None:
        named = os.environ.get("OLLAMA_HOST")
        url = check_base_url(parse_host(base_url or named), allow_http=allow_http)
        host = urlsplit(url).hostname or ""
        owned = (
            not base_url or url == parse_host(named) or host == "ollama.com" or host.endswith(".ollama.com")
        )
        variables = ACCOUNTS["ollama"].variables
        self._endpoint = Endpoint("ollama", url, api_key, variables, owned, allow_http, key_name="ollama")
        self._num_ctx = num_ctx
        self._keep_alive = keep_alive
        self.base_url = self._endpoint.base_url
        self._notices = Notices("ollama", self.honours)
        self.timeout = Timeout(idle=600, first=600)

    def __repr__(self) -> str:
        return f"OllamaStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)
        estimate = 0

        async def request() -> Request:
            nonlocal estimate
            await self._endpoint.prepare_key(options.api_key)
            body = request_body(
                model, context, await prepare(context.messages, model), options, self._notices
            )
            estimate = estimated_tokens(body)
            if self._keep_alive is not None:
                body["keep_alive"] = self._keep_alive
            sized = {"options": {"num_ctx": self._num_ctx or context_size(estimate, options, model)}}
            headers = self._endpoint.bearer_headers(options) | {"accept": "application/x-ndjson"}
            sent = encode_body(merge_objects(merge_objects(sized, options.extra), body), {})
            return Request(f"{self._endpoint.base_url}/api/chat", headers, sent)

        return exchange(
            request,
            lambda reply: _Decoder(reply, options, estimate),
            options,
            self.timeout,
            explain=_explain,
            refused_types=("text/html",),
        )

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(self._num_ctx)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()


def parse_host(host: str | None) -> str:
    """The URL that OLLAMA_HOST, or the host of Ollama's SDK, stands for: scheme and port may be missing."""
    scheme, found, rest = (host or "").strip().partition("://")
    if not found:
        scheme, rest = "http", scheme
    parts = urlsplit(f"{scheme}://{rest}")
    name = parts.hostname or "127.0.0.1"
    if ":" in name:
        name = f"[{name}]"
    try:
        port = parts.port or (_PORTS.get(scheme, PORT) if found else PORT)
    except ValueError:
        raise MisuseError(f"the host of Ollama has no valid port: {rest[:80]}") from None
    path = parts.path.strip("/")
    user = f"{parts.username}@" if parts.username is not None else ""
    return f"{scheme}://{user}{name}:{port}" + (f"/{path}" if path else "")


class _Function(Struct, frozen=True):
    name: str
    arguments: dict[str, Any] | str | None = None


class _Call(Struct, frozen=True):
    function: _Function
    id: str | None = None


class _Message(Struct, frozen=True):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(Struct, frozen=True):
    message: _Message = _Message()
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: str | dict[str, Any] | None = None


class _Decoder:
    """The lines of one reply."""

    def __init__(self, reply: BlockWriter, options: StreamOptions, estimate: int) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._estimate = estimate
        self._parser = LineParser()
        self._calls = 0

    def feed(self, chunk: bytes) -> None:
        for line in self._parser.feed(chunk):
            self._line(line)
            if self._reply.terminal is not None:
                return

    def end(self) -> None:
        rest = self._parser.rest()
        try:
            msgspec.json.decode(rest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise cut_short() from None
        self._line(rest)
        if self._reply.terminal is None:
            raise cut_short()

    def _line(self, data: bytes) -> None:
        decoded = decode_json(data)
        if self._raw is not None:
            self._raw(decoded)
        try:
            line = msgspec.convert(decoded, _Line)
        except msgspec.ValidationError as error:
            raise malformed(data, error) from error
        if line.error is not None:
            raise _failure(parse_error(data)[0], None)
        message = line.message
        if message.thinking:
            self._reply.think(message.thinking)
        if message.content:
            self._reply.say(message.content)
        for call in message.tool_calls or ():
            self._call(call)
        if line.done:
            self._finish(line)
        elif line.prompt_eval_count is not None:
            self._reply.report(Usage(line.prompt_eval_count, line.eval_count or 0))

    def _call(self, call: _Call) -> None:
        self._calls += 1
        index = self._reply.begin_call(call.id or f"call_{uuid.uuid4().hex[:20]}", call.function.name)
        arguments = call.function.arguments or {}
        self._reply.add(
            index, arguments if isinstance(arguments, str) else encode_body(arguments, {}).decode()
        )
        self._reply.end(index)

    def _finish(self, line: _Line) -> None:
        read, written = line.prompt_eval_count or 0, line.eval_count or 0
        extra: dict[str, int] = {}
        if 0 < read < FAR_BELOW * self._estimate:
            extra["prompt_missing"] = self._estimate - read
            logger.warning(
                "ollama: the server read %d tokens of a prompt of about %d: it cut the beginning off, "
                "system prompt and tools included; pass a larger num_ctx, or raise the limit of the server",
                read,
                self._estimate,
            )
        if line.prompt_eval_count is not None or line.eval_count is not None:
            self._reply.report(Usage(read, written, extra=extra))
        self._reply.settle()
        match line.done_reason:
            case "stop" | "tool_calls" | None | "":
                self._reply.done("tool_use" if self._calls else "stop")
            case "length":
                self._reply.done("length")
            case "load" | "unload":
                raise StreamError(
                    f"the server did nothing but {line.done_reason} the model: it was asked nothing"
                )
            case reason:
                raise StreamError(f"unknown done reason {reason!r}")


def _explain(response: Response, body: bytes) -> ModelError:
    message, _ = parse_error(body)
    error = _failure(f"HTTP {response.status}: {message or 'no details'}", response.status)
    error.retry_after = failure("", headers=response.headers).retry_after
    return error


def _failure(message: str, status: int | None) -> ModelError:
    if "exceed" in message and "context length" in message:
        return ContextWindowOverflow(message)
    return failure(message, status=status)
