"""Server-sent events out: the numbered events of a run as a stream that clients take up again."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from swink.events.eventlines import encode_event
from swink.serve.hosting import Numbered
from swink.serve.web.exchange import StreamWriter
from swink.serve.wire import Refused

BEGIN = b"retry: 1000\n\n"
"""How soon a client that was cut off comes back, in milliseconds."""
AT_ONCE = 256 * 1024
"""Bytes of events that are sent in one write."""
SILENT = b": still here\n\n"


def last_event_id(text: str | None) -> int:
    """The number after which a client wants events; 0 for one that has none."""
    if not text:
        return 0
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise Refused(400, "Last-Event-ID is the number of the last event that you have")
    return int(text)


async def send_events(
    writer: StreamWriter,
    batches: AsyncGenerator[list[Numbered], None],
    frame: Callable[[Numbered], bytes] | None = None,
) -> None:
    """Send batches of events, each in one write; an empty one says that the stream is still there.

    Without `frame` they are sent as they are, each with its number.
    """
    frame = frame or numbered_frame
    await writer.write(BEGIN)
    async with aclosing(batches):
        async for batch in batches:
            frames, size = [SILENT] if not batch else list[bytes](), 0
            for numbered in batch:
                frames.append(frame(numbered))
                size += len(frames[-1])
                if size > AT_ONCE:  # so much a reader has to take in time, not all that has gathered
                    await writer.write(b"".join(frames))
                    frames, size = [], 0
            if frames:
                await writer.write(b"".join(frames))


def numbered_frame(numbered: Numbered) -> bytes:
    """An event as a server-sent event; it is made once, however many read it."""
    if not numbered.frame:
        numbered.frame = b"id: %d\ndata: %s\n\n" % (numbered.id, encode_event(numbered.event))
    return numbered.frame
