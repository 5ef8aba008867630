"""Talking on the page, by keyboard and by mouse: prompts, steering, follow-ups, stopping, approvals, pictures."""

from typing import Any

import pytest
from tests.counts import in_cells
from tests.export_pages import PICTURE
from tests.serve.page.pages import open_page

from swink import tool
from swink.errors import AuthError
from swink.messages import Image, ToolCall, UserMessage
from swink.serve.hosting import current_run
from swink.testing import Pause

EDITS = [{"old": "one", "new": "1"}, {"old": "two", "new": "2"}, {"old": "three", "new": "3"}]
EDIT = ToolCall("1", "edit_file", {"path": "numbers.txt", "edits": EDITS})
DROP = """([selector, kind, name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "dot.png", { type: "image/png" }));
  const given = kind === "ClipboardEvent" ? { clipboardData: transfer } : { dataTransfer: transfer };
  const event = new globalThis[kind](name, { ...given, bubbles: true, cancelable: true });
  document.querySelector(selector).dispatchEvent(event);
}"""


class Calls:
    """A file tool that only notes what it was called with."""

    def __init__(self) -> None:
        self.edits: list[Any] = []

    @property
    def tool(self) -> Any:
        """The tool, which waits for approval."""

        @tool(requires_approval=True)
        async def edit_file(path: str, edits: list[dict[str, str]]) -> str:
            """Edit a file."""
            self.edits.append(edits)
            return f"changed {path}"

        return edit_file


def slow_then(*replies: Any) -> list[Any]:
    return [["par", Pause(30), "is"], *replies]


def test_a_prompt_is_sent_with_the_mouse(browser: Any):
    with open_page(browser, ["Paris."]) as page:
        page.tab.fill("#prompt", "Capital of France?")
        page.click("#send")
        page.see("Paris.", ".reply")
        assert page.texts(".prompt p") == ["Capital of France?"]
        assert page.texts("#title") == ["Capital of France?"]


def test_shift_enter_begins_a_line_and_an_empty_prompt_is_not_sent(browser: Any):
    with open_page(browser, ["Yes."]) as page:
        page.press("Enter")
        page.tab.fill("#prompt", "one")
        page.press("Shift+Enter", "x")
        assert page.tab.input_value("#prompt") == "one\nx"
        assert page.texts(".prompt") == []


@in_cells("by", ["keyboard", "mouse"], every=2)
def test_a_run_is_stopped_and_what_arrived_stays(browser: Any, by: str):
    with open_page(browser, slow_then()) as page:
        page.say("Go")
        page.see("par", ".reply")
        page.press("Escape") if by == "keyboard" else page.click("#stop")
        page.wait_idle()
        assert page.texts(".reply") == ["par"]


@in_cells("by", ["keyboard", "mouse"], every=2)
def test_a_run_is_steered_and_followed_up(browser: Any, by: str):
    seen: list[list[str]] = []

    def reply(context: Any) -> list[Any]:
        seen.append([message.text for message in context.messages if isinstance(message, UserMessage)])
        return ["more"]

    @tool
    async def wait() -> str:
        """Wait until something was said."""
        import asyncio

        await asyncio.sleep(1.5)
        return "waited"

    script = [["A", ToolCall("1", "wait", {})], reply, reply]
    with open_page(browser, script, agent={"tools": [wait]}) as page:
        page.say("Go")
        page.see("wait", ".tool.running")
        page.tab.fill("#prompt", "left")
        page.press("Enter") if by == "keyboard" else page.click("#send")
        page.see("Steered", ".note")
        page.tab.fill("#prompt", "later")
        page.press("Alt+Enter") if by == "keyboard" else page.click("#follow")
        page.see("Queued", ".note")
        page.wait_idle()
        assert page.texts(".prompt p") == ["Go", "left", "later"]
    assert seen == [["Go", "left"], ["Go", "left", "later"]]


@in_cells("by", ["keyboard", "mouse"], every=2)
def test_a_call_is_allowed(browser: Any, by: str):
    calls = Calls()
    with open_page(browser, [[EDIT], "Done."], agent={"tools": [calls.tool]}) as page:
        page.say("Go")
        page.see("edit_file", "#approvals")
        assert page.focus() == "prompt"
        if by == "keyboard":
            page.press("Alt+a", "y")
        else:
            page.click("#approvals .yes")
        page.see("Done.", ".reply")
        assert page.focus() == "prompt" or by == "mouse"
    assert calls.edits == [EDITS]


@in_cells("by", ["keyboard", "mouse"], every=2)
def test_a_call_is_refused_with_a_reason(browser: Any, by: str):
    calls, heard = Calls(), list[str]()

    def reply(context: Any) -> list[Any]:
        heard.append(str(context.messages[-1]))
        return ["Pity."]

    with open_page(browser, [[EDIT], reply], agent={"tools": [calls.tool]}) as page:
        page.say("Go")
        page.see("edit_file", "#approvals")
        page.tab.fill("#approvals input[type=text]", "not today")
        page.press("Enter") if by == "keyboard" else page.click("#approvals .no")
        page.see("Pity.", ".reply")
        assert page.texts(".tool.failed b") == ["edit_file"]
    assert calls.edits == []
    assert "not today" in heard[0]


@in_cells("by", ["keyboard", "mouse"], every=2)
def test_each_change_of_an_edit_has_its_own_choice(browser: Any, by: str):
    calls = Calls()
    with open_page(browser, [[EDIT], "Done."], agent={"tools": [calls.tool]}) as page:
        page.say("Go")
        page.see("Change 2 of 3", "#approvals")
        box = page.tab.locator("#approvals input[type=checkbox]").nth(1)
        if by == "keyboard":
            box.focus()
            page.press("Space")
            page.see("Allow 2 of 3", "#approvals")
            page.press("y")
        else:
            box.click()
            page.click("#approvals .yes")
        page.see("Done.", ".reply")
    assert calls.edits == [[EDITS[0], EDITS[2]]]


def test_two_calls_wait_one_after_the_other(browser: Any):
    calls = Calls()
    other = ToolCall("2", "edit_file", {"path": "b.txt", "edits": EDITS[:1]})
    with open_page(browser, [[EDIT, other], "Done."], agent={"tools": [calls.tool]}) as page:
        page.say("Go")
        page.see("numbers.txt", "#approvals")
        page.press("Alt+a", "y")
        page.see("b.txt", "#approvals")
        page.press("Alt+a", "n")
        page.see("Done.", ".reply")
    assert calls.edits == [EDITS]


@pytest.mark.parametrize(
    ("selector", "kind", "name"), [("#prompt", "ClipboardEvent", "paste"), ("#log", "DragEvent", "drop")]
)
def test_a_picture_is_sent_that_was_pasted_or_dropped(browser: Any, selector: str, kind: str, name: str):
    import base64

    sent: list[Any] = []

    def reply(context: Any) -> list[Any]:
        sent.extend(context.messages[-1].content)
        return ["A dot."]

    with open_page(browser, [reply]) as page:
        page.ask(DROP, [selector, kind, name, base64.b64encode(PICTURE).decode()])
        page.wait("#images img")
        page.say("What is it?")
        page.see("A dot.", ".reply")
        assert page.tab.locator(".prompt img").count() == 1
        assert page.tab.locator("#images img").count() == 0
    assert [type(block) for block in sent][1:] == [Image]
    assert base64.b64decode(sent[1].source.data) == PICTURE


def test_a_picture_is_taken_back_and_another_file_refused(browser: Any, tmp_path: Any):
    (tmp_path / "dot.png").write_bytes(PICTURE)
    (tmp_path / "page.html").write_text("<p>")
    with open_page(browser) as page:
        page.tab.set_input_files("#files", [tmp_path / name for name in ("dot.png", "page.html", "dot.png")])
        page.tab.locator("#images img").nth(1).wait_for()
        page.see("page.html is no picture", "#alarm")
        page.tab.locator("#images button").first.click()
        assert page.tab.locator("#images img").count() == 1
        page.click("#images button")
        page.wait("#images", "hidden")


def test_what_cannot_be_sent_is_not_lost(browser: Any):
    def refusing(app: Any) -> Any:
        async def answer(scope: Any, receive: Any, send: Any) -> None:
            if scope["method"] == "POST" and scope["path"].endswith("/runs"):
                await send({"type": "http.response.start", "status": 429, "headers": []})
                await send({"type": "http.response.body", "body": b'{"error": {"message": "too many"}}'})
            else:
                await app(scope, receive, send)

        return answer

    with open_page(browser, around=refusing) as page:
        page.say("Go")
        page.see("too many", ".note.failed")
        assert page.tab.input_value("#prompt") == "Go"
        page.complaints[:] = [text for text in page.complaints if "429" not in text]


def cutting(pieces: int) -> Any:
    """Events whose connection breaks after some pieces, once."""
    broken: list[bool] = []

    def around(app: Any) -> Any:
        async def answer(scope: Any, receive: Any, send: Any) -> None:
            if not scope["path"].endswith("/events") or broken:
                await app(scope, receive, send)
                return
            count = 0

            async def send_some(message: Any) -> None:
                nonlocal count
                count += message["type"] == "http.response.body"
                if count > pieces:
                    broken.append(True)
                    raise ConnectionResetError
                await send(message)

            await app(scope, receive, send_some)

        return answer

    return around


@in_cells("pieces", [2, 1, 4], every=3)
def test_a_broken_connection_is_told_and_taken_up_again(browser: Any, pieces: int):
    words = [part for word in ("one", "two", "three", "four") for part in (f"{word} ", Pause(0.3))]
    with open_page(browser, [words], around=cutting(pieces)) as page:
        page.say("Count")
        page.see("The connection is lost", "#connection")
        page.wait_idle()
        assert page.texts(".reply") == ["one two three four"]
        assert page.texts(".prompt p") == ["Count"]
        assert page.texts("#connection") == [""]
        page.complaints[:] = [text for text in page.complaints if "ERR_" not in text]


def test_a_page_that_is_loaded_again_goes_on_with_its_run(browser: Any):
    words = [part for word in ("one", "two", "three") for part in (f"{word} ", Pause(0.5))]
    with open_page(browser, [words]) as page:
        page.say("Count")
        page.see("one", ".reply")
        page.tab.reload()
        page.see("one two three", ".reply")
        page.wait_idle()
        assert page.texts(".prompt p") == ["Count"]
        assert page.texts(".reply") == ["one two three"]


def test_those_who_listen_hear_what_happens(browser: Any):
    calls = Calls()
    with open_page(browser, [[EDIT], "Done."], agent={"tools": [calls.tool]}) as page:
        page.say("Go")
        page.see("edit_file waits for", "#alarm")
        page.press("Alt+a", "y")
        page.wait_idle()
        assert "Done" in page.ask("document.getElementById('announcer').textContent")


def test_a_run_that_fails_says_why(browser: Any):
    with open_page(browser, [AuthError("wrong key")]) as page:
        page.say("Go")
        page.see("wrong key", ".note.failed")
        page.wait_idle()


@pytest.mark.parametrize("by", ["keyboard", "mouse"])
def test_a_call_is_allowed_by_a_rule_that_was_changed_before(browser: Any, by: str):
    kept: list[str] = []

    async def approve(request: Any) -> Any:
        run = current_run()
        assert run is not None
        run.offer_rules(request.call_id, ["edit_file(numbers.txt)"], kept.extend)
        return await run.ask_client(request.call_id)

    calls = Calls()
    agent = {"tools": [calls.tool], "approve": approve}
    with open_page(browser, [EDIT, "Done."], agent=agent) as page:
        page.say("Edit it")
        page.tab.fill("#approvals input[aria-label=Rule]", "edit_file(*.txt)")
        first = page.tab.locator("#approvals input[type=checkbox]").first
        first.uncheck()
        assert page.tab.locator("#approvals .always").is_disabled()
        first.check()
        if by == "keyboard":
            page.press("Alt+A", "a")
        else:
            page.click("#approvals .always")
        page.see("Done.", ".reply")
    assert kept == ["edit_file(*.txt)"]
    assert calls.edits == [EDITS]
