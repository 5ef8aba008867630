"""The app with a scripted agent: what is typed reaches the agent, what it does reaches the screen."""

from textual.pilot import Pilot

from swink import Agent, tool
from swink.messages import ToolCall
from swink.testing import ScriptedModel
from swink.tui import Conductor, Questions, SwinkApp
from swink.tui.look import LOOKS


async def until(pilot: Pilot[int], condition) -> None:
    """Wait until something holds."""
    for _ in range(400):
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
    questions = Questions()
    agent = Agent("scripted:model", stream_fn=model, tools=[write], approve=questions)
    app = SwinkApp(Conductor(agent), questions)
    async with app.run_test() as pilot:
        await pilot.press(*"hi", "enter")
        await until(pilot, lambda: "Hello there." in screen_text(app))
        await pilot.press(*"go", "enter")
        await until(pilot, lambda: "a.txt" in screen_text(app) and bool(questions.waiting))
        await pilot.press("y")
        await until(pilot, lambda: "Done." in screen_text(app))
        assert "idle" in screen_text(app)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
    assert app.return_code == 0


def screen_text(app: SwinkApp) -> str:
    """What is on the screen, as text."""
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


async def test_every_look_can_be_shown():
    app = SwinkApp(Conductor(Agent("scripted:model", stream_fn=ScriptedModel([]))), Questions())
    async with app.run_test() as pilot:
        for name in LOOKS:
            app.use_look(name)
            await pilot.pause()
            assert "idle" in screen_text(app)
