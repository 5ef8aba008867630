"""The figures of the house: names at the top, sizes, words used twice. Run it around a large change.

python benchmarks/house.py          the figures
python benchmarks/house.py --names  and what stands behind each
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "swink"
ASIDE = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}
_SHORT_FILE = 45
_SHORT_DOCSTRING = 4


def main() -> None:
    """Print a row a figure."""
    named = "--names" in sys.argv[1:]
    for figure, found in figures():
        print(f"{figure:<44}{found if isinstance(found, int) else len(found):>8,}")
        if named and not isinstance(found, int):
            print(*(f"    {each}" for each in found), sep="\n")


def figures() -> Iterator[tuple[str, int | list[str]]]:
    """Each figure, and what it counts."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in trees}
    classes: defaultdict[str, list[str]] = defaultdict(list)
    functions: list[tuple[int, str]] = []
    short: list[str] = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(str(path.relative_to(SOURCE)))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                functions.append((size, f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                said = ast.get_docstring(node)
                if said and len(said.split()) <= _SHORT_DOCSTRING:
                    short.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}: {said}")
    modules = Counter(path.stem for path in trees if path.name not in ASIDE)
    yield "names at the top", sorted({path.relative_to(SOURCE).parts[0] for path in trees} - ASIDE)
    yield "files", len(trees)
    yield "lines", sum(lines.values())
    yield "lines of the engine", sum(n for path, n in lines.items() if "engine" in path.parts)
    yield "public class names used twice or more", _twice(classes)
    yield "module names used twice or more", sorted(f"{name} × {n}" for name, n in modules.items() if n > 1)
    yield "files over 450 lines", [f"{n} {path.relative_to(SOURCE)}" for path, n in lines.items() if n > 450]
    yield "functions over 60 lines", [f"{n} {name}" for n, name in sorted(functions, reverse=True) if n > 60]
    small = [path for path, n in lines.items() if n < _SHORT_FILE and path.name not in ASIDE]
    yield f"files under {_SHORT_FILE} lines", [f"{lines[path]} {path.relative_to(SOURCE)}" for path in small]
    yield "docstrings of at most four words", short
    engine = {tree: path for path, tree in trees.items() if "engine" in path.parts}
    noun = [node for tree in engine for node in tree.body if isinstance(node, ast.ClassDef)]
    run, ledger = (next(node for node in noun if node.name == name) for name in ("Run", "Ledger"))
    yield "attributes of Run", _slots(run)
    yield "attributes of Ledger", _slots(ledger)
    yield "methods of Run", _methods(run)
    yield "methods of Ledger", _methods(ledger)
    agent = next(node for node in trees[SOURCE / "agent" / "agent.py"].body if isinstance(node, ast.ClassDef))
    yield "lines of Agent", (agent.end_lineno or 0) - agent.lineno + 1


def _slots(noun: ast.ClassDef) -> list[str]:
    [slots] = [
        ast.literal_eval(node.value)
        for node in noun.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__"
    ]
    return [name for name in slots if name != "__weakref__"]


def _methods(noun: ast.ClassDef) -> list[str]:
    return [node.name for node in noun.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _twice(classes: dict[str, list[str]]) -> list[str]:
    return sorted(f"{name}: {', '.join(places)}" for name, places in classes.items() if len(places) > 1)


if __name__ == "__main__":
    main()
