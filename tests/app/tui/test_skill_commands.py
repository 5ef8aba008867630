"""/skills lists skills and why some are not used; /skill:name enters one, once."""

from pathlib import Path

from apps import screen_text, until
from test_every_command_and_key import full_app, home

from swink.messages import UserMessage
from swink.tools.skills import entered_skills

__all__ = ["home"]


def made(place: Path, name: str, body: str = "THE BODY", description: str = "Fills in forms.") -> None:
    (place / name).mkdir(parents=True)
    (place / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")


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
