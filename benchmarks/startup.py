"""Start-up: the CPU time `swink run` takes before its request goes out, beside what importing aiohttp takes.

All figures are CPU time of one process, user and system, as the median of several runs taken in turn. Aim:
at most 150 ms more than `python -c "import aiohttp"`; with the local model, at most 150 ms more than
loading it.

    python benchmarks/startup.py [runs]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

AIM_MS = 150
CHUNK = {
    "id": "c",
    "object": "chat.completion.chunk",
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}],
}
# Loads the weights with the parameters that swink uses, and nothing else of swink's.
LOAD = """
import os, sys
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx, parameters.n_parallel, parameters.n_batch, parameters.n_ubatch = 16384, 2, 16, 16
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.warmup, parameters.fit_params, parameters.verbosity, parameters.port = False, False, -1, 0
parameters.ui, parameters.cache_ram_mib, parameters.n_threads_http = False, 512, 3
parameters.endpoint_metrics = True
server = xllamacpp.Server(parameters)
server.handle_metrics()  # an answer means that it is ready
os._exit(0)  # closing it is no part of loading it
"""
# Tells the CPU time at the moment the first generation begins.
UNTIL_GENERATION = """
import sys, time
import swink.local.generation
note = sys.argv.pop(1)
begin = swink.local.generation.Generation.start
def start(work):
    print(time.process_time(), file=open(note, "w"))
    begin(work)
swink.local.generation.Generation.start = start
from swink.app.cli import main
sys.exit(main())
"""


class Answering(BaseHTTPRequestHandler):
    """Notes the CPU time of the client at the moment its request is there, and answers."""

    client: subprocess.Popen[bytes] | None = None
    at_request: float | None = None

    def do_POST(self) -> None:
        """Answer."""
        if Answering.client is not None:
            Answering.at_request = cpu_seconds(Answering.client.pid)
        self.rfile.read(int(self.headers["content-length"]))
        body = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def cpu_seconds(pid: int) -> float | None:
    """The CPU time of a running process, to the nanosecond; only Linux tells."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except OSError:
        return None


def run(arguments: list[str], environ: dict[str, str], directory: str) -> float:
    """Run Python to its end; its CPU time."""
    with open(os.path.join(directory, "stderr.txt"), "wb") as errors:
        process = Answering.client = subprocess.Popen(
            [sys.executable, *arguments],
            env=environ,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{arguments} failed: {Path(directory, 'stderr.txt').read_text()}")
    return usage.ru_utime + usage.ru_stime


def measurements(
    environ: dict[str, str], directory: str, weights: str | None
) -> dict[str, Callable[[], float]]:
    """What is measured, by name."""
    remote = ["-m", "swink", "run", "--model", "openai:m", "hi"]

    def until_request() -> float:
        Answering.at_request = None
        whole = run(remote, environ, directory)
        return whole if Answering.at_request is None else Answering.at_request

    def until_generation() -> float:
        note = os.path.join(directory, "note.txt")
        run(
            ["-c", UNTIL_GENERATION, note, "run", "--model", f"local:{weights}", "--max-tokens", "1", "hi"],
            environ,
            directory,
        )
        return float(Path(note).read_text())

    found: dict[str, Callable[[], float]] = {
        "python -c pass": lambda: run(["-c", "pass"], environ, directory),
        'python -c "import aiohttp"': lambda: run(["-c", "import aiohttp"], environ, directory),
        "swink run, until the request is out": until_request,
        "swink run, whole (request, reply, exit)": lambda: run(remote, environ, directory),
    }
    if weights is not None:
        found["loading the local model, nothing else"] = lambda: run(
            ["-c", LOAD, weights], environ, directory
        )
        found["swink run on it, until generation begins"] = until_generation
    return found


def main() -> int:
    """Measure and print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        keep = ("PATH", "SWINK_CACHE_DIR", "LANG", "SYSTEMROOT")
        environ = {name: os.environ[name] for name in keep if name in os.environ}
        environ |= {
            "HOME": directory,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}/v1",
            "OPENAI_API_KEY": "unused",
        }
        wanted = measurements(environ, directory, local_weights())
        times: dict[str, list[float]] = {name: [] for name in wanted}
        for _ in range(runs + 1):  # the first round fills caches and is thrown away
            for name, measure in wanted.items():
                times[name].append(measure())
    server.shutdown()
    server.server_close()
    return report({name: statistics.median(values[1:]) for name, values in times.items()})


def local_weights() -> str | None:
    """The default model, if it and llama.cpp are here."""
    from swink.local import DEFAULT_MODEL, ExtraMissing, locate, require_runtime

    try:
        require_runtime()
    except ExtraMissing:
        return None
    found = locate(DEFAULT_MODEL)
    return None if found is None else str(found)


def report(medians: dict[str, float]) -> int:
    """Print the table; 1 if an aim is missed."""
    bare, aiohttp, until, whole, *local = medians.values()
    for name, seconds in medians.items():
        print(f"{name:42} {seconds * 1000:8.0f} ms   {seconds / bare:5.1f} x")
    checks = [
        ("over importing aiohttp, until the request", until - aiohttp),
        ("over importing aiohttp, whole", whole - aiohttp),
    ]
    if local:
        checks.append(("over loading the local model", local[1] - local[0]))
    missed = 0
    for name, difference in checks:
        kept = difference * 1000 <= AIM_MS
        missed |= not kept
        print(f"{name:42} {difference * 1000:8.0f} ms   {'within' if kept else 'over'} {AIM_MS} ms")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
