"""What is told about the speed of a local model: measured, or plainly not."""

from pathlib import Path

import pytest

from swink.app.assistant.localspeed import expectation
from swink.app.assistant.settings import load_settings
from swink.local import LocalModelError, speed
from swink.local.speed import MachinePace


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path))


async def test_a_model_that_is_not_here_is_said_not_to_be_measured():
    told = await expectation("qwen2.5-coder-1.5b")
    assert told == "How fast qwen2.5-coder-1.5b is on this machine is not measured: it is not here yet."


async def test_a_measurement_that_fails_is_told_with_its_reason(tmp_path: Path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"no model")
    told = await expectation(str(path))
    assert "could not be measured" in told
    assert "not a GGUF model file" in told


async def test_what_was_measured_is_told_in_tokens_and_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def measured(model_id: str) -> MachinePace:
        return MachinePace(reading=40.0, writing=20.0)

    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(speed, "pace", measured)
    told = await expectation(str(path))
    assert "writes 20 tokens a second on this machine" in told
    assert "first word comes after about 0.6 s" in told
    assert "takes about 15 s, the first time only" in told


async def test_a_model_that_writes_nothing_is_no_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def measured(model_id: str) -> MachinePace:
        raise LocalModelError("it wrote too little")

    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(speed, "pace", measured)
    assert "could not be measured: it wrote too little" in await expectation(str(path))


@pytest.mark.parametrize(("written", "layers"), [('"auto"', None), ('"off"', 0), ("12", 12), ('"on"', None)])
def test_the_setting_of_the_gpu_is_a_word_or_a_number_of_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, layers: int | None
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "swink" / "config.toml"
    file.parent.mkdir()
    file.write_text(f"[local]\ngpu = {written}\n", "utf-8")
    settings = load_settings()
    assert settings.local.gpu_layers == layers
    assert bool(settings.problems) == (written == '"on"')
