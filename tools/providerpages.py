"""The page of each provider, made of the tables of docs/models/providers.md, of dialects and of the catalog.

providers.md (tables that tests hold to the code) ┐
dialects of the presets (presetfacts.py)          ┤
catalog (limits and prices)                       ┴→ models/providers/NAME.md, when the site is built
"""

import re
from collections.abc import Mapping
from pathlib import Path

from tools.presetfacts import preset_facts

TABLES = Path(__file__).parents[1] / "docs" / "models" / "providers.md"
TITLES = {
    "What it can do": "What each adapter can do",
    "Hosted tools, documents, schemas": "Hosted tools, documents, schemas",
    "Key and address": "Keys and addresses",
    "Preset": "Presets: servers that speak like OpenAI",
}
"""The sections of a page, and the headings of the tables they come from."""
ELSEWHERE = {"local": "Models in this process have [a page of their own](../local.md)."}
MODELS_LEAD = (
    "Others work too, without limits and prices. "
    "Prices are dollars per million tokens; an empty cell is unknown."
)
NAME = re.compile(r"`([a-z-]+)`")
AS = re.compile(r"as `([a-z-]+)`(?: and `([a-z-]+)`)?")
"""A cell that says what another row, or two of them, say."""
FAMILIES = {"gemini": "Gemini", "anthropic": "Claude"}
"""What a provider with models of two others calls theirs."""
LINK = re.compile(r"(?<=\])\((?!\w+:)([^)]*)\)")


def provider_pages() -> dict[str, str]:
    """The text of each page, by the name of its provider."""
    from swink.models.catalog import PROVIDERS

    return {name: page_of(name, target.partition("#")[2]) for name, target in sorted(PROVIDERS.items())}


def page_of(name: str, preset: str) -> str:
    from swink.models.keys.accounts import ACCOUNTS

    listed = models_of(name)
    about = f"What swink does with models of `{name}`, how to reach them, their limits and prices. "
    about += "[All providers](../providers.md) compares them."
    parts = [f"# {name}\n", f"{ELSEWHERE.get(name, about)}\n"]
    if name in ACCOUNTS:
        chosen = ACCOUNTS[ACCOUNTS[name].key_name].default_model
        first = chosen or (listed[0][0].strip("`") if listed else "MODEL")
        parts.append(f'```text\nAgent("{name}:{first}")\n```\n')
    for title in TITLES:
        if said := facts(name, preset, title):
            parts.append(f"## {title}\n\n{said}\n")
    if listed:
        head = "| model | window | longest reply | input | output |\n|---|---:|---:|---:|---:|\n"
        rows = "".join(f"| {' | '.join(row)} |\n" for row in listed)
        parts.append(f"## Models that are listed\n\n{MODELS_LEAD}\n\n{head}{rows}")
    return "\n".join(parts)


def facts(name: str, preset: str, title: str) -> str:
    """What a table says of a provider, as a list; a preset's dialect says it, but for its hosted tools."""
    cells = row_of(name, title)
    if preset and (made := preset_facts(preset).get(TITLES[title])):
        tools = {column: cell for column, cell in cells.items() if column.startswith("hosted")}
        cells = {**made, **tools}
    return "\n".join(
        f"- **{column[0].upper()}{column[1:]}**: {relinked(cell)}" for column, cell in cells.items() if cell
    )


def row_of(name: str, title: str) -> Mapping[str, str]:
    """The row of a table that is about a provider, by its columns; "as another" is written out."""
    head, *rows = cells_of(TITLES[title])

    def find(wanted: str) -> dict[str, str]:
        row = next((row for row in rows if wanted in NAME.findall(row[0])), head[:1])
        return dict(zip(head[1:], row[1:], strict=False))

    def written_out(cell: str, column: str) -> str:
        def said(match: re.Match[str]) -> str:
            one, other = match.groups()
            if other is None:
                return find(one)[column]
            return ". ".join(f"{FAMILIES[each]}: {find(each)[column]}" for each in (one, other))

        return AS.sub(said, cell)

    return {column: written_out(cell, column) for column, cell in find(name).items()}


def cells_of(heading: str) -> list[list[str]]:
    """The first table below a heading of the page on providers, without its line of dashes."""
    text = TABLES.read_text("utf-8").partition(f"\n## {heading}\n")[2]
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    rows = [line for line in lines if not line.startswith("|---")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in rows]


def relinked(cell: str) -> str:
    """A cell whose links lead there from one folder below."""

    def target(match: re.Match[str]) -> str:
        return f"({'../providers.md' if match[1].startswith('#') else '../'}{match[1]})"

    return LINK.sub(target, cell)


def models_of(provider: str) -> list[tuple[str, ...]]:
    """The models that the catalog lists for a provider: name, window, longest reply, prices."""
    from swink.models import catalog

    rows: list[tuple[str, ...]] = []
    for spec in catalog.models(provider):
        price = catalog.price_of(spec)
        limits = [f"{limit:,}" if limit else "" for limit in (spec.context_window, spec.max_output)]
        amounts = (price.input, price.output) if price else (None, None)
        prices = ["" if amount is None else f"{amount:g}" for amount in amounts]
        rows.append((f"`{spec.model_id}`", *limits, *prices))
    return sorted(rows)
