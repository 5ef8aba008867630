"""The page after its server was restarted or killed: what waits is answered, what was interrupted goes on."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.serve.killed import Heard, host, killed, until_told
from tests.serve.page.pages import Page, served_page

from swink import tool
from swink.events import MessageUpdate
from swink.memory import MemoryStore
from swink.messages import ToolCall
from swink.serve.hosting import LOCAL, FolderClaims, ServeLimits
from swink.testing import Pause

pytestmark = pytest.mark.more


@tool(requires_approval=True)
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


async def left_by_a_kill() -> tuple[str, MemoryStore]:
    store = MemoryStore()
    first = host(store, Heard([["half", Pause(60)]]))
    conversation = await first.create(LOCAL)
    run = await conversation.start("Tell me everything")
    await until_told(run, lambda event: isinstance(event, MessageUpdate))
    left = killed(store)
    await first.aclose()
    return conversation.id, left


def test_a_run_that_was_interrupted_is_told_and_goes_on_with_one_button(browser: Any, tmp_path: Path):
    with ThreadPoolExecutor(1) as apart:  # playwright has an event loop in this thread
        id, store = apart.submit(asyncio.run, left_by_a_kill()).result()
    with served_page(["The whole answer."], store=store, claims=FolderClaims(tmp_path)) as url:
        page = Page(browser, f"{url}#{id}")
        page.see("The program ended before this was done.", ".interrupted")
        assert page.texts(".prompt p") == ["Tell me everything"]
        page.click(".interrupted button")
        page.see("The whole answer.", ".reply")
        page.wait_idle()
        assert page.texts(".interrupted") == []
        assert page.texts(".prompt p") == ["Tell me everything"]
        page.close()
        assert page.complaints == []


def test_a_call_that_waits_is_answered_on_a_page_of_the_next_process(browser: Any):
    store, limits = MemoryStore(), ServeLimits(approval_seconds=0.01)
    call = ToolCall("1", "delete", {"path": "a.txt"})
    agent: dict[str, Any] = {"tools": [delete]}
    with served_page([call], store=store, agent=agent, limits=limits) as url:
        page = Page(browser, url)
        page.say("Delete it")
        page.see("waits", "#log")
        page.wait_idle()
        id = page.ask("location.hash.slice(1)")
        page.close()
    with served_page(["It is gone."], store=store, agent=agent) as url:
        page = Page(browser, f"{url}#{id}")
        page.wait("#approvals .yes")
        page.press("Alt+A", "y")
        page.see("It is gone.", ".reply")
        page.wait(".tool.done")
        page.close()
        assert page.complaints == []
