"""Cassettes: exchanges with a model in a JSONL file, one a line, without secrets.

key      what `replayed` looks for: a digest of the request as it is shown, without secrets
exact    what `cached` looks for: a digest of the whole request, secrets included, and of who asks

A line cut short by a crash or a full disk costs that one exchange.
"""

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import ErrorKind, ModelError
from swink.messages import ModelSpec
from swink.messages.codec import to_builtins
from swink.messages.providertools import McpConnector
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, ToolSpec
from swink.stream.urls import is_secret_header
from swink.stream.wrappers.scrub import as_sent, scrub, scrub_events, scrub_messages
from swink.system.filelock import locked
from swink.system.files import open_private

logger = logging.getLogger("swink.wrappers")

_ROUNDS = 50_000
_LEAST = 8
_TRACING = frozenset({"traceparent", "tracestate", "baggage"})
"""Headers that differ with every request, and change no answer."""
_ASKED = (
    "temperature", "max_tokens", "tool_choice", "extra",
    "top_p", "stop", "seed", "service_tier", "verbosity", "parallel_tool_calls",
)  # fmt: skip
_SHOWN = ("role", "content", "tool_call_id", "tool_name", "is_error", "stop_reason")


class Failure(Struct, frozen=True):
    """The error that ended an exchange."""

    kind: ErrorKind
    message: str
    retry_after: float | None = None


class Recording(Struct, frozen=True):
    """One exchange on a cassette: what was asked, and what came back."""

    key: str
    request: dict[str, Any]
    events: list[AssistantMessageEvent]
    error: Failure | None = None
    exact: str | None = None
    """None where the reply held a secret: what is recorded of it is no answer for a caller."""


class CassetteRequest(Struct, frozen=True):
    """What a cassette keeps of a request, and knows it by."""

    key: str
    shown: dict[str, Any]
    digest: str
    holds_secret: bool = False
    secrets: tuple[str, ...] = ()

    def exact(self) -> str:
        """What the whole request is known by; slow for one with a secret.

        A reader of the file sees the rest of the request, so that trying out secrets has to cost something.
        """
        if not self.holds_secret:
            return self.digest
        return hashlib.pbkdf2_hmac("sha256", self.digest.encode(), b"swink cassette", _ROUNDS).hex()

    def __repr__(self) -> str:
        return f"CassetteRequest({self.key})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("key", self.key)]


def identify(
    model: ModelSpec, context: LlmContext, options: StreamOptions, server: str = "", asker: str = ""
) -> CassetteRequest:
    """What identifies a request; raises `TypeError` for one that is no JSON. Slow: run it in a thread."""
    messages: list[dict[str, Any]] = [to_builtins(message) for message in context.messages]
    request: dict[str, Any] = {
        "model": {
            "provider": model.provider,
            "model_id": model.model_id,
            "thinking_level": model.thinking_level,
        },
        "system_prompt": context.system_prompt,
        "messages": [{name: message[name] for name in _SHOWN if name in message} for message in messages],
        "tools": [_told(tool) for tool in context.tools],
        "options": _pick(options, *_ASKED),
    }
    if context.hosted:
        request["hosted"] = context.hosted
    if context.output is not None:
        request["output"] = context.output
    if model.thinking_budgets:
        request["model"]["thinking_budgets"] = model.thinking_budgets
    request = as_sent(request)
    secrets = tuple(_secrets(context, options))
    shown = {**scrub(request, secrets), "messages": scrub_messages(request["messages"], secrets)}
    whole = {
        **request,
        "spec": as_sent(msgspec.structs.replace(model, price=None)),
        "authors": [(message.get("provider"), message.get("model")) for message in messages],
        "asker": _pick(options, "api_key", "session_id", "cache", "headers"),
        "server": [server, asker],
    }
    return CassetteRequest(
        _digest(shown), shown, _digest(whole), bool(secrets or asker) or shown != request, secrets
    )


def _told(tool: ToolSpec) -> dict[str, Any]:
    told = {"name": tool.name, "description": tool.description, "parameters": tool.parameters_schema}
    return {**told, "deferred": True} if getattr(tool, "deferred", False) is True else told


def _secrets(context: LlmContext, options: StreamOptions) -> Iterator[str]:
    """What the request carries that is on no cassette."""
    if options.api_key:
        yield options.api_key
    for name, value in _headers(options).items():
        if is_secret_header(name) or len(value) >= _LEAST:
            yield value.partition(" ")[2] or value
    yield from (tool.token for tool in context.hosted if isinstance(tool, McpConnector) and tool.token)


class Cassette:
    """One file of recordings, which several processes may write."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def read(self) -> list[Recording]:
        """The recordings that can be read; the others are reported."""
        recordings: list[Recording] = []
        for number, line in enumerate(self.path.read_bytes().split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                recordings.append(_decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                # Without the decoder's words, which may quote the line.
                logger.warning("%s: line %d is not a whole recording and is skipped", self.path, number)
        return recordings

    def keep(
        self,
        asked: CassetteRequest,
        events: list[AssistantMessageEvent],
        error: ModelError | None = None,
        exact: str | None = None,
    ) -> None:
        """Write one exchange; a failure to write is reported, not raised. Slow: run it in a thread."""
        try:
            shown = scrub_events(events, asked.secrets)
            failure = error and Failure(error.kind, scrub(error.message, asked.secrets), error.retry_after)
            recording = Recording(asked.key, asked.shown, shown, failure, exact if shown == events else None)
            self._append(msgspec.json.encode(recording) + b"\n")
        except (OSError, TypeError, ValueError) as problem:
            # The reply is whole, whatever becomes of its recording.
            reason = getattr(problem, "strerror", None) or type(problem).__name__
            logger.warning("%s: an exchange could not be recorded: %s", self.path, reason)

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a+b", buffering=0, opener=open_private) as file, locked(file):
            end = file.seek(0, os.SEEK_END)
            if end and file.seek(end - 1) >= 0 and file.read(1) != b"\n":
                line = b"\n" + line  # the writer before did not finish its line
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except OSError:
                with suppress(OSError):
                    file.truncate(end)
                raise


def _headers(options: StreamOptions) -> dict[str, str]:
    return {name: value for name, value in options.headers.items() if name not in _TRACING}


def _pick(options: StreamOptions, *names: str) -> dict[str, Any]:
    values = {name: _headers(options) if name == "headers" else getattr(options, name) for name in names}
    return {
        name: dict(value) if name == "extra" else value
        for name, value in values.items()
        if value not in (None, {}, ())
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


_decoder: msgspec.json.Decoder[Recording] = msgspec.json.Decoder(Recording)
