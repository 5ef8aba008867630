"""The index of skills: what a model is told of them, in the published form, and the search for the rest.

<available_skills>
<skill>
<name>
pdf-forms
</name>
<description>
Fill in forms. Use it when …
</description>
<location>
/home/ada/.agents/skills/pdf-forms/SKILL.md
</location>
</skill>
</available_skills>
"""

import html
import math
import re
from collections import Counter
from collections.abc import Sequence

from swink.messages.tokens import text_size
from swink.tools.skills.skillfile import Skill

_WORD = re.compile(r"\w+")
_FREQUENCY, _LENGTH = 1.2, 0.75
"""The usual constants of BM25."""
_NAME_WEIGHT = 3


def write_index(skills: Sequence[Skill], most_tokens: int) -> tuple[str, list[Skill]]:
    """The index of the first skills that fit, and the skills that do not."""
    entries = [_entry(skill) for skill in skills]
    count, left = 0, 4 * most_tokens
    for entry in entries:
        left -= text_size(entry) + 1
        if left < 0:
            break
        count += 1
    while text_size(index := _enclosed(entries[:count])) > 4 * most_tokens and count:
        count -= 1  # a long text is measured more closely than a short one
    return index, list(skills[count:])


def _enclosed(entries: Sequence[str]) -> str:
    return "\n".join(["<available_skills>", *entries, "</available_skills>"])


def search_skills(skills: Sequence[Skill], query: str, most: int = 5) -> list[Skill]:
    """The skills whose names and descriptions fit a query best, by BM25."""
    texts = [Counter(_words(skill)) for skill in skills]
    usual = sum(text.total() for text in texts) / max(len(texts), 1)
    scores: dict[int, float] = {}
    for word in set(_stems(query)):
        having = [at for at, text in enumerate(texts) if word in text]
        weight = math.log(1 + (len(texts) - len(having) + 0.5) / (len(having) + 0.5))
        for at in having:
            count, length = texts[at][word], texts[at].total() / usual
            part = count * (_FREQUENCY + 1) / (count + _FREQUENCY * (1 - _LENGTH + _LENGTH * length))
            scores[at] = scores.get(at, 0.0) + weight * part
    return [skills[at] for at in sorted(scores, key=lambda at: (-scores[at], at))[:most]]


def _entry(skill: Skill) -> str:
    parts = {"name": skill.name, "description": skill.description, "location": str(skill.path)}
    inner = "\n".join(f"<{tag}>\n{html.escape(text)}\n</{tag}>" for tag, text in parts.items())
    return f"<skill>\n{inner}\n</skill>"


def _words(skill: Skill) -> list[str]:
    return _stems(skill.name) * _NAME_WEIGHT + _stems(skill.description)


def _stems(text: str) -> list[str]:
    """The words of a text, without the endings that tell one form of an English word from another."""
    words = _WORD.findall(text.casefold())
    return [re.sub(r"(?:ing|ed|es|s)$", "", word) if len(word) > 4 else word for word in words]
