"""The app with a scripted agent: what is typed reaches the agent, what it does reaches the screen."""

from textual import events
from textual.pilot import Pilot

from swink import Agent, tool
from swink.app.assistant.permissions import Permissions
from swink.app.tui import ConversationDriver, SwinkApp
from swink.app.tui.approval import ApprovalPanel
from swink.app.tui.look import LOOKS
from swink.messages import ToolCall
from swink.testing import ScriptedModel


async def until(pilot: Pilot[int], condition) -> None:
    """Wait until something holds."""
    for _ in range(3_000):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError("it did not come true")


@tool(requires_approval=True)
def write(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


async def test_a_prompt_is_answered_a_call_asked_about_and_the_app_left():
    model = ScriptedModel(["Hello there.", ToolCall("1", "write", {"path": "a.txt"}), "Done."])
    permissions = Permissions()
    agent = Agent("scripted:model", stream_fn=model, tools=[write], approve=permissions)
    app = SwinkApp(ConversationDriver(agent), permissions)
    async with app.run_test() as pilot:
        await pilot.press("h", "i", "enter")
        await until(pilot, lambda: "Hello there." in screen_text(app))
        await pilot.press(*"go", "enter")
        panel = app.query_one(ApprovalPanel)
        await until(pilot, lambda: "a.txt" in screen_text(app) and panel.has_focus and panel.guard.counts)
        await pilot.press("y")
        await until(pilot, lambda: "Done." in screen_text(app) and "idle" in screen_text(app))
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
    assert app.return_code == 0


async def test_what_was_typed_before_the_first_frame_is_in_the_editor():
    class Hasty(SwinkApp):
        def on_load(self) -> None:
            self.post_message(events.Key("h", "h"))
            self.post_message(events.Key("i", "i"))

    app = Hasty(ConversationDriver(Agent("scripted:model", stream_fn=ScriptedModel([]))), Permissions())
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.editor.text == "hi")


async def test_escape_takes_back_what_is_queued_when_nothing_runs_any_more():
    agent = Agent("scripted:model", stream_fn=ScriptedModel([]))
    agent.follow_up("later")
    app = SwinkApp(ConversationDriver(agent), Permissions())
    async with app.run_test() as pilot:
        await pilot.press("escape")
        await until(pilot, lambda: app.editor.text == "later")
    assert not agent.follow_ups


def screen_text(app: SwinkApp) -> str:
    """What is on the screen, as text."""
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


async def test_every_look_can_be_shown():
    app = SwinkApp(ConversationDriver(Agent("scripted:model", stream_fn=ScriptedModel([]))), Permissions())
    async with app.run_test() as pilot:
        for name in LOOKS:
            app.use_look(name)
            await pilot.pause()
            assert "idle" in screen_text(app)
