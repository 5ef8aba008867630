"""One step of a UI message: the text, thinking and calls of one reply, opened as they come and all closed."""

from typing import Any

from swink.messages import AssistantMessage, Audio, Citation, Document, Image, Media, Text, Thinking, ToolCall
from swink.messages.jsondata import as_data
from swink.serve.vercel.parts import file_part
from swink.stream import BlockAdded, TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStart

Chunk = dict[str, Any]


class Step:
    """Writes the steps of one run, one after the other."""

    def __init__(self) -> None:
        self._number = 0
        self._is_open = False
        self._open: dict[int, tuple[str, str]] = {}
        self._seen: set[int] = set()
        self._calls: dict[int, str] = {}
        self._files: set[int] = set()

    def update(self, delta: Any) -> list[Chunk]:
        """More of the reply, as it arrives."""
        match delta:
            case TextDelta(index=index, text=text):
                return [*self._begin(), *self._piece(index, "text", text)]
            case ThinkingDelta(index=index, text=text):
                return [*self._begin(), *self._piece(index, "reasoning", text)]
            case ToolCallStart(index=index, id=id, name=name):
                self._calls[index] = id
                start = {"type": "tool-input-start", "toolCallId": id, "toolName": name, "dynamic": True}
                return [*self._begin(), *self._end_pieces(), start]
            case ToolCallDelta(index=index, json=json) if index in self._calls:
                return [
                    {"type": "tool-input-delta", "toolCallId": self._calls[index], "inputTextDelta": json}
                ]
            case BlockAdded(index=index, block=Image() | Audio() | Document() as block):
                return [*self._begin(), *self._file(index, block)]
            case _:
                return []

    def complete(self, message: AssistantMessage) -> list[Chunk]:
        """The reply is whole: what did not come piece by piece, what it cites, and its calls."""
        chunks = self._begin() if message.content else []
        for index, block in enumerate(message.content):
            match block:
                case Text(text=text, citations=citations):
                    if text and index not in self._seen:
                        chunks += self._piece(index, "text", text)
                    chunks += [*self._end_pieces(), *self._sources(index, citations)]
                case Thinking(text=text) if text and index not in self._seen:
                    chunks += self._piece(index, "reasoning", text)
                case ToolCall():
                    chunks += [*self._end_pieces(), _input(block)]
                case Image() | Audio() | Document() if index not in self._files:
                    chunks += self._file(index, block)
                case _:
                    pass
        return [*chunks, *self._end_pieces()]

    def reset(self) -> list[Chunk]:
        """What was said of the reply does not count: the client empties this step."""
        if not self._is_open:
            return []
        self._forget()
        return [{"type": "reset-step"}]

    def close(self) -> list[Chunk]:
        """End the step, if one is open."""
        if not self._is_open:
            return []
        chunks = self._end_pieces()
        self._is_open = False
        self._forget()
        return [*chunks, {"type": "finish-step"}]

    def _begin(self) -> list[Chunk]:
        if self._is_open:
            return []
        self._is_open = True
        self._number += 1
        return [{"type": "start-step"}]

    def _piece(self, index: int, kind: str, text: str) -> list[Chunk]:
        chunks: list[Chunk] = []
        if index not in self._open:
            if index in self._seen:
                return []  # a part that has ended is not taken up again
            chunks = self._end_pieces()
            self._seen.add(index)
            self._open[index] = kind, f"{kind}-{self._number}-{index}"
            chunks.append({"type": f"{kind}-start", "id": self._open[index][1]})
        return [*chunks, {"type": f"{kind}-delta", "id": self._open[index][1], "delta": text}]

    def _end_pieces(self) -> list[Chunk]:
        ended = [{"type": f"{kind}-end", "id": id} for kind, id in self._open.values()]
        self._open = {}
        return ended

    def _file(self, index: int, block: Media) -> list[Chunk]:
        self._files.add(index)
        part = file_part(block)
        return [*self._end_pieces(), *([] if part is None else [part])]

    def _sources(self, index: int, citations: tuple[Citation, ...]) -> list[Chunk]:
        sources: list[Chunk] = []
        for number, cited in enumerate(citations):
            id = f"source-{self._number}-{index}-{number}"
            title = cited.title or cited.url or "document"
            if cited.url:
                sources.append({"type": "source-url", "sourceId": id, "url": cited.url, "title": title})
            else:
                kind = {"mediaType": "text/plain", "title": title}
                sources.append({"type": "source-document", "sourceId": id, **kind})
        return sources

    def _forget(self) -> None:
        self._open, self._seen, self._calls, self._files = {}, set(), {}, set()


def _input(call: ToolCall) -> Chunk:
    about = {"toolCallId": call.id, "toolName": call.name, "dynamic": True}
    if call.partial_json is None:
        return {"type": "tool-input-available", **about, "input": as_data(call.arguments)}
    text = "the arguments of the call are cut off, or no JSON"
    return {"type": "tool-input-error", **about, "input": call.partial_json, "errorText": text}
