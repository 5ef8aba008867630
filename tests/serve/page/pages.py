"""A served page in Chromium: the agent in a thread, the page, and everything that the page does besides."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from swink import Agent
from swink.memory import MemoryStore
from swink.messages import Usage
from swink.serve.agentapp import AgentApp, agent_app
from swink.serve.asgi import App, serve_app
from swink.testing import ScriptedModel


@contextmanager
def served_page(
    script: list[Any] | None = None,
    *,
    around: Callable[[AgentApp], App] = lambda app: app,
    agent: dict[str, Any] | None = None,
    usage: Usage = Usage(1, 1),
    **options: Any,
) -> Iterator[str]:
    """The address of a page whose agent has a script, which goes on from run to run."""
    model = ScriptedModel(script or [], usage=usage)
    options.setdefault("store", MemoryStore())
    options.setdefault("page", True)
    app = agent_app(lambda request: Agent("test:m", stream_fn=model, **(agent or {})), **options)
    ready: list[str] = []
    began, ends, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with serve_app(around(app)) as url:
            ready.append(url)
            began.set()
            await ends.wait()
            await app.aclose()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    began.wait(10)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join(20)
        loop.close()


class Page:
    """A page that is open; what it complains about is kept."""

    def __init__(self, browser: Any, url: str, *, width: int = 1280, height: int = 800) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.tab = tab = browser.new_page()
        tab.set_default_timeout(15_000)
        tab.set_viewport_size({"width": width, "height": height})
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.on("console", lambda message: self.complaints.append(message.text))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.goto(url)
        tab.wait_for_selector("body[data-ready]")

    def close(self) -> None:
        self.tab.close()

    def ask(self, script: str, value: Any = None) -> Any:
        return self.tab.evaluate(script, value)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tab.keyboard.press(key)

    def click(self, selector: str) -> None:
        self.tab.click(selector)

    def say(self, text: str) -> None:
        """Type a prompt and send it."""
        self.tab.fill("#prompt", text)
        self.press("Enter")

    def see(self, text: str, selector: str = "#log") -> None:
        """Wait until a text is there to be seen."""
        self.tab.locator(selector, has_text=text).first.wait_for(state="attached")

    def wait(self, selector: str, state: str = "visible") -> None:
        self.tab.locator(selector).first.wait_for(state=state)

    def wait_idle(self) -> None:
        self.wait("#composer[data-state=idle]")

    def texts(self, selector: str) -> list[str]:
        return self.tab.locator(selector).all_inner_texts()

    def focus(self) -> str:
        """What has the focus: its id, else its class."""
        return self.ask("document.activeElement.id || document.activeElement.className")


@contextmanager
def open_page(
    browser: Any, script: list[Any] | None = None, *, width: int = 1280, height: int = 800, **served: Any
) -> Iterator[Page]:
    """A page on an agent of its own; at the end it must have said nothing on the console."""
    with served_page(script, **served) as url:
        page = Page(browser, url, width=width, height=height)
        try:
            yield page
        finally:
            page.close()
        assert page.complaints == []
        assert all(request.startswith((url, "data:")) for request in page.requests)
