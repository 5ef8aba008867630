"""Which variables of the environment a source file reads: by name, in a loop, or through a function of its own."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+|npm_config_registry")
_METHODS = ("get", "getenv", "setdefault", "pop")


def reads_of(path: Path) -> tuple[set[str], set[str]]:
    """The names that a file reads, and the expressions whose names stand in no text of it."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    within = {key: function for function in functions for key in _keys(function)}
    names, unknown = set[str](), set[str]()
    for key in _keys(tree):
        found = set(_texts(key, (within.get(key, tree), tree), set())) or set(
            _texts(key, (tree, tree), set())
        )
        names |= found
        if not found:
            unknown.add(ast.unparse(key))
    return names, unknown


def _keys(tree: ast.AST) -> Iterator[ast.expr]:
    """What the environment is asked for."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=place, slice=key) if _is_environment(place):
                yield key
            case ast.Call(func=ast.Attribute(value=place, attr=method), args=[key, *_]) if method in _METHODS:
                if _is_environment(place) or (method == "getenv" and ast.unparse(place) == "os"):
                    yield key
            case ast.Call(func=ast.Name("map"), args=[ast.Attribute(value=place, attr="get"), keys]):
                if _is_environment(place):
                    yield keys
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[place]):
                if _is_environment(place):
                    yield key
            case _:
                pass


def _is_environment(node: ast.expr) -> bool:
    return re.search(r"(?:^|[._])environ$", ast.unparse(node)) is not None


def _texts(node: ast.AST, places: tuple[ast.AST, ast.AST], seen: set[str]) -> Iterator[str]:
    """The names in an expression, and in what its own names were given: in its function, else in the file."""
    match node:
        case ast.JoinedStr(values=[ast.Constant(str() as begin), *rest]):
            yield from (begin + name for part in rest for name in _texts(part, places, seen))
        case ast.Constant(str() as text) if VARIABLE.fullmatch(text):
            yield text
        case ast.Name(name):
            if name not in seen:
                seen.add(name)
                found = ([*_given(name, place, places[-1])] for place in places)
                given = next(filter(None, found), ())
                for value in given:
                    yield from _texts(value, places, seen)
        case _:
            for part in ast.iter_child_nodes(node):
                yield from _texts(part, places, seen)


def _given(name: str, place: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    """What a name was given: by an assignment, a loop, or a call of the function whose parameter it is."""
    for node in ast.walk(place):
        match node:
            case ast.Assign(targets=[target], value=value) if _has(target, name):
                yield value
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _has(target, name):
                yield value
            case ast.comprehension(target=target, iter=value) | ast.For(target=target, iter=value):
                if _has(target, name):
                    yield value
            case ast.FunctionDef(name=function, args=parameters):
                every = [*parameters.args, *parameters.kwonlyargs, parameters.vararg]
                if any(each is not None and each.arg == name for each in every):
                    yield from parameters.defaults
                    yield from (each for each in parameters.kw_defaults if each is not None)
                    yield from _arguments(function, tree)
            case _:
                pass


def _has(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


def _arguments(function: str, tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
            yield from node.args
            yield from (each.value for each in node.keywords)
