"""Around the conversation, by keyboard and by mouse: the list, search, rewind, fork, export, model, mode, theme."""

from typing import Any

import pytest
from tests.counts import in_cells
from tests.serve.page.pages import Page, open_page

from swink.serve.hosting import Caller
from swink.serve.page import ModelOffer, ModeOffer, PageChoice, PageChoices, PageDoor

BOTH = in_cells("by", ["keyboard", "mouse"], every=2)


def reply(context: Any) -> list[Any]:
    """The last prompt again, in capitals."""
    return [context.messages[-1].text.upper()]


def talk(page: Page, *prompts: str) -> None:
    for prompt in prompts:
        page.say(prompt)
        page.see(prompt.upper(), ".reply")
        page.wait_idle()


@BOTH
def test_another_conversation_is_begun_and_the_first_one_found_again(browser: Any, by: str):
    with open_page(browser, [reply, reply]) as page:
        talk(page, "apples")
        page.press("Alt+n") if by == "keyboard" else page.click("#new")
        page.wait("#hello")
        talk(page, "pears")
        assert page.texts("#conversations span") == ["pears", "apples"]
        if by == "keyboard":
            page.press("Alt+s", *"APPL")
            page.tab.locator("#conversations li").nth(1).wait_for(state="detached")
            page.press("ArrowDown", "Enter")
        else:
            page.tab.fill("#search", "appl")
            page.tab.locator("#conversations li").nth(1).wait_for(state="detached")
            page.click("#conversations button")
        page.see("APPLES", ".reply")
        assert page.texts(".prompt p") == ["apples"]
        assert page.texts("#title") == ["apples"]
        assert page.focus() == "prompt"


def test_a_search_that_finds_nothing_says_so(browser: Any):
    with open_page(browser, [reply]) as page:
        talk(page, "apples")
        page.tab.fill("#search", "zebra")
        page.see("Nothing found", "#none")


@BOTH
def test_a_conversation_is_rewound_and_the_prompt_changed(browser: Any, by: str):
    with open_page(browser, [reply] * 3) as page:
        talk(page, "one", "two")
        button = page.tab.get_by_role("button", name="Rewind").nth(1)
        if by == "keyboard":
            button.focus()
            page.press("Enter")
        else:
            button.click()
        page.tab.locator(".prompt").nth(1).wait_for(state="detached")
        page.see("ONE", ".reply")
        assert page.texts(".reply") == ["ONE"]
        assert page.tab.input_value("#prompt") == "two"
        assert page.focus() == "prompt"
        talk(page, "three")
        assert page.texts(".reply") == ["ONE", "THREE"]
        assert page.tab.locator("#conversations li").count() == 2


@BOTH
def test_a_conversation_is_forked_after_an_answer_and_as_a_whole(browser: Any, by: str):
    with open_page(browser, [reply] * 2) as page:
        talk(page, "one", "two")
        button = page.tab.locator(".prompt").nth(0).get_by_role("button", name="Fork")
        button.press("Enter") if by == "keyboard" else button.click()
        page.tab.locator("#conversations li").nth(1).wait_for()
        page.see("ONE", ".reply")
        assert page.texts(".reply") == ["ONE"]
        page.tab.locator("#more > summary").press("Enter") if by == "keyboard" else page.click(
            "#more > summary"
        )
        page.tab.locator("#fork").press("Enter") if by == "keyboard" else page.click("#fork")
        page.tab.locator("#conversations li").nth(2).wait_for()
        page.see("ONE", ".reply")
        assert page.texts(".reply") == ["ONE"]


@BOTH
@pytest.mark.parametrize("format", ["html", "md", "json"])
def test_a_conversation_is_exported(browser: Any, by: str, format: str, tmp_path: Any):
    with open_page(browser, [reply]) as page:
        talk(page, "one")
        page.click("#more > summary")
        with page.tab.expect_download() as download:
            link = page.tab.locator(f"#export-{format}")
            link.press("Enter") if by == "keyboard" else link.click()
        download.value.save_as(tmp_path / "document")
        assert download.value.suggested_filename == f"conversation.{format}"
    assert "ONE" in (tmp_path / "document").read_text("utf-8")


def test_a_conversation_is_deleted_after_a_question(browser: Any):
    with open_page(browser, [reply]) as page:
        talk(page, "one")
        for answer in ("dismiss", "accept"):
            page.tab.once("dialog", lambda dialog, answer=answer: getattr(dialog, answer)())
            page.click("#more > summary")
            page.click("#delete")
            if answer == "dismiss":
                assert page.texts(".reply") == ["ONE"]
        page.wait("#hello")
        page.see("No conversations yet", "#none")


class Offers:
    """Two models and two modes."""

    def __init__(self) -> None:
        self.taken: list[tuple[str | None, str | None]] = []
        self.now = PageChoices(
            "test:one",
            "smart",
            (ModelOffer("test:one", 8000), ModelOffer("test:two", 100_000)),
            (ModeOffer("plan", "only look"), ModeOffer("smart", "ask")),
        )

    async def choices(self, caller: Caller, conversation: str | None) -> PageChoices:
        return self.now

    async def choose(self, caller: Caller, conversation: str, chosen: PageChoice) -> PageChoices:
        from msgspec.structs import replace

        self.taken.append((chosen.model, chosen.mode))
        self.now = replace(self.now, model=chosen.model or self.now.model, mode=chosen.mode or self.now.mode)
        return self.now


@BOTH
def test_the_model_and_the_mode_are_chosen(browser: Any, by: str):
    offers = Offers()
    with open_page(browser, [reply], page=lambda host: PageDoor(host, offers)) as page:
        if by == "keyboard":
            page.tab.locator("#mode").focus()
            page.press("ArrowUp")
        else:
            page.tab.select_option("#mode", "plan")
        talk(page, "one")  # what was chosen before it began holds for the conversation
        page.tab.locator("#model").press("ArrowDown") if by == "keyboard" else page.tab.select_option(
            "#model", "test:two"
        )
        page.see("model: test:two", "#announcer")
        assert "100.0k" in page.texts("#figures")[0]
    assert offers.taken == [("test:one", "plan"), ("test:two", None)]


@BOTH
def test_the_theme_is_chosen_and_kept(browser: Any, by: str):
    colour = "getComputedStyle(document.body).backgroundColor"
    with open_page(browser) as page:
        page.tab.emulate_media(color_scheme="light")
        light = page.ask(colour)
        page.click("#more > summary")
        for _ in range(2):
            page.tab.locator("#theme").press("Enter") if by == "keyboard" else page.click("#theme")
        dark = page.ask(colour)
        page.tab.reload()
        page.wait("#hello")
        assert page.ask(colour) == dark != light
        page.ask("localStorage.clear()")
        page.tab.reload()
        page.tab.emulate_media(color_scheme="dark")
        assert page.ask(colour) == dark


@BOTH
def test_the_keys_are_listed(browser: Any, by: str):
    with open_page(browser) as page:
        if by == "keyboard":
            page.press("Alt+k")
        else:
            page.click("#more > summary")
            page.click("#keys")
        page.see("New conversation", "#help")
        page.press("Escape")
        page.wait("#help", "hidden")


def test_entries_are_gone_through_by_keys(browser: Any):
    with open_page(browser, [reply] * 2) as page:
        talk(page, "one", "two")
        page.press("Alt+u")
        assert page.ask("document.activeElement.textContent") == "TWO"
        page.press("Alt+u", "Alt+u")
        assert page.ask("document.activeElement.textContent") == "ONE"
        page.press("Alt+p")
        assert page.focus() == "prompt"


def test_the_list_lies_over_a_phone_and_goes_again(browser: Any):
    with open_page(browser, [reply], width=390) as page:
        talk(page, "one")
        page.wait("#sidebar", "hidden")
        page.click("#menu")
        page.wait("#sidebar")
        assert page.tab.get_attribute("#menu", "aria-expanded") == "true"
        page.press("Escape")
        page.wait("#sidebar", "hidden")
        page.click("#menu")
        page.click("#conversations button")
        page.wait("#sidebar", "hidden")


def test_the_end_is_followed_until_the_person_reads_above(browser: Any):
    long = "\n\n".join(f"line {number}" for number in range(200))
    below = """() => {
      const { scrollTop, scrollHeight, clientHeight } = document.querySelector('#scroll');
      return scrollHeight - clientHeight - scrollTop;
    }"""
    with open_page(browser, [[long], [long]]) as page:
        page.say("one")
        page.see("line 199", ".reply")
        page.wait_idle()
        page.tab.get_by_text("line 199").scroll_into_view_if_needed()
        assert page.ask(below) < 40
        page.tab.locator("#scroll").hover()
        page.tab.mouse.wheel(0, -3000)
        page.wait("#down")
        assert page.ask(below) > 1000
        page.click("#down")
        page.wait("#down", "hidden")
        assert page.ask(below) < 40
