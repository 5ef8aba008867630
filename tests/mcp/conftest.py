"""The HTTP server of the MCP tests."""

from collections.abc import Iterator

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")


@pytest.fixture(scope="module")
def http_url() -> Iterator[str]:
    from mcp_servers import http_server

    with http_server() as (port, _):
        yield f"http://127.0.0.1:{port}/mcp"
