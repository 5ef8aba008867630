"""A run of an agent as one chat completion, whole or in chunks."""

from collections.abc import Sequence
from typing import Any

from swink.messages import AssistantMessage, Text, Thinking
from swink.serve.openai.spoken import MessageSpoken, RunOutcome, Speech, SpokenText, SpokenThinking
from swink.serve.openaiwire import ChatChunks, arguments_of, failure, whole_completion
from swink.serve.wire import sse

BREAK = "\n\n"
"""What stands between two messages of the agent: a completion has one text."""


class ChatReply:
    """Writes one streamed completion. A structured output is held back until it is whole."""

    def __init__(self, model: str, counts: bool, is_json: bool) -> None:
        self._chunks = ChatChunks(model, counts)
        self._is_json = is_json
        self._has_text = False
        self._breaks = False

    def start(self) -> list[bytes]:
        return [self._chunks.delta(role="assistant", content="")]

    def write(self, piece: Speech) -> list[bytes]:
        match piece:
            case SpokenThinking(text):
                return [self._chunks.delta(reasoning_content=text)]
            case SpokenText(text) if not self._is_json:
                text = BREAK + text if self._breaks else text
                self._has_text, self._breaks = True, False
                return [self._chunks.delta(content=text)]
            case MessageSpoken():
                self._breaks = self._has_text
            case _:
                pass
        return []

    def finish(self, outcome: RunOutcome) -> list[bytes]:
        last = [] if outcome.json is None else [self._chunks.delta(content=outcome.json)]
        for call in outcome.calls:
            last.append(self._chunks.call(call.id, call.name, arguments_of(call))[1])
        return [*last, *self._chunks.end(outcome.reason, outcome.usage)]

    def fail(self, message: str, kind: str | None) -> list[bytes]:
        return [sse(failure(message, kind, "server_error"))]


def whole_chat(model: str, speech: Sequence[Speech], outcome: RunOutcome) -> dict[str, Any]:
    """The completion of a run that has ended."""
    text = _joined(speech, SpokenText) if outcome.json is None else outcome.json
    content = (Thinking(_joined(speech, SpokenThinking)), Text(text), *outcome.calls)
    message = AssistantMessage(content, stop_reason=outcome.reason, usage=outcome.usage)
    return whole_completion(model, message)


def _joined(speech: Sequence[Speech], kind: type[SpokenText | SpokenThinking]) -> str:
    """What was said of this kind, message by message."""
    messages: list[list[str]] = [[]]
    for piece in speech:
        if isinstance(piece, MessageSpoken):
            messages.append([])
        elif isinstance(piece, kind):
            messages[-1].append(piece.text)
    return BREAK.join(["".join(message) for message in messages if message])
