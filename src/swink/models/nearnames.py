"""Near names: what a mistyped name of a provider or a model may mean; needed only for messages."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

_OTHER_WORDS = {
    "aws": "bedrock",
    "amazon": "bedrock",
    "azure-openai": "azure",
    "chatgpt": "openai",
    "claude": "anthropic",
    "google": "gemini",
    "google-gla": "gemini",
    "google-vertex": "vertex",
    "gpt": "openai",
    "grok": "xai",
    "hf": "huggingface",
    "kimi": "moonshot",
}
"""What other libraries, and people, call a provider."""


def nearest_provider(name: str, known: Iterable[str]) -> str | None:
    """The provider that is meant; None if nothing is near."""
    names, word = list(known), name.lower().replace("_", "-")
    if (other := _OTHER_WORDS.get(word, word)) in names:
        return other
    return next(iter(get_close_matches(word, names, 1, 0.7)), None)


def nearest_model(name: str, known: Iterable[str]) -> str | None:
    """The model whose name was mistyped; None if nothing is near.

    A name in which only numbers differ from a known one is none: it may be a newer model.
    """
    words = _words(name)
    names = {other.lower(): _words(other) for other in known}
    for other, meant in names.items():
        if sorted(words) == sorted(meant) or "".join(words) == "".join(meant):
            return other  # other separators, or another order
    if any(_letters(words) == _letters(meant) for meant in names.values()):
        return None
    near = get_close_matches(name.lower(), names, 10, 0.75)
    return next((other for other in near if _is_mistyped(words, names[other])), None)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())


def _letters(words: list[str]) -> list[str]:
    return [text for word in words if (text := re.sub(r"\d", "", word))]


def _is_mistyped(words: list[str], meant: list[str]) -> bool:
    """Whether names differ in letters of a word; whole words that differ are another model: mini and nano."""
    pairs = [(word, other) for word, other in zip(words, meant, strict=False) if word != other]
    return len(words) == len(meant) and all(
        word[0] == other[0]
        and SequenceMatcher(None, word, other).ratio() >= 0.75
        and re.sub(r"\D", "", word) == re.sub(r"\D", "", other)
        for word, other in pairs
        if not (word.isdigit() and other.isdigit())
    )
