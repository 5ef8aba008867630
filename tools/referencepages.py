"""Writes the pages of reference that say what the code says: python tools/referencepages.py.

docs/reference/errors.md         every exception, with the kind that a result names
docs/reference/events.md         every event and delta, with its fields
docs/reference/variables.md      every variable of the environment that is read
docs/models/overview.md          every provider, with its key, address and models
docs/guarantees/promises.md      every promise, with the test that holds it
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
if str(ROOT) not in sys.path:  # for the promises, which stand beside their tests
    sys.path.insert(0, str(ROOT))

from tools.variables import BESIDE_KEYS, OF_PROVIDERS, OF_SWINK, OF_SYSTEM  # noqa: E402


def first_line(value: Any) -> str:
    """The first paragraph of a docstring, on one line of a table."""
    text = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    columns = head.split(" | ")
    lines = [f"| {head} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


CLASS = re.compile(r'^class (\w+)\(([^)]*)\):\n    """(.*?)(?:"""|\n\n)', re.MULTILINE | re.DOTALL)
KIND = re.compile(r'^    kind(?:: [^=\n]*)? = "(\w+)"$', re.MULTILINE)


class ErrorClass(msgspec.Struct):
    """A class as its file has it; classes have names of their own, so that a name says which is meant."""

    name: str
    base: str
    module: str
    kind: str
    text: str


def error_classes() -> dict[str, ErrorClass]:
    """Every class of the library, by name; those of the application are its own affair."""
    found: dict[str, ErrorClass] = {}
    for path in sorted((ROOT / "src" / "swink").rglob("*.py")):
        module = (
            path.relative_to(ROOT / "src")
            .with_suffix("")
            .as_posix()
            .replace("/", ".")
            .removesuffix(".__init__")
        )
        if module.startswith("swink.app"):
            continue
        text = path.read_text("utf-8")
        matches = list(CLASS.finditer(text))
        for match, end in zip(matches, [*(one.start() for one in matches[1:]), len(text)], strict=False):
            body = text[match.end() : end]
            kind = KIND.search(body.partition("\n\n\n")[0])
            base = match[2].partition(",")[0].partition("[")[0].rpartition(".")[2].strip()
            said = re.sub(r"\s+", " ", match[3]).strip().replace("|", "\\|")
            found[match[1]] = ErrorClass(match[1], base, module, kind[1] if kind else "", said)
    return found


def errors_page() -> str:
    classes = error_classes()
    rows: list[tuple[str, str, str, str, str]] = []

    def walk(name: str, kind: str, above: str) -> None:
        error = classes[name]
        kind = error.kind or kind
        if not name.startswith("_"):
            rows.append((f"`{name}`", f"`{error.module}`", f"`{kind}`", above, error.text))
            above = f"`{name}`"
        for below in sorted(each for each in classes if classes[each].base == name):
            walk(below, kind, above)

    classes["AgentError"].kind = "stream"
    walk("AgentError", "", "")
    return (
        "# Errors\n\nEvery exception of swink is an `AgentError`. "
        "`except` of an exception catches those that are a kind of it, too.\n\n"
        "`result.error_kind` of a failed run is the kind in this table. "
        "`raise_for_error()` raises the exception itself, with its cause.\n\n"
        + table("exception | module | kind | is a kind of | what it means", rows)
    )


def events_page() -> str:
    import swink.events
    import swink.stream

    parts = [
        "# Events\n\nWhat a run tells, by name; [concepts](../library/concepts.md#events) has the order. "
        "In JSON an event has the same fields, and its `type`. "
        "[JSON-RPC](rpc.md) has the type of each field.\n"
    ]
    for title, module in (("Of a run", swink.events), ("Of a reply, from a stream function", swink.stream)):
        structs = [
            value
            for name, value in sorted(vars(module).items())
            if isinstance(value, type)
            and issubclass(value, msgspec.Struct)
            and not name.startswith("_")
            and value.__struct_config__.tag is not None
        ]
        rows = [
            (
                f"`{each.__name__}`",
                f"`{each.__struct_config__.tag}`",
                ", ".join(f"`{field}`" for field in each.__struct_fields__),
                first_line(each),
            )
            for each in structs
        ]
        parts.append(f"## {title}\n\n" + table("event | type in JSON | fields | what happened", rows))
    return "\n".join(parts)


def variables_page() -> str:
    from swink.models.keys.accounts import ACCOUNTS

    keys = table(
        "provider | key, the first that is set | address",
        (
            (
                f"`{account.provider}`",
                keys_of(account.provider),
                f"`{account.url_variable}`" if account.url_variable else "",
            )
            for account in sorted(ACCOUNTS.values(), key=lambda each: each.provider)
        ),
    )
    return (
        "# Environment variables\n\nA variable of swink or of a provider wins over a setting "
        "and over a stored key; an argument wins over a variable.\n\n"
        f"## Of swink\n\nOur own variables begin with `SWINK_`.\n\n{variables(OF_SWINK)}\n"
        "## Of providers\n\nKeys and addresses. [Keys](../models/api-keys.md) says where a key may go. "
        "A server of yours names the variable of its key in `key_env` of "
        f"[its settings](../coding-agent/settings.md).\n\n{keys}\n"
        "### Clouds\n\nWhat AWS, Azure and Google Cloud have beside a key.\n\n"
        f"{variables(OF_PROVIDERS)}\n"
        "## Of the system\n\nVariables of others that change what swink does.\n\n"
        f"{variables(OF_SYSTEM)}\n"
        "Files may name more: `${NAME}` in `.mcp.json` and in `[mcp.NAME]` of the settings is filled in. "
        "Commands of the agent have `TERM=dumb`, `NO_COLOR=1` and `PAGER=cat`, and no variable "
        "that looks like a secret.\n"
    )


def variables(meanings: Mapping[str, str]) -> str:
    """A table of variables, those that mean one thing in one row."""
    rows = ((", ".join(f"`{name}`" for name in names.split(", ")), text) for names, text in meanings.items())
    return table("variable | what it does", rows)


def keys_of(provider: str) -> str:
    """The variables that may hold a key, and what may take its place."""
    from swink.models.keys.accounts import ACCOUNTS

    account = ACCOUNTS[provider]
    beside = BESIDE_KEYS.get(provider, "if any" if account.base_url.startswith("http:") else "")
    return ", ".join([*(f"`{name}`" for name in account.variables), *([beside] if beside else [])])


def models_page() -> str:
    from swink.models.catalog import PROVIDERS
    from swink.models.keys.accounts import ACCOUNTS

    rows = [
        (
            f"`{name}`",
            f"`{target.partition('#')[0].rpartition(':')[2]}`",
            keys_of(name) if name in ACCOUNTS else "none",
            f"`{ACCOUNTS[name].default_model}`" if name in ACCOUNTS and ACCOUNTS[name].default_model else "",
        )
        for name, target in sorted(PROVIDERS.items())
    ]
    return (
        "# Models: overview\n\nA model is named `provider:model`. "
        "The catalog is a convenience; other models of a provider work too.\n\n"
        "- What each adapter can do, hosted tools and schemas are on "
        "[providers](providers.md#what-each-adapter-can-do). "
        "In the site each provider has a page of its own.\n"
        "- Models on this machine are on [local models](local.md).\n"
        "- Limits and prices: `swink models list`, and [how they are kept](prices.md).\n"
        "- A provider of yours is a function: [write your own](own-provider.md).\n\n"
        + table("provider | stream function | key | default model", rows)
    )


def promises_page() -> str:
    from tests.test_promises import PROMISES

    pages: dict[str, list[tuple[str, str]]] = {}
    for page, sentence, test in PROMISES:
        shown = promise_of(sentence, (DOCS / page).read_text("utf-8"))
        pages.setdefault(page, []).append((shown, f"`{test.partition('::')[2]}`"))
    parts = [
        "# Promises and their tests\n\nEach sentence stands on its page, "
        "and the test beside it fails when it no longer holds. "
        '`make test TESTS="-k NAME"` runs one.\n'
    ]
    for page, rows in pages.items():
        title = (DOCS / page).read_text("utf-8").partition("\n")[0].lstrip("# ")
        parts.append(f"## {title}\n\nFrom [{page}](../{page}).\n\n" + table("promise | test", rows))
    return "\n".join(parts)


def promise_of(sentence: str, page: str) -> str:
    """A sentence of a page; one that stands in a table below "may not" begins with who may not."""
    below = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        below = bool(cells) and (below or cells[-1] == "may not")
        if below and sentence in cells[-1]:
            return f"{cells[0]} may not {sentence}"
    return sentence.replace(" | ", "; ").replace("|", "\\|")


WRITTEN: dict[str, Callable[[], str]] = {
    "reference/errors.md": errors_page,
    "reference/events.md": events_page,
    "reference/variables.md": variables_page,
    "models/overview.md": models_page,
    "guarantees/promises.md": promises_page,
}


def main() -> None:
    for page, make in WRITTEN.items():
        (DOCS / page).write_text(make(), "utf-8")


if __name__ == "__main__":
    main()
