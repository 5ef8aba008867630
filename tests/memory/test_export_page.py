"""The exported page in a real browser: it asks for nothing, runs nothing of what was said, and fits a phone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.export_pages import CHROMIUM, INJECTIONS, PICTURE, TOO_WIDE, open_browser

from swink.memory import export
from swink.messages import (
    AssistantMessage,
    Cost,
    CustomMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.messages.records import PromptChange, Record, saved

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here to look at the page with")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


class Page:
    """A page that is open, and everything that it did besides."""

    def __init__(self, browser: Any, path: Path, html: str) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        path.write_text(html, "utf-8")
        self.page = browser.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self.url = path.as_uri()
        self.page.goto(self.url)

    def ask(self, script: str) -> Any:
        return self.page.evaluate(script)

    def unfold(self) -> None:
        """Open everything, and lay it all out, also what is not in sight."""
        self.ask("document.querySelectorAll('details').forEach(item => { item.open = true })")
        self.ask(
            "document.querySelectorAll('.turn').forEach(turn => { turn.style.contentVisibility = 'visible' })"
        )

    def colour(self) -> str:
        return self.ask("getComputedStyle(document.body).backgroundColor")


def conversation() -> list[Record]:
    before, after = "def add(a, b):\n    return a + b\n", "def add(a, b, c=0):\n    return a + b + c\n"
    details = {
        "path": "sum.py",
        "is_new_file": False,
        "old_content": before,
        "new_content": after,
        "hash": "h",
    }
    spent = (Usage(100, 20), Cost(0.001, 0.002))
    messages = [
        UserMessage(("Add a third number.", Image.from_bytes(PICTURE))),
        AssistantMessage(
            (
                Thinking("Let me see."),
                Text("Of course."),
                ToolCall("1", "edit_file", {"path": "sum.py"}),
                ToolCall("2", "bash", {"command": "pytest -q"}),
            ),
            "test",
            "m",
            "tool_use",
            *spent,
        ),
        ToolResultMessage("1", "edit_file", "edited sum.py", details=details),
        ToolResultMessage("2", "bash", TOO_WIDE, True),
        AssistantMessage(
            f"# Done\n\n```python\nx = '{TOO_WIDE}'\n```\n\n|a|b|\n|-|-|\n|{TOO_WIDE}|2|\n\n{TOO_WIDE}",
            "test",
            "m",
            "stop",
            *spent,
        ),
        *[UserMessage(f"And {number}? {TOO_WIDE}") for number in range(4)],
        CustomMessage("note", {"text": TOO_WIDE}),
    ]
    return [
        PromptChange(f"Be brief. {TOO_WIDE}"),
        *[saved(message, number) for number, message in enumerate(messages)],
    ]


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """One page for everything that leaves it as it was."""
    return Page(browser, tmp_path_factory.mktemp("page") / "a.html", export(conversation(), "html"))


def test_the_page_asks_for_nothing_and_complains_of_nothing(page: Page):
    page.unfold()
    assert [url for url in page.requests if not url.startswith("data:")] == [page.url]
    assert page.complaints == []
    assert page.ask("[...document.images].map(image => image.naturalWidth)") == [1]


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_the_page_never_scrolls_sideways_and_code_scrolls_inside(page: Page, width: int):
    page.page.set_viewport_size({"width": width, "height": 700})
    page.unfold()
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.ask(
        "[...document.querySelectorAll('.reply pre')].some(box => box.scrollWidth > box.clientWidth)"
    )


def test_a_diff_is_side_by_side_where_there_is_room_and_in_one_column_where_not(page: Page):
    page.unfold()
    for width, is_beside in ((1400, True), (700, False)):
        page.page.set_viewport_size({"width": width, "height": 900})
        old, new = [
            page.ask(
                f"(box => [box.left, box.top])(document.querySelector('.diff .{side}').getBoundingClientRect())"
            )
            for side in ("old", "new")
        ]
        assert (old[1] == new[1], old[0] < new[0]) == (is_beside, is_beside)
    assert page.ask("document.querySelector('.new mark').textContent") == ", c=0"


def test_there_is_a_table_of_prompts_whose_links_lead_there(page: Page):
    assert page.ask(
        "[...document.querySelectorAll('nav a')].every(link => document.querySelector(link.hash))"
    )
    assert page.ask("document.querySelectorAll('nav a').length") == 5


def test_calls_and_thinking_are_folded_and_the_keyboard_opens_them(page: Page):
    page.page.reload()
    folded = "document.querySelectorAll('main details[open]').length"
    assert page.ask(folded) == 0
    assert page.ask("document.querySelectorAll('main details').length") == 4
    page.page.focus(".tool summary")
    page.page.keyboard.press("Enter")
    assert page.ask(folded) == 1
    page.page.click("#fold")
    assert page.ask(folded) == 4
    page.page.click("#fold")
    assert page.ask(folded) == 0


def test_it_is_dark_or_light_as_the_system_is_and_the_switch_overrules_it(page: Page):
    colours = dict[str, str]()
    for scheme in ("dark", "light"):
        page.page.emulate_media(color_scheme=scheme)
        colours[scheme] = page.colour()
    assert colours["dark"] != colours["light"]
    for word, colour in (("light", colours["light"]), ("dark", colours["dark"])):
        page.page.click("#theme")
        assert (page.page.inner_text("#theme"), page.colour()) == (f"Theme: {word}", colour)
    page.page.reload()
    assert page.colour() == colours["dark"], "the choice is kept"
    page.page.click("#theme")
    assert (page.page.inner_text("#theme"), page.colour()) == ("Theme: auto", colours["light"])


def test_nothing_that_was_said_runs_or_becomes_a_tag(browser: Any, tmp_path: Path):
    page = Page(browser, tmp_path / "a.html", export(hostile(), "html"))
    page.page.click("#fold")
    page.ask(
        "document.querySelectorAll('main a').forEach(link => link.href.startsWith('javascript') && link.click())"
    )
    assert page.ask("typeof ran") == "undefined"
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("data:")] == [page.url]
    assert (
        page.ask(
            "document.querySelectorAll('main script, main style, main iframe, main svg, main form, main object').length"
        )
        == 0
    )
    assert page.ask("document.querySelectorAll('[onerror], [onload], [onclick]').length") == 0
    assert page.ask(
        "[...document.links].every(link => ['http:', 'https:', 'mailto:', 'file:'].includes(link.protocol))"
    )
    assert page.ask("document.body.innerText").count("ran=1") >= len(INJECTIONS)


def hostile() -> list[Record]:
    """Each injection in every place of a conversation."""
    messages: list[Any] = []
    for number, text in enumerate(INJECTIONS):
        details = {
            "path": text,
            "is_new_file": False,
            "old_content": text,
            "new_content": f"{text}\n{text}",
            "hash": text,
        }
        messages += [
            UserMessage(
                (
                    text,
                    Image.from_url("https://example.org/" + text),
                    Image.from_bytes(b"x", f"image/png{text}"),
                )
            ),
            AssistantMessage(
                (
                    Thinking(text),
                    Text(text),
                    Text(f"```{text}\n{text}\n```\n|{text}|\n|-|\n|{text}|\n\n- {text}\n\n[{text}]({text})"),
                    ToolCall(text, text, {text: text, "command": text}),
                ),
                text,
                text,
                "error",
                error_message=text,
            ),
            ToolResultMessage(text, text, text, details=details if number % 2 else text),
            CustomMessage(text, {text: text}),
        ]
    return [
        PromptChange("\n".join(INJECTIONS)),
        *[saved(message, number) for number, message in enumerate(messages)],
    ]
