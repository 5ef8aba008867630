"""The layers: imports point down only, packages of one line never meet, and `import swink` stays light."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import swink

ROOT = Path(swink.__file__).parent

DRAWING = Path(__file__).parents[1].joinpath("CONTRIBUTING.md").read_text("utf-8").split("```")[1]


def names_in(line: str) -> list[str]:
    """The names on a line of the drawing; two spaces part them, many spaces the explanation after them."""
    return re.split(r" {3,}", line.strip())[0].split()


# From the top down. A module imports from lower lines only; what stands on one line does not import each other.
LAYERS = [["__main__"], *[names_in(line) for line in DRAWING.strip().splitlines()]]
RELATIVE = "swink.<relative>"
RANKS = {name: -number for number, line in enumerate(LAYERS) for name in line}
PATHS = sorted(ROOT.rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path) for path in PATHS}


@cache
def facts() -> dict[Path, tuple[list[tuple[int, str]], list[str]]]:
    """What each module imports, and what in it has no docstring; the trees of all would fill the memory."""
    found: dict[Path, tuple[list[tuple[int, str]], list[str]]] = {}
    for path in PATHS:
        tree = ast.parse(path.read_text("utf-8"))
        found[path] = imported(tree), undescribed(path, tree)
    return found


def part_of(module: str) -> str:
    """The drawn name that a module belongs to: `swink.providers.http` is part of providers."""
    _, *rest = module.split(".")
    return rest[0] if rest else "swink"


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a block, and in the blocks of that; expressions, most of a tree, are passed over."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        inner = getattr(node, name, None)
        for each in inner if isinstance(inner, list) else ():
            yield each
            yield from statements(each)


def imported(tree: ast.Module) -> list[tuple[int, str]]:
    """Every module of ours a file imports, at the top, lazily or for type checking alike, with its line."""
    found: list[tuple[int, str]] = []
    for node in statements(tree):
        match node:
            case ast.Import(names=names):
                found += [(node.lineno, alias.name) for alias in names]
            case ast.ImportFrom(level=level) if level:
                found.append((node.lineno, RELATIVE))
            case ast.ImportFrom(module=module, level=0, names=names) if module is not None:
                # `from swink import models` imports a module, `from swink import Agent` the package itself.
                found += [
                    (node.lineno, name if (name := f"{module}.{alias.name}") in MODULES else module)
                    for alias in names
                ]
            case _:
                pass
    return [(line, name) for line, name in found if name.split(".")[0] == "swink"]


def test_every_module_is_in_the_drawing():
    assert {part_of(module) for module in MODULES} <= set(RANKS), (
        "draw the new module into LAYERS and the design"
    )


def test_imports_are_absolute_and_point_down_only():
    wrong: list[str] = []
    for path, (imports, _) in facts().items():
        own = part_of(module_of(path))
        for line, name in imports:
            part = part_of(name)
            if name == RELATIVE:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: imports are absolute")
            elif part != own and not RANKS.get(part, 0) < RANKS.get(own, 0):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {own} must not import {name}")
    assert not wrong, "\n".join(wrong)


def test_the_drawing_has_ten_rows_and_every_package_stands_in_it_once():
    drawn = [name for line in LAYERS for name in line]
    assert len(LAYERS) - 1 <= 10
    assert len(drawn) == len(set(drawn))
    assert len({part_of(module) for module in MODULES} - {"swink", "__main__"}) <= 20


def test_the_rule_sees_what_it_should():
    code = "import swink.agent\ndef f():\n    from swink import models, Agent\n    from swink.providers.http import Request\n    from . import x\n"
    code += "try:\n    pass\nexcept E:\n    if x:\n        pass\n    else:\n        import swink.mcp\nfinally:\n    match x:\n        case 1:\n            import swink.eval\n"
    assert [name for _, name in imported(ast.parse(code))] == [
        "swink.agent",
        "swink.models",
        "swink",
        "swink.providers.http",
        RELATIVE,
        "swink.mcp",
        "swink.eval",
    ]
    assert (
        RANKS["messages"] < RANKS["stream"] < RANKS["events"] < RANKS["agent"] < RANKS["swink"] < RANKS["app"]
    )
    assert RANKS["providers"] == RANKS["agent"]


def test_importing_swink_loads_no_http_no_screen_no_adapter_and_no_validator():
    code = "import sys, swink; print('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = (
        "aiohttp",
        "httpx",
        "requests",
        "textual",
        "rich",
        "jsonschema_rs",
        "jiter",
        "pydantic",
        "yaml",
        "mcp",
        "xllamacpp",
        "opentelemetry",
    )
    assert not [name for name in loaded if name.split(".")[0] in heavy]
    light = {"agent", "errors", "events", "messages", "models", "stream", "system", "tools"}
    ours = [name for name in loaded if name.startswith("swink.")]
    assert not [name for name in ours if name.split(".")[1] not in light]
    asleep = ("swink.stream.wrappers", "swink.tools.coding", "swink.events.transcript", "swink.models.keys")
    assert not [name for name in ours if name.startswith(asleep)]


def test_the_public_names_are_few_and_each_is_there():
    assert len(swink.__all__) <= 75
    assert sorted(swink.__all__) == swink.__all__
    assert len(set(swink.__all__)) == len(swink.__all__)
    for name in swink.__all__:
        assert hasattr(swink, name), name


@pytest.mark.parametrize("name", swink.__all__)
def test_every_public_name_has_a_docstring(name: str):
    value = getattr(swink, name)
    assert (inspect.getdoc(value) or "").strip()
    if inspect.isclass(value):
        assert value.__dict__.get("__doc__"), f"{name} only inherits its docstring"


def test_every_public_class_and_function_has_a_docstring():
    bare = [name for _, names in facts().values() for name in names]
    assert not bare, "\n".join(bare)


def undescribed(path: Path, tree: ast.Module) -> list[str]:
    """The module, its public classes and its functions that have no docstring."""
    bare: list[str] = []
    if not ast.get_docstring(tree) and tree.body:
        bare.append(f"{path.relative_to(ROOT)}: the module")
    for node in tree.body:
        is_named = isinstance(
            node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and not node.name.startswith("_")
        if is_named and not ast.get_docstring(node) and not is_overload(node):
            bare.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}")
    return bare


def is_overload(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(item, ast.Name) and item.id == "overload" for item in node.decorator_list)
