"""A transport whose refusals are read by the adapter: for providers that say more in an error than status and message."""

from collections.abc import Callable

import msgspec

from swink.errors import ModelError
from swink.providers.failure import read_capped
from swink.providers.http import Request, Response, Transport, transport_for
from swink.stream import StreamOptions, Timeout

Explain = Callable[[Response, bytes], ModelError]


def refusing(options: StreamOptions, explain: Explain) -> StreamOptions:
    """The options with a transport that raises what `explain` makes of an answer of 4xx or 5xx and its body."""
    return msgspec.structs.replace(options, transport=_Refusing(transport_for(options), explain))


class _Refusing:
    def __init__(self, transport: Transport, explain: Explain) -> None:
        self._transport = transport
        self._explain = explain

    async def send(self, request: Request, timeout: Timeout) -> Response:
        response = await self._transport.send(request, timeout)
        if response.status < 400:
            return response
        try:
            raise self._explain(response, await read_capped(response))
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()
