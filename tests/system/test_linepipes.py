"""Lines over two pipes: whole, in order, bounded, and nothing of a line that was cut off."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.counts import left_to_more

from swink.system.linepipes import LinePipes

LONGEST = 100_000


class Ends:
    """The other ends of both pipes."""

    def __init__(self, pipes: LinePipes, into: int, out: int) -> None:
        self.pipes, self.into, self.out = pipes, into, out

    async def write(self, data: bytes) -> None:
        """Write all of it, as fast as it is read."""
        await asyncio.to_thread(self._write, data)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.into, view) :]

    def end(self) -> None:
        os.close(self.into)
        self.into = -1


@asynccontextmanager
async def ends() -> AsyncIterator[Ends]:
    (source, into), (out, sink) = os.pipe(), os.pipe()
    both = Ends(LinePipes(source, sink, longest=LONGEST), into, out)
    try:
        yield both
    finally:
        if both.into >= 0:
            both.end()
        await both.pipes.aclose()
        for descriptor in (source, out, sink):
            with suppress(OSError):
                os.close(descriptor)


async def test_a_line_that_is_too_long_is_none_and_the_next_one_is_whole():
    async with ends() as both:
        lines = both.pipes.lines()
        writing = asyncio.create_task(both.write(b"x" * (LONGEST + 1) + b"\nnext\n" + b"y" * LONGEST + b"\n"))
        assert [await anext(lines) for _ in range(3)] == [None, b"next", b"y" * LONGEST]
        await writing


async def test_a_line_that_never_ends_takes_no_more_room_than_a_long_one():
    async with ends() as both:
        taken: list[bytes | None] = []
        over = asyncio.Event()
        both.pipes.start(taken.append, over.set)
        for _ in range(50):
            await both.write(b"x" * LONGEST)
        both.end()
        await over.wait()
        assert taken == []


async def test_the_part_of_a_line_before_the_end_is_dropped():
    async with ends() as both:
        await both.write(b"whole\n\nhalf of a li")
        both.end()
        assert [line async for line in both.pipes.lines()] == [b"whole"]


@left_to_more
async def test_whoever_takes_lines_slowly_holds_up_whoever_writes_them():
    async with ends() as both:
        lines = both.pipes.lines()
        writing = asyncio.create_task(both.write(b"0123456789abcdef\n" * 200_000))
        first = await anext(lines)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not writing.done(), "two hundred thousand lines fit into no pipe"
        assert first == b"0123456789abcdef"
        both.pipes.hurry()
        for _ in range(199_999):
            await anext(lines)
        await writing


async def test_lines_are_written_whole_and_in_order_and_drained_waits_for_the_reader():
    async with ends() as both:
        both.pipes.start(lambda line: None, lambda: None)
        for number in range(40):
            both.pipes.send(str(number).encode() * 50_000)
        draining = asyncio.create_task(both.pipes.drained())
        await asyncio.sleep(0)
        assert not draining.done()
        reading = asyncio.to_thread(_read_lines, both.out, 40)
        assert [line[:2] for line in await reading] == [
            f"{number}{number}".encode()[:2] for number in range(40)
        ]
        await draining


async def test_once_nobody_reads_nothing_waits():
    async with ends() as both:
        both.pipes.start(lambda line: None, lambda: None)
        os.close(both.out)
        for _ in range(30):
            both.pipes.send(b"x" * LONGEST)
        await both.pipes.drained()
        assert both.pipes.is_gone


def _read_lines(descriptor: int, count: int) -> list[bytes]:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return [file.readline() for _ in range(count)]
