"""The page in short: a prompt is answered, what is hostile stays text, and nothing is asked of elsewhere."""

from typing import Any

from tests.export_pages import INJECTIONS
from tests.serve.page.pages import open_page

from swink import tool
from swink.messages import Thinking, ToolCall


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
