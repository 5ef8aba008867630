"""Tools: typed functions a model may call."""

import asyncio
import functools
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, cast, overload

import msgspec
from msgspec import Struct

from swink.codec import plain
from swink.docstrings import parse_docstring
from swink.engine.waiting import resolve
from swink.errors import AgentError, InvalidTool
from swink.messages import Cost, Extension, Image, Text, ToolResult, Usage, clean
from swink.schema import Shape, Signature, copy_json
from swink.workers import run_in_process, run_in_thread

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    DepsT = TypeVar("DepsT", default=Any)
else:
    from typing import TypeVar  # without `default=`, which only type checkers need

    DepsT = TypeVar("DepsT")

__all__ = [
    "DepsT",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "Transfer",
    "as_result",
    "as_tool",
    "as_tools",
    "copy_json",
    "failure",
    "tool",
]

_OPTIONS = (
    "label",
    "requires_approval",
    "sequential",
    "priority",
    "timeout",
    "idempotent",
    "max_result",
    "read_only",
)
_RESULT_BLOCKS = Text | Image | Extension


class ToolError(AgentError):
    """Raise it in a tool to tell the model something; the text becomes an error result."""

    def __init__(self, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.details = details


class Transfer(Struct, frozen=True):
    """Return it from a tool to end the run and hand the conversation to another agent."""

    to: str
    text: str = ""


class ToolContext(Generic[DepsT]):
    """What a running tool knows of its call.

    `state` is the session's JSON dict, shared with policies and other tools. `deps` is whatever the program gave
    the agent (a database, a client): a tool that takes `ctx: ToolContext[Db]` has `ctx.deps: Db`.
    """

    __slots__ = (
        "_cancelled",
        "_charge",
        "_emit",
        "_loop",
        "_thread",
        "_waiters",
        "call_id",
        "deps",
        "name",
        "state",
    )

    def __init__(
        self,
        call_id: str,
        name: str,
        state: dict[str, Any] | None = None,
        emit: Callable[[Any], None] | None = None,
        charge: Callable[[Usage, Cost | None], None] | None = None,
        *,
        deps: Any = None,
    ) -> None:
        self.call_id = call_id
        self.name = name
        self.deps: DepsT = deps
        self.state: dict[str, Any] = {} if state is None else state
        self._emit = emit
        self._charge = charge
        self._cancelled = False
        self._waiters: tuple[asyncio.Future[None], ...] = ()
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()

    @property
    def cancelled(self) -> bool:
        """Whether the call is no longer wanted; a sync tool looks here, an async one is simply cancelled."""
        return self._cancelled

    def update(self, update: Any) -> None:
        """Report progress; safe from any thread, in order, always before the result."""
        self._on_loop(lambda: self._report(update))

    def charge(self, usage: Usage, cost: Cost | None = None) -> None:
        """Count model usage of the tool's own (a sub-agent's) in the run's totals."""
        self._on_loop(lambda: self._bill(usage, cost))

    async def wait_cancelled(self) -> None:
        """Return once the call is no longer wanted."""
        if not self._cancelled:
            waiter = self._loop.create_future()
            self._waiters = (*self._waiters, waiter)
            await waiter

    def cancel(self) -> None:
        """Say that the call is no longer wanted."""
        self._cancelled = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """The call is over: whatever still runs of it is no longer heard."""
        self._emit = self._charge = None

    def _report(self, update: Any) -> None:
        if self._emit is not None:
            self._emit(update)

    def _bill(self, usage: Usage, cost: Cost | None) -> None:
        if self._charge is not None:
            self._charge(usage, cost)

    def _on_loop(self, action: Callable[[], None]) -> None:
        if threading.get_ident() == self._thread:
            action()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(action)


class Tool(Struct, frozen=True, eq=False, kw_only=True):
    """A tool: its description for the model and the function behind it.

    `prepare` turns JSON arguments into what `run` takes, or raises `InvalidArguments` with every violation.
    `requires_approval` may be a function of the arguments. A `read_only` tool changes nothing, so plan mode
    offers it.
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

    @classmethod
    def raw(
        cls,
        name: str,
        description: str,
        parameters_schema: Mapping[str, Any],
        execute: Callable[[str, dict[str, Any], ToolContext], Any],
        **options: Any,
    ) -> "Tool":
        """A tool from a JSON Schema and `execute(call_id, arguments, ctx)`, sync or async."""
        shape = _shape_of_object(name, parameters_schema)

        async def body(call_id: str, arguments: Any, ctx: ToolContext) -> Any:
            return await call_off_loop(execute, call_id, arguments, ctx, ctx=ctx)

        return _checked(
            cls(
                name=name,
                description=description,
                shape=shape,
                body=body,
                label=options.pop("label", "") or name,
                **options,
            )
        )

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self.shape.schema

    def prepare(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them; a copy, so that a tool cannot change the history."""
        signature = self.signature
        if signature is not None and signature.shape is self.shape and self.isolation is None:
            fitting = signature.fitting(arguments)
            if fitting is not None:
                return fitting
        problems = self.shape.violations(arguments)
        if problems:
            raise InvalidArguments(problems)
        if self.signature is None or self.isolation == "process":
            return copy_json(arguments)
        try:
            return self.signature.arguments(copy_json(arguments))
        except ValueError as error:
            raise InvalidArguments([str(error)]) from error

    async def execute(self, call_id: str, arguments: Mapping[str, Any], ctx: ToolContext) -> Any:
        """Validate the arguments and run the tool."""
        return await self.body(call_id, self.prepare(arguments), ctx)

    def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """Whether this call asks for approval in smart mode; a rule that fails (on arguments it did not expect) asks."""
        if not callable(self.requires_approval):
            return self.requires_approval
        try:
            return bool(self.requires_approval(copy_json(arguments)))
        except Exception:
            # Somebody else's code, before the arguments are validated: what cannot be judged is asked about.
            return True

    def call_here(self, arguments: Mapping[str, Any]) -> Any:
        """Run the function in this very thread: what the child process of an isolated tool does."""
        assert self.function is not None
        assert self.signature is not None
        value = self.function(**self.signature.arguments(arguments))
        return asyncio.run(value) if inspect.iscoroutine(value) else value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it were not a tool."""
        if self.function is None:
            raise TypeError(f"tool {self.name!r} has no function of its own; use execute()")
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


class InvalidArguments(ToolError):
    """The model's arguments do not fit the schema; the text lists every violation."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
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
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Any:
    """Make a typed function a tool: the schema comes from its annotations, the descriptions from its docstring.

    `read_only=True` says that it changes nothing, so plan mode offers it.
    """
    if function is None:

        def decorate(function: Callable[..., Any]) -> Tool:
            return _from_function(function, name, description, dict(options))

        return decorate
    return _from_function(function, name, description, options)


def as_tool(value: Any) -> Tool:
    """A `Tool` from whatever may stand in `tools=[…]`: a Tool, a typed function, or an object shaped like a tool."""
    if isinstance(value, Tool):
        return value
    known: Tool | None = getattr(value, "__swink_tool__", None)
    if (
        known is not None and known.function is value
    ):  # functools.wraps copies the mark to a wrapper, which is another function
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
    if not callable(value):
        raise InvalidTool(
            f"{value!r} is not a tool: pass a typed function, a @tool, or an object with name, description, parameters_schema, execute"
        )
    made = _from_function(value, None, None, {})
    if inspect.isfunction(value):
        value.__swink_tool__ = made  # type: ignore[attr-defined]  remembered where it dies with the function
    return made


def as_tools(values: Sequence[Any]) -> tuple[Tool, ...]:
    """All as tools; two of one name are refused."""
    tools = tuple([as_tool(value) for value in values])
    names: set[str] = set()
    for item in tools:
        if item.name in names:
            raise InvalidTool(f"two tools are named {item.name!r}; rename one with @tool(name=...)")
        names.add(item.name)
    return tools


def as_result(value: Any) -> ToolResult:
    """What a tool returned, as a result."""
    if isinstance(value, str):
        return ToolResult((Text(clean(value)),) if value else ())
    match value:
        case ToolResult():
            return value
        case None:
            return ToolResult()
        case Transfer(to, text):
            return ToolResult((Text(text or f"transferred to {to}"),), {"transfer": to})
        case Text() | Image() | Extension():
            return ToolResult((value,))
        case list() | tuple() if (
            value
            and all(isinstance(item, _RESULT_BLOCKS | str) for item in cast("list[Any]", value))
            and any(isinstance(item, _RESULT_BLOCKS) for item in cast("list[Any]", value))
        ):
            return ToolResult(cast(Any, value))
        case _:
            return ToolResult((Text(_shown(value)),))


async def call_off_loop(function: Callable[..., Any], *values: Any, ctx: ToolContext) -> Any:
    """Call a function of somebody else's: here if it is async, in a worker thread if it may block."""
    if _is_async(function):
        return await function(*values)
    return await resolve(await run_in_thread(lambda: function(*values), {}, ctx.name, ctx.cancel))


def failure(text: str) -> ToolResult:
    """A result that tells the model what went wrong."""
    return ToolResult((Text(text),), is_error=True)


def _shown(value: Any) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=plain).decode()
    except UnicodeEncodeError:  # a lone surrogate somewhere inside, as in the name of a file
        return clean(
            json.dumps(msgspec.to_builtins(value, enc_hook=plain), ensure_ascii=False, separators=(",", ":"))
        )


def _from_function(
    function: Callable[..., Any], name: str | None, description: str | None, options: dict[str, Any]
) -> Tool:
    if isinstance(function, Tool):
        raise InvalidTool(f"{function.name!r} is a tool already; remove one @tool")
    if inspect.isclass(function):
        raise InvalidTool(f"{function.__name__} is a class; pass an instance of it, or a function")
    name = name or getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise InvalidTool("a tool needs a name: use a named function or @tool(name=...)")
    text, parameters = parse_docstring(_docstring(function))
    signature = Signature(function, name, parameters, ToolContext)
    body = (
        _process_body(function, name, signature)
        if options.get("isolation") == "process"
        else _body(function, name, signature)
    )
    label = options.pop("label", "") or name.replace("_", " ")
    return _checked(
        Tool(
            name=name,
            description=description or text or label,
            shape=signature.shape,
            body=body,
            signature=signature,
            function=function,
            label=label,
            **options,
        )
    )


def _shape_of_object(name: str, schema: Mapping[str, Any]) -> Shape:
    """The shape of arguments; every provider wants `type: object` at the top of the schema."""
    if not isinstance(schema, Mapping):
        raise InvalidTool(f"tool {name!r}: its schema is {schema!r}; pass a JSON Schema as a dict")
    kind = schema.get("type", ["object"])
    shape = Shape({**schema, "type": "object"} if isinstance(kind, list) and "object" in kind else schema)
    try:
        shape.check()
    except InvalidTool as error:
        raise InvalidTool(f"tool {name!r}: {error}") from error
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
            f"tool {name!r}: isolation='process' needs a function at module level, so that the child can import it"
        )
    if signature.injected is not None:
        raise InvalidTool(
            f"tool {name!r}: a ToolContext cannot cross into a process; drop the parameter or the isolation"
        )

    async def body(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        return await run_in_process(module, qualname, arguments)

    return body


def _checked(made: Tool) -> Tool:
    if not (0 < len(made.name) <= 64) or not all(
        char.isascii() and (char.isalnum() or char in "_-") for char in made.name
    ):
        raise InvalidTool(
            f"tool name {made.name!r} must be 1 to 64 ASCII letters, digits, '_' or '-'; set it with @tool(name=...)"
        )
    return made
