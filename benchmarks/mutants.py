"""How much the tests notice: single changes to the source, each tried against the tests that run its line.

    python benchmarks/mutants.py                  200 of them, the same in every run
    python benchmarks/mutants.py --count 20 --seed 7
    python benchmarks/mutants.py --only engine/   of these files alone

Everything happens in private copies. The first run measures which test runs which line. Each mutant then
meets the tests of its line, the quickest files first and ever more of them at once, until one fails: once
among the others, and once more alone; or until they hang, and do not without the change. What survives is
printed at the end, with its line: either a test is missing, or the change makes no difference.

What was found is kept in .cache/mutants, and a run that was ended goes on where it was:

- what a test file runs, until that file changes, or a source file of which it runs a function;
- that a mutant was noticed, while its source file is the same and the test that noticed it is there;
- that it survived, while no test is added or changed.

So a second run tries the survivors of the first with the new tests. A test that has become weaker is not
seen: delete .cache/mutants after that. The sample depends on the changed places alone: a change of one source
file leaves the mutants of the others in it.

Each try is a child of a process that has imported everything but swink and the tests.
"""

import argparse
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from mutations import Mutant, find_mutants, sample_of

ROOT = Path(__file__).parents[1]
SOURCES = ("src/swink/agent", "src/swink/memory")
"""What is changed."""
TESTS = ("agent", "memory", "policies", "teams", "testing", "messages", "tools/codemode", "test_*.py")
"""Where the tests are that may notice, below tests/."""
LEFT_OUT = (
    "test_tests.py",
    "test_layers.py",
    "test_type_checking.py",
    "test_examples.py",
    "test_newcomer.py",
)
"""Tests that read the source or start programs, and notice changes for no good reason or too late."""
KEPT = ROOT / ".cache" / "mutants"
WELL = (0, 5)
"""How pytest ends when nothing failed: all passed, or there was nothing to run."""
PATIENCE = 20.0
"""Seconds beyond three times what tests usually take, after which they count as having noticed."""


class Measured(NamedTuple):
    """What a test file takes and each of its tests, and which of them run which lines."""

    name: str
    seconds: float
    tests: dict[str, float]
    lines: dict[str, dict[str, list[int]]]
    """By path and line the tests, by number; none for what runs when the module is imported and not again."""
    states: dict[str, str]
    """Of the test file and each source file of which it runs a function."""

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that run the line of a mutant."""
        names = [*self.tests]
        return [names[number] for number in self.lines.get(mutant.path, {}).get(str(mutant.line), ())]


class Verdict(NamedTuple):
    """What came of a mutant."""

    by: str | None
    """Which test noticed it; empty if swink could not be imported or the tests hung, None if it survived."""
    tests: str
    """The state of all tests then."""


class Kept:
    """What was found so far, in files, so that a run that was ended goes on where it was."""

    def __init__(self, root: Path) -> None:
        self._lock, self._file = Lock(), KEPT / "tried.json"
        paths = sorted([*(root / "src").rglob("*.py"), *(root / "tests").rglob("*.py")])
        self.states = {str(path.relative_to(root)): _digest(path.read_bytes()) for path in paths}
        tests = [(path, state) for path, state in self.states.items() if path.startswith("tests/")]
        self._tests = _digest(repr(tests).encode())
        tried = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        self._tried = {key: Verdict(*verdict) for key, verdict in tried.items()}

    def measured(self, name: str) -> Measured | None:
        """What was measured of a test file, if that still holds."""
        if not (file := self._file_of(name)).exists():
            return None
        measured = Measured(*json.loads(file.read_text("utf-8")))
        holds = all(self.states.get(path) == state for path, state in measured.states.items())
        return measured if holds else None

    def note_measured(self, measured: Measured) -> None:
        """What a test file runs."""
        _write(self._file_of(measured.name), measured)

    def verdict(self, mutant: Mutant, tests: Sequence[Measured]) -> Verdict | None:
        """What came of a mutant, if that still holds."""
        verdict = self._tried.get(self._key(mutant))
        if verdict is None or (verdict.by is None and verdict.tests != self._tests):
            return None
        gone = verdict.by and not any(verdict.by in measured.tests for measured in tests)
        return None if gone else verdict

    def note_verdict(self, mutant: Mutant, by: str | None) -> Verdict:
        """Which test noticed a mutant, if one did."""
        with self._lock:
            verdict = self._tried[self._key(mutant)] = Verdict(by, self._tests)
            _write(self._file, self._tried)
        return verdict

    def _key(self, mutant: Mutant) -> str:
        return f"{self.states[mutant.path]} {mutant.path} {mutant.start}-{mutant.end} {mutant.new}"

    def _file_of(self, name: str) -> Path:
        return KEPT / f"{name.replace('/', '.')}.json"


def _write(path: Path, value: Any) -> None:
    """The whole of a file, or nothing of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value), "utf-8")
    new.replace(path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Try the mutants, with progress on the way, and print what survived."""
    options = _parse_options()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies = [Copy(Path(scratch) / str(number)) for number in range(options.jobs)]
        mutants = [each for each in find_mutants(copies[0].root, SOURCES) if options.only in each.path]
        chosen = sample_of(mutants, options.count, options.seed)
        print(f"{len(mutants):,} possible changes, {len(chosen)} of them tried", flush=True)
        kept = Kept(copies[0].root)
        survivors = list(try_all(chosen, measure(copies, kept), copies, kept))
    killed = len(chosen) - len(survivors)
    print(f"noticed: {killed} of {len(chosen)} ({killed / max(len(chosen), 1):.1%})")
    for survivor in sorted(survivors):
        print(f"    {survivor}")


class Copy:
    """A private copy of everything that git knows, and the process whose children run tests in it."""

    def __init__(self, root: Path) -> None:
        self.root = _copy(root)
        self.seconds = count(2)
        """By how many a changed file is newer than it was; each time by more."""
        env = {**os.environ, "PYTHONPATH": str(self.root / "src")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes import the same modules
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            cwd=self.root,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, tests: Sequence[str], seconds: float, *, measured: bool = False) -> str | None:
        """What pytest found out; None if all went well or the test file is to be `measured` and cannot run.

        Of a run that fails this is the test that did, or nothing if none was reached or the time was over.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        report = self.root / "report-of-tests"
        report.unlink(missing_ok=True)
        order = {"tests": tests, "seconds": seconds, "report": str(report), "measured": measured}
        print(json.dumps(order), file=self._process.stdin, flush=True)
        ended = int(self._process.stdout.readline())
        if report.exists():
            return report.read_text("utf-8")
        return None if measured or ended in WELL else ""


def serve() -> None:
    """Run the tests of each order in a child, and tell how it ended."""
    import aiohttp.web  # noqa: F401
    import httpx  # noqa: F401
    import hypothesis.strategies  # noqa: F401
    import jsonschema  # noqa: F401
    import msgspec  # noqa: F401
    import pytest_asyncio  # noqa: F401
    import pytest_timeout  # noqa: F401

    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            silence = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(silence, number)
            os._exit(_pytest(order["tests"], Path(order["report"]), order["measured"]))
        print(_end_of(pid, order["seconds"]), flush=True)


def _end_of(pid: int, seconds: float) -> int:
    """The exit code of a child; -1 if it had to be killed. Nothing that it started stays."""
    ends = time.monotonic() + seconds
    while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < ends:
        time.sleep(0.01)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, 9)
    return os.waitstatus_to_exitcode(ended[1]) if ended[0] else (os.waitpid(pid, 0) and -1)


def _pytest(tests: Sequence[str], report: Path, measured: bool) -> int:
    """Run tests in this process."""
    import pytest

    sys.path.insert(0, os.getcwd())
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if measured:
        return int(pytest.main([*options, *tests], plugins=[Lines(report)]))
    return int(pytest.main([*options, "-x", *tests], plugins=[FirstFailure(report)]))


class FirstFailure:
    """A plugin of pytest that writes down which test failed."""

    def __init__(self, report: Path) -> None:
        self._report = report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One of its three phases is over."""
        if report.failed:
            self._report.write_text(report.nodeid.partition("[")[0], "utf-8")


class Lines:
    """A plugin of pytest that writes down which test runs which lines, and how long it takes."""

    def __init__(self, report: Path) -> None:
        import coverage

        self._report = report
        folders = [str(Path.cwd() / name) for name in SOURCES]
        self._coverage = coverage.Coverage(data_file=None, source=folders, config_file=False)
        self._coverage.start()
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """From here on it is this test that runs lines."""
        self._coverage.switch_context(nodeid.partition("[")[0])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """What one of its three phases took."""
        name = report.nodeid.partition("[")[0]
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        if report.failed:
            self._failed.add(name)

    def pytest_sessionfinish(self) -> None:
        """All of it as JSON; a test that fails as it is would notice whatever is changed."""
        self._coverage.stop()
        data = self._coverage.get_data()
        tests = {name: taken for name, taken in self._seconds.items() if name not in self._failed}
        numbers = {name: number for number, name in enumerate(tests)}
        lines = {
            str(Path(path).relative_to(Path.cwd())): {
                line: [numbers[name] for name in names if name in numbers]
                for line, names in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
        }
        self._report.write_text(json.dumps({"tests": tests, "lines": lines}), "utf-8")


def measure(copies: Sequence[Copy], kept: Kept) -> list[Measured]:
    """Which test runs which lines, and how long it takes."""
    files = sorted(_test_files())
    known = {name: kept.measured(name) for name in files}
    free = _queue(copies)

    def one(name: str) -> None:
        copy = free.get()
        try:
            known[name] = measured = _measure_one(copy, name, kept)
            kept.note_measured(measured)
            done = len([each for each in known.values() if each])
            _show(f"measured {done} of {len(files)} test files: {name}, {measured.seconds:.0f} s")
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(one, [name for name in files if known[name] is None]))
    _show("")
    return [each for each in known.values() if each]


def _measure_one(copy: Copy, name: str, kept: Kept) -> Measured:
    """Without any test if it cannot run here."""
    began = time.monotonic()
    report = json.loads(copy.run([f"tests/{name}"], 900.0, measured=True) or '{"tests": {}, "lines": {}}')
    if not report["tests"]:
        _show(f"no test of {name} can be run here")
    ran = [path for path, lines in report["lines"].items() if any(lines.values())]
    states = {path: kept.states[path] for path in [f"tests/{name}", *ran]}
    return Measured(name, time.monotonic() - began, report["tests"], report["lines"], states)


def try_all(
    mutants: Sequence[Mutant], tests: Sequence[Measured], copies: Sequence[Copy], kept: Kept
) -> Iterator[Mutant]:
    """Those that no test notices."""
    free = _queue(copies)
    began, survived = time.monotonic(), 0

    def one(mutant: Mutant) -> Verdict:
        if (known := kept.verdict(mutant, tests)) is not None:
            return known
        copy = free.get()
        try:
            return kept.note_verdict(mutant, who_notices(mutant, tests, copy))
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        for done, (mutant, verdict) in enumerate(zip(mutants, pool.map(one, mutants), strict=True), 1):
            survived += verdict.by is None
            minutes = (time.monotonic() - began) / 60
            sign = "SURVIVED" if verdict.by is None else "noticed"
            _show(f"{done} of {len(mutants)}, {survived} survived, {minutes:.1f} min: {sign} {mutant}")
            if verdict.by is None:
                yield mutant
    _show("")


def who_notices(mutant: Mutant, tests: Sequence[Measured], copy: Copy) -> str | None:
    """The test that fails, or nothing if all hang, with this change; None if there is none."""
    for seconds, names in _turns(mutant, tests):
        limit = 3 * seconds + PATIENCE
        while (failed := _failing(mutant, names, copy, limit)) == "" and copy.run(names, limit) is not None:
            limit *= 2  # the machine is busy: without the change they take as long
        if failed is not None:
            return failed
    return None


def _failing(mutant: Mutant, tests: Sequence[str], copy: Copy, limit: float) -> str | None:
    """The test that fails, with the others and alone: what only fails among them is left out."""
    unsteady: list[str] = []
    with _changed(copy.root / mutant.path, mutant, next(copy.seconds)):
        while failed := copy.run([*tests, *(f"--deselect={name}" for name in unsteady)], limit):
            if failed in unsteady or copy.run([failed], limit) is not None:
                return failed
            unsteady.append(failed)
    return failed


@contextmanager
def _changed(path: Path, mutant: Mutant, seconds: int) -> Iterator[None]:
    """The change is there, in a file that is newer by so many seconds: Python goes by those, and by sizes."""
    text, stamp = path.read_bytes(), path.stat().st_mtime
    path.write_bytes(text[: mutant.start] + mutant.new.encode() + text[mutant.end :])
    os.utime(path, (stamp + seconds, stamp + seconds))
    try:
        yield
    finally:
        path.write_bytes(text)
        os.utime(path, (stamp, stamp))


def _turns(mutant: Mutant, tests: Sequence[Measured]) -> Iterator[tuple[float, list[str]]]:
    """The tests that may notice, in order: one file, then two, then four, with what they take."""
    told = [(each, each.tests_of(mutant)) for each in tests]
    files = [(sum(each.tests[name] for name in names), names) for each, names in told if names]
    if mutant.at_import or not files:
        # What is set up there matters to those who run a function of the module, if anybody does.
        importing = [each for each in tests if each.tests and mutant.path in each.lines]
        running = [each for each in importing if mutant.path in each.states]
        files += [(each.seconds, [f"tests/{each.name}"]) for each in running or importing]
    files.sort()
    many = 1
    while files:
        now, files = files[:many], files[many:]
        yield sum(seconds for seconds, _ in now), [name for _, names in now for name in names]
        many *= 2


def _copy(target: Path) -> Path:
    """A private copy of everything that git knows, as it stands now."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def _test_files() -> Iterator[str]:
    tests = ROOT / "tests"
    for pattern in TESTS:
        for path in tests.glob(pattern if pattern.endswith(".py") else f"{pattern}/**/test_*.py"):
            if path.name not in LEFT_OUT:
                yield str(path.relative_to(tests))


def _queue(copies: Sequence[Copy]) -> "queue.Queue[Copy]":
    free: queue.Queue[Copy] = queue.Queue()
    for copy in copies:
        free.put(copy)
    return free


def _show(text: str) -> None:
    """One line, which the next one replaces, at a terminal; else a line each."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _parse_options() -> Any:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="how many mutants (200)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--only", default="", help="of files whose path has this in it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    return parser.parse_args()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
