"""The page for everybody: axe finds nothing, at three widths, by day and by night."""

from pathlib import Path
from typing import Any

import pytest
from tests.pages import PICTURES_INTO
from tests.serve.page.pages import Page, open_page

from swink import tool
from swink.messages import Text, Thinking, ToolCall, ToolResult, Usage
from swink.serve.page import PageDoor

AXE = Path(__file__).parents[3] / ".venv/node/node_modules/axe-core/axe.min.js"
SAID = """I will let `add` take a third number, which is **0** by default:

```python
def add(a, b, c=0):
    return a + b + c
```

| call | before | after |
|------|-------:|------:|
| `add(1, 2)` | 3 | 3 |
| `add(1, 2, 3)` | an error | 6 |
"""
BEFORE = "import math\n\n\ndef add(a, b):\n    return a + b\n\n\nprint(add(1, 2))\n"
EDITS = [
    {"old": "def add(a, b):\n    return a + b\n", "new": "def add(a, b, c=0):\n    return a + b + c\n"},
    {"old": "print(add(1, 2))", "new": "print(add(1, 2, 3))"},
]


@tool(requires_approval=True)
async def edit_file(path: str, edits: list[dict[str, str]]) -> ToolResult:
    """Edit a file."""
    new = BEFORE
    for edit in edits:
        new = new.replace(edit["old"], edit["new"])
    details = {"path": path, "is_new_file": False, "old_content": BEFORE, "new_content": new, "hash": "h"}
    return ToolResult((Text(f"changed {path}"),), details=details)


@tool
async def bash(command: str) -> str:
    """Run a command."""
    return "3 passed in 0.02s"


def scene() -> list[Any]:
    edit = ToolCall("1", "edit_file", {"path": "sum.py", "edits": EDITS})
    looked = ToolCall("2", "bash", {"command": "pytest -q"})
    thought = Thinking("The default keeps what calls it now.")
    return [[thought, SAID, edit], [looked], "Done: all three tests pass."]


def check_access(page: Page) -> None:
    """Let axe look at the page as it is now; it stands beside the page's own scripts, under its policy."""
    page.ask(AXE.read_text("utf-8"))
    found = page.ask("axe.run(document, { resultTypes: ['violations'] })")
    problems = [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found["violations"]]
    assert problems == []
    assert len(found["passes"]) > 15


def take_picture(page: Page, name: str) -> None:
    if PICTURES_INTO:
        page.tab.screenshot(path=str(PICTURES_INTO / f"{name}.png"))


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not here; .ci/run installs it")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_axe_finds_nothing_wrong_with_the_page(browser: Any, width: int, theme: str):
    from tests.serve.page.test_page_places import Offers

    options: dict[str, Any] = {"page": lambda host: PageDoor(host, Offers()), "usage": Usage(2100, 240)}
    with open_page(browser, scene(), width=width, agent={"tools": [edit_file, bash]}, **options) as page:
        page.tab.emulate_media(color_scheme=theme)
        check_access(page)
        page.say("Let add take a third number")
        page.see("Change 2 of 2", "#approvals")
        check_access(page)
        take_picture(page, f"page-approval-{width}-{theme}")
        page.press("Alt+a", "y")
        page.see("Done: all three", ".reply")
        page.wait_idle()
        page.ask("document.querySelectorAll('details.entry').forEach((each) => { each.open = true })")
        page.see("print(add(1, 2, 3))", ".tool .diff")
        check_access(page)
        take_picture(page, f"page-talk-{width}-{theme}")
        page.ask("document.querySelector('#scroll').scrollTop = 0")
        page.wait("#down")
        check_access(page)
        take_picture(page, f"page-top-{width}-{theme}")
        if width == 390:
            page.click("#menu")
            page.wait("#sidebar")
            check_access(page)
            take_picture(page, f"page-list-{width}-{theme}")
            page.press("Escape")
        page.click("#more > summary")
        check_access(page)
        page.click("#keys")
        check_access(page)
        assert page.ask("document.documentElement.scrollWidth") <= width
