"""Instructions: the 25 kinds of IFEval, each as a check of a response that gives what IFEval's own gives.

Words are `\\w+`; sentences are counted by their end marks, without abbreviations and decimals; a language is
told by letters and small words. IFEval itself asks NLTK and langdetect for the last two.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from swink.eval.importers.languages import language_of

Check = Callable[[str, Mapping[str, Any]], bool]

_ANSWERS = tuple(f"My answer is {word}." for word in ("yes", "no", "maybe"))
_ABBREVIATIONS = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|Inc|Ltd|Co|No|U\.S|Ph\.D|a\.m|p\.m)\.(?=\s+\S)"
)
_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)\]*]*(?=\s|$)")
_CONTRACTION = re.compile(r"(?i)(?<=\w)('(?:s|m|d|re|ll|ve)|n't)$")


def count_words(text: str) -> int:
    """How many words a text has."""
    return len(re.findall(r"\w+", text))


def count_sentences(text: str) -> int:
    """How many sentences a text has."""
    plain = _ABBREVIATIONS.sub(lambda found: found[0].replace(".", ""), text)
    plain = re.sub(r"(?m)^\s*\d+\.(?=\s)", "", plain)
    return sum(bool(re.search(r"\w", part)) for part in _SENTENCE_END.split(plain))


def _compare(count: int, relation: Any, limit: Any) -> bool:
    if relation not in ("less than", "at least"):
        raise ValueError(f"the relation is {relation!r}; it is 'less than' or 'at least'")
    return count < int(limit) if relation == "less than" else count >= int(limit)


def _keywords(text: str, given: Mapping[str, Any]) -> bool:
    return all(re.search(_pattern(word), text, re.IGNORECASE) for word in given["keywords"])


def _frequency(text: str, given: Mapping[str, Any]) -> bool:
    found = re.findall(_pattern(given["keyword"].strip()), text, re.IGNORECASE)
    return _compare(len(found), given["relation"], given["frequency"])


def _forbidden(text: str, given: Mapping[str, Any]) -> bool:
    words: list[str] = given["forbidden_words"]
    return not any(re.search(rf"\b{_pattern(word)}\b", text, re.IGNORECASE) for word in words)


def _pattern(word: str) -> str:
    """A keyword as IFEval takes it, as a pattern; one that is none, such as "(beta", as it stands."""
    try:
        re.compile(word)
    except re.error:
        return re.escape(word)
    return word


def _letters(text: str, given: Mapping[str, Any]) -> bool:
    count = text.lower().count(given["letter"].strip().lower())
    return _compare(count, given["let_relation"], given["let_frequency"])


def _is_in(language: str, text: str) -> bool:
    return language_of(text) in (None, language)


def _sentences(text: str, given: Mapping[str, Any]) -> bool:
    return _compare(count_sentences(text), given["relation"], given["num_sentences"])


def _words(text: str, given: Mapping[str, Any]) -> bool:
    return _compare(count_words(text), given["relation"], given["num_words"])


def _paragraphs(text: str, given: Mapping[str, Any]) -> bool:
    is_filled = [bool(part.strip()) for part in text.split("***")]
    return all(is_filled[1:-1]) and sum(is_filled) == given["num_paragraphs"]


def _first_word(text: str, given: Mapping[str, Any]) -> bool:
    paragraphs = [part.split() for part in text.split("\n\n")]
    count, number = sum(map(bool, paragraphs)), int(given["nth_paragraph"])
    if count != given["num_paragraphs"] or not 0 < number <= count:
        return False
    chosen = paragraphs[number - 1]  # which may be an empty one: they have numbers, but are not counted
    start = chosen[0].lstrip("'").lstrip('"') if chosen else ""
    word = "".join(takewhile(lambda sign: sign not in ".,?!'\"", start))
    return bool(chosen) and word.lower() == given["first_word"].lower()


def _placeholders(text: str, given: Mapping[str, Any]) -> bool:
    return sum(map(_count_brackets, text.split("\n"))) >= given["num_placeholders"]


def _count_brackets(line: str) -> int:
    """How often a [ is followed by a ], each ] used once."""
    count = 0
    _, opened, rest = line.partition("[")
    while opened:
        _, closed, rest = rest.partition("]")
        count += bool(closed)
        _, opened, rest = rest.partition("[")
    return count


def _postscript(text: str, given: Mapping[str, Any]) -> bool:
    return _close_up(str(given["postscript_marker"]).strip()) in _close_up(text)


def _close_up(text: str) -> str:
    """In small letters, without the space behind a dot: "P. S." is "P.S."."""
    return re.sub(r"(?<=\.)\s", "", text.lower())


def _bullets(text: str, given: Mapping[str, Any]) -> bool:
    count, lines = 0, iter(text.split("\n"))
    for line in lines:
        match line.lstrip()[:2]:
            case "*":  # an empty one: what it says is the next line, be that a bullet itself
                following = next(lines, None)
                count += following is not None
                count += (following or "").lstrip().startswith("-")
            case mark:
                count += mark[:1] in ("*", "-") and mark != "**"
    return count == given["num_bullets"]


def _highlights(text: str, given: Mapping[str, Any]) -> bool:
    found = [piece for mark in (r"\*", r"\*\*") for piece in re.findall(rf"{mark}([^*\n]*){mark}", text)]
    return sum(bool(piece.strip()) for piece in found) >= given["num_highlights"]


def _sections(text: str, given: Mapping[str, Any]) -> bool:
    name = re.escape(given["section_spliter"].strip())
    return len(re.findall(rf"{name}\s?\d+", text)) >= given["num_sections"]


def _json(text: str, given: Mapping[str, Any]) -> bool:
    body = text.strip()
    if body.startswith("```"):
        body = body[7:] if body[3:7] in ("json", "Json", "JSON") else body[3:]
    try:
        msgspec.json.decode(body.removesuffix("```").strip())
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True


def _title(text: str, given: Mapping[str, Any]) -> bool:
    after = (line.partition("<<")[2] for line in text.split("\n"))
    return any(rest.rpartition(">>")[0].strip("<>").strip() for rest in after)


def _two_responses(text: str, given: Mapping[str, Any]) -> bool:
    parts = [part.strip() for part in text.split("******")]
    said = [part for part in parts if part]
    return all(parts[1:-1]) and len(said) == 2 and said[0] != said[1]


def _repeated(text: str, given: Mapping[str, Any]) -> bool:
    return text.strip().lower().startswith(given["prompt_to_repeat"].strip().lower())


def _ending(text: str, given: Mapping[str, Any]) -> bool:
    return text.strip().strip('"').lower().endswith(given["end_phrase"].strip().lower())


def _quotation(text: str, given: Mapping[str, Any]) -> bool:
    body = text.strip()
    return len(body) > 1 and body[0] == body[-1] == '"'


def _capital_words(text: str, given: Mapping[str, Any]) -> bool:
    count = sum(token.isupper() for token in _tokens(text))
    return _compare(count, given["capital_relation"], given["capital_frequency"])


def _tokens(text: str) -> Sequence[str]:
    """Words with their inner hyphens and dots; contractions are two."""
    found: list[str] = []
    for word in re.findall(r"\w[\w'’.&/-]*", text):
        found += [part for part in _CONTRACTION.split(word.rstrip(".'’/-&")) if part]
    return found


_NTH_PARAGRAPH = ("num_paragraphs", "nth_paragraph", "first_word")
INSTRUCTIONS: dict[str, tuple[Check, tuple[str, ...]]] = {
    "keywords:existence": (_keywords, ("keywords",)),
    "keywords:frequency": (_frequency, ("keyword", "relation", "frequency")),
    "keywords:forbidden_words": (_forbidden, ("forbidden_words",)),
    "keywords:letter_frequency": (_letters, ("letter", "let_relation", "let_frequency")),
    "language:response_language": (lambda text, given: _is_in(given["language"], text), ("language",)),
    "length_constraints:number_sentences": (_sentences, ("relation", "num_sentences")),
    "length_constraints:number_paragraphs": (_paragraphs, ("num_paragraphs",)),
    "length_constraints:number_words": (_words, ("relation", "num_words")),
    "length_constraints:nth_paragraph_first_word": (_first_word, _NTH_PARAGRAPH),
    "detectable_content:number_placeholders": (_placeholders, ("num_placeholders",)),
    "detectable_content:postscript": (_postscript, ("postscript_marker",)),
    "detectable_format:number_bullet_lists": (_bullets, ("num_bullets",)),
    "detectable_format:constrained_response": (lambda text, _: any(one in text for one in _ANSWERS), ()),
    "detectable_format:number_highlighted_sections": (_highlights, ("num_highlights",)),
    "detectable_format:multiple_sections": (_sections, ("section_spliter", "num_sections")),
    "detectable_format:json_format": (_json, ()),
    "detectable_format:title": (_title, ()),
    "combination:two_responses": (_two_responses, ()),
    "combination:repeat_prompt": (_repeated, ("prompt_to_repeat",)),
    "startend:end_checker": (_ending, ("end_phrase",)),
    "startend:quotation": (_quotation, ()),
    "change_case:capital_word_frequency": (_capital_words, ("capital_frequency", "capital_relation")),
    "change_case:english_capital": (lambda text, _: text.isupper() and _is_in("en", text), ()),
    "change_case:english_lowercase": (lambda text, _: text.islower() and _is_in("en", text), ()),
    "punctuation:no_comma": (lambda text, _: "," not in text, ()),
}
"""By id: the check, and the arguments it needs."""
