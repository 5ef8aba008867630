"""Call sites: which calls of a program are awaited, and which want their value at once.

A model may write `x = read("a")` as well as `x = await read("a")` and `await asyncio.gather(*tasks)`. A call
gives a coroutine where it is awaited: directly, in an argument of an asyncio function, or in a name that is
awaited somewhere. Everywhere else it runs to its end and gives its value.
"""

import ast
from collections.abc import Collection, Iterator, Mapping

_WAITERS = frozenset(("gather", "create_task", "ensure_future", "wait_for", "wait", "as_completed", "run"))
_ADDERS = frozenset(("append", "add", "extend", "insert"))


def awaited_calls(code: str, functions: Collection[str]) -> frozenset[tuple[int, int]]:
    """Where in the code, in bytes, the calls of these functions stand that give coroutines."""
    try:
        tree = ast.parse(code, mode="exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()  # who runs it says what is wrong
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names = frozenset(_awaited_names(tree))
    starts = _line_starts(code)
    found: set[tuple[int, int]] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name_of(node.func) not in functions:
            continue
        if _is_awaited(node, parents, names):
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            found.add((begin, end))
    return frozenset(found)


def _is_awaited(call: ast.Call, parents: Mapping[ast.AST, ast.AST], names: Collection[str]) -> bool:
    """Whether the value of a call goes where a coroutine is wanted."""
    node: ast.AST = call
    while (parent := parents.get(node)) is not None:
        match parent:
            case ast.Await():
                return True
            case ast.Call(func=func) if node is not func:
                name = _name_of(func)
                is_added = isinstance(func, ast.Attribute) and name in _ADDERS
                return name in _WAITERS or (is_added and any(name in names for name in _names_in(func)))
            case ast.Assign(targets=targets):
                return any(name in names for target in targets for name in _names_in(target))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.NamedExpr(target=target):
                return any(name in names for name in _names_in(target))
            case ast.Return() | ast.Lambda():
                return _is_in_awaited_function(parent, parents, names)
            case ast.ListComp(elt=kept) | ast.SetComp(elt=kept) | ast.GeneratorExp(elt=kept):
                if node is not kept:
                    return False
            case ast.DictComp(value=kept):
                if node is not kept:
                    return False
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.Starred() | ast.IfExp():
                pass
            case _:
                return False
        node = parent
    return False


def _is_in_awaited_function(
    node: ast.AST, parents: Mapping[ast.AST, ast.AST], names: Collection[str]
) -> bool:
    """Whether a plain function returns it to who awaits; an async one gives the value to who awaits."""
    while node in parents:
        node = parents[node]
        match node:
            case ast.AsyncFunctionDef():
                return False
            case ast.FunctionDef(name=name):
                return name in names
            case ast.Assign(targets=targets):
                return any(name in names for target in targets for name in _names_in(target))
            case _:
                pass
    return False


def _awaited_names(tree: ast.AST) -> Iterator[str]:
    """The names in what is awaited, or given to asyncio."""
    waits = [node.value for node in ast.walk(tree) if isinstance(node, ast.Await)]
    awaited = {value.id for value in waits if isinstance(value, ast.Name)}
    for value in waits:
        yield from _coroutines_in(value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name_of(node.func) in _WAITERS:
            yield from _coroutines_in(node)
        elif isinstance(node, ast.For | ast.comprehension) and awaited.intersection(_names_in(node.target)):
            yield from _names_in(node.iter)  # for task in tasks: await task


def _coroutines_in(node: ast.AST) -> Iterator[str]:
    """The names in what is awaited, but for those in the arguments of functions that are called there."""
    inside: list[ast.AST] = list(ast.iter_child_nodes(node))
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Call(func=func) if _name_of(func) not in _WAITERS:
            inside = [func]
        case ast.Subscript(value=value):
            inside = [value]
        case ast.ListComp(elt=kept, generators=loops) | ast.GeneratorExp(elt=kept, generators=loops):
            inside = [kept]
            for loop in loops:  # of tasks in a list, and not of what they are made from
                if isinstance(kept, ast.Name) and kept.id in _names_in(loop.target):
                    inside.append(loop.iter)
        case _:
            pass
    for child in inside:
        yield from _coroutines_in(child)


def _names_in(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _name_of(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _line_starts(code: str) -> list[int]:
    """Where each line begins, in bytes."""
    starts = [0]
    for line in code.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    return starts
