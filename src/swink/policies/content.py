"""ContentFilter: replies that contain certain words or patterns are stopped or masked."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, cast

from msgspec.structs import replace

from swink.errors import MisuseError
from swink.messages import AssistantMessage, Text
from swink.policies.injection import undisguised
from swink.policy import Policy, PolicyContext, Replace, Stop, Turn, Verdict

CATEGORIES: Mapping[str, Sequence[str]] = {
    "profanity": ("fuck", "fucking", "fucked", "shit", "bullshit", "asshole", "bastard", "bitch", "cunt", "motherfucker"),
    "self_harm": ("kill yourself", "kys", "how to kill myself", "commit suicide", "cut yourself"),
    "weapons": ("pipe bomb", "build a bomb", "make a bomb", "nerve agent", "improvised explosive"),
}
"""Words and phrases per category; a beginning, to be extended with `categories={"name": [...]}`."""


class ContentFilter(Policy):
    """Words (whole ones, in any case), regular expressions, and categories of words, in what the model says.

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
        self.words = tuple(words)
        if self.words:
            self._rules.append(("a listed word", _any_of(self.words)))
        for pattern in patterns:
            self._rules.append(("a listed pattern", re.compile(pattern, re.I) if isinstance(pattern, str) else pattern))
        lists = cast("Mapping[str, Iterable[str]]", categories if isinstance(categories, Mapping) else CATEGORIES)
        for name in categories:
            listed = tuple(lists.get(name, ()))
            if not listed:
                raise MisuseError(f"unknown category {name!r}; known: {', '.join(CATEGORIES)}; or give its words in a mapping")
            self.words += tuple(listed)
            self._rules.append((f"category {name}", _any_of(listed)))
        if not self._rules:
            raise MisuseError("a ContentFilter needs words, patterns or categories")

    def finds(self, text: str) -> str | None:
        """The rule some text breaks, or None."""
        plain = undisguised(text)
        return next((rule for rule, pattern in self._rules if pattern.search(text) or pattern.search(plain)), None)

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> Verdict:
        """Stop after, or mask, a reply that breaks a rule."""
        rule = self.finds(turn.message.text)
        if rule is None:
            return None
        return Stop(f"content filter: the reply contains {rule}") if self.action == "stop" else Replace(self._masked(turn.message))

    def _masked(self, message: AssistantMessage) -> AssistantMessage:
        masked = replace(
            message, content=tuple(Text(self._mask(block.text)) if isinstance(block, Text) else block for block in message.content)
        )
        if self.finds(masked.text) is None:
            return masked
        # What spans blocks, or is disguised, cannot be cut out; nothing of the text stays.
        others = tuple(block for block in message.content if not isinstance(block, Text))
        return replace(message, content=(Text(self.mask), *others))

    def _mask(self, text: str) -> str:
        for _, pattern in self._rules:
            text = pattern.sub(self.mask, text)
        return text


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    phrases = sorted((r"\s+".join(re.escape(part) for part in word.split()) for word in words), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", re.I)
