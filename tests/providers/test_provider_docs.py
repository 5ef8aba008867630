"""docs/models/providers.md says what the adapters do, and its programs run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import swink.models.keys
import swink.providers
from swink.models.catalog import PROVIDERS
from swink.models.keys.accounts import ACCOUNTS
from swink.providers.openai import PRESETS

PAGE = (Path(__file__).parents[2] / "docs" / "models" / "providers.md").read_text("utf-8")
SOURCE = "\n".join(
    path.read_text("utf-8")
    for package in (swink.providers, swink.models.keys)
    for path in Path(str(package.__file__)).parent.rglob("*.py")
)
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.S)
OWN = {
    name for name, target in PROVIDERS.items() if target.startswith("swink.providers.") and "#" not in target
}


def rows(title: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_adapter_and_its_class_are_in_the_table():
    table = {row[0].strip("`"): row[1].strip("`") for row in rows("What each adapter can do")}
    targets = {name: PROVIDERS[name].removeprefix("swink.providers.").replace(":", ".") for name in OWN}
    assert table == targets


def test_every_variable_of_the_page_is_read_and_every_adapter_has_its_line():
    table = rows("Keys and addresses")
    assert {name.strip(" `") for row in table for name in row[0].split(",")} == OWN
    for variable in re.findall(r"`([A-Z][A-Z_]+)`", " ".join(cell for row in table for cell in row)):
        name = (
            variable.removeprefix("AZURE_")
            if variable.startswith(("AZURE_TENANT", "AZURE_CLIENT"))
            else variable
        )
        assert f'"{name}"' in SOURCE, variable


def test_the_presets_are_those_of_the_code():
    table = {
        row[0].strip("`"): (row[1].strip("`"), re.findall(r"`(\w+)`", row[2]))
        for row in rows("Presets: servers that speak like OpenAI")
    }
    assert table == {
        name: (ACCOUNTS[name].base_url, list(ACCOUNTS[name].variables))
        for name in PRESETS
        if name != "openai"
    }


@pytest.mark.parametrize("number", range(3))
def test_the_first_lines_make_an_agent(number: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-used")
    scope: dict[str, object] = {}
    exec(compile(PROGRAMS[number], "docs/models/providers.md", "exec"), scope)
    assert scope["agent"]


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (3, "0.039125 of which for tools 0.02"),
        (4, "Hello?"),
        (5, "18 degrees in Oslo \nthe contract is kept"),
        (6, "Hello!\n42\n42"),
    ],
)
def test_the_programs_of_the_page_run(number: int, says: str, tmp_path: Path):
    script = tmp_path / "adapter.py"
    script.write_text(PROGRAMS[number], "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == says + "\n"
    assert not done.stderr
