"""What a delta costs on its way through the proxy: CPU of the server and of the client.

    python benchmarks/proxy.py [--deltas 20000] [--rounds 5]

`ready` is a model whose deltas are all there, `chunks` one that gives eight at a time, `single` one that
gives them one by one. The client is `ProxyStreamFn`.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

TOKEN = "a-token-for-the-benchmark"
BATCHES = {"ready": 0, "chunks": 8, "single": 1}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deltas", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--server", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.server:
        asyncio.run(serve(options.deltas))
        return
    with subprocess.Popen(
        [sys.executable, __file__, "--server", "--deltas", str(options.deltas)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        print("| deltas are | server µs a delta | client µs a delta | deltas a second and core |")
        print("|---|---:|---:|---:|")
        for name in BATCHES:
            rows = [asyncio.run(measure(url, name, options.deltas)) for _ in range(options.rounds + 1)][1:]
            served, read = (statistics.median(row[at] for row in rows) for at in (0, 1))
            print(f"| {name} | {served:.1f} | {read:.1f} | {1e6 / served:,.0f} |")
        server.stdin.close()


async def measure(url: str, name: str, deltas: int) -> tuple[float, float]:
    """CPU microseconds a delta: of the server, and of the client."""
    from swink.messages import ModelSpec, UserMessage
    from swink.providers.proxy import ProxyStreamFn
    from swink.stream import LlmContext, StreamOptions, TextDelta

    fn = ProxyStreamFn(base_url=url, api_key=TOKEN)
    before = await spent(url)
    began = time.process_time()
    seen = 0
    async for event in fn(ModelSpec("bench", name), LlmContext("", [UserMessage("go")]), StreamOptions()):
        seen += type(event) is TextDelta
    client = time.process_time() - began
    assert seen == deltas, f"{seen} of {deltas} deltas came"
    return (await spent(url) - before) / deltas * 1e6, client / deltas * 1e6


async def spent(url: str) -> float:
    """CPU seconds of the server so far."""
    import aiohttp

    async with aiohttp.ClientSession() as session, session.get(f"{url}/spent") as answer:
        return json.loads(await answer.text())


async def serve(deltas: int) -> None:
    """A proxy before a model that costs nothing, until its standard input closes."""
    from swink.serve.asgi import serve_app
    from swink.serve.proxyserver import proxy_app
    from swink.stream import Done, Start, TextDelta, TextEnd, TextStart

    async def model(spec: Any, context: Any, options: Any) -> AsyncIterator[Any]:
        batch = BATCHES[spec.model_id]
        yield Start()
        yield TextStart(0)
        for number in range(deltas):
            if batch and number % batch == 0:
                await asyncio.sleep(0)
                await asyncio.sleep(0)  # as long as a read of a socket takes
            yield TextDelta(0, "token ")
        yield TextEnd(0)
        yield Done()

    proxy = proxy_app({"bench": model}, {TOKEN: ["bench:*"]})

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != "/spent":
            await proxy(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(time.process_time()).encode()})

    async with serve_app(app) as url:
        print(url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    main()
