"""The proxy protocol, version 2: what `ProxyStreamFn` sends and `swink.serve.proxyserver` answers.

    POST {base}/v1/stream   authorization: Bearer …
        {version, revision, model, system, messages, tools, hosted, output, options}
    ◀ text/event-stream     one stream event per `data:` line, the first is
        {"type": "start", "version": 2, "revision": 1}

Both sides read past fields and events that they do not know, so version 2 grows by revisions: each side says
its own, and neither sends what the other cannot read past. Revision 1 has blocks that arrive whole, hosted
tools, an output schema and more options; a client of revision 0 gets an empty thought where such a block is,
and a server of revision 0 leaves out what it does not know, which the client reports.

Version 1 has no version field and no tools, its model is a string, and its errors carry `error_message`
instead of a kind.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from swink.errors import StreamError
from swink.messages import (
    AssistantMessage,
    Audio,
    Document,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    NamedFile,
    Text,
    ThinkingLevel,
    ToolResultMessage,
    UrlSource,
    Usage,
)
from swink.messages.codec import plain
from swink.messages.jsondata import list_of, object_of
from swink.messages.providertools import FileSearch, HostedTool, ProviderTool
from swink.stream import (
    UNREPORTED,
    AssistantMessageEvent,
    Done,
    Error,
    LlmContext,
    OutputSchema,
    Start,
    StreamOptions,
    encode_event,
)

_WEB = re.compile(r"https?://|data:", re.I)
_OWN = re.compile(r"\s*(?:s3|gs|file):", re.I)
VERSION = 2
REVISION = 1
PROVIDER = "proxy"


class WireModel(Struct, frozen=True, omit_defaults=True):
    """Which model, and how hard it should think."""

    provider: str
    model_id: str
    thinking_level: ThinkingLevel = "off"
    thinking_budgets: dict[str, int] = field(default_factory=dict[str, int])


class WireTool(Struct, frozen=True):
    """What the model is told about a tool."""

    name: str
    description: str
    parameters_schema: dict[str, Any]


class WireOptions(Struct, frozen=True, omit_defaults=True):
    """The options that travel; a key never does."""

    temperature: float | None = None
    max_tokens: int | None = None
    session_id: str | None = None
    tool_choice: str | None = None
    cache: bool | Literal["5m", "1h"] = True
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    service_tier: str | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    parallel_tool_calls: bool | None = None


class WireRequest(Struct, frozen=True):
    """One request; a request without a version is of version 1."""

    model: WireModel | str
    system: str = ""
    messages: list[LlmMessage] = field(default_factory=list[LlmMessage])
    tools: tuple[WireTool, ...] = ()
    options: WireOptions = WireOptions()
    version: int = 1
    revision: int = 0
    hosted: tuple[HostedTool, ...] = ()
    output: OutputSchema | None = None


def request_body(
    model: ModelSpec, context: LlmContext, messages: Sequence[Any], options: StreamOptions, version: int
) -> dict[str, Any]:
    """The body that asks for a reply."""
    provider, model_id = upstream_of(model.provider, model.model_id)
    named: dict[str, Any] = {"provider": provider, "model_id": model_id}
    named["thinking_level"] = model.thinking_level
    if model.thinking_budgets:
        named["thinking_budgets"] = model.thinking_budgets
    body: dict[str, Any] = {
        "version": version,
        "revision": REVISION,
        "model": named,
        "system": context.system_prompt,
        "messages": messages,
        "tools": [WireTool(tool.name, tool.description, tool.parameters_schema) for tool in context.tools],
        "options": _encode_options(options),
    }
    if version == 1:
        body["model"] = model_id if provider == PROVIDER else f"{provider}:{model_id}"
        del body["version"], body["revision"], body["tools"]
        return body
    if context.hosted:
        body["hosted"] = list(context.hosted)
    if context.output is not None:
        body["output"] = context.output
    return body


def newer_than_revision_0(context: LlmContext, options: StreamOptions) -> list[str]:
    """What a request asks for that a server of revision 0 reads past."""
    asked = {"hosted": bool(context.hosted), "output": context.output is not None}
    asked |= {name: getattr(options, name) != getattr(_DEFAULTS, name) for name in _NEWER_OPTIONS}
    return [name for name, is_asked in asked.items() if is_asked]


def encode_message(message: LlmMessage) -> dict[str, Any]:
    """A message without what is nobody else's: details and cost."""
    data: dict[str, Any] = msgspec.to_builtins(
        msgspec.structs.replace(message, details=None) if isinstance(message, ToolResultMessage) else message,
        enc_hook=plain,
    )
    if isinstance(message, AssistantMessage):
        data["provider"], data["model"] = upstream_of(message.provider, message.model)
    data.pop("details", None)
    data.pop("cost", None)
    return data


def decode_request(body: bytes) -> WireRequest:
    """A request from its body; `msgspec.DecodeError` for what does not fit, `StreamError` for a path."""
    request = _request_decoder.decode(body)
    for message in request.messages:
        for block in message.content:
            _refuse_own_data(block)
    for tool in request.hosted:
        if isinstance(tool, FileSearch):
            raise StreamError("file search is refused: it would search stores of the server's account")
        if isinstance(tool, ProviderTool):
            _refuse_references(dict(tool.spec))
    _refuse_references(request.options.extra)
    return request


def encode_reply(event: AssistantMessageEvent) -> bytes:
    """One event as the line that carries it; the terminals spell out every field."""
    match event:
        case Start():
            data = b'{"type":"start","version":%d,"revision":%d}' % (VERSION, REVISION)
        case Done(stop_reason, usage, cost):
            paid = {} if cost is None else {"cost": asdict(cost)}
            done = {"type": "done", "stop_reason": stop_reason, "usage": asdict(usage), **paid}
            data = msgspec.json.encode(done)
        case Error(message, kind, retry_after, usage):
            failed = {"type": "error", "kind": kind, "message": message, "retry_after": retry_after}
            data = msgspec.json.encode({**failed, "usage": asdict(usage)})
        case _:
            data = encode_event(event)
    return b"data: " + data + b"\n\n"


def decode_reply(data: bytes, version: int) -> AssistantMessageEvent | None:
    """One event from its JSON; None for an unknown type, `msgspec.DecodeError` for what does not fit."""
    try:
        event = _event_decoder.decode(data)
    except msgspec.ValidationError:
        match msgspec.json.decode(data):
            case {"type": "error", "error_message": str() as message, **rest}:
                usage = msgspec.convert(rest["usage"], Usage) if rest.get("usage") else UNREPORTED
                kind = "aborted" if rest.get("stop_reason") == "aborted" else None
                return Error(message, kind, None, usage)
            case {"type": str() as name} if name not in _KNOWN:
                return None
            case _:
                raise
    if version == 1 and isinstance(event, Done) and event.cost is not None and not event.cost.total:
        # Version 1 cannot say that the price is unknown: it sends a cost of zero.
        return Done(event.stop_reason, event.usage)
    return event


def version_of(data: bytes) -> tuple[int, int]:
    """The version and the revision that a start event announces."""
    try:
        announced = _announcement_decoder.decode(data)
    except msgspec.DecodeError:
        return 1, 0
    return announced.version, announced.revision


def upstream_of(provider: str, model_id: str) -> tuple[str, str]:
    """The provider and model behind `proxy:provider:model`; any other model is named by itself."""
    if provider == PROVIDER and ":" in model_id:
        upstream, _, name = model_id.partition(":")
        return upstream, name
    return provider, model_id


class _Announcement(Struct, frozen=True):
    version: int = 1
    revision: int = 0


def _encode_options(options: StreamOptions) -> dict[str, Any]:
    given = {name: getattr(options, name) for name in WireOptions.__struct_fields__}
    return {name: value for name, value in given.items() if value != getattr(_DEFAULTS, name)}


def _refuse_own_data(block: Any) -> None:
    """Refuse a block that names a file of the server's, or what only the server's own account may read."""
    match block:
        case Extension(_, data):
            _refuse_references(data)
        case Text(_, citations):
            for citation in citations:
                _refuse_references(citation.data)
        case Image(NamedFile()) | Document(NamedFile()) | Audio(NamedFile()):
            kind = type(block).__name__.lower()
            raise StreamError(f"{kind}s must be inline or URLs; a path means nothing here")
        case Image(UrlSource(url)) | Document(UrlSource(url)) | Audio(UrlSource(url)) if not _WEB.match(url):
            raise StreamError(f"{type(block).__name__.lower()}s must be inline or https URLs")
        case _:
            pass


def _refuse_references(value: Any) -> None:
    match value:
        case str() if _OWN.match(value):
            why = "they would be read with the server's rights"
            raise StreamError(f"s3:, gs: and file: addresses are refused: {why}")
        case dict() | list():
            for item in [*object_of(value).values(), *list_of(value)]:
                _refuse_references(item)
        case _:
            pass


_DEFAULTS = StreamOptions()
_NEWER_OPTIONS = ("top_p", "stop", "seed", "service_tier", "verbosity", "parallel_tool_calls")
_KNOWN = frozenset(str(cls.__struct_config__.tag) for cls in AssistantMessageEvent.__args__)
_request_decoder: msgspec.json.Decoder[WireRequest] = msgspec.json.Decoder(WireRequest)
_event_decoder: msgspec.json.Decoder[AssistantMessageEvent] = msgspec.json.Decoder(AssistantMessageEvent)
_announcement_decoder: msgspec.json.Decoder[_Announcement] = msgspec.json.Decoder(_Announcement)
