"""ChaosModel: a model that fails, stalls and misbehaves where a test wants it to."""

import asyncio
from collections.abc import AsyncIterator, Callable

from swink.messages import ModelSpec
from swink.stream import AssistantMessageEvent, Error, LlmContext, Start, StreamFn, StreamOptions, TextDelta
from swink.system.aio import closing


class ChaosModel:
    """Wraps a stream function and disturbs it at chosen points.

    `disturb(request, event)` gets the number of the request and of the event in it, both from 0, and returns
    None (leave it), seconds (a delay before the event), "disconnect" (the stream just ends), "malformed",
    "error" (a retryable one), "cancel" (the running task is cancelled), or an exception to raise.

    Args:
        stream_fn: what is disturbed
        disturb: says how, for each event
    """

    def __init__(
        self, stream_fn: StreamFn, disturb: Callable[[int, int], float | str | BaseException | None]
    ) -> None:
        self._stream_fn = stream_fn
        self._disturb = disturb
        self.requests = 0

    async def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncIterator[AssistantMessageEvent]:
        request = self.requests
        self.requests += 1
        number = 0
        async with closing(self._stream_fn(model, context, options)) as stream:
            async for event in stream:
                match self._disturb(request, number):
                    case "disconnect":
                        return
                    case "malformed":
                        yield TextDelta(997, "malformed")
                    case "error":
                        if number == 0:
                            yield Start()
                        yield Error("chaos", "network")
                        return
                    case "cancel":
                        task = asyncio.current_task()
                        assert task is not None
                        task.cancel()
                        await asyncio.sleep(0)
                    case BaseException() as error:
                        raise error
                    case float() | int() as seconds:
                        await asyncio.sleep(seconds)
                    case _:
                        pass
                yield event
                number += 1
