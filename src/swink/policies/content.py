"""ContentFilter: replies that contain certain words or patterns are stopped or masked."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, cast

from msgspec.structs import replace

from swink.agent.policy import KeepVerdict, Policy, PolicyContext, Replace, ReplyVerdict, Stop, Turn
from swink.errors import InvalidInput
from swink.messages import AssistantMessage, Message, Text, Thinking
from swink.messages.checks import check_word
from swink.policies.disguises import respell, turn, undisguise
from swink.policies.inputs import patterns_of, texts_of
from swink.system.threads import in_thread

_PROFANITY = "fuck fucking fucked shit bullshit asshole bastard bitch cunt motherfucker"
CATEGORIES: Mapping[str, Sequence[str]] = {
    "profanity": tuple(_PROFANITY.split()),
    "self_harm": ("kill yourself", "kys", "how to kill myself", "commit suicide", "cut yourself"),
    "weapons": ("pipe bomb", "build a bomb", "make a bomb", "nerve agent", "improvised explosive"),
}
"""Words and phrases per category; add your own with `categories={"name": [...]}`."""

_LONG = 50_000


class ContentFilter(Policy):
    """Whole words in any case, regular expressions, and categories of words, in replies and thinking.

    Words are found in disguise too: other alphabets, signs for letters, stretched, encoded or reversed.
    `action="stop"` ends the run, naming the rule; `action="mask"` replaces what was found with `mask`.

    Args:
        patterns: regular expressions

    >>> content = ContentFilter(words=["project x"], categories=["profanity"], action="mask")
    >>> agent = Agent(model, policies=[content])
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
        check_word("action", action, ("stop", "mask"))
        self.action: Literal["stop", "mask"] = action
        [self.mask] = texts_of("mask", [mask])
        self._rules: list[tuple[str, re.Pattern[str]]] = []
        self._long_rules: list[tuple[str, re.Pattern[str]]] = []
        self.words = texts_of("words", words)
        if self.words:
            self._list("a listed word", self.words)
        self._rules += [("a listed pattern", pattern) for pattern in patterns_of("patterns", patterns)]
        lists = cast(
            "Mapping[str, Iterable[str]]", categories if isinstance(categories, Mapping) else CATEGORIES
        )
        for name in texts_of("categories", cast("Iterable[str]", categories)):
            listed = texts_of(f"category {name!r}", lists.get(name, ()))
            if not listed:
                known = f"known: {', '.join(CATEGORIES)}; or give words in a mapping"
                raise InvalidInput(f"category {name!r} has no words; {known}")
            self.words += listed
            self._list(f"category {name}", listed)
        if not self._rules:
            advice = "give words, patterns or categories"
            raise InvalidInput(f"a ContentFilter without rules filters nothing: {advice}")

    def _list(self, rule: str, words: Sequence[str]) -> None:
        self._rules.append((rule, _any_of(words)))
        # A short word read backwards is often another word.
        if long := [word for word in words if len(word) > 4]:
            self._long_rules.append((rule, _any_of(long)))

    def finds(self, text: str) -> str | None:
        """The rule that a text breaks, in any reading of it, or None."""
        views = [(self._rules, (text, *respell(text))), (self._long_rules, turn(undisguise(text)))]
        for rules, readings in views:
            for view in readings:
                for rule, pattern in rules:
                    if pattern.search(view):
                        return rule
        return None

    def pre_commit(self, message: Message) -> KeepVerdict:
        """Mask what breaks a rule in the text of an error, which no later slot sees."""
        error = message.error_message if isinstance(message, AssistantMessage) else None
        if not error or self.finds(error) is None:
            return None
        masked = self._mask(error)
        return Replace(replace(message, error_message=self.mask if self.finds(masked) else masked))

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> ReplyVerdict:
        """Stop after, or mask, a reply that breaks a rule, in what it says or thinks."""
        said = turn.message.text, turn.message.thinking
        # Long texts are searched in a thread, so that the event loop is not held up.
        is_long = sum(map(len, said)) > _LONG
        found = await in_thread(self._first, said) if is_long else self._first(said)
        if found is None:
            return None
        if self.action == "stop":
            return Stop(f"content filter: the reply contains {found}")
        return Replace(self._mask_reply(turn.message))

    def _first(self, texts: Iterable[str]) -> str | None:
        return next((rule for text in texts if text and (rule := self.finds(text)) is not None), None)

    def _mask_reply(self, message: AssistantMessage) -> AssistantMessage:
        # Thinking is dropped: a changed block no longer fits its signature, and providers refuse it.
        thoughts = [item for item in message.content if isinstance(item, Thinking) and self.finds(item.text)]
        kept = [item for item in message.content if item not in thoughts]
        content = tuple([self._masked(item) if isinstance(item, Text) else item for item in kept])
        masked = replace(message, content=content)
        if self.finds(masked.text) is None:
            return masked
        # What spans blocks, or is disguised, cannot be cut out: the whole text is masked.
        others = [item for item in kept if not isinstance(item, Text)]
        return replace(message, content=(Text(self.mask), *others))

    def _masked(self, block: Text) -> Text:
        masked = self._mask(block.text)
        return block if masked == block.text else Text(masked)

    def _mask(self, text: str) -> str:
        for _, pattern in self._rules:
            text = pattern.sub(self.mask, text)
        return text


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    # With anything between the words of a phrase, and with stars for some letters inside of them.
    phrases = sorted([r"[\W_]*".join(map(_starred, word.split())) for word in words], key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", re.I)


def _starred(word: str) -> str:
    """A word, also one of which at most half the letters are stars, neither the first nor the last."""
    plain = re.escape(word)
    if len(word) < 4 or not word.isalpha():
        return plain
    most = len(word) // 2
    inner = "".join(f"[{re.escape(char)}*#]" for char in word[1:-1])
    star = rf"{re.escape(word[0])}(?!(?:[^*#\s]{{0,20}}[*#]){{{most + 1}}}){inner}{re.escape(word[-1])}"
    return f"(?:{plain}|{star})"
