"""Blocks: what a transcript consists of. They are frozen; one that changes is replaced by another of its id.

prompt      what the user said                           "4"      by the number of its message
thinking    what the model thought                       "5.0"    by message and place in it
reply       what it said                                 "5.1"
tool        a call with its arguments and its result     "5.2"
notice      everything else: an error, a retry, a compaction, what a reply cost
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.events.transcript.diffs import Diff, diff
from swink.messages import (
    Audio,
    Cost,
    Document,
    Extension,
    Image,
    Media,
    StopReason,
    Text,
    ToolResult,
    Usage,
    text_of,
)
from swink.messages.jsondata import encode
from swink.messages.message import USER_NOTE
from swink.messages.modelspec import format_dollars
from swink.tools import full_text

ToolState = Literal["waiting", "approval", "running", "done", "failed", "rejected", "cancelled"]
Content = tuple[Text | Media | Extension, ...]


class PromptBlock(Struct, frozen=True, tag="prompt"):
    """What the user said, or what was said for them."""

    id: str
    content: Content
    timestamp: float = 0.0

    @property
    def text(self) -> str:
        """Its text, and the names of its documents."""
        text = text_of(self.content)
        others = [described(block) for block in self.content if isinstance(block, Document | Audio)]
        return "\n".join([*others, text] if text else others) if others else text

    @property
    def images(self) -> tuple[Image, ...]:
        return images_of(self.content)


class ThinkingBlock(Struct, frozen=True, tag="thinking"):
    """What the model thought; nothing to read if its provider keeps that to itself (`redacted`)."""

    id: str
    text: str
    redacted: bool = False
    is_complete: bool = True


class ReplyBlock(Struct, frozen=True, tag="reply"):
    """What the model said: Markdown, or an image that it made.

    Args:
        id: the same while the block grows
        text: what was said so far
        images: those that the model made
        model: who said it
        timestamp: when, in seconds since 1970
        is_complete: False while it arrives
    """

    id: str
    text: str
    images: tuple[Image, ...] = ()
    model: str = ""
    timestamp: float = 0.0
    is_complete: bool = True


class ToolBlock(Struct, frozen=True, dict=True, tag="tool"):
    """A tool call.

    waiting → (approval →) running → done | failed | cancelled;  approval → rejected

    While it streams `partial` is the text of its arguments so far; it stays if it was no JSON.
    """

    id: str
    call_id: str
    name: str
    arguments: Mapping[str, Any] = {}
    partial: str | None = None
    state: ToolState = "waiting"
    content: Content = ()
    """The result as the model saw it."""
    details: Any = None
    """What the tool told people besides."""
    timestamp: float = 0.0
    ran_with: Mapping[str, Any] | None = None
    """The arguments that it ran with, where a policy or a person changed them; only of a run one watched."""
    output: str = ""
    """The last of what it printed while it ran; only of a run one watched."""
    progress: Any = None
    """The last thing other than text that it reported while it ran; only of a run one watched."""
    started: float | None = None
    """When it began to run, on the transcript's clock; only of a run one watched."""
    duration: float | None = None
    """Seconds that it ran; only of a run one watched."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ("done", "failed", "rejected", "cancelled")

    @property
    def text(self) -> str:
        """The text of its result, whole, also where the model saw only its beginning and end."""
        result = ToolResult(self.content, self.details)
        return full_text(result) or result.text

    @property
    def note(self) -> str:
        """What the user said when they let it run: what of it they refused, or changed."""
        match self.content:
            case (*_, Text(text)) if text.startswith(USER_NOTE):
                return text.removeprefix(USER_NOTE)
            case _:
                return ""

    @property
    def images(self) -> tuple[Image, ...]:
        """The images of its result."""
        return images_of(self.content)

    @cached_property
    def shown(self) -> dict[str, Any]:
        """The arguments for people: secrets redacted where that hides nothing that a machine acts on."""
        # Not at the top: its patterns take 10 ms to compile.
        from swink.messages.redact.shown import show_arguments

        return show_arguments(self.arguments if self.ran_with is None else self.ran_with)

    @cached_property
    def diff(self) -> Diff | None:
        """What it changed in a file, if its tool tells the content before and after."""
        match self.details:
            case {"full_text": str(), "details": details}:
                pass
            case details:
                pass
        match details:
            case {
                "path": str() as path,
                "is_new_file": bool() as is_new,
                "old_content": str() | None as old,
                "new_content": str() | None as new,
            } if (is_new or old is not None) and (new is not None or details.get("hash", "") is None):
                return diff(path, None if is_new else old, new)
            case _:
                return None


class Spent(Struct, frozen=True):
    """What a reply used and cost; `seconds` from its first word to its last, only of a run one watched."""

    kind: ClassVar[str] = "usage"
    model: str
    usage: Usage
    cost: Cost | None = None
    seconds: float | None = None

    @property
    def rate(self) -> float | None:
        return self.usage.output / self.seconds if self.seconds and self.usage.output else None

    def __str__(self) -> str:
        read = self.usage.input + self.usage.cache_read + self.usage.cache_write
        told = [f"{counted(read, 'token')} in"]
        told += [f"{self.usage.cache_read:,} of them cached"] if self.usage.cache_read else []
        told += [f"{self.usage.output:,} out"]
        told += [format_dollars(self.cost.total, 4)] if self.cost is not None else []
        return ", ".join(told)


class Ended(Struct, frozen=True):
    """A reply that did not come to its natural end."""

    kind: ClassVar[str] = "ended"
    stop_reason: StopReason
    error: str = ""
    error_kind: str = ""

    def __str__(self) -> str:
        match self.stop_reason:
            case "length":
                return "the reply was cut off at its length limit"
            case "aborted":
                return f"stopped: {self.error}" if self.error else "stopped"
            case _:
                return self.error or "the reply failed"


class Compacted(Struct, frozen=True):
    """Older messages left the context, or their results were cut short; all of it is still in the session."""

    kind: ClassVar[str] = "compaction"
    dropped: int
    tokens_before: int = 0
    tokens_after: int = 0
    summary: str = ""
    pruned: int = 0
    cost: Cost | None = Cost()
    """Of the summary; None: unknown."""

    def __str__(self) -> str:
        told = [f"{counted(self.dropped, 'older message')} left the context"] if self.dropped else []
        told += [f"{counted(self.pruned, 'older result')} cut short"] if self.pruned else []
        if self.cost is not None and self.cost.total:
            told.append(f"the summary cost {format_dollars(self.cost.total, 4)}")
        what = ", ".join(told) or "the context was compacted"
        if not self.tokens_before:
            return what
        return f"{what} ({self.tokens_before:,} → {self.tokens_after:,} tokens)"


class Custom(Struct, frozen=True):
    """A message of the application's own, or content that only a provider understands."""

    kind: ClassVar[str] = "custom"
    name: str
    data: Any = None
    shown: str = ""

    @property
    def text(self) -> str:
        """What of it is text for people."""
        if self.shown:
            return self.shown
        match self.data:
            case (str() as text) | {"text": str() as text}:
                return text
            case _:
                return ""

    def __str__(self) -> str:
        return f"{self.name}: {self.text}" if self.text else self.name


class Retrying(Struct, frozen=True):
    """An attempt failed, and another follows."""

    kind: ClassVar[str] = "retry"
    attempt: int
    delay: float
    error: str

    def __str__(self) -> str:
        return f"{self.error}; trying again in {self.delay:.1f} s"


class Discarded(Struct, frozen=True):
    """An attempt failed after some of it was shown: `text` is what was withdrawn."""

    kind: ClassVar[str] = "discarded"
    attempt: int
    reason: str
    text: str = ""

    def __str__(self) -> str:
        return f"the reply broke off and starts anew: {self.reason}"


class Fallback(Struct, frozen=True):
    """A model's retries are used up; the next one is tried."""

    kind: ClassVar[str] = "fallback"
    from_model: str
    to_model: str

    def __str__(self) -> str:
        return f"{self.from_model} does not answer; switched to {self.to_model}"


class AgentStopped(Struct, frozen=True):
    """A run ended for a reason that no message tells: a policy, a limit, a transfer."""

    kind: ClassVar[str] = "stopped"
    reason: str

    def __str__(self) -> str:
        return f"the run ended: {self.reason}"


Notice = Spent | Ended | Compacted | Custom | Retrying | Discarded | Fallback | AgentStopped


class NoticeBlock(Struct, frozen=True, tag="notice"):
    """Something that happened, besides what was said; `str(block.notice)` is a sentence."""

    id: str
    notice: Notice
    timestamp: float = 0.0

    @property
    def is_passing(self) -> bool:
        """Whether only who watched the run knows of it: no session has it."""
        return self.id.startswith("~")


Block = PromptBlock | ThinkingBlock | ReplyBlock | ToolBlock | NoticeBlock


def lasting(blocks: Iterable[Block]) -> list[Block]:
    """The blocks without what only who watched the run knows; those of a saved session are the same."""
    kept: list[Block] = []
    for block in blocks:
        match block:
            case NoticeBlock(notice=Spent() as spent):
                kept.append(replace(block, notice=replace(spent, seconds=None)))
            case NoticeBlock() if block.is_passing or isinstance(block.notice, Compacted):
                pass  # a session has those compactions that lasted, where it was told of them
            case ToolBlock():
                kept.append(
                    replace(block, ran_with=None, output="", progress=None, started=None, duration=None)
                )
            case _:
                kept.append(block)
    return kept


def counted(number: int, what: str) -> str:
    """A number of things in words."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def json_of(value: Any) -> str:
    """Any value as JSON for people."""
    return msgspec.json.format(encode(value), indent=2).decode()


def described(block: Document | Audio) -> str:
    """A document or a sound in words."""
    if isinstance(block, Audio):
        return "[audio]"
    return f"[document: {block.title}]" if block.title else "[document]"


def images_of(content: Content) -> tuple[Image, ...]:
    """The images in some content."""
    return tuple([block for block in content if isinstance(block, Image)])
