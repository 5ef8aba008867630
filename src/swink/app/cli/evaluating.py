"""`swink eval run`: which cases, with which agent, where the results go, and what is shown of them."""

import argparse
import asyncio
import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from pathlib import Path

from msgspec.structs import replace

from swink.app.cli.eval_commands import (
    FAILED,
    TROUBLE,
    WRONG,
    baseline_of,
    coded,
    existing,
    signing_key,
    tell_skipped,
)
from swink.app.cli.terminal import say, table, wants_colour
from swink.errors import InvalidInput, MissingKey
from swink.eval.case import Suite
from swink.eval.casefile import load_suite
from swink.eval.cassettes import recording
from swink.eval.estimate import Estimate, estimate
from swink.eval.evalrun import EvalRun, open_run
from swink.eval.factories import Factory, load_factory, suite_factory
from swink.eval.progressbar import ProgressBar
from swink.eval.ray import WorkersLost
from swink.eval.reports import annotations, console_table, write_reports
from swink.eval.runner import evaluate
from swink.messages.modelspec import format_dollars
from swink.stream.wrappers import recorded, through
from swink.system.interrupts import Interruption, interruptible
from swink.system.threads import in_thread, run_to_end

RESULTS = Path("eval-results")
_PASSED_ON = ("concurrency", "repeat", "engine", "model", "resume", "budget", "timeout", "rate_limit")


@coded
def run_command(arguments: argparse.Namespace) -> int:
    """Run the cases and show what they came to."""
    given = None if arguments.agent is None else load_factory(arguments.agent)  # its module may have scorers
    suite = _chosen(_suite(arguments), arguments)
    factory = given or suite_factory(suite, arguments.model)
    if arguments.dry_run:
        found = run_to_end(estimate(factory, suite.cases, repeat=arguments.repeat, model=arguments.model))
        print(_shown(suite, found, replayed=_tape(suite, arguments) is not None))
        return 0
    name, baseline = baseline_of(arguments.baseline)
    directory = _directory(arguments)
    rest = f"go on with the same arguments and: --resume --output {directory}"
    try:
        with _cassette(suite, arguments):
            run, interruption = run_to_end(_evaluate(factory, suite, arguments, directory))
    except WorkersLost:
        say(f"what is finished is kept in {directory}; {rest}")
        raise
    run.write_summary()
    write_reports(directory, run.summary, run.cases, run.manifest, baseline=baseline, baseline_name=name)
    print(console_table(run.summary, run.cases, colour=wants_colour(sys.stdout)))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print(*annotations(run.cases), sep="\n")
    say(f"results: {directory}  report: {directory / 'report.html'}")
    if arguments.record is not None and not run.summary.complete:
        say(f"{arguments.record} holds only what was recorded until now", "warning")
    if interruption.signal is not None:
        say(f"interrupted; {rest}")
        return interruption.exit_code
    if run.stopped is not None:
        say(f"stopped: {run.stopped}; {rest}", "warning")
        return FAILED
    if any((case.error or "").startswith(MissingKey.__name__) for case in run.cases):
        return WRONG
    return TROUBLE if run.errors or not run.summary.complete else FAILED if run.failed else 0


def _shown(suite: Suite, found: Estimate, *, replayed: bool) -> str:
    """What would run, and what it may cost."""
    cost = "unknown"
    if found.cost is not None and not found.problems:
        cost = f"about {format_dollars(found.cost, 4)}, without judges"
    rows = [
        ("suite", suite.name),
        ("cases", f"{len(suite.cases):,}"),
        ("attempts", f"{found.attempts:,}"),
        ("models", ", ".join(found.models) or "unknown"),
        ("requests", f"about {found.requests:,}"),
        ("tokens", f"about {found.usage.input:,} in, {found.usage.output:,} out"),
        ("cost", "nothing: answers come from the cassette" if replayed else cost),
    ]
    return "\n".join([table(rows), *found.problems])


async def _evaluate(
    factory: Factory, suite: Suite, arguments: argparse.Namespace, directory: Path
) -> tuple[EvalRun, Interruption]:
    bar = ProgressBar()
    work = asyncio.ensure_future(
        evaluate(
            factory,
            suite,
            **{name: getattr(arguments, name) for name in _PASSED_ON},
            output=directory,
            cache=RESULTS / ".cache" if arguments.cache else None,
            progress=bar,
            judges=arguments.judge or suite.judges,
            key=signing_key(),
            name=suite.name,
            agent=arguments.agent or suite.agent or "",
        )
    )
    with interruptible(work.cancel) as interruption:
        try:
            run = await work
        except asyncio.CancelledError:
            if interruption.signal is None:
                raise
            run = await in_thread(open_run, directory)
        finally:
            bar.close()
    return run, interruption


def _suite(arguments: argparse.Namespace) -> Suite:
    path = Path(arguments.cases)
    if not path.exists() and arguments.cases == "cases.yaml":
        raise InvalidInput("there is no cases.yaml here: name a file of cases, or run: swink eval init")
    if arguments.format is None:
        return load_suite(existing(arguments.cases))
    from swink.eval.importers import import_cases

    suite = import_cases(arguments.format, existing(arguments.cases), limit=arguments.limit)
    tell_skipped(suite.skipped)
    return suite


def _chosen(suite: Suite, arguments: argparse.Namespace) -> Suite:
    """The suite with the cases that are asked for."""
    known = {case.id for case in suite.cases}
    if missing := [name for name in arguments.case if name not in known]:
        near = get_close_matches(str(missing[0]), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"there is no case {missing[0]!r} in {arguments.cases}{hint}")
    tags = {tag for case in suite.cases for tag in case.tags}
    if missing := [tag for tag in arguments.tag if tag not in tags]:
        has = f"it has {', '.join(sorted(tags))}" if tags else "it has no tags"
        raise InvalidInput(f"no case in {arguments.cases} has the tag {missing[0]!r}; {has}")
    named = [case for case in suite.cases if not arguments.case or case.id in arguments.case]
    wanted = set(arguments.tag)
    chosen = [case for case in named if not wanted or wanted & set(case.tags)][: arguments.limit]
    if not chosen:
        raise InvalidInput(f"no case in {arguments.cases} is asked for by both --case and --tag")
    return replace(suite, cases=tuple(chosen))


def _directory(arguments: argparse.Namespace) -> Path:
    """Where the results go: a new directory, or that of the run to go on with."""
    if arguments.output is not None:
        if Path(arguments.output).is_file():
            raise InvalidInput(f"--output {arguments.output} is a file; name a directory")
        return Path(arguments.output)
    if not arguments.resume:
        return new_directory(time.strftime("%Y-%m-%dT%H-%M-%S"))
    found = sorted(RESULTS.glob("*/run.json"))
    if not found:
        raise InvalidInput(f"there is no run in {RESULTS} to go on with; --output names another directory")
    return found[-1].parent


def new_directory(name: str) -> Path:
    """A directory of results that no other run has, also not one that began in the same second."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    made, number = RESULTS / name, 1
    while True:
        try:
            made.mkdir()
            return made
        except FileExistsError:
            number += 1
            made = RESULTS / f"{name}-{number}"


def _cassette(suite: Suite, arguments: argparse.Namespace) -> AbstractContextManager[None]:
    """Answers from the cassette that is named, or from the suite's own where no model is."""
    if arguments.record is None:
        path = _tape(suite, arguments)
        return nullcontext() if path is None else recording(existing(path), "replay")
    if Path(arguments.record).is_dir():
        raise InvalidInput(f"--record {arguments.record} is a directory; name a file")
    if not arguments.resume:
        return recording(arguments.record, "record")
    # A run that goes on asks only for the rest: what was recorded before stays.
    return through(lambda stream_fn: recorded(stream_fn, arguments.record))


def _tape(suite: Suite, arguments: argparse.Namespace) -> str | None:
    """The cassette that answers are taken from."""
    if arguments.record is not None:
        return None
    return arguments.replay or (suite.cassette if arguments.model is None else None)
