"""Readers that do not read: they are cut off, hold nobody up, and may come back."""

import asyncio

import pytest
from tests.counts import left_to_more
from tests.serve.served import served, types

from swink.serve.hosting import ServeLimits


@left_to_more
@pytest.mark.more
async def test_a_reader_that_does_not_read_is_cut_off_and_may_come_back():
    script = [["x" * 40_000 for _ in range(400)], "next"]
    async with served(script, limits=ServeLimits(send_seconds=1.0)) as client:
        id = await client.begin()
        run = await client.start(id)
        host, port = client.base_url.host, client.base_url.port
        reader, writer = await asyncio.open_connection(host, port, limit=1)
        path = f"/conversations/{id}/runs/{run}/events"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        await writer.drain()
        events = await client.events(id, run)
        other = await client.start(id, "again")
        assert types(await client.events(id, other))[-1] == "agent_end"
        await asyncio.sleep(2)  # longer than a reader may take; it read nothing
        read = b""
        try:
            while more := await reader.read(1 << 20):
                read += more
        except ConnectionError:
            pass
        writer.close()
        assert b"agent_end" not in read
        lines = [line for line in read.split(b"\n") if line.startswith(b"id: ")]
        last = int(lines[-2][4:])
        assert await client.events(id, run, last) == events[last:]
    assert events[-1][1]["stop_reason"] == "stop"
