"""The page in short: a prompt is answered, what is hostile stays text, and nothing is asked of elsewhere."""

from typing import Any

from tests.counts import left_to_more
from tests.export_pages import INJECTIONS
from tests.serve.page.pages import open_page

from swink import tool
from swink.messages import Thinking, ToolCall
from swink.serve.hosting import Caller, current_run
from swink.serve.page import ModelOffer, ModeOffer, PageChoice, PageChoices, PageDoor
from swink.tools import Tool


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


def test_a_prompt_is_answered_and_what_is_hostile_stays_text(browser: Any):
    hostile = "\n\n".join(INJECTIONS)
    script = [[Thinking(hostile), hostile, ToolCall("1", "echo", {"text": hostile})], "All is **done**."]
    with open_page(browser, script, agent={"tools": [echo]}) as page:
        page.say(hostile)
        page.see("All is done.")
        page.wait_idle()
        page.ask("document.querySelectorAll('details.entry').forEach(each => { each.open = true })")
        page.see("<script>ran=1</script>", ".tool .body")
        assert page.ask("window.ran") is None
        assert (
            page.ask(
                "document.querySelectorAll('#log :is(script, img, iframe, svg, style, form, meta)').length"
            )
            == 0
        )
        links = page.ask("Array.from(document.querySelectorAll('#log a'), link => link.protocol)")
        assert set(links) <= {"https:"}
        assert page.ask("document.querySelector('.reply strong').textContent") == "done"


class HostileNames:
    """Models and modes whose names are HTML."""

    async def choices(self, caller: Caller, conversation: str | None) -> PageChoices:
        models = tuple([ModelOffer(text) for text in INJECTIONS])
        return PageChoices(INJECTIONS[0], INJECTIONS[1], models, tuple([ModeOffer(x, x) for x in INJECTIONS]))

    async def choose(self, caller: Caller, conversation: str, chosen: PageChoice) -> PageChoices:
        return await self.choices(caller, conversation)


@left_to_more
def test_names_of_models_modes_arguments_and_rules_stay_text(browser: Any):
    kept: list[str] = []

    async def approve(request: Any) -> Any:
        run = current_run()
        assert run is not None
        for text in INJECTIONS:
            run.notify(text)
        run.offer_rules(request.call_id, INJECTIONS[:20], kept.extend)
        return await run.ask_client(request.call_id)

    async def work(call_id: str, arguments: Any, ctx: Any) -> str:
        return "worked"

    given = {text: {text: [text]} for text in INJECTIONS}
    mine = Tool.raw("work", "Works.", {"type": "object"}, work, requires_approval=True)
    agent = {"tools": [mine], "approve": approve}
    script = [ToolCall("1", "work", given), "All is done."]
    with open_page(browser, script, agent=agent, page=lambda host: PageDoor(host, HostileNames())) as page:
        page.say(INJECTIONS[0])
        page.see(INJECTIONS[0], "#approvals")
        found = (
            "document.body.querySelectorAll(':is(img, iframe, style, form[action], meta, script:not([src]))')"
        )
        assert page.ask(f"{found}.length") == 0
        assert page.ask("Array.from(document.querySelectorAll('#model option'), each => each.value)") == [
            *INJECTIONS
        ]
        page.tab.locator("#approvals .always").click()
        page.see("All is done.", ".reply")
        page.wait_idle()
        assert page.ask(f"{found}.length") == 0
        assert page.ask("window.ran") is None
    assert len(kept) == 20
