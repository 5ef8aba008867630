"""How many tokens are read at a time: as many as can be stopped soon, by measured speed."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talking import ask
from tests.counts import left_to_more, tried

from swink.local import LocalStreamFn, Settings, readingpace
from swink.local.gguf import read_head
from swink.local.llamacpp import _parameters, open_model
from swink.local.readingpace import FEWEST, MOST, ReadingPace, ReadingWatch


@pytest.fixture
def large(own_cache: Path, tmp_path: Path) -> Path:
    """A file of the size of a model with one and a half billion parameters, without any content."""
    path = tmp_path / "large.gguf"
    with path.open("wb") as file:
        file.truncate(1_117_320_768)
    return path


class Runtime:
    """A stand-in for a build of llama.cpp."""

    __version__ = "1"

    def __init__(self, can: str) -> None:
        self.can = can

    def get_system_info(self) -> str:
        return self.can


def use_build(monkeypatch: pytest.MonkeyPatch, can: str) -> None:
    monkeypatch.setattr(readingpace, "require_runtime", lambda: Runtime(can))


def test_without_a_measurement_large_weights_are_read_in_few_tokens_and_small_ones_in_sixteen(
    large: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
):
    use_build(monkeypatch, "CPU : NEON = 1 | ARM_FMA = 1 | DOTPROD = 0 |")
    assert ReadingPace(large, 2).batch() == 2
    assert ReadingPace(weights, 2).batch() == 16
    use_build(monkeypatch, "CPU : NEON = 1 | ARM_FMA = 1 | DOTPROD = 1 |")
    assert ReadingPace(large, 2).batch() == 6
    assert ReadingPace(large, 64).batch() == 16


def test_the_fastest_speed_that_was_seen_decides_for_this_model_and_number_of_threads(large: Path):
    pace = ReadingPace(large, 2)
    pace.note(40.0)
    assert pace.batch() == 10
    pace.note(8.0)  # the machine was busy
    assert ReadingPace(large, 2).batch() == 10
    assert ReadingPace(large, 4).batch() != 10
    pace.note(100_000.0)
    assert pace.batch() == MOST
    ReadingPace(large, 1).note(0.1)
    assert ReadingPace(large, 1).batch() == FEWEST
    assert ReadingPace(large, 1).batch(parallel=3) == 3


def test_a_memory_that_is_damaged_or_cannot_be_written_is_none(large: Path, own_cache: Path):
    own_cache.mkdir()
    file = own_cache / "reading.json"
    file.write_bytes(b"{")
    pace = ReadingPace(large, 2)
    guessed = pace.batch()
    file.unlink()
    own_cache.rmdir()
    own_cache.write_text("a file in place of the directory")
    pace.note(40.0)
    assert pace.batch() == guessed


def test_no_more_than_twenty_models_are_remembered(large: Path, own_cache: Path):
    for threads in range(1, 31):
        ReadingPace(large, threads).note(10.0 * threads)
    kept = json.loads((own_cache / "reading.json").read_bytes())
    assert list(kept.values()) == [10.0 * threads for threads in range(11, 31)]


@tried(100, 1_000)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=30))
def test_any_progress_can_be_watched(told: list[tuple[int, int]]):
    watch = ReadingWatch()
    for done, total in told:
        watch.take_chunk({"prompt_progress": {"processed": done, "total": total}})
        watch.take_chunk({"choices": []})
    assert watch.speed >= 0.0


def test_a_stretch_that_is_too_short_tells_no_speed_and_each_request_is_one_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
):
    now = [0.0]
    monkeypatch.setattr(readingpace.time, "perf_counter", lambda: now[0])
    watch = ReadingWatch()
    for at, done in [(1.0, 16), (2.0, 24)]:
        now[0] = at
        watch.take_chunk({"prompt_progress": {"processed": done}})
    assert watch.speed == 0.0
    for at, done in [(3.0, 4), (5.0, 24), (7.0, 44)]:  # another request: 40 tokens in 4 s
        now[0] = at
        watch.take_chunk({"prompt_progress": {"processed": done}})
    assert watch.speed == 10.0


def test_a_batch_of_one_is_one_of_two_as_llama_cpp_ends_the_process_otherwise(weights: Path):
    head = read_head(weights)
    assert _parameters(weights, head, Settings(batch=1)).n_batch == 2
    server = open_model(weights, head, Settings(context=64, parallel=1, batch=1))
    del server


@left_to_more
async def test_what_a_model_has_read_is_remembered_for_the_next_start(weights: Path, own_cache: Path):
    (own_cache / "models").mkdir(parents=True)
    (own_cache / "models" / "smollm2-135m.gguf").symlink_to(weights)
    function = LocalStreamFn(context=512, threads=3)
    try:
        await ask(function, "word " * 60, max_tokens=1)
    finally:
        function.model("smollm2-135m").unload()
    file = own_cache / "reading.json"
    async with asyncio.timeout(30):
        while not file.exists():
            await asyncio.sleep(0.01)
    (speed,) = json.loads(file.read_bytes()).values()
    assert speed > 0
