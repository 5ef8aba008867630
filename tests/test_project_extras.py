"""pyproject.toml offers an extra only if code of ours imports what it installs."""

import ast
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import swink
from swink.models import catalog
from tests.counts import left_to_more
from tests.pins import PINS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
LOADERS = ("import_module", "find_spec", "__import__")


def imported_by(code: str) -> set[str]:
    """The packages that a file imports: by statement, by name, or by name through a function of its own."""
    tree = ast.parse(code)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    loaders = {
        *LOADERS,
        *(node.name for node in functions if any(name in LOADERS for name, _ in calls(node))),
    }
    found = {name for function, name in calls(tree) if function in loaders}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module)
            case _:
                pass
    return {name.partition(".")[0] for name in found}


def calls(tree: ast.AST) -> list[tuple[str, str]]:
    """The name of every function called in a tree, and its first argument if that is a text."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(text)), *_]
            ):
                found.append((name, text))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                found.append((name, ""))
            case _:
                pass
    return found


def distribution_of(requirement: str) -> str:
    """The normalised name of what a requirement installs."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def modules_by_distribution() -> dict[str, set[str]]:
    """What every installed distribution brings."""
    modules: dict[str, set[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            modules.setdefault(distribution_of(distribution), set()).add(module)
    return modules


def imported_by_swink() -> set[str]:
    """The packages that our code imports."""
    files = Path(swink.__file__).parent.rglob("*.py")
    return {name for path in files for name in imported_by(path.read_text("utf-8"))}


@left_to_more
def test_what_an_extra_installs_is_imported():
    modules, imported = modules_by_distribution(), imported_by_swink()
    for extra in EXTRAS.keys() - {"all", "dev", "docs"}:
        for requirement in EXTRAS[extra]:
            name = distribution_of(requirement)
            assert modules.get(name, {name.replace("-", "_")}) & imported, (
                f"nothing in src imports {name}, of {extra}"
            )


def test_all_is_every_extra_but_the_engines_and_the_tools_of_developers():
    chosen = [name for name in EXTRAS if name not in ("all", "dev", "docs", "ray", "dbos")]
    assert EXTRAS["all"] == [f"swink[{','.join(chosen)}]"]


def test_what_is_run_and_tested_is_there_and_has_a_version():
    asked = re.findall(r'-e "\.\[(.*?)\]"', (ROOT / "Makefile").read_text("utf-8"))
    assert asked
    assert {extra for names in asked for extra in names.split(",")} <= EXTRAS.keys()
    pinned = {distribution_of(name) for name in PINS}
    wanted = {distribution_of(item) for name in EXTRAS if name != "all" for item in EXTRAS[name]}
    assert not wanted - pinned


def test_the_rule_sees_what_it_should():
    code = 'import a.b\nfrom c.d import e\nimportlib.import_module("f.g")\nopen("h")\nfrom . import i\n'
    assert imported_by(code) == {"a", "c", "f"}
    code = 'def load(name):\n    return import_module(name)\nload("a.b")\nstore("c")\n'
    assert imported_by(code) - {""} == {"a"}


def test_the_install_line_has_the_extras_of_the_commands_that_it_names():
    page = (ROOT / "docs" / "start" / "install.md").read_text("utf-8")
    ((extras, line),) = re.findall(r'pip install "\.\./swink\[([\w,]+)\]"(.*)', page)
    named = {"tui": "terminal interface", "local": "embedded model", "eval": "swink eval"}
    assert {extra for extra, words in named.items() if words in line} == {*extras.split(",")}


def test_the_description_does_not_promise_more_providers_than_there_are():
    (promised,) = re.findall(r"more than (\w+) providers", PROJECT["description"])
    surfaces = {name for name in catalog.PROVIDERS if not name.endswith("-responses")} - {"proxy", "local"}
    assert len(surfaces) > {"twenty": 20}[promised]
    (more,) = re.findall(
        r"Mistral, Ollama, (\w+) more that speak like OpenAI", (ROOT / "README.md").read_text("utf-8")
    )
    own = {"anthropic", "openai", "azure", "gemini", "vertex", "bedrock", "xai", "mistral", "ollama"}
    assert len(surfaces - own) == {"nineteen": 19}[more]


def test_the_package_and_the_project_have_one_version():
    """It stands in one file; a wheel and an editable install read it there too."""
    place = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["version"]["path"]
    assert PROJECT["dynamic"] == ["version"]
    assert f'VERSION = "{swink.__version__}"' in (ROOT / place).read_text("utf-8")
    again = [
        path.relative_to(ROOT)
        for path in (ROOT / "src").rglob("*.py")
        if f'"{swink.__version__}"' in path.read_text("utf-8")
    ]
    assert again == [Path(place)]
