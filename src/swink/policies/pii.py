"""PiiRedactor: personal data and keys are taken out before a message is stored or sent."""

import asyncio
from collections.abc import Iterable
from operator import is_
from typing import Any, Literal
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from swink.agent.policy import CallVerdict, KeepVerdict, Policy, PolicyContext, Replace, Rewrite
from swink.errors import InvalidInput
from swink.messages.blocks import (
    Audio,
    Citation,
    Document,
    Extension,
    Image,
    Text,
    Thinking,
    ToolCall,
    UrlSource,
)
from swink.messages.checks import check_word
from swink.messages.message import AssistantMessage, CustomMessage, Message, ToolResultMessage
from swink.messages.redact import redact_text
from swink.policies.inputs import texts_of
from swink.policies.personal import KINDS, Kind, find
from swink.policies.texts import map_texts
from swink.system.aio import running_loop

_PASSES = 4


class PiiRedactor(Policy):
    """Personal data and keys become marks like `[email]`; `swink.policies.personal.KINDS` names the kinds.

    It works on every message that enters the history, not on events and the system prompt. A signed thinking
    block that would change is dropped: its signature would no longer fit. Arguments of tool calls are
    redacted in the history, while the tool gets the real values; `arguments="redact"` gives it the marks, and
    `arguments="keep"` leaves arguments alone. `keep` lists values that may stay (a support address). List it
    first, so that every other policy sees what the tool will get.

    >>> redactor = PiiRedactor(kinds=["email", "card", "key"], keep=["help@example.com"])
    >>> agent = Agent(model, policies=[redactor])
    """

    fail_closed = True

    def __init__(
        self,
        kinds: Iterable[Kind] = KINDS,
        *,
        keep: Iterable[str] = (),
        arguments: Literal["restore", "redact", "keep"] = "restore",
    ) -> None:
        wanted = texts_of("kinds", kinds)
        unknown = [kind for kind in wanted if kind not in KINDS]
        if unknown or not wanted:
            problem = f"knows no kinds {unknown}" if unknown else "without kinds redacts nothing"
            raise InvalidInput(f"PiiRedactor {problem}: choose from {', '.join(KINDS)}")
        check_word("arguments", arguments, ("restore", "redact", "keep"))
        self.kinds: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind in wanted)
        self.keep = frozenset(texts_of("keep", keep))
        self.arguments: Literal["restore", "redact", "keep"] = arguments
        self._real: WeakKeyDictionary[Any, dict[str, ToolCall]] = WeakKeyDictionary()
        """The calls with their real arguments, by the task of a run: one policy may serve many agents."""

    def redact(self, text: str) -> str:
        """The text with marks; redacting it again changes nothing."""
        for _ in range(_PASSES):
            before = text
            for kind in self.kinds:
                text = redact_text(text) if kind == "key" else self._mark(kind, text)
            if text == before:
                return text
        # A text that shows something new after every pass was built for that: nothing of it is kept.
        return "[personal data]"

    def pre_commit(self, message: Message) -> KeepVerdict:
        """Redact a message on its way into the history."""
        match message:
            case CustomMessage(data=data):
                return self._verdict(message, data=self._value(data))
            case AssistantMessage():
                self._real_calls.clear()
                content = self._blocks(message.content)
                error = message.error_message and self.redact(message.error_message)
                return self._verdict(message, content=content, error_message=error)
            case ToolResultMessage():
                content, details = self._blocks(message.content), self._value(message.details)
                return self._verdict(message, content=content, details=details)
            case _:
                return self._verdict(message, content=self._blocks(message.content))

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
        """Give the tool the values that were taken out of the history."""
        real = self._real_calls.pop(call.id, None)
        if real is None or self._value(real.arguments) != call.arguments:
            return None
        return Rewrite(real.arguments)

    @property
    def _real_calls(self) -> dict[str, ToolCall]:
        task = asyncio.current_task() if running_loop() is not None else None
        return self._real.setdefault(task or self, {})

    def _verdict(self, message: Message, **parts: Any) -> KeepVerdict:
        """A replacement if a part of the message is not the same object: details may be of any type."""
        is_same = all(getattr(message, name) is part for name, part in parts.items())
        return None if is_same else Replace(replace(message, **parts))

    def _blocks(self, blocks: tuple[Any, ...]) -> tuple[Any, ...]:
        kept = tuple(block for item in blocks if (block := self._block(item)) is not None)
        is_same = len(kept) == len(blocks) and all(map(is_, kept, blocks))
        return blocks if is_same else kept

    def _block(self, block: Any) -> Any:
        match block:
            case Text(text):
                clean = self.redact(text)
                cited = self._citations(block.citations)
                if clean == text and cited is block.citations:
                    return block
                return Text(clean, cited, block.signature if clean == text else None)
            case Thinking(text, signature, redacted):
                clean = text if redacted else self.redact(text)
                return block if clean == text else None if signature else Thinking(clean)
            case ToolCall() if self.arguments != "keep":
                return self._call(block)
            case Extension(type_name, data, shown):
                changed, said = self._value(data), self.redact(shown)
                return block if changed is data and said == shown else Extension(type_name, changed, said)
            case Image(UrlSource(url)) | Document(UrlSource(url)) | Audio(UrlSource(url)) if (
                changed := self.redact(url)
            ) != url:
                return Text(changed)
            case Document():
                return block.with_texts(self.redact)
            case _:
                return block

    def _citations(self, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
        """Citations without what is personal; a provider's own object that had it is not sent back."""
        clean = tuple(map(self._citation, citations))
        return citations if all(map(is_, clean, citations)) else clean

    def _citation(self, cited: Citation) -> Citation:
        told = cited.url, cited.title, cited.quote
        url, title, quote = [text and self.redact(text) for text in told]
        if (url, title, quote) == told and self._value(cited.data) is cited.data:
            return cited
        return Citation(url, title, quote, cited.start, cited.end)

    def _call(self, call: ToolCall) -> ToolCall:
        arguments = self._value(call.arguments)
        clean = call.partial_json and self.redact(call.partial_json)
        if arguments is call.arguments and clean == call.partial_json:
            return call
        if self.arguments == "restore":
            self._real_calls[call.id] = call
        return replace(call, arguments=arguments, partial_json=clean)

    def _value(self, value: Any) -> Any:
        return map_texts(value, self.redact)

    def _mark(self, kind: Kind, text: str) -> str:
        parts: list[str] = []
        end = 0
        for start, stop in find(kind, text):
            if text[start:stop] not in self.keep:
                parts += (text[end:start], f"[{kind}]")
                end = stop
        return text if not parts else "".join(parts) + text[end:]
