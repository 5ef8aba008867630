"""A skill with a script, a reference and an asset, used in a real terminal from the first key to the last."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Call, Place, Provider
from terminal import Terminal
from tests.counts import cell_of_more

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program of Linux"),
]
SCRIPT = """\
cat "$(dirname "$0")/../assets/form.txt" > filled.txt
touch "$(dirname "$0")/new" 2>/dev/null || echo the skill is kept
cat "$HOME/private.txt" 2>/dev/null || echo the home is kept
"""


@pytest.fixture
def skill(place: Place) -> Path:
    """The folder of a skill that names its script's whole command, in the user's home."""
    subprocess.run(["git", "init", "-q", "."], cwd=place.here, check=True)
    place.write("notes.txt", "one\n")
    folder = place.home / ".claude/skills/forms"
    head = "name: forms\ndescription: Fills in forms.\n"
    head += f"allowed-tools: Bash(sh {folder}/scripts/fill.sh) Read\n"
    for name, text in (
        ("SKILL.md", f"---\n{head}---\nRead references/how.md, run scripts/fill.sh, copy assets/form.txt.\n"),
        ("references/how.md", "HOW TO FILL IN\n"),
        ("scripts/fill.sh", SCRIPT),
        ("assets/form.txt", "THE FORM\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (place.home / "private.txt").write_text("PRIVATE")
    return folder


def use(folder: Path) -> list[list[object]]:
    return [
        [Call("read_file", path=f"{folder}/references/how.md")],
        [Call("bash", command=f"sh {folder}/scripts/fill.sh")],
        [Call("bash", command=f"cp {folder}/assets/form.txt form.txt")],
        ["The form is filled in."],
    ]


@pytest.mark.parametrize("typed", ["fill in the form", cell_of_more("/skill:forms page 2")])
def test_a_script_runs_in_the_sandbox_a_reference_is_read_and_an_asset_is_copied(
    place: Place, provider: Provider, skill: Path, typed: str
):
    entering: list[list[object]] = [] if typed.startswith("/") else [[Call("skill", name="forms")]]
    provider.replies = [*entering, *use(skill)]
    with Terminal(place, "--model", "openai:m", env=provider.env, size=(130, 40)) as terminal:
        terminal.wait_for("idle", "Execute")
        terminal.type(f"{typed}\r")
        terminal.wait_for("Allow what the skill forms asks for?", "scripts/fill.sh")
        terminal.pause(0.4)  # a key within 0.3 s of the question is no answer
        terminal.press("y")
        terminal.wait_for("Run bash?", "$ cp ")  # it may overwrite something, so it is asked about
        terminal.pause(0.4)
        terminal.press("y")
        terminal.wait_for("The form is filled in.", "idle")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
    assert (place.here / "filled.txt").read_text() == "THE FORM\n"
    assert (place.here / "form.txt").read_text() == "THE FORM\n"
    assert not (skill / "scripts/new").exists()
    said = str(provider.requests[-1]["messages"])
    assert "HOW TO FILL IN" in said
    assert "the skill is kept" in said
    assert "the home is kept" in said
    assert "PRIVATE" not in said
