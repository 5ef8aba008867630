"""`swink trace show`: the tree of what was done, with times, tokens and money.

On a terminal it is no wider than that; elsewhere names are whole, for programs such as grep. Runs are bold,
what failed is red, and what had not ended when the file did is yellow.
"""

import argparse
import shutil
import sys

from swink.app.cli.terminal import add_style, say
from swink.telemetry.tracetree import read_trace
from swink.telemetry.traceview import TraceRow, heads, lines_of, rows_of, summary_of


def help_command(arguments: argparse.Namespace) -> int:
    """`swink trace` alone: show its commands."""
    from swink.app.cli.commands import parse_arguments

    parse_arguments(["trace", "--help"])
    return 0


def show_command(arguments: argparse.Namespace) -> int:
    """Show a trace file as a tree; one of another program's, or one that is too large, is refused."""
    trace = read_trace(arguments.file)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(add_style(summary_of(trace, width), "bold", sys.stdout))
    print()
    (_, name, figures), *lines = lines_of([heads(), *rows_of(trace.roots)], width)
    print(add_style(f"{name}{figures}", "dim", sys.stdout))
    for row, name, figures in lines:
        print(_painted(row, name) + add_style(figures, "dim", sys.stdout))
    for problem in trace.problems:
        say(problem, "warning")
    return 0


def _painted(row: TraceRow, text: str) -> str:
    """A name in the style of how its span ended."""
    if row.error == "unfinished":
        return add_style(text, "warning", sys.stdout)
    if row.error:
        return add_style(text, "error", sys.stdout)
    return text if row.branch else add_style(text, "bold", sys.stdout)
