"""Tool search: what 140 tools of published MCP servers cost before one is needed, and what a search finds.

    python benchmarks/toolsearch.py [--missed] [--write-docs]

`mcptools.json` has the tools as the servers list them; `toolsearch.toml` has 100 requests, each with the tool
that does it. `--missed` names the requests whose tool is not the first; `--write-docs` puts the table into
docs/guarantees/measured.md.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from swink.messages.tokens import overhead_tokens
from swink.tools import Tool
from swink.tools.bm25 import words_of
from swink.tools.toolsearch import BEST, ToolSearch, search_words

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "guarantees" / "measured.md"
BEGIN, END = "<!-- begin: benchmarks/toolsearch.py -->", "<!-- end: benchmarks/toolsearch.py -->"
WINDOW = 200_000


class Figures(Struct, frozen=True):
    """What was measured."""

    tools: int
    all_tokens: int
    """Of the definitions of all tools."""
    fixed_tokens: int
    """Of what is sent instead."""
    requests: int
    among_best: int
    first: int
    aside: tuple[int, int, int]
    """Of requests that were written after the search was tuned: how many, found, and found first."""

    @property
    def table(self) -> str:
        """The figures for the page."""
        many, found, first = self.aside
        return "\n".join(
            (
                f"| {self.tools} tools of published MCP servers | |",
                "|---|---|",
                f"| all definitions in the prompt | {_share(self.all_tokens)} |",
                f"| deferred, before the first is needed | {_share(self.fixed_tokens)} |",
                f"| the right tool among the first {BEST} | {self.among_best} of {self.requests} requests |",
                f"| the right tool first | {self.first} of {self.requests} requests |",
                f"| of {many} requests written later: among the first {BEST} | {found}, first {first} |",
            )
        )


def main() -> None:
    """Print the table."""
    found = measure()
    print(found.table)
    if "--missed" in sys.argv:
        for request, wanted, names in [*results("requests"), *results("aside")]:
            if names[:1] != [wanted]:
                print(f"{'-' if wanted in names else 'MISSED'} {request}\n    {wanted}: {', '.join(names)}")
    if "--write-docs" in sys.argv:
        PAGE.write_text(with_table(PAGE.read_text(), found.table))


def measure() -> Figures:
    """What the tools cost, and what of the requests is found."""
    tools = read_tools()
    sent = [tool for tool in ToolSearch(tools, ()).tools if not tool.deferred]
    return Figures(
        len(tools),
        overhead_tokens("", [msgspec.structs.replace(tool, deferred=False) for tool in tools]),
        overhead_tokens("", sent),
        *_hits("requests"),
        _hits("aside"),
    )


def _hits(part: str) -> tuple[int, int, int]:
    ranked = [(wanted, names) for _, wanted, names in results(part)]
    among = sum(wanted in names for wanted, names in ranked)
    return len(ranked), among, sum(names[:1] == [wanted] for wanted, names in ranked)


def results(part: str) -> list[tuple[str, str, list[str]]]:
    """Each request, the tool that does it, and the tools that are found for it."""
    search = ToolSearch(read_tools(), ())
    return [
        (request, wanted, [tool.name for tool in search.find(request)])
        for request, wanted in read_requests(part).items()
    ]


def read_tools() -> list[Tool]:
    """The tools of the servers, as a client of theirs has them."""
    servers: Any = msgspec.json.decode((HERE / "mcptools.json").read_bytes())
    return [
        Tool.raw(
            f"{server['server']}_{tool['name']}",
            tool["description"],
            tool["inputSchema"],
            lambda *_: "",
            deferred=True,
        )
        for server in servers
        for tool in server["tools"]
    ]


def read_requests(part: str = "requests") -> dict[str, str]:
    """The name of the tool for each request; those in "aside" were written after the search was tuned."""
    return tomllib.loads((HERE / "toolsearch.toml").read_text())[part]


def other_words(request: str, tool: Tool) -> set[str]:
    """The words of a request that say nothing in the tool's own words."""
    told = search_words(tool)
    return set(words_of(request)) - {*told.name, *told.text}


def with_table(page: str, table: str) -> str:
    """The page with this table between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def _share(tokens: int) -> str:
    return f"{tokens:,} tokens, {100 * tokens / WINDOW:.1f} % of a window of {WINDOW:,}"


if __name__ == "__main__":
    main()
