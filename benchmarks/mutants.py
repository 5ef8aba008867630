"""How much the tests notice: single changes to the source, each tried against the tests that run its line.

    python benchmarks/mutants.py                  200 of them, the same in every run
    python benchmarks/mutants.py --count 20 --seed 7
    python benchmarks/mutants.py --only engine/   of these files alone

Everything happens in private copies. The first run measures which test runs which line; that is kept in
.cache/mutants.json until the source or the tests change. Each mutant then meets the tests of its line, the
quickest files first and ever more of them at once, until one fails. What survives is printed at the end, with
its line: either a test is missing, or the change makes no difference. A run that was ended goes on where
it was.

Each try is a child of a process that has imported everything but swink and the tests.
"""

import argparse
import ast
import hashlib
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = ("agent", "memory")
"""What is changed: packages of swink."""
TESTS = ("agent", "memory", "policies", "teams", "testing", "messages", "test_*.py")
"""Where the tests are that may notice, below tests/."""
LEFT_OUT = (
    "test_tests.py",
    "test_layers.py",
    "test_type_checking.py",
    "test_examples.py",
    "test_newcomer.py",
)
"""Tests that read the source or start programs, and notice changes for no good reason or too late."""
KEPT = ROOT / ".cache" / "mutants.json"
PATIENCE = 20.0
"""Seconds beyond three times what tests usually take, after which they count as having noticed."""

FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """One change: what stands between two places of a file is replaced."""

    path: str
    line: int
    start: int
    end: int
    new: str
    old: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split())[:60] for text in (self.old, self.new))
        return f"{self.path}:{self.line}: {old}  →  {new}"


class Measured(NamedTuple):
    """What a test file takes and each of its tests, and which of them run the lines to be changed."""

    seconds: float
    tests: dict[str, float]
    lines: dict[str, list[str]]
    """By path and line; nobody, where a line runs when the module is imported and not again."""

    def tests_of(self, mutant: Mutant) -> list[str] | None:
        """The tests that run the line of a mutant; None if the file does not run it at all."""
        return self.lines.get(f"{mutant.path}:{mutant.line}")


class Progress:
    """What was found so far, kept in a file, so that a run that was ended goes on where it was."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self._lock, self._state = Lock(), _state(mutants)
        kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
        if kept.get("state") != self._state:
            kept = {}
        self.tests: dict[str, Any] = kept.get("tests", {})
        self.noticed: dict[str, bool] = kept.get("noticed", {})

    def note_file(self, name: str, measured: Measured | None) -> None:
        """What was measured of a test file; None if it does not pass as it is."""
        with self._lock:
            self.tests[name] = measured
            self._keep()

    def note_mutant(self, mutant: Mutant, noticed: bool) -> None:
        """Whether the tests noticed a change."""
        with self._lock:
            self.noticed[repr(mutant)] = noticed
            self._keep()

    def _keep(self) -> None:
        KEPT.parent.mkdir(exist_ok=True)
        new = KEPT.with_suffix(".new")
        kept = {"state": self._state, "tests": self.tests, "noticed": self.noticed}
        new.write_text(json.dumps(kept), "utf-8")
        new.replace(KEPT)


def main() -> None:
    """Try the mutants, with progress on the way, and print what survived."""
    options = _parse_options()
    mutants = [each for each in find_mutants() if options.only in each.path]
    chosen = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))
    print(f"{len(mutants):,} possible changes, {len(chosen)} of them tried")
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies = [Copy(Path(scratch) / str(number)) for number in range(options.jobs)]
        progress = Progress(chosen)
        survivors = list(try_all(chosen, measure(chosen, copies, progress), copies, progress))
    killed = len(chosen) - len(survivors)
    print(f"noticed: {killed} of {len(chosen)} ({killed / max(len(chosen), 1):.1%})")
    for survivor in sorted(survivors):
        print(f"    {survivor}")


def find_mutants() -> Iterator[Mutant]:
    """Every change that can be made, file by file."""
    source = ROOT / "src" / "swink"
    for name in SOURCES:
        place = source / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place] if place.exists() else []:
            text = path.read_text("utf-8")
            yield from mutants_of(text, str(path.relative_to(ROOT)))


def mutants_of(text: str, path: str) -> Iterator[Mutant]:
    """The changes that can be made to a module."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    skipped = {id(inner) for node in ast.walk(tree) for part in _asides(node) for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.expr | ast.stmt):
            continue
        for new in _changes(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            old = text.encode()[start:end].decode()
            put = f"({new})" if isinstance(node, ast.expr) else new
            yield Mutant(path, node.lineno, start, end, put, old)


def _asides(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that are no behaviour: annotations, docstrings, what is for type checkers, type aliases."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from filter(None, [node.returns])
        case ast.arg(annotation=ast.expr() as annotation):
            yield annotation
        case ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.ClassDef(keywords=keywords):
            yield from keywords  # frozen=True and its like
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            yield node
        case ast.Expr(value=ast.Constant(value=str())):
            yield node
        case ast.Call(func=ast.Attribute(value=ast.Name("log"))):
            yield node  # what is logged
        case ast.Subscript(value=ast.Name("Literal" | "Annotated")):
            yield node
        case _:
            pass


def _changes(node: ast.AST) -> Iterator[str]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare(ops=[op], left=left, comparators=right):
            yield ast.unparse(ast.Compare(left, [FLIPS[type(op)]()], right))
            if isinstance(op, ast.Lt | ast.Gt | ast.LtE | ast.GtE):
                edge = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}[type(op)]
                yield ast.unparse(ast.Compare(left, [edge()], right))
        case ast.BoolOp(op=op, values=values):
            yield ast.unparse(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield ast.unparse(operand)
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() | float() as value):
            yield str(value + 1)
            yield str(value - 1)
        case ast.Return(value=ast.Constant(value=None)):
            pass
        case ast.Return(value=ast.expr()):
            yield "return None"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"
        case _:
            pass


class Copy:
    """A private copy of everything that git knows, and the process whose children run tests in it."""

    def __init__(self, root: Path) -> None:
        self.root = _copy(root)
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

    def run(self, tests: Sequence[str], seconds: float, report: str = "") -> int:
        """How pytest ended; -1 after that many seconds. A `report` is to say what runs which line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"tests": tests, "seconds": seconds, "report": report}
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


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
            os._exit(_pytest(order["tests"], order["report"]))
        print(_end_of(pid, order["seconds"]), flush=True)


def _end_of(pid: int, seconds: float) -> int:
    """The exit code of a child; -1 if it had to be killed. Nothing that it started stays."""
    ends = time.monotonic() + seconds
    while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < ends:
        time.sleep(0.01)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, 9)
    return os.waitstatus_to_exitcode(ended[1]) if ended[0] else (os.waitpid(pid, 0) and -1)


def _pytest(tests: Sequence[str], report: str) -> int:
    """Run tests in this process."""
    import pytest

    sys.path.insert(0, os.getcwd())
    sys.dont_write_bytecode = not report  # what a mutant compiles to is wanted once
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if report:
        return int(pytest.main([*options, *tests], plugins=[Lines(Path(report))]))
    return int(pytest.main([*options, "-x", *tests]))


class Lines:
    """A plugin of pytest that writes down which test runs which lines, and how long it takes."""

    def __init__(self, report: Path) -> None:
        import coverage

        self._report = report
        folders = [str(Path.cwd() / "src" / "swink" / name) for name in SOURCES]
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
        lines: dict[str, list[str]] = {}
        for path in data.measured_files():
            short = Path(path).relative_to(Path.cwd())
            for line, names in data.contexts_by_lineno(path).items():
                lines[f"{short}:{line}"] = [name for name in names if name and name not in self._failed]
        seconds = {name: taken for name, taken in self._seconds.items() if name not in self._failed}
        self._report.write_text(json.dumps({"tests": seconds, "lines": lines}), "utf-8")


def measure(mutants: Sequence[Mutant], copies: Sequence[Copy], progress: Progress) -> dict[str, Measured]:
    """Which test runs which of the lines that are to be changed, and how long it takes."""
    wanted = {f"{mutant.path}:{mutant.line}" for mutant in mutants}
    files = sorted(_test_files())
    free = _queue(copies)

    def one(name: str) -> None:
        copy = free.get()
        try:
            progress.note_file(name, _measure_one(copy, name, wanted))
            _show(f"measured {len(progress.tests)} of {len(files)} test files: {name}")
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(one, [name for name in files if name not in progress.tests]))
    _show("")
    return {name: Measured(*each) for name, each in progress.tests.items() if each is not None}


def _measure_one(copy: Copy, name: str, wanted: Container[str]) -> Measured | None:
    """None if it cannot run here."""
    report = copy.root / "lines-of-tests.json"
    report.unlink(missing_ok=True)
    began = time.monotonic()
    copy.run([f"tests/{name}"], 900.0, str(report))
    if not report.exists():
        return None
    found = json.loads(report.read_text("utf-8"))
    lines = {place: tests for place, tests in found["lines"].items() if place in wanted}
    return Measured(time.monotonic() - began, found["tests"], lines)


def try_all(
    mutants: Sequence[Mutant], measured: Mapping[str, Measured], copies: Sequence[Copy], progress: Progress
) -> Iterator[Mutant]:
    """Those that no test notices."""
    free = _queue(copies)
    began, done, survived = time.monotonic(), 0, 0

    def one(mutant: Mutant) -> bool:
        if (known := progress.noticed.get(repr(mutant))) is not None:
            return known
        copy = free.get()
        try:
            noticed = is_noticed(mutant, measured, copy)
        finally:
            free.put(copy)
        progress.note_mutant(mutant, noticed)
        return noticed

    with ThreadPoolExecutor(len(copies)) as pool:
        for mutant, noticed in zip(mutants, pool.map(one, mutants), strict=True):
            done, survived = done + 1, survived + (not noticed)
            minutes = (time.monotonic() - began) / 60
            _show(f"{done} of {len(mutants)}, {survived} survived, {minutes:.1f} min: {mutant}")
            if not noticed:
                yield mutant
    _show("")


def is_noticed(mutant: Mutant, measured: Mapping[str, Measured], copy: Copy) -> bool:
    """Whether a test fails, or hangs, with this change."""
    path = copy.root / mutant.path
    text, stamp = path.read_bytes(), path.stat().st_mtime
    path.write_bytes(text[: mutant.start] + mutant.new.encode() + text[mutant.end :])
    os.utime(path, (stamp + 2, stamp + 2))  # Python goes by seconds and sizes
    try:
        return any(
            copy.run(tests, 3 * seconds + PATIENCE) != 0 for seconds, tests in _turns(mutant, measured)
        )
    finally:
        path.write_bytes(text)
        os.utime(path, (stamp, stamp))


def _turns(mutant: Mutant, measured: Mapping[str, Measured]) -> Iterator[tuple[float, list[str]]]:
    """The tests that may notice, in order: one file, then two, then four, with what they take."""
    files: list[tuple[float, list[str]]] = []
    for name, each in measured.items():
        match each.tests_of(mutant):
            case None:
                pass
            case []:
                files.append((each.seconds, [f"tests/{name}"]))
            case tests:
                files.append((sum(each.tests[test] for test in tests), tests))
    files.sort()
    many = 1
    while files:
        now, files = files[:many], files[many:]
        yield sum(seconds for seconds, _ in now), [test for _, tests in now for test in tests]
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


def _state(mutants: Sequence[Mutant]) -> str:
    """Of the source, the tests and what is tried, in one word."""
    digest = hashlib.sha256(repr(mutants).encode())
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


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
