"""Adapter: a stream function for a provider, composed of a wire and an address.

    history ── wire.conversation ─▶ items ── wire.body ─▶ request ── exchange ── wire.decoder ─▶ stream events

A `Wire` is a protocol that one or more providers speak: it turns a context into the body of a request, and
the bytes of the answer into calls on a `BlockWriter`. What is left to a provider is where it is and who asks.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct

from swink.errors import ModelError
from swink.messages import ModelSpec
from swink.messages.providertools import McpConnector
from swink.providers.conversations import Conversations, WireConversation
from swink.providers.endpoint import Endpoint, provider_endpoint
from swink.providers.exchange import Again, Decoder, encode_body, exchange, merge_objects
from swink.providers.failure import refusal
from swink.providers.http import Request, Response, shared_client
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.stream import AssistantMessageEvent, BlockWriter, LlmContext, StreamOptions, Timeout, observer
from swink.stream.urls import checked_headers

LOCAL = Timeout(idle=600, first=600)
"""The time limits of servers on this machine, which may have to load a model first."""


class Ask(Struct):
    """One request for a reply, as a wire sees it."""

    model: ModelSpec
    name: str
    """What the request calls the model."""
    context: LlmContext
    options: StreamOptions
    notices: Notices
    conversation: WireConversation | None = None
    """The history in the provider's words; `body` gets its items."""


class Wire:
    """A protocol that providers speak; what is not said here is common to most."""

    honours: frozenset[str] = ALL_OPTIONS
    """The options that can be honoured; any other is reported by name when it is set."""
    accept: ClassVar[str] = "text/event-stream"
    refused_types: ClassVar[tuple[str, ...]] = ("text/html", "application/json")

    def conversation(self, model: ModelSpec) -> WireConversation:
        """An empty conversation with a model; it is kept, and grows with the history."""
        raise NotImplementedError

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        """The body of a request; `messages` are the conversation's items, which must not be changed."""
        raise NotImplementedError

    def decoder(self, reply: BlockWriter, ask: Ask) -> Decoder:
        raise NotImplementedError

    def headers(self, ask: Ask) -> Mapping[str, str]:
        """Headers of the protocol itself."""
        return {}

    def explain(self, response: Response, body: bytes) -> ModelError:
        return refusal(response, body)

    def extra(self, ask: Ask) -> Mapping[str, Any]:
        """What the caller adds to the body."""
        return ask.options.extra

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether the provider itself sees to it that an answer has the schema of `context.output`."""
        return False

    def native_search(self, model: ModelSpec) -> bool:
        """Whether the provider itself searches the tools of a context that are `deferred`."""
        return False


class Adapter:
    """The stream function of a provider. `headers` go with every request, over those it sets itself."""

    provider: ClassVar[str]
    wire: Wire
    path: ClassVar[str] = ""
    """What follows the base URL, where that is the same for all models."""
    key_header: ClassVar[str] = ""
    """The header that carries the key; empty: it is a bearer token."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        endpoint = provider_endpoint(self.provider, base_url, api_key, allow_http=allow_http)
        self._set_up(endpoint, self.wire, headers)

    def _set_up(self, endpoint: Endpoint, wire: Wire, headers: Mapping[str, str] | None) -> None:
        """What every adapter has, whatever its own constructor takes."""
        self._endpoint = endpoint
        self.wire = wire
        self.base_url = endpoint.base_url
        self.honours = wire.honours
        self.timeout = LOCAL if endpoint.is_local else Timeout()
        self._headers = checked_headers(headers or {})
        self._notices = Notices(endpoint.provider, wire.honours)
        self._http = shared_client()
        self._conversations = Conversations()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        self._notices.check(options)
        wire = self.wire_for(model)
        ask = Ask(model, self.name_of(model), context, options, self._notices)

        return exchange(
            lambda: self._request(wire, ask),
            partial(self._decoder, wire, ask),
            options,
            self.timeout,
            client=self._http,
            explain=wire.explain,
            resume=lambda again: self._request(wire, ask, again),
            refused_types=wire.refused_types,
        )

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether `context.output` can be asked of the model itself."""
        return self.wire_for(model).native_output(model, context)

    def native_search(self, model: ModelSpec) -> bool:
        """Whether the model may be sent deferred tools."""
        return self.wire_for(model).native_search(model)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(sorted(self._headers.items()))

    async def aclose(self) -> None:
        """Close the connections of this event loop that no other adapter uses."""
        self._conversations.clear()
        await self._http.aclose()

    def wire_for(self, model: ModelSpec) -> Wire:
        """The protocol that a model is spoken to in."""
        return self.wire

    def name_of(self, model: ModelSpec) -> str:
        """What a request calls the model."""
        return model.model_id

    def url(self, ask: Ask) -> str:
        """Where a request goes that asks for what `ask` says."""
        return f"{self.base_url}{self.path}"

    async def authorization(self, ask: Ask, url: str, body: bytes) -> Mapping[str, str]:
        """The headers that say who asks, for a `body` to `url`: the key, if `ask` or we have one."""
        await self._endpoint.prepare_key(ask.options.api_key)
        key = self._endpoint.key(ask.options.api_key)
        if not key:
            return {}
        return {self.key_header: key} if self.key_header else {"authorization": f"Bearer {key}"}

    def _decoder(self, wire: Wire, ask: Ask, reply: BlockWriter) -> Decoder:
        if observer.current is not None:
            observer.current.exchange(self.url(ask), reply)
        return wire.decoder(reply, ask)

    async def _request(self, wire: Wire, ask: Ask, again: Again | None = None) -> Request:
        context = ask.context
        items = self._conversations.items(context.messages, ask.model, wire.conversation)
        ask.conversation, messages = items
        if again is not None:
            messages += again.items
        body = wire.body(ask, messages)
        if again is not None:
            body |= again.fields
        if extra := wire.extra(ask):
            body = merge_objects(extra, body, ask.notices.report)
        data = encode_body(body)
        url = self.url(ask)
        own = {"content-type": "application/json", "accept": wire.accept, **wire.headers(ask)}
        own |= await self.authorization(ask, url, data)
        headers = self._endpoint.check_headers(own, self._headers, ask.options.headers)
        tokens = [tool.token for tool in context.hosted if isinstance(tool, McpConnector) and tool.token]
        return Request(url, headers, data, secrets=tuple(tokens))
