"""Recall: the notes that answer a question, by their words and, with an embedder, by their meaning."""

import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from math import isfinite, sqrt
from typing import Any

from swink.errors import InvalidInput
from swink.memory.notes import Note, Notes, Vector, similarity
from swink.messages.redact import describe_error
from swink.system.aio import is_async, resolve
from swink.system.threads import in_thread

log = logging.getLogger("swink")

Embedder = Callable[[list[str]], Sequence[Vector] | Awaitable[Sequence[Vector]]]
"""Texts in, vectors out, in the same order; sync or async."""

_PROBE = "what was remembered is found again by its meaning"
"""An embedder is known by where it puts this text: a changed one puts it elsewhere."""
_BATCH = 64
_MOST_WORDS = 64
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no spaces between words."""
_UNSPACED_RUN = re.compile(f"{_UNSPACED.pattern}+")
_STEM = 4
"""Letters that a word begins with, at least, and ends with, at most, if it is another form of a word."""
_EASE = 60
"""Of reciprocal rank fusion: the more, the less the first places count."""


class Recall:
    """Finds notes; what the embedder made of each is kept with it, and made anew if the embedder changed."""

    def __init__(self, notes: Notes, embedder: Any = None) -> None:
        self._notes = notes
        # An object with a method `embed`, such as swink.local.LocalEmbedder, will do.
        self._embed: Embedder | None = getattr(embedder, "embed", embedder)
        if self._embed is not None and not callable(self._embed):
            raise InvalidInput(f"embedder is a function of texts, or has `embed`, not {embedder!r:.80}")
        self._probe: Vector | None = None

    async def find(self, owner: str, query: str) -> tuple[list[Note], bool]:
        """The notes that fit, the best first, and whether meaning was asked; all notes without a query."""
        notes = await in_thread(self._notes.list, owner)
        if not query.strip():
            return notes, True
        rankings = [await in_thread(rank_by_words, query, notes)]
        is_whole = True
        if self._embed is not None and notes:
            try:
                rankings.append(await self._rank_by_meaning(self._embed, owner, query))
            except Exception as error:  # whatever an embedder raises: words find much, too
                log.warning("the embedder failed, so memories are found by words: %s", describe_error(error))
                is_whole = False
        known = {note.id: note for note in notes}
        return [known[id] for id in fuse(rankings) if id in known], is_whole

    async def _rank_by_meaning(self, embed: Embedder, owner: str, query: str) -> list[str]:
        if self._probe is None:
            (self._probe,) = await _vectors(embed, [_PROBE])
        space = await in_thread(self._notes.space_of, self._probe)
        missing = list((await in_thread(self._notes.without_vector, owner, space)).items())
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = await _vectors(embed, [text for _, text in batch])
            kept = {id: vector for (id, _), vector in zip(batch, made, strict=True)}
            await in_thread(self._notes.keep_vectors, owner, space, kept)
        (wanted,) = await _vectors(embed, [query])
        return await in_thread(self._nearest, owner, space, wanted)

    def _nearest(self, owner: str, space: int, wanted: Vector) -> list[str]:
        vectors = self._notes.vectors(owner, space)
        near = {id: similarity(wanted, vector) for id, vector in vectors.items()}
        return sorted((id for id in near if near[id] > 0), key=lambda id: -near[id])


async def _vectors(embed: Embedder, texts: list[str]) -> Sequence[Vector]:
    """What an embedder makes of texts: as many vectors, of finite numbers, with length 1."""
    made = await resolve(embed(texts) if is_async(embed) else await in_thread(embed, texts))
    vectors = [_normalised([float(value) for value in vector]) for vector in made]
    if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise InvalidInput(f"the embedder made {len(vectors)} vectors of {len(texts)} texts")
    if not all(isfinite(value) for vector in vectors for value in vector):
        raise InvalidInput("the embedder made a vector with a number that is not finite")
    return vectors


def _normalised(vector: Vector) -> Vector:
    length = sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def rank_by_words(query: str, notes: Sequence[Note]) -> list[str]:
    """The ids of notes with at least one word of the query, the best first.

    The index lives as long as the question: nothing of a note that was forgotten stays in one.
    """
    wanted = " OR ".join(_phrases(query))
    if not wanted or not notes:
        return []
    with closing(sqlite3.connect(":memory:")) as database:
        columns = "text, tags, tokenize = 'unicode61 remove_diacritics 2'"
        database.execute(f"CREATE VIRTUAL TABLE words USING fts5({columns})")
        for number, note in enumerate(notes, 1):
            words = number, _spaced(note.text), _spaced(" ".join(note.tags))
            database.execute("INSERT INTO words (rowid, text, tags) VALUES (?, ?, ?)", words)
        rows = database.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank, rowid", (wanted,))
        return [notes[int(number) - 1].id for (number,) in rows]


def fuse(rankings: Sequence[Sequence[str]]) -> list[str]:
    """One ranking of several: what stands high in many comes first."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, id in enumerate(ranking):
            scores[id] = scores.get(id, 0.0) + 1 / (_EASE + place)
    return sorted(scores, key=lambda id: -scores[id])


def _phrases(query: str) -> Iterator[str]:
    """What to look for, as FTS5 takes it: each word, and words that begin like it; two letters in a row."""
    for word in _WORD.findall(_UNSPACED_RUN.sub(r" \g<0> ", query))[:_MOST_WORDS]:
        if _UNSPACED.match(word):
            yield from (f'"{_spaced(word[at : at + 2]).strip()}"' for at in range(max(1, len(word) - 1)))
        else:
            yield f'"{word}"'
            if len(word) >= _STEM:
                yield f'"{word[: max(_STEM, len(word) - _STEM)]}"*'


def _spaced(text: str) -> str:
    return _UNSPACED.sub(r" \g<0> ", text)
