"""The screen of the whole conversation: nothing is folded, and everything can be found."""

from textual.app import App
from textual.widgets import Input, Static

from swink import Agent
from swink.app.assistant.permissions import Permissions
from swink.app.tui import ConversationDriver, SwinkApp
from swink.app.tui.look import LOOKS
from swink.app.tui.screens.whole import Whole
from swink.app.tui.view import TranscriptView
from swink.events import MessageEnd
from swink.events.transcript import Transcript
from swink.messages import AssistantMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage
from swink.testing import ScriptedModel


def a_conversation() -> Transcript:
    transcript = Transcript()
    for number in range(30):
        id = f"call{number}"
        call = ToolCall(id, "bash", {"command": f"show {number}"})
        for message in (
            UserMessage(f"question {number}"),
            AssistantMessage((Thinking("I wonder.\nAnd wonder."), call), "m", "tool_use"),
            ToolResultMessage(id, "bash", (Text(f"start\nNeedle {number}\nend"),)),
            AssistantMessage((Text(f"answer {number}"),), "m", "stop"),
        ):
            transcript.take(MessageEnd(message))
    return transcript


async def test_in_the_app_its_keys_are_its_own():
    app = SwinkApp(
        ConversationDriver(Agent("scripted:model", stream_fn=ScriptedModel(["hi"]))), Permissions()
    )
    app.driver.transcript = a_conversation()
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("ctrl+o")
        whole = app.screen
        assert isinstance(whole, Whole)
        await pilot.pause()
        view = whole.query_one(TranscriptView)
        await pilot.press("pageup")
        assert not view.is_following
        assert app.view.is_following
        await pilot.press("f5", "ctrl+o")
        await pilot.pause()
        assert len(app.screen_stack) == 1


async def test_everything_is_open_found_and_left():
    transcript = a_conversation()
    app = App[None]()
    async with app.run_test(size=(60, 20)) as pilot:
        whole = Whole(transcript, LOOKS["dark"])
        await app.push_screen(whole)
        await pilot.pause()
        view, line = whole.query_one(TranscriptView), whole.query_one(Static)

        def shown() -> str:
            return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height))

        async def search(key: str, text: str) -> None:
            await pilot.press(key)
            whole.query_one(Input).value = text
            await pilot.press("enter")

        assert "  │ Needle 29\n  │ end" in shown()
        assert "┊ And wonder." in shown()
        await search("slash", "needle")
        assert str(line.render()).startswith("30 of 30")
        assert "Needle 29" in shown()
        await pilot.press("n", "n", "n")
        assert str(line.render()).startswith("27 of 30")
        assert "Needle 26" in shown()
        marked = [
            view.render_line(y) for y in range(view.size.height) if "Needle 26" in view.render_line(y).text
        ]
        assert any(
            segment.text == "Needle"
            and segment.style
            and segment.style.bgcolor == LOOKS["dark"].found.bgcolor
            for segment in marked[0]
        )
        await pilot.press("N")
        assert "Needle 27" in shown()
        await search("ctrl+f", "nowhere")
        assert str(line.render()).startswith("nothing found")
        await pilot.press("slash", "escape")
        assert not whole.query_one(Input).display
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is not whole
