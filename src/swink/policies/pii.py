"""PiiRedactor: personal data and keys are taken out before a message is stored or sent."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from swink.errors import MisuseError
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Extension,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UrlSource,
)
from swink.policies.personal import KINDS, Kind, find
from swink.policies.scope import PerRun
from swink.policies.texts import mapped
from swink.policy import Policy, PolicyContext, Replace, Rewrite, Verdict
from swink.redact import redact_text

_PASSES = 4


class PiiRedactor(Policy):
    """E-mail addresses, phone numbers, accounts, cards, passports, birth dates, IP addresses and keys become marks like `[email]`.

    It works on every message that enters the history: what the user says, replies (on tool turns too), tool results
    and their details. A thinking block that is signed and would change is dropped, since its signature would no longer
    hold. Arguments of tool calls are redacted in the history, while the tool itself gets the real values
    (`arguments="redact"`: the marks). List it first, so that every other policy sees what the tool will get. What
    streams to subscribers, and the system prompt, are not touched. `keep` names what may stay (a support address).

    >>> agent = Agent(model, policies=[PiiRedactor(kinds=("email", "card", "key"), keep=("help@example.com",))])
    """

    fail_closed = True

    def __init__(
        self,
        kinds: Iterable[Kind] = KINDS,
        *,
        keep: Iterable[str] = (),
        arguments: Literal["restore", "redact", "keep"] = "restore",
    ) -> None:
        wanted = tuple(kinds)
        if unknown := [kind for kind in wanted if kind not in KINDS]:
            raise MisuseError(f"unknown kinds {unknown}; known: {', '.join(KINDS)}")
        self.kinds: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind in wanted)
        self.keep = frozenset(keep)
        self.arguments: Literal["restore", "redact", "keep"] = arguments
        self._real: PerRun[dict[str, ToolCall]] = PerRun(dict)

    def redact(self, text: str) -> str:
        """The text with marks; redacting it again changes nothing."""
        for _ in range(_PASSES):
            before = text
            for kind in self.kinds:
                text = redact_text(text) if kind == "key" else self._marked(kind, text)
            if text == before:
                return text
        # What shows something new after every pass was built for that: nothing of it stays.
        return "[personal data]"

    def pre_commit(self, message: Message) -> Verdict:
        """Redact a message on its way into the history."""
        match message:
            case CustomMessage(data=data):
                return self._verdict(message, data=self._value(data))
            case AssistantMessage():
                self._real.set({})
                error = message.error_message
                return self._verdict(
                    message, content=self._blocks(message.content), error_message=error and self.redact(error)
                )
            case ToolResultMessage():
                return self._verdict(
                    message, content=self._blocks(message.content), details=self._value(message.details)
                )
            case _:
                return self._verdict(message, content=self._blocks(message.content))

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Verdict:
        """Give the tool the values that were taken out of the history."""
        real = self._real.get().pop(call.id, None)
        return (
            Rewrite(real.arguments)
            if real is not None and self._value(real.arguments) == call.arguments
            else None
        )

    def _verdict(self, message: Message, **parts: Any) -> Verdict:
        """A replacement, if a part of the message is another one; compared by identity, since details may be anything."""
        return (
            None
            if all(getattr(message, name) is part for name, part in parts.items())
            else Replace(replace(message, **parts))
        )

    def _blocks(self, blocks: tuple[Any, ...]) -> tuple[Any, ...]:
        kept = tuple(block for item in blocks if (block := self._block(item)) is not None)
        return (
            blocks
            if len(kept) == len(blocks) and all(new is old for new, old in zip(kept, blocks, strict=True))
            else kept
        )

    def _block(self, block: Any) -> Any:
        match block:
            case Text(text):
                clean = self.redact(text)
                return block if clean == text else Text(clean)
            case Thinking(text, signature, redacted):
                clean = text if redacted else self.redact(text)
                return block if clean == text else None if signature else Thinking(clean)
            case ToolCall() if self.arguments != "keep":
                return self._call(block)
            case Extension(type_name, data):
                return block if (changed := self._value(data)) is data else Extension(type_name, changed)
            case Image(UrlSource(url)):
                return block if (changed := self.redact(url)) == url else Text(changed)
            case _:
                return block

    def _call(self, call: ToolCall) -> ToolCall:
        partial = call.partial_json
        arguments = self._value(call.arguments)
        clean = partial and self.redact(partial)
        if arguments is call.arguments and clean == partial:
            return call
        changed = replace(call, arguments=arguments, partial_json=clean)
        if self.arguments == "restore":
            self._real.get()[call.id] = call
        return changed

    def _value(self, value: Any) -> Any:
        return mapped(value, self.redact)

    def _marked(self, kind: Kind, text: str) -> str:
        parts: list[str] = []
        end = 0
        for start, stop in find(kind, text):
            if text[start:stop] not in self.keep:
                parts += (text[end:start], f"[{kind}]")
                end = stop
        return text if not parts else "".join(parts) + text[end:]
