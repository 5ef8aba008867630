"""What a complete reply is for people, and what replies add up to."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from swink.events.transcript.blockkinds import (
    Block,
    Custom,
    Ended,
    NoticeBlock,
    ReplyBlock,
    Spent,
    ThinkingBlock,
    ToolBlock,
    described,
)
from swink.messages import (
    AssistantMessage,
    Audio,
    Citation,
    Cost,
    Document,
    Extension,
    Image,
    Media,
    Text,
    Thinking,
    ToolCall,
    Usage,
)

_MARKS = str.maketrans("[]`", "()'")
_UNSAFE = re.compile(r"[\s<>()`\\]")
"""What would end the address of a link in Markdown."""


class Totals(Struct, frozen=True):
    """What a conversation adds up to."""

    prompts: int = 0
    replies: int = 0
    usage: Usage = Usage()
    cost: Cost = Cost()
    is_priced: bool = True
    """Whether the cost of every reply is known."""
    context: int = 0
    """Tokens of the context when the model was last asked, and of its answer."""
    model: str = ""

    def plus(self, reply: AssistantMessage) -> "Totals":
        usage = reply.usage
        return Totals(
            self.prompts,
            self.replies + 1,
            self.usage + usage,
            self.cost if reply.cost is None else self.cost + reply.cost,
            self.is_priced and (reply.cost is not None or not usage.total),
            usage.input + usage.cache_read + usage.cache_write + usage.output or self.context,
            _model_of(reply) or self.model,
        )

    def plus_summary(self, usage: Usage, cost: Cost | None) -> "Totals":
        """With what a summary used and cost."""
        return replace(
            self,
            usage=self.usage + usage,
            cost=self.cost if cost is None else self.cost + cost,
            is_priced=self.is_priced and (cost is not None or not usage.total),
        )

    def with_cost_of(self, other: "Totals") -> "Totals":
        """With the tokens and the cost of another conversation."""
        return replace(
            self,
            usage=self.usage + other.usage,
            cost=self.cost + other.cost,
            is_priced=self.is_priced and other.is_priced,
        )


def blocks_of(reply: AssistantMessage, number: int, seconds: float | None) -> Iterator[Block]:
    """The blocks of a complete reply."""
    model, timestamp = _model_of(reply), reply.timestamp
    for index, content in enumerate(reply.content):
        id = f"{number}.{index}"
        match content:
            case Text(text, citations):
                yield ReplyBlock(id, text + _sources(citations), (), model, timestamp)
            case Thinking(text, redacted=redacted):
                yield ThinkingBlock(id, text, redacted)
            case ToolCall(call_id, _, _, partial):
                made = content.resolved
                yield ToolBlock(id, call_id, made.name, made.arguments, partial, timestamp=timestamp)
            case Image() | Document() | Audio() | Extension():
                yield block_of(content, id, model, timestamp)
    if reply.stop_reason in ("length", "aborted", "error"):
        ended = Ended(reply.stop_reason, reply.error_message or "", reply.error_kind or "")
        yield NoticeBlock(f"{number}.end", ended, timestamp)
    if reply.usage.total or reply.cost is not None:
        yield NoticeBlock(f"{number}.usage", Spent(model, reply.usage, reply.cost, seconds), timestamp)


def block_of(content: Media | Extension, id: str, model: str = "", timestamp: float = 0.0) -> Block:
    """A block of a reply that arrives whole."""
    match content:
        case Image():
            return ReplyBlock(id, "", (content,), model, timestamp)
        case Extension(name, data, shown):
            return NoticeBlock(id, Custom(name, data, shown), timestamp)
        case _:
            return NoticeBlock(id, Custom(described(content), None), timestamp)


def _sources(citations: Iterable[Citation]) -> str:
    """Where a text comes from, as Markdown to stand below it."""
    named = {cited.url or cited.title or "": cited for cited in reversed(list(citations))}
    lines = [
        f"- [{_one_line(cited.title or url)}]({_UNSAFE.sub(lambda found: quote(found[0], safe=''), url)})"
        if cited.url and url.startswith(("https://", "http://"))
        else f"- {_one_line(cited.title or url)}"
        for url, cited in reversed(named.items())
        if url
    ]
    return "\n\nSources:\n\n" + "\n".join(lines) if lines else ""


def _one_line(text: str) -> str:
    return " ".join(text.translate(_MARKS).split())


def _model_of(reply: AssistantMessage) -> str:
    return f"{reply.provider}:{reply.model}" if reply.provider else reply.model
