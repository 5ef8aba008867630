"""`swink eval`: 0 passed, 1 cases or a gate failed, 2 bad configuration, 3 a run-time error."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swink.app.cli.terminal import say, wants_colour
from swink.errors import AgentError, InvalidInput, MisuseError
from swink.events.transcript.blockkinds import counted

if TYPE_CHECKING:
    from swink.eval.result import CaseResult

FAILED, WRONG, TROUBLE = 1, 2, 3
KEY = "SWINK_EVAL_KEY"
"""The variable with the secret that results are signed with."""
_MOST_PROBLEMS = 20

Command = Callable[[argparse.Namespace], int]


def coded(command: Command) -> Command:
    """The command, with 3 as its exit code for what failed while it ran."""

    @wraps(command)
    def run(arguments: argparse.Namespace) -> int:
        try:
            return command(arguments)
        except MisuseError:
            raise
        except (AgentError, OSError) as error:
            if arguments.debug:
                traceback.print_exception(error)
            say(str(error), "error")
            return TROUBLE

    return run


def help_command(arguments: argparse.Namespace) -> int:
    """`swink eval` alone: show its commands."""
    from swink.app.cli.commands import parse_arguments

    parse_arguments(["eval", "--help"])
    return 0


@coded
def init_command(arguments: argparse.Namespace) -> int:
    """`swink eval init`: write a small suite that passes without a key."""
    from swink.eval.starting import write_suite

    for path in write_suite(arguments.directory):
        print(path)
    where = "" if arguments.directory == "." else f"cd {arguments.directory} && "
    say(f"now: {where}swink eval run")
    return 0


@coded
def report_command(arguments: argparse.Namespace) -> int:
    """Write the reports of a run anew, and show its table."""
    from swink.eval.evalrun import open_run, read_summary
    from swink.eval.reports import console_table, write_reports
    from swink.eval.resultfile import BadResults

    run = open_run(existing(arguments.directory))
    name, baseline = baseline_of(arguments.baseline)
    try:
        kept = read_summary(arguments.directory)
    except BadResults:
        kept = None  # a damaged one is written anew
    # The head that was written stays: one made anew would hide that lines are missing.
    summary = replace(run.summary, head=kept.head if kept else None)
    if kept and kept.duration:
        summary = replace(summary, duration=kept.duration)
    write_reports(
        Path(arguments.directory), summary, run.cases, run.manifest, baseline=baseline, baseline_name=name
    )
    print(console_table(summary, run.cases, colour=wants_colour(sys.stdout)))
    say(f"written: {Path(arguments.directory, 'report.html')}")
    return 0


@coded
def compare_command(arguments: argparse.Namespace) -> int:
    """`swink eval compare`: show what changed between two runs."""
    from swink.eval.compare import compare
    from swink.eval.comparisontable import comparison_table
    from swink.messages.codec import encode

    found = compare(existing(arguments.before), existing(arguments.after))
    print(encode(found).decode() if arguments.json else comparison_table(found))
    return 0


@coded
def gate_command(arguments: argparse.Namespace) -> int:
    """Pass or fail a run."""
    from swink.eval.thresholds import gate
    from swink.messages.codec import encode

    if arguments.baseline is None and (arguments.max_regressions is not None or arguments.significant):
        raise InvalidInput("--max-regressions and --significant compare with a run: add --baseline DIR2")
    names = ("min_pass_rate", "max_cost", "max_duration", "max_regressions", "significant")
    limits = {name: getattr(arguments, name) for name in names}
    baseline = None if arguments.baseline is None else existing(arguments.baseline)
    found = gate(existing(arguments.directory), baseline=baseline, **limits)
    print(encode(found).decode() if arguments.json else str(found))
    return 0 if found.passed else FAILED


@coded
def verify_command(arguments: argparse.Namespace) -> int:
    """Find any change to the results."""
    from swink.eval.verify import verify

    found = verify(existing(arguments.directory), key=signing_key())
    for problem in found.problems[:_MOST_PROBLEMS]:
        say(problem, "error")
    if len(found.problems) > _MOST_PROBLEMS:
        say(f"and {counted(len(found.problems) - _MOST_PROBLEMS, 'more problem')}", "error")
    if found.records and sum("another key" in problem for problem in found.problems) >= found.records:
        say(f"no line fits: {KEY} must be what it was when the run was made, or unset if it was unset then")
    for note in found.notes:
        say(note)
    if found.ok:
        are = "is as it was" if found.records == 1 else "are as they were"
        print(f"{counted(found.records, 'result')} {are} written")
    return 0 if found.ok else FAILED


@coded
def export_command(arguments: argparse.Namespace) -> int:
    """Write transcripts for training, or a log for another viewer."""
    from swink.eval.inspectlog import write_inspect_log
    from swink.eval.training import export_training

    directory = existing(arguments.directory)
    path = Path(arguments.output or directory)
    if path.is_file() and not arguments.force:
        raise InvalidInput(f"{path} is there already; --force overwrites it")
    if arguments.format == "inspect":
        written = write_inspect_log(directory, path)
        say(f"written: {written}; inspect view --log-dir {written.parent} shows it")
        return 0
    if path.is_dir():
        path /= f"training.{arguments.format}.jsonl"
    made = export_training(directory, path, arguments.format)
    say(f"{counted(made.written, 'conversation')} written to {path}")
    for left in made.skipped:
        say(f"left out: {left.case_id}, attempt {left.repeat + 1}: {left.why}")
    return 0


@coded
def import_command(arguments: argparse.Namespace) -> int:
    """Make a case file of a published benchmark."""
    from swink.eval.importers import import_cases, write_cases

    suite = import_cases(arguments.format, existing(arguments.path), limit=arguments.limit)
    path = Path(arguments.output)
    if path.exists() and not arguments.force:
        raise InvalidInput(f"{path} is there already; --force overwrites it, --output names another")
    write_cases(suite, path)
    tell_skipped(suite.skipped)
    say(f"{counted(len(suite.cases), 'case')} written to {path}; now: swink eval run {path} --model MODEL")
    return 0


@coded
def schema_command(arguments: argparse.Namespace) -> int:
    """Print the JSON Schema of case files."""
    from swink.eval.caseschema import schema_text

    print(schema_text())
    return 0


def tell_skipped(skipped: Sequence[str]) -> None:
    """Say which rows of a benchmark are no cases, and why."""
    if not skipped:
        return
    more, are = len(skipped) - _MOST_PROBLEMS, "is" if len(skipped) == 1 else "are"
    say(f"{counted(len(skipped), 'row')} could not be read and {are} left out:", "warning")
    for problem in skipped[:_MOST_PROBLEMS]:
        say(problem)
    if more > 0:
        say(f"and {more} more")


def baseline_of(path: str | None) -> "tuple[str, Sequence[CaseResult] | None]":
    """What an earlier run is called, and its attempts; nothing if none is named."""
    if path is None:
        return "", None
    from swink.eval.evalrun import open_run

    run = open_run(existing(path))
    when = f" of {run.manifest.name}" if run.manifest.name else ""
    return f"{Path(path).absolute().name}{when}", run.cases


def existing(path: str) -> Path:
    """A path that is there."""
    found = Path(path)
    if not found.exists():
        raise InvalidInput(f"there is no {path}")
    return found


def signing_key() -> str | None:
    """The secret that results are signed with, if there is one."""
    return os.environ.get(KEY, "").strip() or None
