"""What people are told of a session: its age, cost, a short id, and what is left to do in it."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from swink.app.assistant.shell import told_command
from swink.app.assistant.titles import title_line
from swink.app.assistant.toolcalls import format_call
from swink.events.transcript.blockkinds import counted
from swink.memory.families import Branch
from swink.memory.meta import SessionMeta
from swink.messages import Message, ToolResultMessage, UserMessage
from swink.messages.modelspec import format_dollars
from swink.messages.records import Conversation

_SHORT = 6
"""Characters of an id that are shown, if no other id has them."""
_STEPS = ((60, "s"), (60, "min"), (24, "h"), (7, "d"), (52, "w"))


def format_age(seconds: float) -> str:
    """How long ago: "40 s", "5 min", "3 h", "2 d", "6 w", "2 y"."""
    left = max(0.0, seconds)
    for size, unit in _STEPS:
        if left < size:
            return f"{int(left)} {unit}"
        left /= size
    return f"{int(left)} y"


def format_cost(meta: SessionMeta) -> str:
    """What it cost, in US dollars; "?" stands for a part that is not known."""
    if meta.unpriced:
        return f"{format_dollars(meta.cost)}+?" if meta.cost else "?"
    return format_dollars(meta.cost)


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """For each id a part of it that no other one has."""
    pieces = Counter(piece for id in ids for piece in {id[at : at + _SHORT] for at in range(len(id))})
    return {id: _short(id, ids, pieces) for id in ids}


def tree_lines(branches: Sequence[Branch], marked: str | None = None) -> Iterator[str]:
    """Sessions below those that they were forked from, one of them marked."""
    ids = short_ids([branch.meta.id for branch in branches])
    for branch in branches:
        meta = branch.meta
        indent = "   " * (branch.depth - 1) + "└─ " if branch.depth else ""
        place = "" if meta.parent is None else f", forked after message {meta.forked_at}"
        gone = f" of {meta.parent}, which was deleted" if meta.parent and not branch.depth else ""
        facts = f"({counted(meta.messages, 'message')}{place}{gone}){' ←' if meta.id == marked else ''}"
        yield f"{indent}{title_line(meta)}  {ids[meta.id]}  {facts}"


def working_directory() -> str | None:
    """The current directory as sessions name it; None if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def what_is_left(conversation: Conversation) -> Iterator[str]:
    """What an interrupted turn left undone, a line each."""
    turn = conversation.open
    said = [message for message in conversation.messages if not _is_told_command(message)]
    last = said[-1] if said else None
    if turn is not None:
        waiting = "waits for your approval"
        states = ((turn.results, "finished"), (turn.pending, waiting), (turn.started, "outcome unknown"))
        for call in [made.resolved for made in turn.reply.tool_calls]:
            state = next((word for calls, word in states if call.id in calls), "not started")
            yield f"{format_call(call.name, call.arguments)}: {state}"
    elif isinstance(last, UserMessage):
        yield "the last prompt has no answer yet"
    elif isinstance(last, ToolResultMessage):
        yield "the last results of tools have no answer yet"
    queued = len(conversation.steering) + len(conversation.follow_up)
    if queued:
        yield "1 message is still queued" if queued == 1 else f"{queued} messages are still queued"


def _is_told_command(message: Message) -> bool:
    """Whether it reports a command that the user ran, which needs no answer."""
    return isinstance(message, UserMessage) and told_command(message.text) is not None


def _short(id: str, ids: Iterable[str], pieces: Counter[str]) -> str:
    tail = id.rpartition("_")[2]
    if len(tail) < 2 * _SHORT or pieces[tail[:_SHORT]] == 1:
        return tail[:_SHORT] if len(tail) >= 2 * _SHORT else id
    others = [other for other in ids if other != id]
    for length in range(_SHORT + 1, len(tail)):
        if not any(tail[:length] in other for other in others):
            return tail[:length]
    return id
