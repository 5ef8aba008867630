"""The speed of a local model on this machine: `python -m swink.local.speed [model] [threads ...]`."""

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from msgspec import Struct

from swink.local.llamacpp import Settings, physical_cores, thread_count
from swink.local.model import LocalModel, local_model
from swink.local.progress import say_on_stderr
from swink.local.states import LocalModelError
from swink.local.weights import DEFAULT_MODEL


class Measurement(Struct, frozen=True):
    """Seconds, tokens per second, and megabytes of resident memory (0 where it is unknown)."""

    threads: int
    load: float
    reading: float
    writing: float
    abort: float
    memory: float

    def __str__(self) -> str:
        return (
            f"{self.threads} thread(s): loaded in {self.load:.2f} s, reads {self.reading:.0f} and writes "
            f"{self.writing:.0f} tokens/s, stops {self.abort * 1000:.0f} ms after an abort, "
            f"{self.memory:.0f} MB resident"
        )


class MachinePace(Struct, frozen=True):
    """Tokens per second that a model reads and writes on this machine."""

    reading: float
    writing: float

    def first_word(self, tokens: int) -> float:
        """Seconds until the first token of a reply to a prompt with so many tokens to be read."""
        return tokens / self.reading + 1 / self.writing


async def pace(
    model_id: str = DEFAULT_MODEL, settings: Settings | None = None, seconds: float = 1.0
) -> MachinePace:
    """Let a model read a little and write for about a second; it stays loaded for what follows."""
    model = local_model(model_id, settings or Settings())
    await model.ready(say_on_stderr())
    tokens, written, began, first = 0, 0, time.perf_counter(), 0.0
    async with aclosing(model.generate({**_request(256), "cache_prompt": False}, "measure")) as chunks:
        async for chunk in chunks:
            tokens = chunk.get("prompt_progress", {}).get("total", tokens)
            if any(choice.get("delta", {}).get("content") for choice in chunk.get("choices", ())):
                written += 1
                first = first or time.perf_counter()
                if written > 2 and time.perf_counter() - first > seconds:
                    break
    if written < 2 or not tokens:
        raise LocalModelError(f"local:{model_id} wrote too little to be measured")
    return MachinePace(tokens / (first - began), (written - 1) / (time.perf_counter() - first))


async def measure_threads(
    model_id: str = DEFAULT_MODEL, counts: Sequence[int] = (), tokens: int = 16
) -> list[Measurement]:
    """One measurement per number of threads: 1, all cores but one, all cores, unless others are given."""
    counts = counts or sorted({1, thread_count(), physical_cores()})
    measured: list[Measurement] = []
    for count in counts:
        settings = Settings(context=512, threads=count, parallel=1)
        measured.append(await measure(model_id, settings, tokens))
        local_model(model_id, settings).unload()
    return measured


async def measure(
    model_id: str = DEFAULT_MODEL, settings: Settings | None = None, tokens: int = 32
) -> Measurement:
    """Load the model, let it read and write a little, and abort it once."""
    settings = settings or Settings()
    model = local_model(model_id, settings)
    began = time.perf_counter()
    await model.ready(say_on_stderr())
    load = time.perf_counter() - began
    timings: dict[str, float] = {}
    async with aclosing(model.generate(_request(tokens), "measure")) as chunks:
        async for chunk in chunks:
            timings = chunk.get("timings", timings)
    abort = await _measure_abort(model)
    speeds = timings["prompt_per_second"], timings["predicted_per_second"]
    return Measurement(thread_count(settings.threads), load, *speeds, abort, _resident_megabytes())


async def _measure_abort(model: LocalModel) -> float:
    """Seconds that the model goes on after the request was closed."""
    async with aclosing(model.generate(_request(256), "measure")) as chunks:
        count = 0
        async for chunk in chunks:
            count += any(choice.get("delta", {}).get("content") for choice in chunk.get("choices", ()))
            if count == 8:
                break
    began = time.perf_counter()
    while model.generating:  # noqa: ASYNC110  an event would change what is measured
        await asyncio.sleep(0.001)
    return time.perf_counter() - began


def _request(tokens: int) -> dict[str, object]:
    messages = [{"role": "user", "content": "The quick brown fox jumps over the lazy dog. " * 6}]
    fixed = {"stream": True, "return_progress": True, "ignore_eos": True, "temperature": 0}
    return {"messages": messages, "max_tokens": tokens, **fixed}


def _resident_megabytes() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * 4096 / 1e6


if __name__ == "__main__":
    chosen, *numbers = sys.argv[1:] or [DEFAULT_MODEL]
    for measurement in asyncio.run(measure_threads(chosen, [int(number) for number in numbers], 32)):
        print(measurement, flush=True)
