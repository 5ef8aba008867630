"""The pytest plugin: `replay` answers models from cassettes, and each case of `*.eval.yaml` is a test.

```python
def test_clothes(replay):
    with replay("oslo"):                            # cassettes/oslo.jsonl, beside the test's file
        assert "jacket" in make_agent().run_sync("What should I wear in Oslo?").text
```

`pytest` never asks a provider; `pytest --record` asks, and records what it says.
"""

import re
import shlex
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

DIRECTORY = "cassettes"
_SUFFIXES = (".eval.yaml", ".eval.yml", ".eval.json")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The flags of the command line."""
    group = parser.getgroup("swink", "evaluation of agents (swink)")
    models = "the models of `replay` and of *.eval.yaml"
    record = f"ask {models} for real, and record the cassettes anew"
    group.addoption("--record", action="store_true", dest="swink_record", help=record)
    replay = f"answer {models} from their cassettes (the default)"
    with suppress(ValueError):  # another plugin has the flag; replaying is the default anyway
        group.addoption("--replay", action="store_false", dest="swink_record", help=replay)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to record one cassette from several processes."""
    if config.getoption("swink_record", False) and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--record writes cassettes one after the other; leave out -n")


class Replay:
    """A cassette: a block in which it answers every model, or the stream function of one agent."""

    def __init__(self, path: Path, record: bool, how: str) -> None:
        self._path = path
        self._record = record
        self._how = how
        self._blocks: list[ExitStack] = []
        self._stack = ExitStack()
        self._stream: Any = None
        self.missed: list[str] = []

    def __enter__(self) -> "Replay":
        from swink.eval.cassettes import recording
        from swink.stream.wrappers import through

        mode = "record" if self._record else "replay"
        block = ExitStack()
        block.enter_context(through(self._noted))
        block.enter_context(recording(self._path, mode, again=False, how=self._how))
        self._blocks.append(block)
        return self

    def __exit__(self, *failure: Any) -> None:
        is_kept = getattr(failure[1], "is_judged", False)  # the case failed, but was recorded to its end
        self._blocks.pop().__exit__(*((None, None, None) if is_kept else failure))

    def _noted(self, stream_fn: Any) -> Any:
        """Note what the cassette does not have: a test may look at the answer alone, which is empty then."""
        from swink.errors import CacheMiss
        from swink.stream.wrappers.sending import copy_traits

        async def stream(model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
            try:
                async for event in stream_fn(model, context, options):
                    yield event
            except CacheMiss as error:
                self.missed.append(str(error))
                raise

        return copy_traits(stream_fn, stream)

    def __call__(self, model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
        if self._stream is None:
            self._stream = self._own_stream()
        return self._stream(model, context, options)

    def close(self, failed: bool = False) -> None:
        """Keep what the stream function has recorded, unless the test failed."""
        failure = AssertionError("the test failed")
        with suppress(AssertionError):
            self._stack.__exit__(*((AssertionError, failure, None) if failed else (None, None, None)))

    def _own_stream(self) -> Any:
        from swink.eval.cassettes import missing_cassette, replacement_of
        from swink.models.catalog import stream_fn_for
        from swink.stream.wrappers import recorded, replayed

        if not self._record:
            if not self._path.is_file():
                raise missing_cassette(self._path, self._how)
            return self._noted(replayed(self._path))
        fresh = self._stack.enter_context(replacement_of(self._path))
        made: dict[str, Any] = {}

        def stream(model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
            if model.provider not in made:
                made[model.provider] = recorded(stream_fn_for(model), fresh)
            return made[model.provider](model, context, options)

        return stream


_REPORT = pytest.StashKey[bool]()
_REPLAYS = pytest.StashKey[dict[Path, Replay]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether the test failed, for recordings that are kept only if it did not."""
    report = yield
    if report.when == "call":
        is_judged = call.excinfo is not None and getattr(call.excinfo.value, "is_judged", False)
        item.stash[_REPORT] = report.failed and not is_judged
        replays = item.stash[_REPLAYS].values() if _REPLAYS in item.stash else ()
        missed = [text for replay in replays for text in replay.missed]
        if report.failed and missed and missed[0] not in report.longreprtext:
            report.sections.append(("the request that is not on the cassette", missed[0]))
    return report


@pytest.fixture
def replay(request: pytest.FixtureRequest) -> Generator[Callable[..., Replay]]:
    """`replay("oslo")`: the cassette cassettes/oslo.jsonl beside the test; without a name, the test's.

    Use it as a block (`with replay("oslo"):`), in which it answers every model, or as a `stream_fn`.
    """
    made: dict[Path, Replay] = request.node.stash.setdefault(_REPLAYS, {})
    record = bool(request.config.getoption("swink_record", False))

    def open_cassette(name: str | Path | None = None) -> Replay:
        path = _path_of(request.path, name if name is not None else request.node.name)
        how = shlex.join(["pytest", request.node.nodeid, "--record"])
        return made.setdefault(path, Replay(path, record, how))

    yield open_cassette
    for cassette in made.values():
        cassette.close(failed=request.node.stash.get(_REPORT, True))


def _path_of(test: Path, name: str | Path) -> Path:
    if isinstance(name, Path) or "/" in name or name.endswith(".jsonl"):
        return test.parent / name
    return test.parent / DIRECTORY / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name).strip('-')}.jsonl"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "EvalFile | None":
    """Every case of `*.eval.yaml` and `*.eval.json` is a test."""
    if file_path.name.endswith(_SUFFIXES):
        make: Any = EvalFile
        return make.from_parent(parent, path=file_path)
    return None


class EvalFile(pytest.File):
    """A case file, whose model is answered from its cassette."""

    def collect(self) -> Iterable[pytest.Item]:
        """One test for each case; tags are keywords (`-k smoke`)."""
        from swink.eval.casefile import BadCases, load_suite

        try:
            self.suite = load_suite(self.path)
        except BadCases as error:
            raise self.CollectError(str(error)) from None
        make: Any = EvalItem
        for case in self.suite.cases:
            item = make.from_parent(self, name=case.id)
            item.case = case
            item.extra_keyword_matches.update(case.tags)
            yield item

    def setup(self) -> None:
        """Begin a new cassette, where one is recorded for all cases."""
        self._stack = ExitStack()
        if not self.config.getoption("swink_record", False):
            return
        chosen = [item for item in self.session.items if item.parent is self]
        if self.suite.cassette is not None and len(chosen) < len(self.suite.cases):
            raise pytest.UsageError(f"{self.path.name} has one cassette for all cases; record all of them")

    def teardown(self) -> None:
        """Put the new cassette into the place of the old one."""
        self._stack.close()
        self.fresh = None

    fresh: Path | None = None

    def block_of(self, case: Any, how: str) -> AbstractContextManager[None]:
        """The block in which a case is run."""
        from swink.eval.cassettes import recording, replacement_of
        from swink.stream.wrappers import recorded, through

        shared = self.suite.cassette
        own = _path_of(self.path, f"{self.path.name.split('.')[0]}-{case.id}")
        path = own if shared is None else Path(shared)
        if not self.config.getoption("swink_record", False):
            return recording(path, "replay", how=how) if path.is_file() else through(_offline(path, how))
        if shared is None:
            return recording(path, "record")
        if self.fresh is None:
            self.fresh = self._stack.enter_context(replacement_of(path))
        fresh = self.fresh
        return through(lambda stream_fn: recorded(stream_fn, fresh))


def _offline(path: Path, how: str) -> Callable[[Any], Any]:
    """A wrapper that refuses to ask a provider; an agent's own models, such as scripted ones, are asked."""
    from swink.eval.cassettes import missing_cassette

    def wrap(stream_fn: Any) -> Any:
        if not hasattr(stream_fn, "base_url") and not hasattr(stream_fn, "check_key"):
            return stream_fn

        async def refuse(model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
            raise missing_cassette(path, how)
            yield

        return refuse

    return wrap


class EvalItem(pytest.Item):
    """One case of a case file."""

    case: Any

    def runtest(self) -> None:
        from msgspec.structs import replace

        from swink.eval.checking import passed_or_raise
        from swink.eval.runner import evaluate
        from swink.system.threads import run_to_end

        file: Any = self.parent
        with file.block_of(self.case, shlex.join(["pytest", str(self.nodeid), "--record"])):
            run = run_to_end(evaluate(None, replace(file.suite, cases=(self.case,)), concurrency=1))
        passed_or_raise(run.cases[0], self.case)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """What the scorers say, without a traceback of ours."""
        from swink.errors import AgentError

        if isinstance(excinfo.value, AssertionError | AgentError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The file and the line of the case."""
        return self.path, self.case.place.line - 1 if self.case.place else 0, f"case {self.name}"
