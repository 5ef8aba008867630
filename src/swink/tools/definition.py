"""A tool: made from a typed function, from a JSON Schema, or from an object shaped like one."""

import asyncio
import functools
import inspect
import logging
import math
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Concatenate, Generic, Literal, Protocol, cast, overload

import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from typing_extensions import TypeVar

from swink.errors import InvalidInput, InvalidTool, plainly
from swink.messages import CALL_TOOL, ToolCall
from swink.messages.checks import check_list
from swink.system.aio import resolve
from swink.tools.schema import Shape, Signature, check_shape, copy_json, parse_docstring
from swink.tools.toolcontext import ToolContext, WantsT
from swink.tools.toolresult import InvalidArguments
from swink.tools.workers import DESCRIPTIONS, run_in_process, run_in_thread

log = logging.getLogger(DESCRIPTIONS)
D = TypeVar("D", default=Any)

FIND_TOOLS = "find_tools"
"""The name of the tool that looks for deferred tools."""
FINAL_OUTPUT = "final_output"
"""The name of the tool that a run with `output=` adds."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OPTIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "label": (lambda value: isinstance(value, str), "a string"),
    "requires_approval": (
        lambda value: isinstance(value, bool) or callable(value),
        "True, False or a function of the arguments",
    ),
    "sequential": (lambda value: isinstance(value, bool), "True or False"),
    "priority": (lambda value: type(value) is int, "a whole number"),
    "timeout": (
        lambda value: value is None or (_is_number(value) and 0 < value < math.inf),
        "a number of seconds above 0, or None",
    ),
    "idempotent": (lambda value: isinstance(value, bool), "True or False"),
    "max_result": (lambda value: type(value) is int and value > 0, "a number of characters above 0"),
    "read_only": (lambda value: isinstance(value, bool), "True or False"),
    "deferred": (lambda value: isinstance(value, bool) or value == "auto", "True, False or 'auto'"),
}
"""What a tool may say of itself besides its name and description, and what each must be."""


class Inside(Struct, frozen=True, eq=False):
    """The tools that a tool calls itself, and how it is made with fewer of them.

    Args:
        remake: makes the tool anew, with these tools inside
    """

    tools: tuple["Tool", ...]
    remake: Callable[[Sequence["Tool"]], "Tool"]


class Tool(Struct, Generic[WantsT], frozen=True, eq=False, kw_only=True):
    """A tool: its description for the model and the function behind it.

    `prepare` turns JSON arguments into what `run` takes, or raises `InvalidArguments` with every violation.
    `requires_approval` may be a function of the arguments. A `read_only` tool changes nothing, so plan mode
    offers it. A `deferred` tool is not sent to the model, which finds it when it needs it ("auto": if all
    tools that say so take more than 5 % of the model's window). `name`, `description` and `shape` are what
    a model is told, `label` is for people; `body` runs a call of the function with this `signature`.
    `sequential` calls run alone, others by `priority`; `timeout` is in seconds; `idempotent` calls may run
    again; `isolation` is a process; `max_result` is in characters; `inside` has tools that it calls.
    """

    name: str
    description: str
    shape: Shape
    body: Callable[[str, Any, ToolContext], Awaitable[Any]]
    signature: Signature | None = None
    function: Callable[..., Any] | None = None
    label: str = ""
    requires_approval: bool | Callable[[dict[str, Any]], bool] = False
    sequential: bool = False
    priority: int = 0
    timeout: float | None = None
    idempotent: bool = False
    isolation: Literal["process"] | None = None
    max_result: int = 100_000
    read_only: bool = False
    deferred: bool | Literal["auto"] = False
    redirect: "Callable[[ToolCall], tuple[ToolCall, Tool | None]] | None" = None
    """For a tool through which others are called: the call that is made, and the tool for it."""
    inside: Inside | None = None

    @classmethod
    @plainly
    def raw(
        cls,
        name: str,
        description: str,
        parameters_schema: Mapping[str, Any],
        execute: Callable[[str, dict[str, Any], ToolContext], Any],
        **options: Any,
    ) -> "Tool":
        """By `name`, `description`, `parameters_schema`, `execute(call_id, arguments, ctx)` and `options`."""
        shape = _shape_of_object(name, parameters_schema)

        async def body(call_id: str, arguments: Any, ctx: ToolContext) -> Any:
            return await call_off_loop(execute, call_id, arguments, ctx, name=ctx.name, cancel=ctx.cancel)

        _check_names(options, _OPTIONS)
        label = options.pop("label", "") or name
        return cls(name=name, description=description, shape=shape, body=body, label=label, **options)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not is_tool_name(self.name):
            raise InvalidTool(
                f"tool name {self.name!r} must be 1 to 64 ASCII letters, digits, '_' or '-'; "
                "set it with @tool(name=...)"
            )
        if not isinstance(self.description, str):
            raise InvalidInput(f"tool {self.name!r}: description is {self.description!r}; pass a string")
        for option, (fits, wanted) in _OPTIONS.items():
            if not fits(value := getattr(self, option)):
                raise InvalidInput(f"tool {self.name!r}: {option} is {value!r}; pass {wanted}")
        if self.isolation not in (None, "process"):
            raise InvalidInput(f"tool {self.name!r}: isolation is {self.isolation!r}; pass 'process' or None")

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self.shape.schema

    def prepare(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them; a copy, so that a tool cannot change the history."""
        signature = self.signature
        if (
            signature is not None
            and signature.scalars is not None
            and signature.shape is self.shape
            and self.isolation is None
        ):
            try:
                return asdict(msgspec.convert(arguments, signature.scalars))
            except msgspec.ValidationError:
                pass  # reported below, with all that is wrong
        problems = self.shape.violations(arguments)
        if problems:
            raise InvalidArguments(problems)
        if signature is None:
            return copy_json(arguments)
        try:
            converted = signature.arguments(copy_json(arguments))
        except ValueError as error:
            raise InvalidArguments([str(error)]) from error
        # The child process of an isolated tool converts for itself; here only the checks are wanted.
        return copy_json(arguments) if self.isolation else converted

    async def execute(self, call_id: str, arguments: Mapping[str, Any], ctx: ToolContext[WantsT]) -> Any:
        """Validate the arguments and run the tool, as the call `call_id` with its `ctx`."""
        return await self.body(call_id, self.prepare(arguments), ctx)

    def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """Whether a call with these `arguments` asks in smart mode; it does if the rule itself fails."""
        rule = self.requires_approval
        if rule is True or rule is False:
            return rule
        try:
            return bool(rule(copy_json(arguments)))
        except Exception:
            # Foreign code, before the arguments are validated: what cannot be judged is asked about.
            return True

    def call_here(self, arguments: Mapping[str, Any]) -> Any:
        """Run the function on `arguments` in this very thread: what the child process of an isolated tool
        does.
        """
        assert self.function is not None
        assert self.signature is not None
        value = self.function(**self.signature.arguments(arguments))
        return asyncio.run(value) if inspect.iscoroutine(value) else value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it were not a tool."""
        if self.function is None:
            raise InvalidInput(f"tool {self.name!r} has no function of its own; use execute()")
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


class ToolDecorator(Protocol):
    """What `tool` is to a type checker: a function that takes a `ToolContext[Db]` becomes a `Tool[Db]`."""

    @overload
    def __call__(self, function: Callable[Concatenate[ToolContext[D], ...], Any], /) -> Tool[D]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Any, ToolContext[D], ...], Any], /) -> Tool[D]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Any, Any, ToolContext[D], ...], Any], /) -> Tool[D]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, Any, Any, ToolContext[D], ...], Any], /
    ) -> Tool[D]: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[..., Any], /
    ) -> Tool[Any]: ...


@overload
def tool(function: Callable[Concatenate[ToolContext[D], ...], Any], /) -> Tool[D]: ...
@overload
def tool(function: Callable[Concatenate[Any, ToolContext[D], ...], Any], /) -> Tool[D]: ...
@overload
def tool(function: Callable[Concatenate[Any, Any, ToolContext[D], ...], Any], /) -> Tool[D]: ...
@overload
def tool(function: Callable[Concatenate[Any, Any, Any, ToolContext[D], ...], Any], /) -> Tool[D]: ...
@overload
def tool(  # pyright: ignore[reportOverlappingOverload]
    function: Callable[..., Any], /
) -> Tool[Any]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    label: str = "",
    requires_approval: bool | Callable[[dict[str, Any]], bool] = False,
    sequential: bool = False,
    priority: int = 0,
    timeout: float | None = None,
    idempotent: bool = False,
    isolation: Literal["process"] | None = None,
    max_result: int = 100_000,
    read_only: bool = False,
    deferred: bool | Literal["auto"] = False,
) -> ToolDecorator: ...
@plainly
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Any:
    """Make a typed function a tool, with a schema from its annotations and descriptions from its docstring.

    `name` and `description` replace the function's own; the other `options` are fields of `Tool`, such as
    `requires_approval`, `timeout`, and `read_only=True`: it changes nothing, so plan mode offers it.
    """
    _check_names(options, ("name", "description", *_OPTIONS, "isolation"))
    if function is None:

        @plainly
        def decorate(function: Callable[..., Any]) -> Tool:
            return _from_function(function, name, description, dict(options))

        return decorate
    return _from_function(function, name, description, options)


def is_tool_name(name: str) -> bool:
    """Whether a tool can have this name; a model may call one that none can have."""
    return _NAME.fullmatch(name) is not None


def as_tool(value: Any) -> Tool:
    """A `Tool` from a `value` that `tools=[…]` takes: a Tool, a typed function, an object shaped like one."""
    if isinstance(value, Tool):
        return cast(Tool, value)
    known: Tool | None = getattr(value, "__swink_tool__", None)
    # functools.wraps copies the mark to a wrapper, which is another function.
    if known is not None and known.function is value:
        return known
    if (
        callable(getattr(value, "execute", None))
        and hasattr(value, "parameters_schema")
        and not inspect.isclass(value)
    ):
        for key in ("name", "description"):
            if not isinstance(getattr(value, key, None), str):
                raise InvalidTool(
                    f"{value!r} has no {key}; a tool has name, description, parameters_schema and execute"
                )
        options = {key: getattr(value, key) for key in _OPTIONS if hasattr(value, key)}
        return Tool.raw(value.name, value.description, value.parameters_schema, value.execute, **options)
    if type(value).__module__.startswith("swink.mcp."):
        raise InvalidTool(
            f"{type(value).__name__} is no tool; open `async with McpServers([…]) as servers:` "
            "and pass tools=servers.tools"
        )
    if not callable(value):
        raise InvalidTool(
            f"{value!r} is not a tool: pass a typed function, a @tool, or an object with name, description, "
            "parameters_schema and execute"
        )
    made = _from_function(value, None, None, {})
    if inspect.isfunction(value):
        vars(value)["__swink_tool__"] = made  # remembered where it dies with the function
    return made


def as_tools(values: Sequence[Any]) -> tuple[Tool, ...]:
    """All `values` as tools; two of one name are refused."""
    tools = tuple([as_tool(value) for value in check_list("tools", values, "tools")])
    check_names(tools)
    return tools


def check_names(offers: Sequence[Any]) -> None:
    """Refuse two tools of one name, and one with the name of a tool by which deferred ones are used."""
    tools: list[Tool] = [offer for offer in offers if isinstance(offer, Tool)]
    names = [tool.name for tool in tools]
    if CALL_TOOL in names or (FIND_TOOLS in names and any(tool.deferred for tool in tools)):
        name = FIND_TOOLS if FIND_TOOLS in names else CALL_TOOL
        raise InvalidTool(f"{name!r} finds or calls deferred tools; rename your tool with @tool(name=...)")
    if len(set(names)) < len(names):
        name = next(name for at, name in enumerate(names) if name in names[:at])
        raise InvalidTool(f"two tools are named {name!r}; rename one with @tool(name=...), or its MCP server")


async def call_off_loop(
    function: Callable[..., Any], *values: Any, name: str, cancel: Callable[[], None] = lambda: None
) -> Any:
    """Call a function with `values`: here if it is async, in a thread `name` otherwise (see `cancel`)."""
    if _is_async(function):
        return await function(*values)
    return await resolve(await run_in_thread(lambda: function(*values), {}, name, cancel))


def _from_function(
    function: Callable[..., Any], name: str | None, description: str | None, options: dict[str, Any]
) -> Tool:
    if isinstance(function, Tool):
        raise InvalidTool(f"{function.name!r} is a tool already; remove one @tool")
    if inspect.isclass(function):
        raise InvalidTool(f"{function.__name__} is a class; pass an instance of it, or a function")
    if not callable(function):
        raise InvalidTool(f"{function!r} is not a function; use @tool or @tool(name=...)")
    name = name or getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise InvalidTool("a tool needs a name: use a named function or @tool(name=...)")
    text, parameters = parse_docstring(_docstring(function))
    signature = Signature(function, name, parameters, ToolContext)
    make_body = _process_body if options.get("isolation") == "process" else _body
    label = options.pop("label", "") or name.replace("_", " ")
    if not (description or text):
        _warn_undescribed(name, getattr(function, "__module__", ""))
    return Tool(
        name=name,
        description=description or text or label,
        shape=signature.shape,
        body=make_body(function, name, signature),
        signature=signature,
        function=function,
        label=label,
        **options,
    )


@functools.lru_cache(1024)
def _warn_undescribed(name: str, module: str) -> None:
    """Say once that a model is told nothing of a tool; a source of tools may make one for every turn."""
    log.warning(
        "tool %r has no description, so a model knows it by its name alone; "
        "write a docstring, or pass @tool(description=...)",
        name,
    )


def _shape_of_object(name: str, schema: Mapping[str, Any]) -> Shape:
    """The shape of arguments; every provider wants `type: object` at the top of the schema."""
    if not isinstance(schema, Mapping):
        raise InvalidTool(f"tool {name!r}: its schema is {schema!r}; pass a JSON Schema as a dict")
    kind = schema.get("type", ["object"])
    shape = Shape({**schema, "type": "object"} if isinstance(kind, list) and "object" in kind else schema)
    check_shape(shape, name)
    if shape.schema["type"] != "object":
        raise InvalidTool(
            f"tool {name!r}: arguments are an object; its schema needs type 'object', not {kind!r}"
        )
    return shape


def _docstring(function: Any) -> str | None:
    """What the author wrote: not the docstring of `functools.partial`, nor that of a builtin `__call__`."""
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    written = function if inspect.isroutine(function) else type(function).__call__
    return written.__doc__ if inspect.isroutine(function) or inspect.isfunction(written) else None


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


def _body(
    function: Callable[..., Any], name: str, signature: Signature
) -> Callable[[str, Any, ToolContext], Awaitable[Any]]:
    injected = signature.injected
    is_async = _is_async(function)
    if is_async and injected is None:
        return lambda call_id, arguments, ctx: function(**arguments)

    async def body(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        if injected is not None:
            arguments = {**arguments, injected: ctx}
        if is_async:
            return await function(**arguments)
        return await resolve(await run_in_thread(function, arguments, name, ctx.cancel))

    return body


def _process_body(
    function: Callable[..., Any], name: str, signature: Signature
) -> Callable[[str, Any, ToolContext], Awaitable[Any]]:
    module, qualname = getattr(function, "__module__", ""), getattr(function, "__qualname__", "<")
    if not inspect.isfunction(function) or "<" in qualname:
        raise InvalidTool(
            f"tool {name!r}: isolation='process' needs a function at module level, "
            "so that the child can import it"
        )
    if signature.injected is not None:
        raise InvalidTool(
            f"tool {name!r}: a ToolContext cannot cross into a process; drop the parameter or the isolation"
        )

    async def body(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        return await run_in_process(module, qualname, arguments)

    return body


def _check_names(options: Mapping[str, Any], known: Collection[str]) -> None:
    for option in options:
        if option not in known:
            raise InvalidInput(f"a tool has no option {option!r}; the options are {', '.join(known)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
