"""A program may call what its agent may call in its present mode, and nothing else."""

from swink import tool
from swink.app.assistant.planning import plan_tools
from swink.tools import Tool, code_mode


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def write() -> str:
    """Write."""
    return "written"


def test_plan_mode_leaves_a_program_the_tools_that_read():
    (kept,) = plan_tools([code_mode([look, write]), write])
    assert isinstance(kept, Tool)
    assert "def look(" in kept.description
    assert "def write(" not in kept.description


def test_plan_mode_offers_no_programs_that_could_only_write():
    assert plan_tools([code_mode([write])]) == []
