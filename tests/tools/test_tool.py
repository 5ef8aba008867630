"""Tools, without a loop (P1, P7, P10): what may be one, what it says when it may not, and what a call gives."""

import asyncio
import dataclasses
import enum
import functools
import inspect
import pickle
import threading
from pathlib import Path
from typing import Annotated, Any

import annotated_types as at
import msgspec
import pydantic
import pytest
from msgspec.structs import replace

from swink.errors import AgentError, InvalidInput, InvalidTool
from swink.messages import Cost, Extension, Image, Text, Thinking, ToolCall, UrlSource, Usage
from swink.tools import (
    InvalidArguments,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    Transfer,
    as_result,
    as_tool,
    as_tools,
    tool,
)
from swink.tools.schema import Shape


async def call(made: Tool, /, **arguments: Any) -> Any:
    return await made.execute("1", arguments, ToolContext("1", made.name))


def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The first.
    """
    return a + b


async def later(text: str) -> str:
    await asyncio.sleep(0)
    return text.upper()


class Shop:
    """A shop with things in it."""

    def __init__(self) -> None:
        self.sold: list[str] = []

    def sell(self, name: str) -> str:
        """Sell something."""
        self.sold.append(name)
        return name

    async def count(self) -> int:
        return len(self.sold)

    @staticmethod
    def price(name: str) -> int:
        return len(name)

    @classmethod
    def kind(cls, name: str) -> str:
        return cls.__name__ + name


class Greeter:
    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def __call__(self, name: str) -> str:
        """Greet somebody."""
        return f"{self.greeting} {name}"


class AsyncGreeter:
    async def __call__(self, name: str) -> str:
        return f"hi {name}"


# What may be a tool


async def test_a_bare_function_is_a_tool():
    made = as_tool(add)
    assert (made.name, made.label, made.description) == ("add", "add", "Add two numbers.")
    assert made.parameters_schema["properties"]["a"] == {"type": "integer", "description": "The first."}
    assert made.parameters_schema["required"] == ["a"]
    assert not made.requires_approval
    assert await call(made, a=1) == 3
    assert as_tool(add) is made, "made once, remembered by the function"


async def test_the_decorator_works_bare_and_with_options():
    @tool
    def one(x: int) -> int:
        return x

    @tool(
        name="second-tool",
        description="Does two.",
        label="Two!",
        requires_approval=True,
        sequential=True,
        priority=3,
        timeout=1.5,
        idempotent=True,
        max_result=99,
        read_only=True,
    )
    async def two(x: int) -> int:
        """Not shown."""
        return 2 * x

    assert (one.name, one.description, one.label) == ("one", "one", "one")
    assert (two.name, two.description, two.label) == ("second-tool", "Does two.", "Two!")
    assert (
        two.requires_approval,
        two.sequential,
        two.priority,
        two.timeout,
        two.idempotent,
        two.max_result,
        two.read_only,
    ) == (
        True,
        True,
        3,
        1.5,
        True,
        99,
        True,
    )
    assert not one.read_only
    assert await call(one, x=4) == 4
    assert await call(two, x=4) == 8
    assert as_tool(two) is two


async def test_options_of_one_decorator_do_not_leak_into_the_next():
    decorate = tool(label="L", timeout=1.0)
    first = decorate(add)
    second = decorate(later)
    assert (first.label, second.label) == ("L", "L")
    assert (first.timeout, second.timeout) == (1.0, 1.0)


def test_a_tool_is_still_the_function():
    made = tool(add)
    assert made(1, b=5) == 6
    assert made.function is add
    raw = Tool.raw("raw", "d", {"type": "object"}, lambda call_id, arguments, ctx: None)
    with pytest.raises(TypeError, match="execute"):
        raw()


@pytest.mark.parametrize(
    ("make", "arguments", "expected"),
    [
        (lambda: Shop().sell, {"name": "pen"}, "pen"),
        (lambda: Shop().count, {}, 0),
        (lambda: Shop.price, {"name": "pen"}, 3),
        (lambda: Shop().kind, {"name": "pen"}, "Shoppen"),
        (lambda: functools.partial(add, b=5), {"a": 1}, 6),
        (lambda: functools.partial(later, "x"), {}, "X"),
        (lambda: Greeter("hello"), {"name": "Ann"}, "hello Ann"),
        (lambda: AsyncGreeter(), {"name": "Ann"}, "hi Ann"),
    ],
)
async def test_methods_partials_and_callables_are_tools(make, arguments, expected):
    function = make()
    made = tool(name="named")(function)
    assert await call(made, **arguments) == expected


def test_the_description_of_a_callable_is_its_own():
    assert as_tool(Shop().sell).description == "Sell something."
    assert tool(name="t")(functools.partial(add, b=1)).description == "Add two numbers."
    assert tool(name="t")(Greeter("x")).description == "Greet somebody."
    assert tool(name="t")(AsyncGreeter()).description == "t", "not the docstring of some builtin"


async def test_a_wrapped_function_runs_its_wrapper():
    as_tool(add)

    @functools.wraps(add)
    def guarded(*args: Any, **kwargs: Any) -> str:
        return f"guarded {add(*args, **kwargs)}"

    assert await call(as_tool(guarded), a=1) == "guarded 3"


async def test_a_plain_function_that_returns_something_to_await_is_awaited():
    @functools.wraps(later)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return later(*args, **kwargs)

    assert await call(as_tool(wrapper), text="x") == "X"


async def test_the_context_is_injected_and_not_in_the_schema():
    seen: list[Any] = []

    @tool
    async def look(ctx: ToolContext, at: str) -> str:
        seen.append(ctx)
        return at

    @tool
    def peek(at: str, ctx: ToolContext | None = None) -> str:
        seen.append(ctx)
        return at

    for made in (look, peek):
        assert list(made.parameters_schema["properties"]) == ["at"]
        context = ToolContext("7", made.name, {"x": 1})
        assert await made.execute("7", {"at": "here"}, context) == "here"
        assert seen.pop() is context
        with pytest.raises(InvalidArguments):
            made.prepare({"at": "x", "ctx": {}})


class Db:
    pass


async def typed(at: str, ctx: ToolContext[Db]) -> Any:
    return ctx.deps


async def annotated(at: str, ctx: Annotated[ToolContext[Db], "the context"]) -> Any:
    return ctx.deps


async def optional(at: str, ctx: ToolContext[Db] | None = None) -> Any:
    return ctx and ctx.deps


async def quoted(at: str, ctx: "Annotated[ToolContext[Db] | None, 1]" = None) -> Any:
    return ctx and ctx.deps


@pytest.mark.parametrize("function", [typed, annotated, optional, quoted])
async def test_a_typed_context_is_injected_with_the_dependencies(function):
    made, db = as_tool(function), Db()
    assert list(made.parameters_schema["properties"]) == ["at"]
    assert await made.execute("1", {"at": "x"}, ToolContext("1", "t", deps=db)) is db
    assert await made.execute("1", {"at": "x"}, ToolContext("1", "t")) is None


async def test_sync_tools_run_off_the_loop_and_async_ones_on_it():
    @tool
    def sync() -> int:
        return threading.get_ident()

    @tool
    async def on_loop() -> int:
        return threading.get_ident()

    assert await call(sync) != threading.get_ident()
    assert await call(on_loop) == threading.get_ident()


class Duck:
    name = "duck"
    description = "Quacks."
    parameters_schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    label = "Duck!"
    requires_approval = True
    sequential = True
    priority = 2
    timeout = 3.0
    read_only = True

    async def execute(self, call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
        return f"{call_id} quack" * arguments["n"]


class SyncDuck(Duck):
    # The names of the parameters are the tool's own business.
    def execute(self, id: str, args: dict[str, Any], context: ToolContext) -> str:  # type: ignore[override]
        return f"{id} {args['n']} {context.name} {threading.get_ident() == threading.main_thread().ident}"


class LateDuck(Duck):
    def execute(self, call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        return super().execute(call_id, arguments, ctx)


async def test_an_object_shaped_like_a_tool_is_one():
    made = as_tool(Duck())
    assert (made.name, made.description, made.label) == ("duck", "Quacks.", "Duck!")
    assert (made.requires_approval, made.sequential, made.priority, made.timeout) == (True, True, 2, 3.0)
    assert made.read_only
    assert await call(made, n=1) == "1 quack"
    with pytest.raises(InvalidArguments, match=r"\$: \"n\" is a required property"):
        await call(made)
    assert await call(as_tool(SyncDuck()), n=2) == "1 2 duck False"
    assert await call(as_tool(LateDuck()), n=1) == "1 quack"


@pytest.mark.parametrize("kind", [{}, {"type": ["object", "null"]}, {"type": "object"}])
def test_a_schema_always_says_that_arguments_are_an_object(kind: dict[str, Any]):
    schema = {**kind, "properties": {"a": {"type": "integer"}}}
    made = Tool.raw("raw", "d", schema, print)
    assert made.parameters_schema == {"type": "object", "properties": {"a": {"type": "integer"}}}
    made.parameters_schema["properties"]["a"]["type"] = "string"
    assert schema == {**kind, "properties": {"a": {"type": "integer"}}}, "the user's schema is theirs"


# What may not, and what to change


def positional(x: int, /) -> int:
    return x


def variadic(*args: int) -> None: ...


def keywords(**kwargs: int) -> None: ...


def untyped(x, y: int = 1): ...


def odd_default(x: Any = object()) -> None: ...


def unresolved(x: "NoSuchType") -> None: ...  # noqa: F821


def unusable(x: threading.Lock) -> None: ...


def nonsense(x: "1 +") -> None: ...  # noqa: F722


def spaced(x: int) -> int:
    return x


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: as_tool(positional), r"'x: int' cannot be filled by name; use ordinary named parameters"),
        (lambda: as_tool(variadic), r"'\*args: int' cannot be filled by name"),
        (lambda: as_tool(keywords), r"'\*\*kwargs: int' cannot be filled by name"),
        (
            lambda: as_tool(untyped),
            r"tool 'untyped': parameter 'x' has no type annotation; annotate it, e.g. `x: str`",
        ),
        (
            lambda: as_tool(odd_default),
            r"tool 'odd_default': the default of 'x' is not JSON-able .*; use None",
        ),
        (lambda: as_tool(unresolved), r"tool 'unresolved': .*NoSuchType.*define the type at module level"),
        (lambda: as_tool(nonsense), r"tool 'nonsense': an annotation cannot be resolved"),
        (lambda: as_tool(unusable), r"tool 'unusable': parameter 'x'.*use str, int"),
        (lambda: as_tool(lambda x: x), r"needs a name.*@tool\(name=\.\.\.\)"),
        (lambda: as_tool(functools.partial(add, b=1)), r"needs a name"),
        (
            lambda: tool(name="two words")(spaced),
            r"'two words' must be 1 to 64 ASCII letters.*@tool\(name=\.\.\.\)",
        ),
        (lambda: tool(name="x" * 65)(spaced), r"must be 1 to 64"),
        (lambda: tool(name="größe")(spaced), r"must be 1 to 64 ASCII"),
        (lambda: Tool.raw("a.b", "d", {"type": "object"}, print), r"'a.b' must be"),
        (
            lambda: Tool.raw("a", "d", {"type": "array"}, print),
            r"tool 'a': .* needs type 'object', not 'array'",
        ),
        (lambda: Tool.raw("a", "d", None, print), r"tool 'a': .* pass a JSON Schema as a dict"),  # type: ignore[arg-type]
        (
            lambda: as_tools([add, tool(name="add")(later)]),
            r"two tools are named 'add'; rename one with @tool\(name=\.\.\.\)",
        ),
        (lambda: tool(tool(add)), r"'add' is a tool already; remove one @tool"),
        (lambda: tool("add"), r"'add' is not a function; use @tool or @tool\(name=\.\.\.\)"),  # type: ignore[arg-type]
        (lambda: as_tool(5), r"5 is not a tool: pass a typed function"),
        (lambda: as_tool("add"), r"'add' is not a tool"),
        (lambda: as_tool(None), r"None is not a tool"),
        (lambda: as_tool(max), r"tool 'max'.*signature"),
        (lambda: as_tool(Duck), r"Duck is a class; pass an instance"),
        (lambda: as_tool(Greeter), r"Greeter is a class; pass an instance"),
        (
            lambda: as_tool(type("Lame", (), {"execute": print, "parameters_schema": {}, "name": "lame"})()),
            r"no description",
        ),
        (lambda: as_tool(Shop.sell), r"'self' .* pass the method of an instance"),
        (
            lambda: tool(isolation="process")(Shop().sell),
            r"isolation='process' needs a function at module level",
        ),
        (
            lambda: tool(name="p", isolation="process")(functools.partial(add, b=1)),
            r"isolation='process' needs a function",
        ),
        (lambda: tool(isolation="process")(with_context), r"a ToolContext cannot cross into a process"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_what_to_change(make, says):
    with pytest.raises(InvalidTool, match=f"(?s){says}"):
        make()


def with_context(ctx: ToolContext) -> None: ...


def test_a_local_function_cannot_run_in_a_process():
    def local(x: int) -> int:
        return x

    with pytest.raises(InvalidTool, match="function at module level"):
        tool(isolation="process")(local)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"timeout": "5"}, r"timeout is '5'; pass a number of seconds above 0, or None"),
        ({"timeout": -1}, r"timeout is -1; pass a number of seconds"),
        ({"timeout": 0}, r"timeout is 0; pass"),
        ({"timeout": float("nan")}, r"timeout is nan; pass"),
        ({"timeout": float("inf")}, r"timeout is inf; pass"),
        ({"timeout": True}, r"timeout is True; pass"),
        ({"max_result": 0}, r"max_result is 0; pass a number of characters above 0"),
        ({"max_result": 1e5}, r"max_result is 100000.0; pass"),
        ({"priority": "high"}, r"priority is 'high'; pass a whole number"),
        ({"sequential": 1}, r"sequential is 1; pass True or False"),
        ({"idempotent": "yes"}, r"idempotent is 'yes'; pass True or False"),
        ({"read_only": None}, r"read_only is None; pass True or False"),
        ({"requires_approval": "always"}, r"requires_approval is 'always'; pass True, False or a function"),
        ({"label": 5}, r"label is 5; pass a string"),
        ({"colour": "red"}, r"no option 'colour'; the options are .*label, requires_approval"),
    ],
)
def test_an_option_that_cannot_work_is_refused_with_what_to_pass(options: dict[str, Any], says: str):
    duck = type("Odd", (Duck,), options)()
    makers = [
        lambda: tool(**options)(add),
        lambda: Tool.raw("raw", "d", {"type": "object"}, print, **options),
        *([lambda: as_tool(duck)] if "colour" not in options else []),
    ]
    for make in makers:
        with pytest.raises(InvalidInput, match=says):
            make()


def test_an_unknown_option_is_named_before_there_is_a_function():
    with pytest.raises(TypeError, match="colour"):
        tool(colour="red")  # type: ignore[call-overload]


def test_isolation_is_for_functions_and_has_one_value():
    with pytest.raises(InvalidInput, match="isolation is 'thread'; pass 'process' or None"):
        tool(isolation="thread")(add)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="no option 'isolation'"):
        Tool.raw("raw", "d", {"type": "object"}, print, isolation="process")


def test_an_isolated_tool_refuses_in_this_process_what_its_types_refuse():
    made = tool(isolation="process")(even)
    assert made.prepare({"n": 2}) == {"n": 2}
    with pytest.raises(InvalidArguments, match=r"\$\.n: .* does not hold"):
        made.prepare({"n": 3})


def even(n: Annotated[int, at.Predicate(lambda n: n % 2 == 0)]) -> int:
    return n


# Calls


async def test_invalid_arguments_never_reach_the_function():
    reached: list[Any] = []

    @tool
    async def reach(n: int, where: str = "") -> None:
        reached.append(n)

    for arguments in ({"n": "x"}, {}, {"n": 1, "other": 2}, {"n": 1, "where": 3}, {"n": None}):
        with pytest.raises(InvalidArguments) as caught:
            await call(reach, **arguments)
        assert caught.value.problems
        assert all(problem.startswith("$") for problem in caught.value.problems)
    assert reached == []


async def test_a_tool_cannot_change_the_arguments_it_was_called_with():
    arguments = {"rows": [{"x": 1}], "deep": {"a": [1]}}
    before = msgspec.json.encode(arguments)

    @tool
    async def scribble(rows: list[dict[str, int]], deep: dict[str, Any]) -> None:
        rows[0]["x"] = 99
        rows.append({})
        deep["a"].append(2)

    def scribble_raw(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> None:
        arguments["rows"][0]["x"] = 99
        del arguments["deep"]

    for made in (scribble, Tool.raw("raw", "d", {"type": "object"}, scribble_raw)):
        await made.execute("1", arguments, ToolContext("1", "t"))
        assert msgspec.json.encode(arguments) == before


async def test_what_a_tool_raises_comes_out_as_it_is():
    @tool
    def fail() -> None:
        raise LookupError("not there")

    @tool
    async def tell() -> None:
        raise ToolError("try again", {"code": 7})

    with pytest.raises(LookupError, match="not there"):
        await call(fail)
    with pytest.raises(ToolError, match="try again") as caught:
        await call(tell)
    assert caught.value.details == {"code": 7}


def test_errors_of_tools_survive_pickling():
    error = pickle.loads(pickle.dumps(InvalidArguments(["$.a: bad", "$.b: worse"])))
    assert error.problems == ["$.a: bad", "$.b: worse"]
    assert str(error) == "$.a: bad\n$.b: worse"
    told = pickle.loads(pickle.dumps(ToolError("text", {"x": 1})))
    assert (str(told), told.details) == ("text", {"x": 1})
    assert isinstance(told, AgentError)


def test_approval_may_depend_on_the_arguments():
    made = tool(requires_approval=lambda arguments: arguments.get("a", 0) > 10)(add)
    assert made.needs_approval({"a": 11})
    assert not made.needs_approval({"a": 1})
    assert tool(requires_approval=True)(add).needs_approval({})
    assert not as_tool(add).needs_approval({})


def test_a_rule_of_approval_that_fails_asks_and_cannot_change_the_arguments():
    assert tool(requires_approval=lambda arguments: arguments["path"] == "/")(add).needs_approval({})
    arguments = {"a": [1]}
    assert not tool(requires_approval=lambda given: given["a"].clear() is not None)(add).needs_approval(
        arguments
    )
    assert arguments == {"a": [1]}


# Results


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Row:
    n: int


class Model(pydantic.BaseModel):
    n: int


class Record(msgspec.Struct):
    n: int


IMAGE = Image(UrlSource("u"))


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", (Text("text"),)),
        ("", ()),
        (None, ()),
        (True, (Text("true"),)),
        (3, (Text("3"),)),
        (1.5, (Text("1.5"),)),
        ([], (Text("[]"),)),
        (["a", "b"], (Text('["a","b"]'),)),
        ({"a": [1, None]}, (Text('{"a":[1,null]}'),)),
        ((1, 2), (Text("[1,2]"),)),
        ({1}, (Text("[1]"),)),
        (Row(1), (Text('{"n":1}'),)),
        (Model(n=1), (Text('{"n":1}'),)),
        ([Model(n=1)], (Text('[{"n":1}]'),)),
        (Record(1), (Text('{"n":1}'),)),
        (Colour.RED, (Text('"red"'),)),
        (Path("/tmp"), (Text('"/tmp"'),)),
        (b"hi", (Text('"aGk="'),)),
        (Text("t"), (Text("t"),)),
        (IMAGE, (IMAGE,)),
        (Extension("x", 1), (Extension("x", 1),)),
        ([Text("t"), IMAGE], (Text("t"), IMAGE)),
        (("see", IMAGE), (Text("see"), IMAGE)),
        ("bad \ud800", (Text("bad \ufffd"),)),
        (["bad \udcff", {"\ud83d\ude00": 1}], (Text('["bad \ufffd",{"😀":1}]'),)),
    ],
)
def test_whatever_a_tool_returns_becomes_a_result(value, content):
    result = as_result(value)
    assert result == ToolResult(content)
    msgspec.json.encode(result)


def test_a_result_is_a_result():
    result = ToolResult("text", {"x": 1}, True)
    assert as_result(result) is result


def test_a_transfer_says_where_to():
    result = as_result(Transfer("billing"))
    assert result.text == "transferred to billing"
    assert result.details == {"transfer": "billing"}
    assert as_result(Transfer("billing", "over to them")).text == "over to them"


@pytest.mark.parametrize("value", [[ToolCall("1", "n")], [Text("a"), Thinking("b")], Thinking("x")])
def test_blocks_only_a_model_may_write_are_shown_as_data(value):
    assert all(isinstance(block, Text) for block in as_result(value).content)


@pytest.mark.parametrize("value", [object(), [object()], {"a": lambda: None}, (x for x in "ab")])
def test_a_value_that_cannot_be_shown_says_so(value):
    with pytest.raises((TypeError, NotImplementedError), match="JSON-able"):
        as_result(value)


# The context of a call


async def test_updates_arrive_in_order_from_any_thread_until_the_call_is_over():
    seen: list[int] = []
    context = ToolContext("1", "t", emit=seen.append)
    context.update(0)

    def work() -> None:
        for number in range(1, 50):
            context.update(number)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    await asyncio.sleep(0)
    assert seen == list(range(50))
    context.close()
    context.update(99)
    thread = threading.Thread(target=context.update, args=(99,))
    thread.start()
    thread.join()
    await asyncio.sleep(0)
    assert seen == list(range(50))


async def test_usage_of_a_sub_agent_is_charged_until_the_call_is_over():
    charged: list[Any] = []
    context = ToolContext("1", "t", charge=lambda usage, cost: charged.append((usage, cost)))
    context.charge(Usage(1, 2), Cost(0.5))
    context.close()
    context.charge(Usage(3))
    assert charged == [(Usage(1, 2), Cost(0.5))]


async def test_cancellation_can_be_seen_and_waited_for():
    context = ToolContext("1", "t")
    waiters = [asyncio.create_task(context.wait_cancelled()) for _ in range(3)]
    gone = asyncio.create_task(context.wait_cancelled())
    await asyncio.sleep(0)
    assert not context.cancelled
    gone.cancel()
    context.cancel()
    context.cancel()
    await asyncio.gather(*waiters)
    assert context.cancelled
    await context.wait_cancelled()
    assert (await asyncio.gather(gone, return_exceptions=True))[0].__class__ is asyncio.CancelledError


async def test_a_context_of_its_own_has_its_own_state():
    assert ToolContext("1", "t").state == {}
    state = {"x": 1}
    assert ToolContext("1", "t", state).state is state


def test_tools_compare_by_identity_and_print_their_name():
    one, two = tool(add), tool(add)
    assert one != two
    assert len({one, two}) == 2
    assert repr(one) == "Tool('add')"
    assert inspect.signature(as_tool).parameters


def test_annotated_text_describes_a_parameter():
    @tool
    def f(x: Annotated[int, "how many"]) -> None: ...

    assert f.parameters_schema["properties"]["x"]["description"] == "how many"


async def test_a_tool_given_another_shape_is_held_to_it():
    @tool
    async def small(number: int) -> int:
        """Small numbers."""
        return number

    strict = replace(
        small, shape=Shape({"type": "object", "properties": {"number": {"type": "integer", "maximum": 9}}})
    )
    with pytest.raises(InvalidArguments, match="9"):
        await strict.execute("1", {"number": 10}, ToolContext("1", "small"))


def test_a_tool_that_says_nothing_of_itself_warns_once(caplog: pytest.LogCaptureFixture):
    def undescribed_sum(a: int, b: int) -> int:
        return a + b

    for _ in range(2):
        made = tool(undescribed_sum)
    assert made.description == "undescribed sum"
    tool(description="Add.")(undescribed_sum)
    assert [record.getMessage() for record in caplog.records] == [
        "tool 'undescribed_sum' has no description, so a model knows it by its name alone; "
        "write a docstring, or pass @tool(description=...)"
    ]
