"""Searching: what a message is found by, what a query asks for, and the snippet that shows what was found.

All stores share it, so that they find the same. Letters and digits make words; case and accents are ignored;
a Chinese or Japanese character or an emoji is a word of its own. `words_of` gives them in their order, to be
indexed joined by spaces; a query is a list of phrases, each of one word or more.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

from swink.errors import SessionNotFound, SessionUnreadable
from swink.memory.backend import Backend, Hit, SearchQuery
from swink.memory.meta import SessionMeta
from swink.messages import AssistantMessage, Message
from swink.messages.records import CustomSaved, MessageSaved, Record

Phrase = tuple[str, ...]
_AROUND = 80
"""Characters of a snippet before what was found, and after it."""
_LETTERS = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_SYMBOLS = r"\u2190-\u2bff\U0001f000-\U0001faff"
_WORD = re.compile(rf"[^\W_{_LETTERS}][^\W_{_LETTERS}\u0300-\u036f]*[\u0300-\u036f]*|[{_LETTERS}{_SYMBOLS}]")
_PLAIN_WORD = re.compile(r"[a-z0-9]+")
_QUOTED = re.compile(r'"([^"]*)"')


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared."""
    return _PLAIN_WORD.findall(text.lower()) if text.isascii() else [word for word, _, _ in _spans(text)]


def phrases_of(text: str) -> list[Phrase]:
    """What a query asks for: words, and phrases in quotes; none at all if there is no word in it."""
    quoted = [words_of(phrase) for phrase in _QUOTED.findall(text)]
    single = [words_of(part) for part in _QUOTED.sub(" ", text).split()]
    return list(dict.fromkeys(tuple(words) for words in [*quoted, *single] if words))


def searchable(message: Message) -> str:
    """The text that a message is found by: what was said, and the calls of tools."""
    if isinstance(message, AssistantMessage) and message.tool_calls:
        calls = [" ".join([call.name, *_texts(call.arguments)]) for call in message.tool_calls]
        return "\n".join([message.text, *calls]) if message.text else "\n".join(calls)
    return message.text


def snippet(text: str, phrases: Iterable[Phrase]) -> str:
    """The text around the first place that was found, on one line, with all that was found there in «…»."""
    spans = list(_spans(text))
    words = [word for word, _, _ in spans]
    found: list[tuple[int, int]] = []
    for phrase in phrases:
        found += [(spans[at][1], spans[at + len(phrase) - 1][2]) for at in _places(words, phrase)]
    if not found:
        return " ".join(text[: 2 * _AROUND].split())
    found.sort()
    first, until = max(0, found[0][0] - _AROUND), min(len(text), found[0][1] + _AROUND)
    parts, position = ["…"] if first else [], first
    for start, end in found:
        if position <= start and end <= until:
            parts += text[position:start], "«", text[start:end], "»"
            position = end
    parts += text[position:until], "…" if until < len(text) else ""
    return " ".join("".join(parts).split())


def hit_of(session: str, title: str, number: int, message: Message, phrases: Sequence[Phrase]) -> Hit:
    """A message that was found, as it is shown."""
    shown = snippet(searchable(message), phrases)
    return Hit(session, title, number, message.role, message.timestamp, shown)


def search_all(backend: Backend, query: SearchQuery) -> list[Hit]:
    """Search by reading every session."""
    phrases = phrases_of(query.text)
    hits: list[Hit] = []
    for meta in backend.metas() if phrases else ():
        if query.session in (None, meta.id):
            with suppress(SessionNotFound, SessionUnreadable):  # deleted meanwhile, or damaged
                hits += found_in(meta, backend.read(meta.id).records, phrases, query)
    hits.sort(key=lambda hit: hit.timestamp, reverse=True)
    return hits[: query.limit]


def found_in(
    meta: SessionMeta, records: Iterable[Record], phrases: Sequence[Phrase], query: SearchQuery
) -> Iterator[Hit]:
    """The messages of one session that have all the phrases and pass the filters."""
    for record in records:
        if isinstance(record, MessageSaved | CustomSaved) and _passes(record.message, query):
            words = words_of(searchable(record.message))
            if all(any(True for _ in _places(words, phrase)) for phrase in phrases):
                yield hit_of(meta.id, meta.title, record.number, record.message, phrases)


def _passes(message: Message, query: SearchQuery) -> bool:
    return (
        (query.role is None or message.role == query.role)
        and (query.after is None or message.timestamp > query.after)
        and (query.before is None or message.timestamp < query.before)
    )


def _spans(text: str) -> Iterator[tuple[str, int, int]]:
    """The words with their places."""
    for match in _WORD.finditer(text):
        yield _folded(match[0]), match.start(), match.end()


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join([letter for letter in parts if not unicodedata.combining(letter)]) or word


def _places(words: list[str], phrase: Phrase) -> Iterator[int]:
    at = -1
    for _ in range(words.count(phrase[0])):
        at = words.index(phrase[0], at + 1)
        if tuple(words[at : at + len(phrase)]) == phrase:
            yield at


def _texts(value: Any) -> Iterator[str]:
    """All texts in JSON data, without recursion: arguments may be deep."""
    left: list[Any] = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            left += reversed(list(cast("dict[str, Any]", item).values()))
        elif isinstance(item, list | tuple):
            left += reversed(cast("list[Any]", item))
