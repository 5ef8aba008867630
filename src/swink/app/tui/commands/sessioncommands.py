"""Commands about conversations: another one, a fork, back to an earlier prompt, a copy in a file."""

import asyncio

from swink.app.assistant.sessionswitcher import Rewound, SessionSwitcher, is_elsewhere
from swink.app.tui.activity import Activity
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.app.tui.screens.changedfiles import ChangedFiles
from swink.app.tui.screens.familytree import FamilyTree
from swink.app.tui.screens.rewind import Rewind
from swink.app.tui.screens.sessionlist import SessionList
from swink.errors import MisuseError
from swink.memory.exports import EXPORT_FORMATS
from swink.memory.store import SyncStore
from swink.system.oneline import shorten
from swink.system.threads import in_thread


@command("/new", other_names=("/reset", "/clear"))
async def new(context: CommandContext, rest: str) -> None:
    """begin a new conversation; this one stays saved"""
    sessions = _sessions(context)
    before = sessions.resume_command()
    await sessions.new()
    context.say(f"a new conversation; {before} goes on with the last one" if before else "a new conversation")


@command("/sessions", other_names=("/resume",), usage="[ID]")
async def choose_session(context: CommandContext, rest: str) -> None:
    """go on with another conversation: search, preview, rename, fork, delete, export"""
    sessions = _sessions(context)
    if sessions.store is None:
        raise MisuseError("conversations are not saved here, so there are no others")
    if rest:
        await sessions.resume(await in_thread(sessions.store.find, rest))
        tell_where_it_is(context)
    else:
        await _choose(context, sessions, sessions.store)


@command("/fork")
async def fork(context: CommandContext, rest: str) -> None:
    """go on with a copy of this conversation; this one stays as it is"""
    sessions = _sessions(context)
    before = sessions.resume_command()
    await sessions.fork()
    context.say(f"this is a fork; {before} goes on with the other one" if before else "this is a fork")


@command("/tree")
async def tree(context: CommandContext, rest: str) -> None:
    """the forks of this conversation"""
    sessions = _sessions(context)
    current = sessions.saved_id()
    if sessions.store is None or current is None:
        raise MisuseError("this conversation is not saved yet, so it has no forks")
    chosen = await context.ask(FamilyTree(context.look, sessions.store, current))
    if chosen is not None:
        await sessions.resume(chosen)
        tell_where_it_is(context)


@command("/rewind")
async def rewind(context: CommandContext, rest: str) -> None:
    """back to before an earlier prompt: the conversation, the files, or both (Esc twice)"""
    sessions = _sessions(context)
    if context.driver.is_running:
        raise MisuseError("the agent is at work; Esc stops it, then /rewind")
    if not sessions.prompts() and not await sessions.can_redo():
        raise MisuseError("there is no prompt to go back to yet")
    chosen = await context.ask(Rewind(context.look, sessions))
    if chosen is None:
        return
    if chosen == "redo":
        _tell(context, "the rewind is undone", await sessions.redo())
        return
    chat, files, confirmed = chosen.chat, chosen.files, chosen.confirmed
    done = await sessions.rewind(chosen.number, chat=chat, files=files, confirmed=confirmed)
    if done.prompt is not None:
        context.editor.put_back(done.prompt.text)
    _tell(context, "went back to before that prompt" if chosen.chat else "the conversation stays", done)


@command("/redo")
async def redo(context: CommandContext, rest: str) -> None:
    """undo the last rewind"""
    _tell(context, "the rewind is undone", await _sessions(context).redo())


@command("/rename", "TITLE")
async def rename(context: CommandContext, rest: str) -> None:
    """give this conversation another title"""
    if not rest:
        raise MisuseError("which title? /rename TITLE")
    await _sessions(context).rename(rest)
    context.say(f"this conversation is now called “{shorten(rest, 60)}”")


@command("/export", "[FILE.html | FILE.md | FILE.json]", choices=lambda context: EXPORT_FORMATS)
async def export(context: CommandContext, rest: str) -> None:
    """write this conversation to a file, by default a page that browsers show"""
    sessions = _sessions(context)
    meta = sessions.meta
    name = "swink-conversation" if meta is None else f"swink-{meta.id[:15]}"
    path = f"{name}.{rest}" if rest in EXPORT_FORMATS else rest or f"{name}.html"
    context.say(f"written to {await sessions.export(path)}")


@command("/diff")
async def diff(context: CommandContext, rest: str) -> None:
    """what this conversation changed in files"""
    changes = await _sessions(context).changed()
    if not changes:
        context.say("the tools of this conversation have changed no file that is different now")
    else:
        await context.ask(ChangedFiles(context.look, changes))


async def take_up(context: CommandContext, sessions: SessionSwitcher) -> None:
    """At the start: look after what a killed process left, and say what a resumed conversation is like."""
    tasks: set[asyncio.Task[None]] = set()

    def run_ended(activity: Activity) -> None:
        _tell_notices(context, sessions)
        task = asyncio.create_task(sessions.ask_title())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    context.driver.ended = run_ended
    await sessions.recover_files()
    if sessions.is_choosing and sessions.store is not None:
        await _choose(context, sessions, sessions.store)
    elif sessions.saved_conversation is not None and sessions.saved_conversation.is_resumed:
        tell_where_it_is(context)


def tell_where_it_is(context: CommandContext) -> None:
    """Say where a resumed conversation was, and what is left to do in it."""
    sessions = _sessions(context)
    if (meta := sessions.meta) is not None and is_elsewhere(meta):
        context.say(f"this conversation was in {meta.directory}; now its tools work here")
    if left := sessions.left():
        lines = "\n".join(f"  {shorten(line, 100)}" for line in left)
        context.say(f"this conversation was interrupted:\n{lines}\n/continue finishes it")
    _tell_notices(context, sessions)


@command("/continue")
def go_on(context: CommandContext, rest: str) -> None:
    """finish what an interruption left, or say what is queued"""
    if context.driver.is_running:
        raise MisuseError("the agent is at work")
    context.driver.go_on()


async def _choose(context: CommandContext, sessions: SessionSwitcher, store: SyncStore) -> None:
    chosen = await context.ask(SessionList(context.look, store, sessions.saved_id()))
    if chosen is None or (chosen.how == "resume" and chosen.id == sessions.saved_id()):
        return
    await sessions.resume(chosen.id)
    if chosen.how == "fork":
        await sessions.fork()
    tell_where_it_is(context)


def _tell_notices(context: CommandContext, sessions: SessionSwitcher) -> None:
    for notice in sessions.take_notices():
        context.say(notice, "warning")


def _sessions(context: CommandContext) -> SessionSwitcher:
    if context.sessions is None:
        raise MisuseError("conversations are not kept here")
    return context.sessions


def _tell(context: CommandContext, what: str, done: Rewound) -> None:
    """What a rewind came to."""
    told = [what]
    if done.files is not None:
        count = len(done.files.files)
        told += [f"{count} {'file is' if count == 1 else 'files are'} restored"] if count else []
        told += [f"{change.path} is left: {change.conflict}" for change in done.files.left[:10]]
        told += [f"{path} could not be restored: {why}" for path, why in list(done.files.failed.items())[:10]]
    context.say("; ".join(told), "warning" if done.files is not None and done.files.failed else "notice")
