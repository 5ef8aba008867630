"""`swink eval improve`: a better text for an agent, judged by cases that no candidate has seen."""

import argparse
import asyncio
import sys
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from swink.app.cli.eval_commands import FAILED, coded, existing
from swink.app.cli.evaluating import RESULTS, new_directory
from swink.app.cli.terminal import add_style, say
from swink.errors import InvalidInput
from swink.eval.casefile import load_suite
from swink.eval.cassettes import recording
from swink.eval.factories import load_factory, suite_factory
from swink.eval.improve import Improvement, improve
from swink.eval.improve.journal import SEARCH
from swink.eval.progressbar import ProgressBar
from swink.messages.modelspec import format_dollars
from swink.stream.wrappers import recorded, through
from swink.system.interrupts import Interruption, interruptible
from swink.system.oneline import strip_controls
from swink.system.threads import run_to_end

_PASSED_ON = ("rounds", "holdout", "repeat", "concurrency", "budget", "timeout", "model", "resume", "seed")


@coded
def improve_command(arguments: argparse.Namespace) -> int:
    """Search for a better text: 0 if it was accepted, 1 if not."""
    directory = _directory(arguments)
    try:
        with _cassette(arguments):
            found, interruption = run_to_end(_improve(arguments, directory))
    finally:
        if arguments.output is None:
            with suppress(OSError):  # it holds something
                directory.rmdir()
    rest = f"go on with the same arguments and: --resume --output {directory}"
    if found is None:
        say(f"interrupted; {rest}")
        return interruption.exit_code
    if found.diff:
        for line in found.diff.splitlines():
            print(_coloured(strip_controls(line)))
    say(_verdict(found), "ok" if found.accepted else None)
    if found.why:
        say(f"why: {found.why}")
    if found.stopped:
        say(f"stopped: {found.stopped}; {rest}", "warning")
    say(f"cost: {format_dollars(found.cost, exact=True)}  written: {directory}")
    return 0 if found.accepted else FAILED


async def _improve(arguments: argparse.Namespace, directory: Path) -> tuple[Improvement | None, Interruption]:
    given = None if arguments.agent is None else load_factory(arguments.agent)
    suite = load_suite(existing(arguments.cases))
    factory = given or suite_factory(suite, arguments.model)
    bar = ProgressBar()

    def tell(text: str) -> None:
        bar.close()
        say(text)

    work = asyncio.ensure_future(
        improve(
            factory,
            suite,
            arguments.target,
            output=directory,
            reflect_with=arguments.reflect,
            agent=arguments.agent or suite.agent or "",
            progress=bar,
            tell=tell,
            **{name: getattr(arguments, name) for name in _PASSED_ON},
        )
    )
    with interruptible(work.cancel) as interruption:
        try:
            return await work, interruption
        except asyncio.CancelledError:
            if interruption.signal is None:
                raise
            return None, interruption
        finally:
            bar.close()


def _verdict(found: Improvement) -> str:
    """What came of it, in a sentence."""
    if not found.candidate:
        return f"no text is better than the one there is, after {found.rounds} rounds"
    training = f"training: {found.training_before:.0%} → {found.training_after:.0%} of {found.training} cases"
    if found.holdout_before is None or found.holdout_after is None or found.p is None:
        return f"{training}; not judged by the cases held out, so not accepted"
    held = f"held out: {found.holdout_before:.0%} → {found.holdout_after:.0%} of {found.holdout}"
    chance = f"p = {found.p:.2g}" + ("" if found.p < 0.05 else ", which may be chance")
    return f"{'accepted' if found.accepted else 'not accepted'}; {training}; {held} ({chance})"


def _coloured(line: str) -> str:
    match line[:1]:
        case "+":
            return add_style(line, "ok", sys.stdout)
        case "-":
            return add_style(line, "error", sys.stdout)
        case _:
            return line


def _directory(arguments: argparse.Namespace) -> Path:
    if arguments.output is not None:
        if Path(arguments.output).is_file():
            raise InvalidInput(f"--output {arguments.output} is a file; name a directory")
        return Path(arguments.output)
    if not arguments.resume:
        return new_directory(f"improve-{time.strftime('%Y-%m-%dT%H-%M-%S')}")
    found = sorted(RESULTS.glob(f"*/{SEARCH}"))
    if not found:
        raise InvalidInput(f"there is no search in {RESULTS} to go on with; --output names another directory")
    return found[-1].parent


def _cassette(arguments: argparse.Namespace) -> AbstractContextManager[None]:
    """Answers from a cassette, or one that is recorded; that of the suite knows the old text only."""
    if arguments.replay is not None:
        return recording(existing(arguments.replay), "replay")
    if arguments.record is None:
        return nullcontext()
    if Path(arguments.record).is_dir():
        raise InvalidInput(f"--record {arguments.record} is a directory; name a file")
    if arguments.resume:
        return through(lambda stream_fn: recorded(stream_fn, arguments.record))
    return recording(arguments.record, "record")
