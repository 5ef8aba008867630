"""`swink skills`, and skills in runs without a person."""

from pathlib import Path

import pytest
from command_line import Call, Place, Provider, Screen

from swink.tools.skills import check_skill


def made(place: Path, name: str, body: str = "THE BODY", description: str = "Fills in forms.") -> Path:
    (place / name).mkdir(parents=True)
    path = place / name / "SKILL.md"
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
    return path


def test_new_writes_what_the_published_validator_accepts(place: Place):
    done = place.swink("skills", "new", "pdf-forms", "--description", 'Fill in: "forms" \\ now')
    assert done.code == 0
    assert "description" not in done.err
    folder = place.here / ".agents/skills/pdf-forms"
    assert check_skill(folder) == []
    assert pytest.importorskip("skills_ref").validate(folder) == []
    plain = place.swink("skills", "new", "plain", "--user")
    assert plain.code == 0
    assert "into its description" in plain.err
    assert place.swink("skills", "new", "pdf-forms").code == 2


@pytest.mark.parametrize("name", ["PDF", "a b", "a/b", "..", "-x", "a--b", "x" * 65, "x:", "'x"])
def test_new_refuses_a_wrong_name_and_leaves_nothing(place: Place, name: str):
    done = place.swink("skills", "new", "--", name)
    assert done.code == 2
    left = [path for path in place.here.rglob("*") if path.name not in (".agents", "skills")]
    assert left == []


def test_list_shows_what_is_used_and_why_the_rest_is_not(place: Place):
    assert "no skills here" in place.swink("skills").err
    made(place.here / ".claude/skills", "forms")
    made(place.home / ".agents/skills", "forms")
    bad = made(place.home / ".agents/skills", "broken", description="a: b")
    before = place.swink("skills", "list")
    assert "~/.agents/skills/forms" in before.out
    assert "is not trusted, so this in it is not used: skill forms" in before.err
    assert place.swink("trust", "--yes").code == 0
    done = place.swink("skills", "list")
    assert done.code == 0
    assert ".claude/skills/forms" in done.out.splitlines()[1]
    assert "Fills in forms." in done.out
    assert "is nearer and has the same name" in done.err
    assert f"{bad}:3:" in done.err


def test_show_prints_a_skill_and_its_files(place: Place):
    path = made(place.home / ".agents/skills", "forms", "# Forms\n\x1b[31mred")
    (path.parent / "scripts").mkdir()
    (path.parent / "scripts/fill.py").touch()
    done = place.swink("skills", "show", "forms")
    assert done.code == 0
    assert "file: scripts/fill.py" in done.out
    assert "# Forms" in done.out
    assert "\x1b" not in done.out
    assert "did you mean forms?" in place.swink("skills", "show", "form").err


def test_check_names_every_problem_with_its_line(place: Place):
    good = made(place.here / ".agents/skills", "good")
    assert place.swink("skills", "check").code == 0
    bad = made(place.here / ".agents/skills", "Bad", description="x\nversion: 1")
    done = place.swink("skills", "check")
    assert done.code == 1
    assert f"{bad}:4: Unexpected fields in frontmatter: version." in done.out
    assert f"{bad}:2: Skill name 'Bad' must be lowercase" in done.out
    assert place.swink("skills", "check", str(good)).code == 0
    assert place.swink("skills", "check", "nothing-there").code == 1


def test_a_run_without_a_person_uses_a_skill(place: Place, provider: Provider):
    path = made(place.home / ".claude/skills", "forms", "Read references/how.md.")
    for name, text in (
        ("references/how.md", "HOW TO"),
        ("assets/form.txt", "THE FORM"),
        ("scripts/fill.sh", "cat $(dirname $0)/../assets/form.txt\n"),
    ):
        (path.parent / name).parent.mkdir()
        (path.parent / name).write_text(text)
    entering = Call("skill")
    entering.arguments["name"] = "forms"
    provider.replies = [
        [entering],
        [Call("read_file", path=str(path.parent / "references/how.md"))],
        [Call("bash", command=f"sh {path.parent}/scripts/fill.sh")],
        ["done"],
    ]
    done = place.swink(
        "run", "--coding", "--approve", "off", "fill it in", "--model", "openai:gpt-5", env=provider.env
    )
    assert done.code == 0, done.err
    assert "HOW TO" in str(provider.requests[-1])
    assert "THE FORM" in str(provider.requests[-1])


def test_the_plain_chat_lists_skills_enters_one_and_asks_what_it_may_do_in_each_conversation(
    place: Place, provider: Provider
):
    path = made(place.home / ".agents/skills", "forms")
    text = path.read_text()
    path.write_text(text.replace("---\n", "---\nallowed-tools: Bash(touch:*)\n", 1))
    provider.replies = [["One."], ["Two."], ["Three."]]
    screen = Screen(place, "--model", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type("/skills\n")
    screen.wait_for("/skill:forms: ")
    screen.type("/skill:nothing\n")
    screen.wait_for("there is no skill 'nothing'")
    screen.type("/skill:forms page 2\n")
    asked = screen.wait_for("Allow what the skill forms asks for? [y/N] ")
    assert "bash(touch *)" in asked
    screen.type("y\n")
    screen.wait_for("One.")
    screen.type("/skill:forms page 3\n")
    assert "[y/N]" not in screen.wait_for("Two.")
    screen.type("/clear\n")
    screen.wait_for("forgotten")
    screen.type("/skill:forms page 4\n")
    screen.wait_for("Allow what the skill forms asks for? [y/N] ")
    screen.type("n\n")
    screen.wait_for("Three.")
    screen.type("/quit\n")
    assert screen.end() == 0
    said = [str(request["messages"][-1]) for request in provider.requests]
    assert ["skill_content" in text for text in said] == [True, False, True]
