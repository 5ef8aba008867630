"""The speed of a model on this machine."""

from pathlib import Path

from tests.counts import left_to_more

from swink.local import Settings, local_model
from swink.local.speed import MachinePace, pace


@left_to_more
async def test_a_second_of_writing_tells_the_pace_and_leaves_the_model_loaded(weights: Path):
    settings = Settings(context=512, parallel=1)
    measured = await pace("smollm2-135m", settings, seconds=0.2)
    assert measured.reading > 0
    assert measured.writing > 0
    assert local_model("smollm2-135m", settings).servers()
    local_model("smollm2-135m", settings).unload()


def test_the_first_word_comes_after_the_prompt_was_read():
    assert MachinePace(reading=50.0, writing=10.0).first_word(100) == 2.1
