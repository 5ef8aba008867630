"""The HTTP server of the MCP tests."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

if find_spec("mcp") is None:
    pytest.skip("needs the extra mcp", allow_module_level=True)


@pytest.fixture(scope="module")
def http_url() -> Iterator[str]:
    from mcp_servers import http_server

    with http_server() as (port, _):
        yield f"http://127.0.0.1:{port}/mcp"
