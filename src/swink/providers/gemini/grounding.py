"""What a reply of Gemini rests on: citations of its texts, how often hosted tools were used, what people see.

The metadata stands beside the content and may come with any event; a later one replaces an earlier one field
by field. Its offsets count bytes of the whole text, or of one part where that part is named.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from swink.messages import Citation, Extension
from swink.messages.jsondata import list_of, object_of, texts_of

_SHOWN = 3


class Grounding:
    """The metadata of one candidate."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Any]] = {}

    def take(self, **metadata: dict[str, Any] | None) -> None:
        """Keep what an event says about the reply, under the API's own names."""
        for name, values in metadata.items():
            if values:
                given = {key: value for key, value in values.items() if value}
                self._found.setdefault(name, {}).update(given)

    def citations(self, texts: Sequence[str]) -> Iterator[tuple[int, Citation]]:
        """The citations, each with the number of the text that it belongs to."""
        whole = _Texts(texts)
        if not whole.text:
            return
        found = self._found.get("groundingMetadata", {})
        sources = [_source(chunk) for chunk in _objects(found.get("groundingChunks"))]
        supports = _objects(found.get("groundingSupports"))
        for support in supports:
            number, start, end = whole.place(object_of(support.get("segment")))
            for index in cast("list[Any]", support.get("groundingChunkIndices") or []):
                if isinstance(index, int) and 0 <= index < len(sources):
                    yield number, Citation(**sources[index], start=start, end=end)
        if not supports:
            for source in sources:
                yield len(texts) - 1, Citation(**source)
        recited = self._found.get("citationMetadata", {})
        for source in _objects(recited.get("citations") or recited.get("citationSources")):
            number, start, end = whole.place(source)
            url, title = _text(source, "uri"), _text(source, "title")
            yield number, Citation(url, title, start=start, end=end, data=source)

    def blocks(self) -> Iterator[Extension]:
        """What the hosted tools did, for people; Google wants its search suggestions to be shown."""
        if found := self._found.get("groundingMetadata"):
            queries = texts_of(found.get("webSearchQueries")) or texts_of(found.get("retrievalQueries"))
            kind = "web search" if found.get("webSearchQueries") else "search"
            results = len(_objects(found.get("groundingChunks")))
            said = "; ".join(queries[:_SHOWN]) or "grounded"
            yield Extension("gemini", {"groundingMetadata": found}, f"{kind}: {said}, {results} results")
        if found := self._found.get("urlContextMetadata"):
            pages = [_page(page) for page in _objects(found.get("urlMetadata"))]
            more = f" and {len(pages) - _SHOWN} more" if len(pages) > _SHOWN else ""
            shown = f"web fetch: {', '.join(pages[:_SHOWN])}{more}"
            yield Extension("gemini", {"urlContextMetadata": found}, shown)

    def uses(self, *, by_query: bool) -> dict[str, int]:
        """How often hosted tools were used: searches by the query from Gemini 3 on, before by the request."""
        found = self._found.get("groundingMetadata", {})
        chunks = _objects(found.get("groundingChunks"))
        queries = len(texts_of(found.get("webSearchQueries")) + texts_of(found.get("imageSearchQueries")))
        retrieved = found.get("retrievalQueries") or any("retrievedContext" in chunk for chunk in chunks)
        counts = {
            "web_search": queries if by_query else min(1, queries),
            "web_fetch": len(_objects(self._found.get("urlContextMetadata", {}).get("urlMetadata"))),
            "file_search": int(bool(retrieved)),
            "google_maps": int(any("maps" in chunk for chunk in chunks)),
        }
        return {name: count for name, count in counts.items() if count}


class _Texts:
    """The texts of a reply as one, to find where a segment lies."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.text = "".join(texts)
        self._texts = texts
        self._bytes = self.text.encode("utf-8", "replace")

    def place(self, segment: Mapping[str, Any]) -> tuple[int, int | None, int | None]:
        """The number of the text, and the characters in it; without them if the segment is not found."""
        start, end = _number(segment, "startIndex"), _number(segment, "endIndex")
        said = segment.get("text")
        first = len(self._bytes[:start].decode("utf-8", "replace"))
        last = len(self._bytes[:end].decode("utf-8", "replace"))
        if isinstance(said, str) and said and self.text[first:last] != said:
            # The offsets are those of a part of its own, or count what is no text here.
            first = self.text.find(said)
            last = first + len(said)
        if first < 0 or last <= first:
            return len(self._texts) - 1, None, None
        for number, text in enumerate(self._texts):
            if first < len(text):
                return number, first, min(last, len(text))
            first, last = first - len(text), last - len(text)
        return len(self._texts) - 1, None, None


def _source(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """Where a chunk is from: the web, a file, a place on the map, an image."""
    for name in ("web", "retrievedContext", "maps", "image"):
        if found := object_of(chunk.get(name)):
            uri = _text(found, "uri") or _text(found, "sourceUri") or _text(found, "imageUri")
            return {"url": uri, "title": _text(found, "title"), "quote": _text(found, "text")}
    return {"data": dict(chunk)}


def _page(page: Mapping[str, Any]) -> str:
    url = _text(page, "retrievedUrl") or "a page"
    status = (_text(page, "urlRetrievalStatus") or "").removeprefix("URL_RETRIEVAL_STATUS_").lower()
    return url if status in ("", "success") else f"{url} ({status})"


def _objects(value: Any) -> list[dict[str, Any]]:
    return [object_of(item) for item in list_of(value)]


def _text(found: Mapping[str, Any], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def _number(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name)
    return value if type(value) is int and value >= 0 else 0
