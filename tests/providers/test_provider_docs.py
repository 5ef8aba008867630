"""docs/models/providers.md says what the adapters do."""

import re
from pathlib import Path

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
