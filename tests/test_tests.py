"""The tests themselves: what would make them fail by chance, or never."""

import ast
from collections.abc import Iterator

from tests.pages import ROOT

TESTS = ROOT / "tests"
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "thread_time"}  # fmt: skip
UNCHOOSY = ("pytest.raises(Exception)", "pytest.raises(BaseException)")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def reads_a_clock(node: ast.AST) -> bool:
    """Whether an expression calls `time.monotonic` or its like."""
    return any(
        isinstance(each, ast.Call) and getattr(each.func, "attr", getattr(each.func, "id", "")) in CLOCKS
        for each in ast.walk(node)
    )


def timed(tree: ast.Module) -> Iterator[int]:
    """The lines of the asserts that compare what a clock said, or what was made of it."""
    for function in ast.walk(tree):
        if not isinstance(function, Function) or not reads_a_clock(function):
            continue
        inner = [each for each in ast.walk(function) if isinstance(each, Function) and each is not function]
        told: set[str] = set()  # the names of what a clock said, of functions that return it too
        before = None
        while before != (before := len(told)):
            for node in ast.walk(function):
                match node:
                    case ast.Assign(targets=targets, value=value):
                        pass
                    case ast.AnnAssign(target=target, value=ast.expr() as value):
                        targets = [target]
                    case (
                        ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value)
                    ):
                        targets = [target]
                    case ast.Return(value=ast.expr() as value):
                        targets = [ast.Name(each.name) for each in inner if node in ast.walk(each)]
                    case _:
                        continue
                if reads_a_clock(value) or names_in(value) & told:
                    told.update(*(names_in(each) for each in targets))
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                for compared in ast.walk(node.test):
                    if isinstance(compared, ast.Compare) and (
                        reads_a_clock(compared) or names_in(compared) & told
                    ):
                        yield node.lineno
                        break


def always_true(test: ast.expr) -> bool:
    """Whether an assert of it cannot fail, whatever the values are."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return bool(elements)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(always_true(value) for value in values)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(always_true(value) for value in values)
        case ast.Compare(left=ast.Call(func=ast.Name("len")), ops=[ast.GtE()], comparators=[ast.Constant(0)]):
            return True
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() | ast.LtE() | ast.GtE()], comparators=[right]):
            return ast.dump(left) == ast.dump(right) and not calls(left)
        case ast.Lambda() | ast.GeneratorExp():
            return True
        case _:
            return False


def calls(node: ast.AST) -> bool:
    """Whether something is called, or looked up, that may say something else the second time."""
    return any(isinstance(each, ast.Call | ast.Await) for each in ast.walk(node))


def empty(tree: ast.Module) -> Iterator[int]:
    """The lines of the asserts that cannot fail, and of `raises` that take whatever is raised."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test) if always_true(test):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="raises")) if ast.unparse(node) in UNCHOOSY:
                yield node.lineno
            case _:
                pass


def test_no_assert_is_about_time():
    """Speed is measured in `benchmarks/`: an assert on it says how busy the machine is. Count something instead."""
    texts = {path: path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py"))}
    clocked = [path for path, text in texts.items() if any(clock in text for clock in CLOCKS)]
    assert [
        f"{path.relative_to(TESTS)}:{line}" for path in clocked for line in timed(ast.parse(texts[path]))
    ] == []


def test_every_assert_can_fail():
    found: list[str] = []
    for path in sorted(TESTS.rglob("*.py")):
        found += [f"{path.relative_to(TESTS)}:{line}" for line in empty(ast.parse(path.read_text("utf-8")))]
    assert found == []


def test_the_rules_see_what_they_should():
    hasty = """
def test_slow():
    began = time.monotonic()
    assert time.monotonic() - began < 1
def test_ratio():
    def took():
        began = perf_counter()
        return perf_counter() - began
    small: float = took()
    assert took() < 3 * small
def test_stamp():
    before = time.time()
    assert before <= made().timestamp
"""
    assert sorted(timed(ast.parse(hasty))) == [4, 10]
    hollow = """
assert x or True
assert (x, "why")
assert x == x
assert next(x) == next(x)
assert x != x
assert len(x) >= 0
assert x == y and x
pytest.raises(Exception)
pytest.raises(Exception, match="why")
"""
    assert sorted(empty(ast.parse(hollow))) == [2, 3, 4, 7, 9]
