"""Embeddings, and the model behind llama.cpp's own HTTP server."""

import asyncio
import math

import aiohttp
import pytest

from swink.errors import ContextWindowOverflow, InvalidInput, MisuseError
from swink.local import Embedder, LoadFailed, LocalEmbedder, LocalStreamFn, serve_model, similarity


async def test_vectors_have_length_one_and_come_in_order(weights: object):
    embedder: Embedder = LocalEmbedder(context=64, batch=2)
    cat, car, again, empty = await embedder.embed(["a cat", "a fast red car", "a cat", ""])
    assert all(
        math.isclose(math.fsum(value * value for value in vector), 1, rel_tol=1e-6)
        for vector in (cat, car, again, empty)
    )
    assert similarity(cat, again) == pytest.approx(1, abs=1e-3)
    assert similarity(cat, car) < 0.99
    assert await embedder.embed([]) == []
    with pytest.raises(ContextWindowOverflow, match="cannot be embedded"):
        await embedder.embed(["word " * 100])
    one, two = await asyncio.gather(embedder.embed(["a cat"]), embedder.embed(["a fast red car"]))
    assert (similarity(one[0], cat), similarity(two[0], car)) == (
        pytest.approx(1, abs=1e-3),
        pytest.approx(1, abs=1e-3),
    )
    task = asyncio.create_task(embedder.embed(["never mind"] * 6))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    LocalEmbedder.close(embedder)  # pyright: ignore[reportArgumentType]


async def test_wrong_input_is_refused_with_what_to_change():
    with pytest.raises(InvalidInput, match=r"a list of texts.*\[text\]"):
        await LocalEmbedder().embed("one text, not its letters")
    with pytest.raises(InvalidInput, match="batch is 0"):
        LocalEmbedder(batch=0)
    with pytest.raises(InvalidInput, match="2 and 1 numbers"):
        similarity([1.0, 0.0], [1.0])
    for wrong in ({"context": "2048"}, {"threads": 0}, {"parallel": True}, {"batch": 1.5}):
        with pytest.raises(InvalidInput, match=f"{next(iter(wrong))} is .* at least 1"):
            LocalStreamFn(**wrong)


async def test_the_server_speaks_openai_and_anthropic_until_it_is_stopped(weights: object):
    served = await asyncio.to_thread(serve_model, context=256, parallel=1, api_key="sk-only-for-this-test")
    asked = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "model": served.name}
    key = {"authorization": "Bearer sk-only-for-this-test"}
    async with aiohttp.ClientSession() as session:
        async with session.post(
            f"{served.openai_base_url}/chat/completions", json=asked, headers=key
        ) as answer:
            assert (await answer.json())["choices"][0]["message"]["content"]
        async with session.post(
            f"{served.anthropic_base_url}/v1/messages", json=asked, headers=key
        ) as answer:
            assert (await answer.json())["content"][0]["type"] == "text"
        async with session.post(f"{served.openai_base_url}/chat/completions", json=asked) as answer:
            assert answer.status == 401
    port = int(served.address.rpartition(":")[2])
    with pytest.raises(LoadFailed, match=f"port {port} of 127.0.0.1 is taken"):
        await asyncio.to_thread(serve_model, port=port, context=256, parallel=1)
    served.stop()
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port)


def test_the_network_needs_a_key():
    with pytest.raises(MisuseError, match="api_key"):
        serve_model(host="0.0.0.0")
