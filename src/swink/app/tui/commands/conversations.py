"""Commands about conversations: another one, a fork, back to an earlier prompt, a copy in a file."""

import asyncio

from swink.app.tui.activity import Activity
from swink.app.tui.commands.registry import Desk, command
from swink.app.tui.conversations import Conversations, Rewound, is_elsewhere
from swink.errors import MisuseError
from swink.memory.exports import EXPORT_FORMATS
from swink.memory.store import SyncStore
from swink.system.oneline import shorten
from swink.system.threads import in_thread


@command("/new", other_names=("/reset", "/clear"))
async def new(desk: Desk, rest: str) -> None:
    """begin a new conversation; this one stays saved"""
    conversations = _conversations(desk)
    before = conversations.resume_command()
    await conversations.new()
    desk.say(f"a new conversation; {before} goes on with the last one" if before else "a new conversation")


@command("/sessions", other_names=("/resume",), usage="[ID]")
async def sessions(desk: Desk, rest: str) -> None:
    """go on with another conversation: search, preview, rename, fork, delete, export"""
    conversations = _conversations(desk)
    if conversations.store is None:
        raise MisuseError("conversations are not saved here, so there are no others")
    if rest:
        await conversations.resume(await in_thread(conversations.store.find, rest))
        tell_where_it_is(desk)
    else:
        await _choose(desk, conversations, conversations.store)


@command("/fork")
async def fork(desk: Desk, rest: str) -> None:
    """go on with a copy of this conversation; this one stays as it is"""
    conversations = _conversations(desk)
    before = conversations.resume_command()
    await conversations.fork()
    desk.say(f"this is a fork; {before} goes on with the other one" if before else "this is a fork")


@command("/tree")
async def tree(desk: Desk, rest: str) -> None:
    """the forks of this conversation"""
    from swink.app.tui.screens.tree import FamilyTree

    conversations = _conversations(desk)
    current = conversations.saved_id()
    if conversations.store is None or current is None:
        raise MisuseError("this conversation is not saved yet, so it has no forks")
    chosen = await desk.ask(FamilyTree(desk.look, conversations.store, current))
    if chosen is not None:
        await conversations.resume(chosen)
        tell_where_it_is(desk)


@command("/rewind")
async def rewind(desk: Desk, rest: str) -> None:
    """back to before an earlier prompt: the conversation, the files, or both (Esc twice)"""
    from swink.app.tui.screens.rewind import Rewind

    conversations = _conversations(desk)
    if desk.conductor.is_running:
        raise MisuseError("the agent is at work; Esc stops it, then /rewind")
    if not conversations.prompts() and not await conversations.can_redo():
        raise MisuseError("there is no prompt to go back to yet")
    chosen = await desk.ask(Rewind(desk.look, conversations))
    if chosen is None:
        return
    if chosen == "redo":
        _tell(desk, "the rewind is undone", await conversations.redo())
        return
    done = await conversations.rewind(
        chosen.number, chat=chosen.chat, files=chosen.files, confirmed=chosen.confirmed
    )
    if done.prompt is not None:
        desk.editor.put_back(done.prompt.text)
    _tell(desk, "went back to before that prompt" if chosen.chat else "the conversation stays", done)


@command("/redo")
async def redo(desk: Desk, rest: str) -> None:
    """undo the last rewind"""
    _tell(desk, "the rewind is undone", await _conversations(desk).redo())


@command("/rename", "TITLE")
async def rename(desk: Desk, rest: str) -> None:
    """give this conversation another title"""
    if not rest:
        raise MisuseError("which title? /rename TITLE")
    await _conversations(desk).rename(rest)
    desk.say(f"this conversation is now called “{shorten(rest, 60)}”")


@command("/export", "[FILE.html | FILE.md | FILE.json]", choices=lambda desk: EXPORT_FORMATS)
async def export(desk: Desk, rest: str) -> None:
    """write this conversation to a file, by default a page that browsers show"""
    conversations = _conversations(desk)
    meta = conversations.meta
    name = "swink-conversation" if meta is None else f"swink-{meta.id[:15]}"
    path = f"{name}.{rest}" if rest in EXPORT_FORMATS else rest or f"{name}.html"
    desk.say(f"written to {await conversations.export(path)}")


@command("/diff")
async def diff(desk: Desk, rest: str) -> None:
    """what this conversation changed in files"""
    from swink.app.tui.screens.changed import Changed

    changes = await _conversations(desk).changed()
    if not changes:
        desk.say("the tools of this conversation have changed no file that is different now")
    else:
        await desk.ask(Changed(desk.look, changes))


async def take_up(desk: Desk, conversations: Conversations) -> None:
    """At the start: look after what a killed process left, and say what a resumed conversation is like."""
    tasks: set[asyncio.Task[None]] = set()

    def run_ended(activity: Activity) -> None:
        _tell_notices(desk, conversations)
        task = asyncio.create_task(conversations.ask_title())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    desk.conductor.ended = run_ended
    await conversations.begin()
    if conversations.is_choosing and conversations.store is not None:
        await _choose(desk, conversations, conversations.store)
    elif conversations.keeper is not None and conversations.keeper.is_resumed:
        tell_where_it_is(desk)


def tell_where_it_is(desk: Desk) -> None:
    """Say where a resumed conversation was, and what is left to do in it."""
    conversations = _conversations(desk)
    if (meta := conversations.meta) is not None and is_elsewhere(meta):
        desk.say(f"this conversation was in {meta.directory}; now its tools work here")
    if left := conversations.left():
        lines = "\n".join(f"  {shorten(line, 100)}" for line in left)
        desk.say(f"this conversation was interrupted:\n{lines}\n/continue finishes it")
    _tell_notices(desk, conversations)


@command("/continue")
def go_on(desk: Desk, rest: str) -> None:
    """finish what an interruption left, or say what is queued"""
    if desk.conductor.is_running:
        raise MisuseError("the agent is at work")
    desk.conductor.go_on()


async def _choose(desk: Desk, conversations: Conversations, store: SyncStore) -> None:
    from swink.app.tui.screens.sessions import Sessions

    chosen = await desk.ask(Sessions(desk.look, store, conversations.saved_id()))
    if chosen is None or (chosen.how == "resume" and chosen.id == conversations.saved_id()):
        return
    await conversations.resume(chosen.id)
    if chosen.how == "fork":
        await conversations.fork()
    tell_where_it_is(desk)


def _tell_notices(desk: Desk, conversations: Conversations) -> None:
    for notice in conversations.take_notices():
        desk.say(notice, "warning")


def _conversations(desk: Desk) -> Conversations:
    if desk.conversations is None:
        raise MisuseError("conversations are not kept here")
    return desk.conversations


def _tell(desk: Desk, what: str, done: Rewound) -> None:
    """What a rewind came to."""
    told = [what]
    if done.files is not None:
        count = len(done.files.files)
        told += [f"{count} {'file is' if count == 1 else 'files are'} restored"] if count else []
        told += [f"{change.path} is left: {change.conflict}" for change in done.files.left[:10]]
        told += [f"{path} could not be restored: {why}" for path, why in list(done.files.failed.items())[:10]]
    desk.say("; ".join(told), "warning" if done.files is not None and done.files.failed else "notice")
