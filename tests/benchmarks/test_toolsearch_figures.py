"""The search of tools: what it finds of 140 tools of published MCP servers, and what they cost deferred."""

import msgspec
from benchmarks.toolsearch import (
    HERE,
    PAGE,
    WINDOW,
    measure,
    other_words,
    read_requests,
    read_tools,
    with_table,
)

FOUND = measure()


def test_the_right_tool_is_among_the_first_five_for_95_of_100_requests_and_first_for_80():
    assert FOUND.requests == 100
    assert FOUND.among_best >= 95
    assert FOUND.first >= 80


def test_140_tools_cost_under_a_twentieth_of_the_window_before_the_first_is_needed():
    assert FOUND.tools == 140
    assert FOUND.fixed_tokens < WINDOW / 20 < FOUND.all_tokens


def test_every_request_names_a_tool_and_says_more_than_its_own_words():
    tools = {tool.name: tool for tool in read_tools()}
    for request, wanted in read_requests().items():
        assert other_words(request, tools[wanted]), request
    assert read_requests("aside").keys().isdisjoint(read_requests())


def test_every_server_names_its_package_and_licence():
    for server in msgspec.json.decode((HERE / "mcptools.json").read_bytes()):
        assert server["package"]
        assert server["version"]
        assert server["licence"]


def test_the_page_has_the_figures():
    page = PAGE.read_text()
    assert with_table(page, FOUND.table) == page, "python benchmarks/toolsearch.py --write-docs writes them"
