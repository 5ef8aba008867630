"""Which session a command goes on with, and what is left to do in it.

swink                        a new one, unless --no-session or save = false
swink --continue             the newest one of this directory; a new one if there is none
swink --resume [ID]          that one, or one that is chosen from a list
swink run --session ID|new   that one, or a new one; without the option none, unless --continue
"""

import argparse
import shutil
import sys

from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.assistant.sessionfacts import short_ids, working_directory
from swink.app.assistant.settings import load_settings
from swink.app.assistant.titles import list_talks, title_line
from swink.app.cli.session_lines import list_lines
from swink.app.cli.terminal import add_style, say
from swink.errors import AgentError, MisuseError
from swink.memory.backend import Stored
from swink.memory.store import SyncStore

_CHOICE = 10
_TIMES = 3
_NUMBER = 4
"""Columns of the numbers before a list."""


def saved_chat(arguments: argparse.Namespace) -> SavedConversation | None:
    """Where the chat is saved; None if it is not."""
    if arguments.continue_newest:
        return _newest(open_store())
    if arguments.resume is not None:
        store = open_store()
        return SavedConversation(store, _read(store, arguments.resume or _choose(store)))
    if arguments.no_session or not load_settings().save:
        return None
    try:
        return SavedConversation(open_store())
    except (AgentError, OSError) as error:
        say(f"this conversation is not saved: {error}", "warning")
        return None


def saved_run(arguments: argparse.Namespace) -> SavedConversation | None:
    """Where `swink run` saves; None if it does not."""
    if arguments.continue_newest:
        return _newest(open_store())
    if arguments.session is None:
        return None
    store = open_store()
    if arguments.session == "new":
        return SavedConversation(store)
    return SavedConversation(store, _read(store, arguments.session or _choose(store)))


def _newest(store: SyncStore) -> SavedConversation:
    here = working_directory()
    metas = list_talks(store, here) if here is not None else []
    if metas:
        return SavedConversation(store, store.read(metas[0].id))
    say("no session of this directory yet; this is a new one (swink --resume shows those of others)")
    return SavedConversation(store)


def _read(store: SyncStore, part: str) -> Stored:
    return store.read(store.find(part))


def _choose(store: SyncStore) -> str:
    """The id of the session that the user picks from a list."""
    metas = list_talks(store)[:_CHOICE]
    if not metas:
        raise MisuseError("there are no sessions yet; swink begins one")
    ids = short_ids([meta.id for meta in store.list()])
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        newest = "; ".join(f"{ids[meta.id]} ({title_line(meta, 40)})" for meta in metas[:5])
        why = "--resume needs an ID where there is no terminal to choose on"
        raise MisuseError(f"{why}; the newest: {newest}")
    head, *lines = list_lines(metas, shutil.get_terminal_size().columns - _NUMBER).splitlines()
    print(add_style(f"{'':{_NUMBER}}{head}", "bold", sys.stdout))
    for number, line in enumerate(lines, 1):
        print(f"{number:2}  {line}")
    for _ in range(_TIMES):
        try:
            answer = input("which one? number or ID, Enter for the first, q to leave: ").strip()
        except EOFError:
            answer = "q"
        if answer in ("q", "quit"):
            raise SystemExit(0)
        numbers = {"": 0} | {str(number): number - 1 for number in range(1, len(metas) + 1)}
        if answer in numbers:
            return metas[numbers[answer]].id
        try:
            if len(answer) > 2:
                return store.find(answer)
            say(f"please answer with a number from 1 to {len(metas)}, or with an ID", "error")
        except AgentError as error:
            say(str(error), "error")
    raise MisuseError("no session was chosen")
