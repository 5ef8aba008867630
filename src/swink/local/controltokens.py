"""Control tokens in what people, tools and files say: they stay text.

llama.cpp turns the whole prompt into tokens at once: `<|im_end|>` in a file would end the message. A
space without width behind its first character makes it a text like any other; it looks the same.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

_NO_WIDTH = "\u200b"


def as_text(value: Any, tokens: tuple[str, ...]) -> Any:
    """A text, or data with texts in it, in which none of the tokens is left."""
    if not tokens:
        return value
    return _as_text(value, _pattern(tokens))


def _as_text(value: Any, pattern: re.Pattern[str]) -> Any:
    match value:
        case str():
            return pattern.sub(rf"\g<0>{_NO_WIDTH}", value)
        case Mapping():
            items = cast("Mapping[Any, Any]", value).items()
            return {_as_text(key, pattern): _as_text(inner, pattern) for key, inner in items}
        case list() | tuple():
            return [_as_text(inner, pattern) for inner in cast("list[Any]", value)]
        case _:
            return value


@lru_cache(8)
def _pattern(tokens: tuple[str, ...]) -> re.Pattern[str]:
    """The first character of each occurrence, of overlapping ones too."""
    return re.compile(f"(?=(?:{'|'.join(map(re.escape, tokens))})).", re.DOTALL)
