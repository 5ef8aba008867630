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
from collections.abc import Sequence

from swink.messages.tokens import text_size
from swink.tools.bm25 import WordIndex, described
from swink.tools.skills.skillfile import Skill


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
    index = WordIndex(described(skill.name, skill.description) for skill in skills)
    return [skills[place] for place in index.search(query, most)]


def _entry(skill: Skill) -> str:
    parts = {"name": skill.name, "description": skill.description, "location": str(skill.path)}
    inner = "\n".join(f"<{tag}>\n{html.escape(text)}\n</{tag}>" for tag, text in parts.items())
    return f"<skill>\n{inner}\n</skill>"
