"""The tests of the MCP server need the SDK."""

from importlib.util import find_spec

import pytest

if find_spec("mcp") is None:
    pytest.skip("needs the extra mcp", allow_module_level=True)
