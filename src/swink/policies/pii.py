"""PiiRedactor: personal data and keys are taken out before a message is stored or sent."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

from msgspec.structs import replace

from swink.errors import MisuseError
from swink.messages import AssistantMessage, CustomMessage, Extension, Message, Text, Thinking, ToolCall, ToolResultMessage
from swink.policies.personal import KINDS, Kind, find
from swink.policies.scope import PerRun
from swink.policy import Policy, PolicyContext, Replace, Rewrite, Verdict
from swink.redact import redact_text


class PiiRedactor(Policy):
    """E-mail addresses, phone and social security numbers, cards, IP addresses and keys become marks like `[email]`.

    It works on every message that enters the history: what the user says, replies (on tool turns too), tool results
    and their details. A thinking block that is signed and would change is dropped, since its signature would no longer
    hold. Arguments of tool calls are redacted in the history, while the tool itself gets the real values
    (`arguments="redact"`: the marks). List it first, so that every other policy sees what the tool will get. What
    streams to subscribers, and the system prompt, are not touched. `keep` names what may stay (a support address).

    >>> agent = Agent(model, policies=[PiiRedactor(kinds=("email", "card", "key"), keep=("help@example.com",))])
    """

    fail_closed = True

    def __init__(
        self, kinds: Iterable[Kind] = KINDS, *, keep: Iterable[str] = (), arguments: Literal["restore", "redact", "keep"] = "restore"
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
        while True:
            before = text
            for kind in self.kinds:
                text = redact_text(text) if kind == "key" else self._marked(kind, text)
            if text == before:
                return text

    def pre_commit(self, message: Message) -> Verdict:
        """Redact a message on its way into the history."""
        match message:
            case CustomMessage(data=data):
                changed: Message = replace(message, data=self._value(data))
            case AssistantMessage():
                self._real.set({})
                error = message.error_message
                changed = replace(message, content=self._blocks(message.content), error_message=error and self.redact(error))
            case ToolResultMessage():
                changed = replace(message, content=self._blocks(message.content), details=self._value(message.details))
            case _:
                changed = replace(message, content=self._blocks(message.content))
        return None if changed == message else Replace(changed)

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Verdict:
        """Give the tool the values that were taken out of the history."""
        real = self._real.get().pop(call.id, None)
        return Rewrite(real.arguments) if real is not None and self._value(real.arguments) == call.arguments else None

    def _blocks(self, blocks: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(kept for block in blocks if (kept := self._block(block)) is not None)

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
                return Extension(type_name, self._value(data))
            case _:
                return block

    def _call(self, call: ToolCall) -> ToolCall:
        partial = call.partial_json
        changed = replace(call, arguments=self._value(call.arguments), partial_json=partial and self.redact(partial))
        if changed == call:
            return call
        if self.arguments == "restore":
            self._real.get()[call.id] = call
        return changed

    def _value(self, value: Any) -> Any:
        match value:
            case str():
                return self.redact(value)
            case dict():
                return {self._value(key): self._value(item) for key, item in cast("dict[Any, Any]", value).items()}
            case list():
                return [self._value(item) for item in cast("list[Any]", value)]
            case tuple():
                return tuple(self._value(item) for item in cast("tuple[Any, ...]", value))
            case int() if len(str(value)) > 12:  # a card number may come as a number
                clean = self.redact(str(value))
                return value if clean == str(value) else clean
            case _:
                return value

    def _marked(self, kind: Kind, text: str) -> str:
        parts: list[str] = []
        end = 0
        for start, stop in find(kind, text):
            if text[start:stop] not in self.keep:
                parts += (text[end:start], f"[{kind}]")
                end = stop
        return text if not parts else "".join(parts) + text[end:]
