"""`swink trust`: what a folder brings along, whether it is used, and what was decided about others."""

import argparse
import os
import sys
from pathlib import Path

from swink.app.assistant.luggage import describe_luggage
from swink.app.assistant.trust import Trust, answer, decisions, forget, look_afresh, look_up
from swink.app.cli.terminal import ask_line, say, table, with_bold_head
from swink.errors import MisuseError
from swink.system.oneline import strip_controls


def trust_command(arguments: argparse.Namespace) -> int:
    """Ask about a folder, forget the answer, or list all answers."""
    if arguments.list:
        return _list()
    directory = os.path.realpath(arguments.directory or ".")
    if arguments.forget:
        return _forget(directory)
    if not os.path.isdir(directory):
        raise MisuseError(f"there is no directory {directory}")
    known = look_up(directory)
    if known.standing == "never":
        raise MisuseError(known.notice or "")
    trust = known if known.standing == "changed" else look_afresh(directory)
    _show(trust, Path(directory))
    if known.is_trusted:
        say("it is trusted as it is now; swink trust --forget takes that back")
        return 0
    if not arguments.yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise MisuseError("there is no terminal to ask on; swink trust --yes trusts what is listed here")
    key = "y" if arguments.yes else _ask(trust)
    if key is None:
        say("nothing was changed")
        return 1
    is_trusted = answer(trust, key).is_trusted
    say(f"{trust.project} is {'' if is_trusted else 'not '}trusted")
    return 0 if is_trusted else 1


def _show(trust: Trust, directory: Path) -> None:
    """Print what the project brings along."""
    print(strip_controls(str(trust.project)))
    luggage = describe_luggage(trust.brought, directory)
    rows: list[tuple[str, ...]] = [(f"  {kind}", strip_controls(line)) for kind, line in luggage]
    print(table(rows) if rows else "  it brings nothing along so far")
    for notice in trust.brought.notices:
        say(notice, "warning")
    for change in trust.changes:
        print(f"  {change}")


def _ask(trust: Trust) -> str | None:
    """The key of an answer; None if none was given."""
    print(trust.question)
    for key, meaning in trust.answers.items():
        print(f"  {key}  {meaning}")
    typed = ask_line(f"trust it? [{'/'.join(trust.answers)}] ")
    key = (typed or "").lower()[:1]
    return key if key in trust.answers else None


def _forget(directory: str) -> int:
    if not forget(directory):
        raise MisuseError(f"nothing was decided about {directory}; swink trust --list shows what was")
    left = look_up(directory) if os.path.isdir(directory) else None
    if left is not None and left.standing in ("trusted", "changed"):
        say(f"{left.project} is still trusted, by an answer for every project below a folder above it")
    else:
        say(f"forgotten: swink asks about {directory} again")
    return 0


def _list() -> int:
    known = decisions()
    if not known:
        say("no folder was asked about yet")
        return 0
    rows: list[tuple[str, ...]] = [("FOLDER", "IS")]
    for project, words in known.items():
        rows.append((strip_controls(project), words if os.path.isdir(project) else f"{words} (gone)"))
    print(with_bold_head(table(rows)))
    return 0
