"""A GPU is used if it works; there is none here, so the devices and the failing tests are stand-ins."""

import logging
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.counts import left_to_more

from swink.local import LoadCancelled, Settings, offload
from swink.local.offload import run_test, with_working_gpu
from swink.system.programs import Command, environment

GPU = "a stand-in of a GPU"


@pytest.fixture
def path(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file on a machine with a GPU."""
    monkeypatch.setattr(offload, "gpu_names", lambda: [GPU])
    monkeypatch.setattr(offload, "_told", set())
    path = tmp_path / "model.gguf"
    path.write_bytes(b"no model")
    return path


def choose(path: Path, settings: Settings = Settings()) -> Settings:
    return with_working_gpu(path, settings, threading.Event())


def test_a_test_that_fails_leaves_the_cpu_is_told_once_and_not_repeated(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    with caplog.at_level(logging.WARNING, "swink.local"):
        assert choose(path).gpu_layers == 0
        monkeypatch.setattr(offload, "run_test", lambda *_: pytest.fail("it was tested again"))
        assert choose(path).gpu_layers == 0
    (record,) = caplog.records
    assert f"{GPU} is not used, the CPU is: its test failed (it exited with 1)" in record.getMessage()
    assert 'gpu = "off"' in record.getMessage()


def test_a_failure_is_forgotten_after_a_day_and_a_damaged_memory_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
):
    tests: list[str] = []

    def fail(*_: object) -> str:
        tests.append("tested")
        return "broken"

    monkeypatch.setattr(offload, "run_test", fail)
    choose(path)
    (own_cache / "gpu-tests.json").write_bytes(b"{")
    choose(path)
    assert len(tests) == 2
    now = time.time() + 100_000
    monkeypatch.setattr(offload.time, "time", lambda: now)
    choose(path)
    assert len(tests) == 3


@left_to_more
def test_a_gpu_that_works_is_used_and_tested_once_for_these_weights(weights: Path, path: Path, monkeypatch):
    assert choose(weights).gpu_layers is None  # a child process has loaded the model, and it wrote
    monkeypatch.setattr(offload, "run_test", lambda *_: "another file")
    assert choose(weights).gpu_layers is None
    assert choose(path).gpu_layers == 0


def test_without_a_gpu_or_with_it_off_nothing_is_tested(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(offload, "run_test", lambda *_: pytest.fail("it was tested"))
    assert choose(path, Settings(gpu_layers=0)) == Settings(gpu_layers=0)
    monkeypatch.setattr(offload, "gpu_names", list)
    assert choose(path, Settings(gpu_layers=7)) == Settings(gpu_layers=7)


def running(program: str) -> Command:
    return Command((sys.executable, "-I", "-c", program), None, environment())


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("pass", ""),
        ("import os; os.abort()", "it was ended by signal 6"),
        ("raise SystemExit(3)", "it exited with 3"),
        ("import time; time.sleep(60)", "it did not end within 0.5 s"),
    ],
)
def test_however_a_test_ends_it_is_said_in_words(program: str, told: str):
    assert run_test(running(program), threading.Event(), 0.5 if told[:6] == "it did" else 60) == told


def test_a_load_that_is_stopped_ends_the_test():
    stop = threading.Event()
    stop.set()
    with pytest.raises(LoadCancelled):
        run_test(running("import time; time.sleep(60)"), stop)
