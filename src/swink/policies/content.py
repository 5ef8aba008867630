"""ContentFilter: replies that contain certain words or patterns are stopped or masked."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, cast

from msgspec.structs import replace

from swink.errors import MisuseError
from swink.messages import AssistantMessage, Message, Text, Thinking
from swink.policies.disguises import spellings, turned, undisguised
from swink.policy import Policy, PolicyContext, Replace, Stop, Turn, Verdict

CATEGORIES: Mapping[str, Sequence[str]] = {
    "profanity": (
        "fuck",
        "fucking",
        "fucked",
        "shit",
        "bullshit",
        "asshole",
        "bastard",
        "bitch",
        "cunt",
        "motherfucker",
    ),
    "self_harm": ("kill yourself", "kys", "how to kill myself", "commit suicide", "cut yourself"),
    "weapons": ("pipe bomb", "build a bomb", "make a bomb", "nerve agent", "improvised explosive"),
}
"""Words and phrases per category; a beginning, to be extended with `categories={"name": [...]}`."""

_LONG = 50_000


class ContentFilter(Policy):
    """Words (whole ones, in any case), regular expressions, and categories of words, in what the model says and thinks.

    Words are found in disguise too: other alphabets, digits for letters, signs between or instead of letters, stretched,
    encoded or reversed.

    `action="stop"` ends the run; `action="mask"` replaces what was found with `mask` and goes on. The reason names the
    rule, not the text.

    >>> agent = Agent(model, policies=[ContentFilter(words=["project x"], categories=["profanity"], action="mask")])
    """

    fail_closed = True

    def __init__(
        self,
        words: Iterable[str] = (),
        *,
        patterns: Iterable[str | re.Pattern[str]] = (),
        categories: Iterable[str] | Mapping[str, Iterable[str]] = (),
        action: Literal["stop", "mask"] = "stop",
        mask: str = "[filtered]",
    ) -> None:
        self.action: Literal["stop", "mask"] = action
        self.mask = mask
        self._rules: list[tuple[str, re.Pattern[str]]] = []
        self._long_rules: list[tuple[str, re.Pattern[str]]] = []
        self.words = tuple(words)
        if self.words:
            self._list("a listed word", self.words)
        for pattern in patterns:
            self._rules.append(
                ("a listed pattern", re.compile(pattern, re.I) if isinstance(pattern, str) else pattern)
            )
        lists = cast(
            "Mapping[str, Iterable[str]]", categories if isinstance(categories, Mapping) else CATEGORIES
        )
        for name in categories:
            listed = tuple(lists.get(name, ()))
            if not listed:
                raise MisuseError(
                    f"unknown category {name!r}; known: {', '.join(CATEGORIES)}; or give its words in a mapping"
                )
            self.words += tuple(listed)
            self._list(f"category {name}", listed)
        if not self._rules:
            raise MisuseError("a ContentFilter needs words, patterns or categories")

    def _list(self, rule: str, words: Sequence[str]) -> None:
        self._rules.append((rule, _any_of(words)))
        # A short word is often another one backwards.
        if long := [word for word in words if len(word) > 4]:
            self._long_rules.append((rule, _any_of(long)))

    def finds(self, text: str) -> str | None:
        """The rule some text breaks in any reading of it, or None."""
        for rules, views in (
            (self._rules, (text, *spellings(text))),
            (self._long_rules, turned(undisguised(text))),
        ):
            for view in views:
                for rule, pattern in rules:
                    if pattern.search(view):
                        return rule
        return None

    def pre_commit(self, message: Message) -> Verdict:
        """Mask what breaks a rule in the text of an error, which no later slot sees."""
        if (
            not isinstance(message, AssistantMessage)
            or not message.error_message
            or self.finds(message.error_message) is None
        ):
            return None
        return Replace(replace(message, error_message=self._clean(message.error_message)))

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> Verdict:
        """Stop after, or mask, a reply that breaks a rule, in what it says or thinks."""
        said = turn.message.text, turn.message.thinking
        # Long texts are searched in a thread: the event loop has other things to do.
        found = (
            await asyncio.to_thread(self._first, said) if sum(map(len, said)) > _LONG else self._first(said)
        )
        if found is None:
            return None
        return (
            Stop(f"content filter: the reply contains {found}")
            if self.action == "stop"
            else Replace(self._masked(turn.message))
        )

    def _first(self, texts: Iterable[str]) -> str | None:
        return next((rule for text in texts if text and (rule := self.finds(text)) is not None), None)

    def _masked(self, message: AssistantMessage) -> AssistantMessage:
        # Thinking that is changed loses its signature, and so its use.
        blocks = [
            block for block in message.content if not (isinstance(block, Thinking) and self.finds(block.text))
        ]
        masked = replace(
            message,
            content=tuple(
                Text(self._mask(block.text)) if isinstance(block, Text) else block for block in blocks
            ),
        )
        if self.finds(masked.text) is None:
            return masked
        # What spans blocks, or is disguised, cannot be cut out; nothing of the text stays.
        return replace(
            message, content=(Text(self.mask), *(block for block in blocks if not isinstance(block, Text)))
        )

    def _clean(self, text: str) -> str:
        masked = self._mask(text)
        return masked if self.finds(masked) is None else self.mask

    def _mask(self, text: str) -> str:
        for _, pattern in self._rules:
            text = pattern.sub(self.mask, text)
        return text


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    phrases = sorted((_phrase(word) for word in words), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", re.I)


def _phrase(words: str) -> str:
    """A phrase with anything between its words, and with stars for some letters inside of them."""
    parts = words.split()
    masked = [_starred(part) for part in parts]
    return r"[\W_]*".join(
        re.escape(part) if star is None else f"(?:{re.escape(part)}|{star})"
        for part, star in zip(parts, masked, strict=True)
    )


def _starred(word: str) -> str | None:
    """A word of which at most half the letters are stars, neither the first nor the last."""
    if len(word) < 4 or not word.isalpha():
        return None
    most = len(word) // 2
    inner = "".join(f"[{re.escape(char)}*#]" for char in word[1:-1])
    return rf"{re.escape(word[0])}(?!(?:[^*#\s]{{0,20}}[*#]){{{most + 1}}}){inner}{re.escape(word[-1])}"
