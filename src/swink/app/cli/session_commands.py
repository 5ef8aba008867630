"""`swink sessions`: saved conversations, listed, shown, searched, forked, exported, mended and deleted."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from swink.app.assistant.modelchoice import choose_model
from swink.app.assistant.savedconversation import open_store
from swink.app.assistant.sessionfacts import format_age, short_ids, tree_lines
from swink.app.assistant.titles import title_line
from swink.app.cli.session_lines import all_lines, list_lines
from swink.app.cli.terminal import add_style, say, say_in_passing, wants_colour, with_bold_head
from swink.errors import MisuseError, SessionError, SessionNotFound
from swink.events.eventlines import complete
from swink.events.transcript.blockkinds import counted
from swink.memory.backend import Check
from swink.memory.meta import SessionMeta
from swink.memory.store import SyncStore
from swink.messages.codec import to_builtins
from swink.messages.modelspec import format_dollars
from swink.messages.records import Conversation
from swink.messages.redact import redact_text, redact_value
from swink.system.interrupts import raise_interrupts
from swink.system.oneline import strip_controls
from swink.system.threads import run_to_end


def list_command(arguments: argparse.Namespace) -> int:
    """`swink sessions list`: a table, the newest session first."""
    metas = open_store().list()
    if arguments.json:
        return _print_json([describe(meta) for meta in metas])
    if not metas:
        say("no sessions yet; swink begins one")
        return 0
    print(with_bold_head(list_lines(metas, _width())))
    return 0


def show_command(arguments: argparse.Namespace) -> int:
    """`swink sessions show`: every message of one conversation."""
    store = open_store()
    stored = store.read(store.find(arguments.id))
    messages = Conversation(stored.records).everything
    if arguments.json:
        said = [complete(to_builtins(message)) for message in messages.values()]
        return _print_json({"session": describe(stored.meta), "messages": said})
    print(add_style(title_line(stored.meta), "bold", sys.stdout))
    where = f" · {strip_controls(stored.meta.directory)}" if stored.meta.directory else ""
    age = format_age(time.time() - stored.meta.updated)
    print(add_style(f"{stored.meta.id} · {age} ago{where}", "dim", sys.stdout), end="\n\n")
    for line in all_lines(messages):
        print(line)
    return 0


def search_command(arguments: argparse.Namespace) -> int:
    """Messages with some words, wherever they were said."""
    words = " ".join(arguments.words)
    hits = open_store().search(words, limit=arguments.limit)
    if arguments.json:
        return _print_json(hits)
    if not hits:
        say(f"nothing found for {words!r}")
        return 1
    ids = short_ids([*dict.fromkeys(hit.session for hit in hits)])
    now = time.time()
    for hit in hits:
        age = format_age(now - hit.timestamp)
        title = strip_controls(redact_text(hit.title)) or "(no title)"
        place = f"{ids[hit.session]}  message {hit.number}, {hit.role}, {age} ago"
        print(f"{add_style(title, 'bold', sys.stdout)}  {place}")
        print(f"    {_marked(hit.snippet)}")
    return 0


def fork_command(arguments: argparse.Namespace) -> int:
    """A copy to go on with in another way."""
    store = open_store()
    fork = store.fork(store.find(arguments.id), arguments.at)
    shared = (
        f"the first {counted(fork.meta.forked_at or 0, 'message')}"
        if arguments.at is not None
        else "all messages"
    )
    say(f"a new session with {shared}; go on with: swink --resume {_short(store, fork.id)}")
    print(fork.id)
    return 0


def tree_command(arguments: argparse.Namespace) -> int:
    """Which session was forked from which."""
    store = open_store()
    root = None if arguments.id is None else store.find(arguments.id)
    branches = store.tree(root)
    if arguments.json:
        return _print_json([{"depth": branch.depth, **describe(branch.meta)} for branch in branches])
    if not branches:
        say("no sessions yet; swink begins one")
    for line in tree_lines(branches, root):
        print(line)
    return 0


def export_command(arguments: argparse.Namespace) -> int:
    """A conversation as a document."""
    from swink.app.assistant.exporting import format_of, write_file  # most commands export nothing
    from swink.memory import export

    store = open_store()
    stored = store.read(store.find(arguments.id))
    if arguments.out is not None and not arguments.force and os.path.lexists(arguments.out):
        raise MisuseError(f"{arguments.out} is there already; --force overwrites it")
    raise_interrupts()

    def progress(done: int, total: int) -> None:
        say_in_passing(f"swink: {done * 100 // total} % written")

    text = export(stored, format_of(arguments.out or "", arguments.format), progress=progress)
    text = strip_controls(text)  # what a tool has read must not steer the terminal it is shown on
    say_in_passing("")
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    write_file(Path(arguments.out), text)
    say(f"{title_line(stored.meta)}: {counted(stored.meta.messages, 'message')} written to {arguments.out}")
    return 0


def check_command(arguments: argparse.Namespace) -> int:
    """Whether all can be read; 1 if something cannot, and was not repaired."""
    store = open_store()
    raise_interrupts()
    checks = store.check(None if arguments.id is None else _find(store, arguments.id))
    damaged = [check for check in checks if not check.sound]
    for check in damaged:
        lost = "; ".join(f"line {loss.line}, {loss.bytes} bytes: {loss.problem}" for loss in check.losses)
        what = f"{counted(check.messages, 'message')} can be read; lost: {lost}"
        print(f"{check.id}: {what if check.error is None else check.error}")
    if not damaged:
        say(f"{_count(len(checks))} checked, all sound")
        return 0
    if not arguments.repair:
        say(f"{len(damaged)} of {_count(len(checks))} damaged; --repair keeps what can be read")
        return 1
    return max([_repair(store, check) for check in damaged])


def rename_command(arguments: argparse.Namespace) -> int:
    """`swink sessions rename`: another title, given or asked of a model."""
    store = open_store()
    id = store.find(arguments.id)
    title = " ".join(" ".join(arguments.title).split())
    if bool(title) == arguments.ask:
        raise MisuseError("write swink sessions rename ID TITLE, or swink sessions rename ID --ask")
    if arguments.ask:
        title = _ask_title(store, id, arguments.model)
    say(f"{_short(store, id)} is now: {title_line(store.rename(id, title))}")
    return 0


def remove_command(arguments: argparse.Namespace) -> int:
    """Delete sessions: those that are named, or the old ones."""
    store = open_store()
    if bool(arguments.ids) == (arguments.older_than is not None):
        raise MisuseError("write swink sessions rm ID, or swink sessions rm --older-than 30d")
    if arguments.ids:
        found = {_find(store, part): None for part in arguments.ids}
        titles = {meta.id: title_line(meta) for meta in store.list()}
        for id in found:
            store.delete(id)
            say(f"deleted: {titles.get(id, id)}")
        return 0
    old = [meta for meta in store.list() if meta.updated < time.time() - arguments.older_than]
    if not old:
        say("no session is that old")
        return 0
    if not (arguments.yes or _confirm(old)):
        say("nothing was deleted")
        return 1
    for meta in old:
        with suppress(SessionNotFound):  # deleted meanwhile
            store.delete(meta.id)
    say(f"{_count(len(old))} deleted")
    return 0


def describe(meta: SessionMeta) -> dict[str, Any]:
    """What `--json` tells of a session; a cost that is not known at all is null."""
    data = {name: getattr(meta, name) for name in meta.__struct_fields__}
    return data | {"cost": None if meta.unpriced and not meta.cost else meta.cost}


def _find(store: SyncStore, part: str) -> str:
    """The id that a part of it stands for, also of a file that cannot be read."""
    try:
        return store.find(part)
    except SessionNotFound:
        unread = [check.id for check in store.check() if part in check.id]
        if len(unread) != 1:
            raise
        return unread[0]


def _repair(store: SyncStore, check: Check) -> int:
    try:
        done = store.repair(check.id)
    except SessionError as error:
        say(f"{check.id} was left as it is: {error}", "error")
        return 1
    say(f"{check.id} is repaired: {counted(check.messages, 'message')}; the damaged file is {done.damaged}")
    return 0


def _ask_title(store: SyncStore, id: str, named: str | None) -> str:
    from swink.app.assistant.titles import ask_title
    from swink.app.cli.agentsetup import use_local_models

    use_local_models()
    session = store.open(id)
    if not session.messages:
        raise MisuseError("nothing was said in this session yet; give it a title yourself")
    model = session.model if named is None and session.model is not None else choose_model(named).model
    raise_interrupts()
    title, cost = run_to_end(ask_title(model, session.messages))
    say(f"asked {model} ({'cost not known' if cost is None else f'cost {format_dollars(cost.total, 6)}'})")
    return title


def _print_json(value: Any) -> int:
    data = msgspec.json.encode(redact_value(to_builtins(value)))
    print(msgspec.json.format(data, indent=2).decode())
    return 0


def _width() -> int | None:
    """What a line has to fit into; nothing where it is read by a program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _marked(snippet: str) -> str:
    """A snippet in one line; what was found stands out."""
    line = " ".join(strip_controls(redact_text(snippet)).split())
    return line.replace("«", "\x1b[1m").replace("»", "\x1b[0m") if wants_colour(sys.stdout) else line


def _short(store: SyncStore, id: str) -> str:
    return short_ids([meta.id for meta in store.list()]).get(id, id)


def _count(number: int) -> str:
    return counted(number, "session")


def _confirm(old: Sequence[SessionMeta]) -> bool:
    if not sys.stdin.isatty():
        why = "would be deleted, and there is no terminal to ask on; --yes does it"
        raise MisuseError(f"{_count(len(old))} {why}")
    raise_interrupts()
    print(list_lines(old, _width()), file=sys.stderr)
    print(f"swink: delete {_count(len(old))}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
