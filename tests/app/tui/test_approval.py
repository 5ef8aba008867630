"""The panel that asks about tool calls: keys that count, keys that do not, and where they go."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from textual.events import Key
from textual.pilot import Pilot

from swink import Agent
from swink.agent.policy import Answer, ApprovalRequest, Approved, PolicyContext, Rejected
from swink.app.assistant.forms import Form, Item
from swink.app.assistant.outsideapproval import OutsideApproval
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.rulebook import RuleBook
from swink.app.tui import ConversationDriver, SwinkApp
from swink.app.tui.approval import ApprovalPanel, FormPanel
from swink.app.tui.approval.answerfield import AnswerField
from swink.app.tui.approval.callview import CallView
from swink.messages.redact.shown import show_arguments
from swink.testing import ScriptedModel
from swink.tools.coding.outside import RefusedRun
from swink.tools.coding.workspace import Workspace

OLD = "".join(f"line {number}\n" for number in range(1, 31))


class _Context:
    tools = ()
    run = None


class Scene:
    """An app whose clock stands still until it is moved, and calls that are put to its permissions."""

    def __init__(self, tmp_path: Path) -> None:
        self.work = tmp_path / "work"
        self.work.mkdir()
        (self.work / "a.txt").write_text(OLD)
        self.now = 1_000.0
        rules = RuleBook(self.work, path=tmp_path / "permissions")
        self.permissions = Permissions(workspace=Workspace(self.work), rules=rules)
        agent = Agent("scripted:model", stream_fn=ScriptedModel([]), approve=self.permissions)
        self.app = SwinkApp(ConversationDriver(agent, clock=lambda: self.now), self.permissions)
        self.pilot: Pilot[int]

    @property
    def panel(self) -> ApprovalPanel:
        return self.app.query_one(ApprovalPanel)

    def call(self, name: str, **arguments: Any) -> "asyncio.Future[Answer]":
        context = cast(PolicyContext, _Context())
        request = ApprovalRequest(f"{arguments}", name, arguments, show_arguments(arguments), True, context)
        return asyncio.ensure_future(cast(Any, self.permissions(request)))

    async def asked(self, count: int = 1) -> None:
        """Wait until the panel asks and a key counts."""
        guard = self.panel.guard
        await self.until(
            lambda: len(self.permissions.waiting) == count and self.panel.has_focus and guard.is_shown
        )
        self.now += 0.31

    async def until(self, holds: Callable[[], Any]) -> None:
        for _ in range(3_000):
            if holds():
                return
            await self.pilot.pause(0.02)
        assert holds()

    def text(self) -> str:
        return "\n".join(
            "".join(piece.text for piece in strip) for strip in self.app.screen._compositor.render_strips()
        )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_keys_count_only_for_who_could_see_the_question_and_five_are_answered_one_by_one(scene: Scene):
    async with scene.app.run_test(size=(80, 24)) as scene.pilot:
        press = scene.pilot.press
        first = scene.call("bash", command="git push 0")
        await scene.until(lambda: scene.panel.has_focus)
        assert "bash" in scene.text()
        assert "git push 0" in scene.text()
        # Typed in the first moment: it was meant for the editor, and goes there with all that follows.
        await press("y", "e", "s")
        assert scene.app.editor.text == "yes"
        assert not first.done()
        # Nothing takes the focus from who is writing.
        scene.now += 60
        calls = [first, *[scene.call("bash", command=f"git push {number}") for number in range(1, 5)]]
        await scene.until(lambda: "1 of 5" in scene.text())
        assert scene.app.editor.has_focus
        assert "Alt+A" in scene.text()
        await press("y")
        assert scene.app.editor.text == "yesy"
        await press("alt+a")
        assert scene.panel.has_focus
        await press("n")  # within 300 ms of the focus
        assert not first.done()
        assert scene.app.editor.has_focus
        await press("alt+a")
        scene.now += 0.31
        await press("escape")  # is no answer
        assert scene.app.editor.has_focus
        assert not first.done()
        await press("alt+a")
        for number, key in enumerate("ynyny"):
            await scene.until(lambda: scene.panel.guard.is_shown)
            scene.now += 0.29
            assert scene.permissions.waiting[0].request.arguments["command"] == f"git push {number}"
            scene.now += 0.02
            await press(key)
            await scene.until(lambda number=number: calls[number].done())
            assert sum(call.done() for call in calls) == number + 1
        assert [await call for call in calls] == [True, Rejected("the user said no")] * 2 + [True]
        await scene.until(lambda: not scene.panel.display and scene.app.editor.has_focus)
        assert scene.app.editor.text.startswith("yesy")


async def test_always_rules_reasons_and_edits_are_written_in_the_panel(scene: Scene):
    async with scene.app.run_test(size=(100, 30)) as scene.pilot:
        press = scene.pilot.press
        # a: this very command
        call = scene.call("bash", command="git commit -m x")
        await scene.asked()
        assert "this command, with the very same arguments" in scene.text()
        await press("a")
        assert await call is True
        assert await scene.call("bash", command="git commit -m x") is True
        # p: an editable rule; what is no rule stays open and says so
        call = scene.call("bash", command="pytest -q tests")
        await scene.asked()
        await press("p")
        field = scene.app.query_one(AnswerField)
        await scene.until(lambda: field.has_focus)
        assert field.text == "bash(pytest -q tests)"
        field.text = "bash(sudo *)"
        await press("enter")
        await scene.until(lambda: "would allow anything" in scene.text())
        assert not call.done()
        field.text = "bash(pytest -q *)"
        await press("tab", "tab", "enter")
        assert await call is True
        assert [str(rule) for rule in scene.permissions.rules.rules] == ["bash(pytest -q *)"]
        # r: a reason
        call = scene.call("bash", command="git push")
        await scene.asked()
        await press("r", *"later", "enter")
        assert await call == Rejected("the user said no: later")
        # e: the command line; Esc goes back
        call = scene.call("bash", command="rm x", timeout=5)
        await scene.asked()
        assert "may destroy" in scene.text()
        await press("e", "escape")
        assert scene.panel.has_focus
        await press("e", "backspace", "y", "enter")
        answer = await call
        assert isinstance(answer, Approved)
        assert answer.arguments == {"command": "rm y", "timeout": 5}
        # Enter is no for what may destroy something, yes for the rest
        call = scene.call("bash", command="rm x")
        await scene.asked()
        await press("enter")
        assert await call == Rejected("the user said no")
        call = scene.call("weather", city="Oslo")
        await scene.asked()
        await press("down", "up", "enter")
        assert await call is True


async def test_a_change_is_reviewed_hunk_by_hunk(scene: Scene):
    new = OLD.replace("line 3\n", "line three\n").replace("line 20\n", "line twenty\n")
    async with scene.app.run_test(size=(100, 40)) as scene.pilot:
        press = scene.pilot.press
        call = scene.call("write_file", path="a.txt", content=new)
        await scene.asked()
        assert "a.txt  +2 −2" in scene.text()
        assert "line three" in scene.text()
        await press("d")
        await scene.until(lambda: "part 1 of 2" in scene.text())
        assert "line twenty" not in scene.text()
        await press("enter")
        await scene.until(lambda: "no answer yet" in scene.text())
        await press("n")
        await scene.until(lambda: "part 2 of 2" in scene.text())
        await press("y", "enter")
        answer = await call
        assert isinstance(answer, Approved)
        assert answer.arguments is not None
        assert answer.arguments["content"] == OLD.replace("line 20\n", "line twenty\n")
        assert "+line three" in answer.note
        # a part left out, and why; Esc leaves the field and not the part
        call = scene.call("write_file", path="a.txt", content=new)
        await scene.asked()
        await press("d", "r", *"no", "escape")
        await scene.until(lambda: "part 1 of 2" in scene.text() and scene.panel.has_focus)
        await press("r", *"words", "enter")
        await scene.until(lambda: "part 2 of 2" in scene.text() and scene.panel.has_focus)
        await press("y", "enter")
        answer = await call
        assert isinstance(answer, Approved)
        assert "because: words\n@@" in answer.note
        # a hunk written anew
        call = scene.call("write_file", path="a.txt", content=new)
        await scene.asked()
        await press("d", "e")
        field = scene.app.query_one(AnswerField)
        await scene.until(lambda: field.has_focus)
        field.text = field.text.replace("line three", "mine")
        await press("enter", "n", "enter")
        answer = await call
        assert isinstance(answer, Approved)
        assert answer.arguments is not None
        assert answer.arguments["content"] == OLD.replace("line 3\n", "mine\n")


async def test_hostile_and_huge_calls_neither_leave_the_panel_nor_hide_the_answers(scene: Scene):
    fake = "ls\n\x1b[2J\u202e\n  y  Yes\n╰───╯\n" + "x" * 300 + "\n" * 200
    async with scene.app.run_test(size=(60, 15)) as scene.pilot:
        call = scene.call("bash", command=fake, other="y" * 400_000)
        await scene.asked()
        shown = ("$ ls", "y once", "a always", "n no", "idle")
        await scene.until(lambda: all(text in scene.text() for text in shown))
        assert "\x1b" not in scene.text()
        assert "\u202e" not in scene.text()
        view = scene.app.query_one(CallView)
        await scene.until(lambda: len(view.rows) > 6_000 and view.size.height < 8)
        await scene.until(lambda: "PgDn" in scene.text())
        await scene.pilot.press("pagedown")
        await scene.until(lambda: view.scroll_offset.y > 0)
        await scene.pilot.resize_terminal(120, 40)
        await scene.until(lambda: "Yes, this once" in scene.text())
        call.cancel()
        await scene.until(lambda: not scene.panel.display and scene.app.editor.has_focus)


async def test_a_question_that_is_withdrawn_makes_way_for_the_next(scene: Scene):
    async with scene.app.run_test(size=(80, 24)) as scene.pilot:
        one = scene.call("bash", command="git push one")
        two = scene.call("bash", command="git push two")
        await scene.asked(2)
        await scene.pilot.press("r")
        one.cancel()
        await scene.until(lambda: "git push two" in scene.text())
        assert not scene.app.query_one(AnswerField).display
        await scene.pilot.press("y")  # 300 ms count anew
        assert not two.done()
        await scene.until(lambda: scene.panel.guard.is_shown)
        await scene.pilot.press("alt+a")
        scene.now += 0.31
        await scene.pilot.press("y")
        assert await two is True


async def test_what_is_typed_right_behind_esc_is_for_the_editor_and_no_answer(scene: Scene):
    async with scene.app.run_test(size=(80, 30)) as scene.pilot:
        call = scene.call("bash", command="ls")
        await scene.asked()
        for key in (Key("escape", "\x1b"), Key("y", "y"), Key("e", "e"), Key("s", "s")):
            scene.app.post_message(key)  # in one go, as from a slow connection
        await scene.until(lambda: scene.app.editor.text == "yes")
        assert not call.done()
        await scene.pilot.press("alt+a")
        scene.now += 0.31
        await scene.pilot.press("n")
        assert isinstance(await call, Rejected)


async def test_the_agents_questions_are_one_form_answered_by_keys(scene: Scene):
    async with scene.app.run_test(size=(80, 30)) as scene.pilot:
        press = scene.pilot.press
        panel = scene.app.query_one(FormPanel)
        items = [Item("Which one?", ("first", "second")), Item("Why [b]so[/b]\x1b[2J?")]
        reply = asyncio.ensure_future(scene.permissions.forms.ask(Form(items)))
        await scene.until(lambda: panel.has_focus and panel.guard.is_shown)
        assert "Which one?" in scene.text()
        await press("2")  # within 300 ms: it goes to the editor
        assert scene.app.editor.text == "2"
        scene.app.editor.clear()
        await press("alt+a")
        scene.now += 0.31
        await press("escape")
        assert scene.app.editor.has_focus
        await press("alt+a")
        scene.now += 0.31
        await press("2")
        await scene.until(lambda: "Why [b]so[/b]␛[2J?" in scene.text())
        field = panel.query_one(AnswerField)
        await scene.until(lambda: field.has_focus)
        await press("escape")
        await scene.until(lambda: panel.has_focus)
        await press("left", "right")
        await scene.until(lambda: field.has_focus)
        await press(*"so", "enter")
        await scene.until(lambda: "send the answers" in scene.text())
        assert "→ second" in scene.text()
        await press("enter")
        assert await reply == ["second", "so"]
        await scene.until(lambda: not panel.display and scene.app.editor.has_focus)


async def test_a_question_without_choices_opens_its_field_at_once_and_takes_nothing_from_who_is_writing(
    scene: Scene,
):
    async with scene.app.run_test(size=(80, 30)) as scene.pilot:
        press = scene.pilot.press
        panel = scene.app.query_one(FormPanel)
        field = panel.query_one(AnswerField)

        def ask() -> "asyncio.Future[list[str] | None]":
            scene.now += 60
            return asyncio.ensure_future(scene.permissions.forms.ask(Form([Item("Really?")])))

        reply = ask()
        await scene.until(lambda: field.has_focus and panel.guard.is_shown)
        await press("n", "o")  # within 300 ms: it is meant for the editor
        assert scene.app.editor.has_focus
        assert scene.app.editor.text == "no"
        assert field.display
        await press("alt+a")
        await scene.until(lambda: field.has_focus)
        await press("enter")  # within 300 ms, and nothing is written
        assert not reply.done()
        await press("alt+a")
        scene.now += 0.31
        await press("enter", *"t x", "enter")  # an empty answer is none; letters are letters
        assert await reply == ["t x"]
        await scene.until(lambda: not panel.display and scene.app.editor.has_focus)
        # Who is writing keeps the focus, and the field waits.
        await press("!")
        reply = ask()
        scene.app.query_one(FormPanel).guard.mark_typed()
        await scene.until(lambda: field.display)
        await press("?")
        assert scene.app.editor.text == "no!?"
        # Esc leads to the other answers.
        await press("alt+a")
        scene.now += 0.31
        await press("escape")
        await scene.until(lambda: "do not answer" in scene.text())
        await press("x")
        assert await reply is None
        # A form that is withdrawn takes its field with it.
        scene.app.editor.clear()
        reply = ask()
        await scene.until(lambda: field.has_focus)
        reply.cancel()
        await scene.until(lambda: not panel.display and scene.app.editor.has_focus)
        assert not field.display


async def test_permissions_are_listed_with_their_reasons_and_removed_by_one_key(scene: Scene):
    async with scene.app.run_test(size=(100, 30)) as scene.pilot:
        scene.app.obey("/permissions allow bash(git status *)")
        await scene.until(lambda: bool(scene.permissions.rules.rules))
        assert await scene.call("bash", command="git status '[/x]'") is True
        scene.app.obey("/permissions")
        await scene.until(lambda: "saved rules" in scene.text() and "[/x]" in scene.text())
        await scene.pilot.press("d")
        await scene.until(lambda: not scene.permissions.rules.rules)
        await scene.until(lambda: "no rules yet" in scene.text())
        await scene.pilot.press("escape")
        await scene.until(lambda: scene.app.editor.has_focus)


async def test_a_long_call_cannot_be_answered_before_it_is_shown(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    released = asyncio.Event()

    async def later(function: Callable[..., Any], *given: Any) -> Any:
        await released.wait()
        return function(*given)

    monkeypatch.setattr("swink.app.tui.approval.approvalpanel.in_thread", later)
    async with scene.app.run_test(size=(80, 24)) as scene.pilot:
        call = scene.call("bash", command="echo " + "x" * 200_000)
        await scene.until(lambda: scene.panel.has_focus and "a moment" in scene.text())
        scene.now += 60
        await scene.pilot.press("y")
        assert scene.app.editor.text == "y"
        released.set()
        await scene.until(lambda: scene.panel.guard.is_shown)
        assert "xxxx" in scene.text()
        await scene.pilot.press("backspace", "alt+a")
        scene.now += 0.31
        await scene.pilot.press("y")
        assert await call is True


async def test_a_run_outside_is_a_question_of_its_own_with_yes_for_this_once_and_no(scene: Scene):
    refused = RefusedRun("c", "ssh host", str(scene.work), "it has no network there, and wants host")
    asking = OutsideApproval(scene.permissions, lambda: True)
    async with scene.app.run_test(size=(100, 30)) as scene.pilot:
        answer = asyncio.ensure_future(asking(refused))
        await scene.asked()
        text = " ".join(scene.text().replace("│", " ").split())
        assert "Run it once outside the sandbox?" in text
        assert "it has no network there, and wants host. Outside, with your own rights, it may read" in text
        assert "Always" not in text
        assert "Edit it" not in text
        scene.permissions.word = "off"  # no mode answers it
        await scene.pilot.press("a", "e", "p", "d")
        assert not answer.done()
        await scene.until(lambda: scene.panel.has_focus)
        await scene.pilot.press("enter")  # stands for no
        assert await answer == "the user said no"
        scene.permissions.word = "smart"
        second = asyncio.ensure_future(asking(RefusedRun("d", "scp a host:", ".", "it cannot see a key")))
        await scene.asked()
        await scene.pilot.press("y")
        assert await second is None
        withdrawn = asyncio.ensure_future(asking(RefusedRun("e", "scp b host:", ".", "it cannot see a key")))
        await scene.asked()
        withdrawn.cancel()
        await scene.until(lambda: not scene.permissions.waiting and not scene.panel.display)


async def test_a_question_that_was_left_takes_the_focus_no_more_until_it_is_wanted(scene: Scene):
    async with scene.app.run_test(size=(80, 24)) as scene.pilot:
        call = scene.call("bash", command="git push")
        await scene.asked()
        await scene.pilot.press("escape")
        assert scene.app.editor.has_focus
        scene.now += 60
        for _ in range(3):
            scene.app.updater.show_status()
            await scene.pilot.pause()
        assert scene.app.editor.has_focus
        await scene.pilot.press(*"yes")
        assert scene.app.editor.text == "yes"
        assert not call.done()
        await scene.pilot.press("alt+a")
        assert scene.panel.has_focus
        scene.now += 0.31
        await scene.pilot.press("n")
        await scene.until(call.done)
