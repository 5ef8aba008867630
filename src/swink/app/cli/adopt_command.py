"""`swink adopt`: what Claude Code, codex and opencode have for their user, and what it becomes here."""

import argparse
import os
import shutil
import sys
import textwrap
from itertools import groupby
from pathlib import Path

from swink.app.assistant.adopting import PROGRAMS, Adoptable, Places, find_theirs, write_adopted
from swink.app.assistant.adopting.findings import State
from swink.app.assistant.settings import load_settings
from swink.app.cli.directory import known_trust
from swink.app.cli.terminal import add_style, ask_line, say
from swink.errors import AgentError
from swink.events.transcript.blockkinds import counted
from swink.messages.redact import redact_text
from swink.system.oneline import strip_controls, width_of

_MARKS: dict[State, str] = {"new": "+", "here": "=", "read": "=", "cannot": "-", "yet": "."}
_WIDEST, _NARROWEST = 32, 30
"""Columns that names take at most, and what stands after them at least."""
_LEGEND = "+ is written after a yes  = is here  - cannot be had  . is not read yet"


def adopt_command(arguments: argparse.Namespace) -> int:
    """List what is found, ask, and write it."""
    trust = known_trust()
    home = Path(os.path.expanduser("~"))
    places = Places(home, trust.project, load_settings(), trust.is_trusted)
    programs = [arguments.program] if arguments.program else [*PROGRAMS]
    new: list[Adoptable] = []
    for program in programs:
        found = find_theirs(program, places)
        _show(program, found, places)
        new += [finding for finding in found if finding.new is not None]
    if not new:
        say("there is nothing to write")
        return 0
    print(_LEGEND)
    if arguments.dry_run:
        say(f"{counted(len(new), 'thing')} would be written; nothing was")
        return 0
    if not arguments.yes and not _is_wanted(len(new)):
        say("nothing was written")
        return 1
    return _write(new, places)


def _show(program: str, found: list[Adoptable], places: Places) -> None:
    """Print what was found of a program, by the files that it stands in."""
    print(add_style(program if found else f"{program}: nothing found", "bold", sys.stdout))
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1_000
    width = min(_WIDEST, max((width_of(_line(each.name)) for each in found), default=0))
    for source, findings in groupby(found, lambda finding: finding.source):
        print(f"  {_line(places.short(source))}")
        for finding in findings:
            name = _line(finding.name)
            start = f"  {_MARKS[finding.state]} {finding.kind:<12}  {name}"
            start += " " * (width - width_of(name)) if width_of(name) <= width else ""
            below = "\n" + " " * (18 + width)
            lines = textwrap.wrap(_line(finding.becomes, 400), max(_NARROWEST, room - width - 20))
            print(f"{start}  {below.join(lines)}")


def _line(text: str, most: int = 100) -> str:
    """Text of theirs in one line, without secrets."""
    line = strip_controls(redact_text(" ".join(text.split())))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _is_wanted(count: int) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say("no terminal to ask on: --yes writes what is listed, --dry-run only lists")
        return False
    typed = ask_line(f"write {counted(count, 'thing')} marked + ? nothing of theirs is changed [y/N] ")
    return (typed or "").lower() in ("y", "yes")


def _write(new: list[Adoptable], places: Places) -> int:
    """Write one after the other; what fails is told, and the rest goes on."""
    failed = 0
    for finding in new:
        try:
            write_adopted(finding, places)
        except AgentError as error:
            failed += 1
            say(f"{finding.kind} {_line(finding.name)}: {error}", "error")
    say(f"{counted(len(new) - failed, 'thing')} written{f', {failed} not' if failed else ''}")
    return 1 if failed else 0
