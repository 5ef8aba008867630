"""/skills lists skills and why some are not used; /skill:name enters one, once."""

from pathlib import Path

from apps import screen_text, until
from test_every_command_and_key import full_app, home

from swink.app.assistant.person import Once
from swink.messages import UserMessage
from swink.tools.skills import entered_skills

__all__ = ["home"]


def made(
    place: Path, name: str, body: str = "THE BODY", description: str = "Fills in forms.", more: str = ""
) -> None:
    (place / name).mkdir(parents=True)
    head = f"name: {name}\ndescription: {description}\n{more}"
    (place / name / "SKILL.md").write_text(f"---\n{head}---\n{body}\n")


async def test_skills_are_listed_and_one_is_entered_once(home: Path):
    made(home / "work/.agents/skills", "forms")
    made(home / "HOME/.claude/skills", "forms")
    made(home / "HOME/.claude/skills", "broken", description="a: b")
    app = await full_app(home)
    async with app.run_test(size=(150, 50)) as pilot:
        await until(pilot, lambda: app.environment is not None and app.environment.skills is not None)
        assert "/skill:forms" in [word.name for word in app.command_words()]
        app.obey("/skills")
        await until(pilot, lambda: "Fills in forms." in screen_text(app))
        shown = screen_text(app)
        assert "is nearer and has the same name" in shown
        assert "broken/SKILL.md:3:" in shown
        app.obey("/skill:nothing at all")
        await until(pilot, lambda: "there is no skill 'nothing'" in screen_text(app))
        for _ in range(2):
            before = len(app.driver.agent.messages)
            app.obey("/skill:forms page 2")
            await until(pilot, lambda: len(app.driver.agent.messages) > before + 1)
            await until(pilot, lambda: not app.driver.is_running)
        said = [message.text for message in app.driver.agent.messages if isinstance(message, UserMessage)]
        assert ["THE BODY" in text for text in said[-2:]] == [True, False]
        assert all("page 2" in text for text in said[-2:])
        assert list(entered_skills(app.driver.agent.messages)) == ["forms"]
        app.obey("/skills")
        await until(pilot, lambda: "(in this conversation)" in screen_text(app))


async def test_a_command_with_a_line_break_after_its_name_is_told_by_its_first_line(home: Path):
    app = await full_app(home)
    async with app.run_test(size=(150, 50)) as pilot:
        for line in ("/skills\nfoo bar", "/skill:forms\nfoo"):
            app.obey(line)
            first = line.partition("\n")[0]
            await until(
                pilot, lambda first=first: f"there is no {first} with a line break" in screen_text(app)
            )
        assert "foo" not in screen_text(app)


async def test_entering_a_skill_asks_once_for_what_it_wants_to_be_allowed(home: Path):
    made(home / "HOME/.claude/skills", "forms", more="allowed-tools: Bash(touch:*) Read\n")
    app = await full_app(home)
    async with app.run_test(size=(150, 50)) as pilot:
        await until(pilot, lambda: app.environment is not None and app.environment.skills is not None)
        assert app.environment is not None
        app.environment.attend(app.permissions)
        start = len(app.driver.agent.messages)
        app.obey("/skill:forms page 2")
        await until(pilot, lambda: "Allow what the skill forms asks for?" in screen_text(app))
        assert "bash(touch *)" in screen_text(app)
        assert len(app.driver.agent.messages) == start
        question = app.permissions.waiting[0]
        app.permissions.questions.answer(question, Once())
        await until(pilot, lambda: len(app.driver.agent.messages) > start + 1 and not app.driver.is_running)
        before = len(app.driver.agent.messages)
        app.obey("/skill:forms page 3")
        await until(pilot, lambda: len(app.driver.agent.messages) > before and not app.driver.is_running)
        app.obey("/permissions")
        await until(pilot, lambda: "while the skill forms is here" in screen_text(app))
