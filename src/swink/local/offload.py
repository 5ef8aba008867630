"""Layers of a model on a GPU: used if the runtime reports one and a test in a process of its own works.

    no GPU, or gpu_layers=0 ─▶ CPU
    GPU ─▶ tested before? ─┬─ works ─▶ GPU
            │ no           ╰─ fails ─▶ CPU, and a warning that says so once
            ╰─▶ a child process loads the model and writes a few tokens ─▶ remembered for these weights

A broken driver ends a process, or hangs it; therefore the child.
"""

import json
import logging
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.local.gguf import read_head
from swink.local.llamacpp import Settings, gpu_names, open_model
from swink.local.prefix import state_mark
from swink.local.states import LoadCancelled
from swink.system.files import write_whole
from swink.system.places import cache_dir
from swink.system.programs import Command, environment, python_code

logger = logging.getLogger("swink.local")

_SECONDS = 180.0
_AGAIN = 86_400.0
"""Seconds after which a test that failed is repeated: the driver may have been mended."""
_CHILD = "from swink.local.offload import try_out; try_out(sys.argv[1], json.loads(sys.argv[2]))"
_told: set[str] = set()


class Trial(Struct, frozen=True):
    """How the test of a GPU ended; `problem` is empty if it works."""

    problem: str
    at: float

    @property
    def holds(self) -> bool:
        return not self.problem or time.time() - self.at < _AGAIN


def with_working_gpu(path: Path, settings: Settings, stop: threading.Event) -> Settings:
    """The settings as given if they need no GPU or it works, else those for the CPU. Blocking.

    Raises `LoadCancelled` when it is stopped.
    """
    gpus = [] if settings.gpu_layers == 0 else gpu_names()
    if not gpus:
        return settings
    mark = f"{state_mark(path, '', Settings(gpu_layers=settings.gpu_layers))} {', '.join(gpus)}"
    trials = _read()
    trial = trials.get(mark)
    if trial is None or not trial.holds:
        trial = Trial(_problem(path, settings.gpu_layers, stop), time.time())
        _write({**trials, mark: trial})
    if not trial.problem:
        return settings
    if mark not in _told:
        _told.add(mark)
        text = "%s is not used, the CPU is: its test failed (%s); it is tested again after a day, never with "
        logger.warning(text + 'gpu = "off" below [local] in config.toml', ", ".join(gpus), trial.problem)
    return replace(settings, gpu_layers=0)


def try_out(path: str, gpu_layers: int | None) -> None:
    """What the child process does: load the model and write a few tokens."""
    settings = Settings(context=256, parallel=1, gpu_layers=gpu_layers)
    server = open_model(Path(path), read_head(Path(path)), settings)
    chunks: list[Any] = []
    said = {"messages": [{"role": "user", "content": "Count to three."}], "max_tokens": 4, "stream": True}
    server.handle_chat_completions(said, chunks.append)
    if not any(chunk.get("choices") for chunk in chunks):
        raise SystemExit("it wrote nothing")


def _problem(path: Path, gpu_layers: int | None, stop: threading.Event) -> str:
    """What goes wrong in a child process, in a few words."""
    arguments = (str(path), json.dumps(gpu_layers))
    return run_test(python_code(_CHILD, *arguments, cwd=path.parent, env=environment()), stop)


def run_test(command: Command, stop: threading.Event, seconds: float = _SECONDS) -> str:
    """Run a test; how it failed, or nothing. It is ended when it is stopped or takes too long."""
    quiet = subprocess.DEVNULL
    child = command.popen(stdin=quiet, stdout=quiet, stderr=quiet)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            if stop.is_set():
                raise LoadCancelled("the test of the GPU was cancelled")
            try:
                code = child.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            if code == 0:
                return ""
            return f"it was ended by signal {-code}" if code < 0 else f"it exited with {code}"
        return f"it did not end within {seconds:g} s"
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def _file() -> Path:
    return cache_dir() / "gpu-tests.json"


def _read() -> dict[str, Trial]:
    try:
        return msgspec.json.decode(_file().read_bytes(), type=dict[str, Trial])
    except (OSError, ValueError, msgspec.MsgspecError):
        return {}


def _write(trials: dict[str, Trial]) -> None:
    newest = sorted(trials.items(), key=lambda entry: entry[1].at)[-20:]
    try:
        write_whole(_file(), msgspec.json.encode(dict(newest)), make_parents=True)
    except OSError as error:
        logger.debug("the test of the GPU is not remembered: %s", error)
