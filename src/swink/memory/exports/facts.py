"""Facts: what stands at the top of an exported conversation."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from swink.events.transcript import Block, PromptBlock, ReplyBlock, ToolBlock, Totals
from swink.memory.meta import SessionMeta, title_of
from swink.messages.modelspec import format_dollars
from swink.system.shorten import clip

_TELLING = ("path", "file_path", "command", "pattern", "query", "url", "task", "name")
"""Arguments that tell best what a call is about, the best first."""
_GIST = 160
_LAST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""A time after it is none, and has no date."""


class Facts(Struct, frozen=True):
    """What an exported page says about its conversation."""

    title: str
    date: str
    model: str
    prompts: tuple[str, ...]
    """The title of each."""
    tokens: int
    cost: str
    system_prompt: str


def facts_of(meta: SessionMeta, totals: Totals, blocks: Sequence[Block], system_prompt: str) -> Facts:
    """The facts of a conversation."""
    models = [block.model for block in blocks if isinstance(block, ReplyBlock) and block.model]
    titles = [title_of(block.text) or "(no text)" for block in blocks if isinstance(block, PromptBlock)]
    return Facts(
        meta.title or (titles[0] if titles else "Conversation"),
        date_of(meta.created),
        ", ".join(dict.fromkeys(models)) or meta.model or "",
        tuple(titles),
        totals.usage.total,
        cost_of(totals.cost.total, is_whole=totals.is_priced),
        system_prompt,
    )


def date_of(timestamp: float) -> str:
    """A time for people, UTC; nothing for none."""
    if not 0 < timestamp < _LAST:
        return ""
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M} UTC"


def cost_of(cost: float, *, is_whole: bool) -> str:
    """A cost for people; nothing where none is known."""
    if not cost:
        return ""
    shown = format_dollars(cost, 2 if cost >= 1 else 4)
    return shown if cost >= 1 or is_whole else f"more than {shown}"


def gist_of(call: ToolBlock) -> str:
    """What a call is about, in a few words."""
    arguments: Mapping[str, Any] = call.arguments
    texts = [arguments.get(name) for name in _TELLING] + list(arguments.values())
    text = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return clip(" ".join(text[: 4 * _GIST].split()), _GIST)


NAMES = {"swink.summary": "Summary of earlier messages"}
"""Messages of our own, for people."""
STATES = {
    "waiting": "not run",
    "approval": "waits for approval",
    "running": "outcome unknown",
    "done": "done",
    "failed": "failed",
    "rejected": "rejected",
    "cancelled": "cancelled",
}
"""How a call ended, for people who read a saved conversation."""
MARKS = dict(zip(STATES, "…?…✓✗⊘⊘", strict=True))
