"""What a complete reply is for people, and what replies add up to."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from swink.messages import AssistantMessage, Cost, Extension, Image, Text, Thinking, ToolCall, Usage
from swink.transcript.blocks import (
    Block,
    Custom,
    Ended,
    NoticeBlock,
    ReplyBlock,
    Spent,
    ThinkingBlock,
    ToolBlock,
)


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
        """With one more reply."""
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
            case Text(text):
                yield ReplyBlock(id, text, (), model, timestamp)
            case Image():
                yield ReplyBlock(id, "", (content,), model, timestamp)
            case Thinking(text, redacted=redacted):
                yield ThinkingBlock(id, text, redacted)
            case ToolCall(call_id, name, arguments, partial):
                yield ToolBlock(id, call_id, name, arguments, partial, timestamp=timestamp)
            case Extension(name, data):
                yield NoticeBlock(id, Custom(name, data), timestamp)
    if reply.stop_reason in ("length", "aborted", "error"):
        ended = Ended(reply.stop_reason, reply.error_message or "", reply.error_kind or "")
        yield NoticeBlock(f"{number}.end", ended, timestamp)
    if reply.usage.total or reply.cost is not None:
        yield NoticeBlock(f"{number}.usage", Spent(model, reply.usage, reply.cost, seconds), timestamp)


def _model_of(reply: AssistantMessage) -> str:
    return f"{reply.provider}:{reply.model}" if reply.provider else reply.model
