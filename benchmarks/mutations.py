"""Mutations: single changes that can be made to Python source, and a sample of them that stays the same."""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """One change: what stands between two places of a file is replaced."""

    path: str
    line: int
    start: int
    end: int
    new: str
    old: str
    at_import: bool
    """It stands in no function."""

    def __str__(self) -> str:
        old, new = (" ".join(text.split())[:60] for text in (self.old, self.new))
        return f"{self.path}:{self.line}: {old}  →  {new}"


def find_mutants(root: Path, folders: Sequence[str]) -> Iterator[Mutant]:
    """Every change that can be made in these folders, file by file."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            yield from mutants_of(path.read_text("utf-8"), str(path.relative_to(root)))


def sample_of(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Some of the mutants, in an order of chance in which each keeps its place when other files change."""
    seen: Counter[tuple[str, ...]] = Counter()

    def place(mutant: Mutant) -> str:
        change = (mutant.path, mutant.old, mutant.new)
        seen[change] += 1
        return hashlib.sha256(repr((seed, change, seen[change])).encode()).hexdigest()

    return sorted(mutants, key=place)[:count]


def mutants_of(text: str, path: str) -> Iterator[Mutant]:
    """The changes that can be made to a module."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    skipped = {id(inner) for node in ast.walk(tree) for part in _asides(node) for inner in ast.walk(part)}
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    inside = {id(inner) for node in functions for part in node.body for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.expr | ast.stmt):
            continue
        for new in _changes(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            old = text.encode()[start:end].decode()
            put = f"({new})" if isinstance(node, ast.expr) else new
            yield Mutant(path, node.lineno, start, end, put, old, id(node) not in inside)


def _asides(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that are no behaviour: annotations, docstrings, what is for type checkers, type aliases."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from filter(None, [node.returns])
        case ast.arg(annotation=ast.expr() as annotation):
            yield annotation
        case ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.ClassDef(keywords=keywords):
            yield from keywords  # frozen=True and its like
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            yield node
        case ast.Expr(value=ast.Constant(value=str())):
            yield node
        case ast.Call(func=ast.Attribute(value=ast.Name("log"))):
            yield node  # what is logged
        case ast.Subscript(value=ast.Name("Literal" | "Annotated")):
            yield node
        case _:
            pass


def _changes(node: ast.AST) -> Iterator[str]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare(ops=[op], left=left, comparators=right):
            yield ast.unparse(ast.Compare(left, [FLIPS[type(op)]()], right))
            if isinstance(op, ast.Lt | ast.Gt | ast.LtE | ast.GtE):
                edge = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}[type(op)]
                yield ast.unparse(ast.Compare(left, [edge()], right))
        case ast.BoolOp(op=op, values=values):
            yield ast.unparse(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield ast.unparse(operand)
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() | float() as value):
            yield str(value + 1)
            yield str(value - 1)
        case ast.Return(value=ast.Constant(value=None | False)):
            pass  # None instead of False is the same to whoever asks
        case ast.Return(value=ast.expr()):
            yield "return None"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"
        case _:
            pass
