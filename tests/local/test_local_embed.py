"""Embeddings."""

import asyncio
import math

import pytest
from talking import ask
from tests.counts import left_to_more

from swink.errors import ContextWindowOverflow, InvalidInput
from swink.local import Embedder, LocalEmbedder, LocalStreamFn, similarity
from swink.local.llamacpp import physical_cores


@left_to_more
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


@left_to_more
async def test_agents_and_embeddings_share_one_model_and_the_prompt_stays_read(weights: object):
    function, embedder = LocalStreamFn(threads=physical_cores()), LocalEmbedder(threads=physical_cores())
    shared = function.model("smollm2-135m")
    first, long = await embedder.embed(["a cat", "word " * 50])  # longer than a batch
    assert math.isclose(math.fsum(value * value for value in long), 1, rel_tol=1e-6)
    server = shared.servers()[0]
    before = (await ask(function, "Say blue.", max_tokens=2))[1].usage
    cat, kitten, prices = await embedder.embed(["a cat", "a kitten", "stock market prices fell today"])
    assert similarity(cat, kitten) > similarity(cat, prices)
    assert similarity(cat, first) == pytest.approx(1, abs=1e-3)
    after = (await ask(function, "Say blue.", max_tokens=2))[1].usage
    assert after.cache_read >= before.input - 1
    assert shared.servers() == [server]
    assert embedder.servers() == []
    shared.unload()


@left_to_more
async def test_embeddings_wait_for_their_turn_and_one_who_leaves_gives_the_place_back(weights: object):
    function = LocalStreamFn(context=256, parallel=1, threads=physical_cores())
    model = function.model("smollm2-135m")
    request = {"input": ["a cat"] * 8}
    for _ in range(3):
        task = asyncio.create_task(model.embed(request, "leaves"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    talk, answer = await asyncio.gather(
        ask(function, "Say blue.", max_tokens=4), model.embed({"input": ["a cat"]}, "stays")
    )
    assert talk[1].usage.output
    assert len(answer["data"]) == 1
    model.unload()
