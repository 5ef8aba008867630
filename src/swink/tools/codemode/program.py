"""A program from its first line to its result: each call of a tool's function is a call of the run.

    start ─▶ ( call ─▶ answer | future )* ─▶ ( wait ─▶ the oldest future )* … ─▶ value | error with its line

Calls that a program gathers run concurrently. Their answers are given in the order of the calls, whichever
ends first: so a program that is run again after an interruption makes the same calls in the same order.
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pydantic_monty as monty

from swink.errors import InvalidInput
from swink.messages import AssistantMessage, ToolResult
from swink.messages.jsondata import as_data, encode
from swink.system.aio import mark_exception_seen
from swink.system.threads import in_thread
from swink.tools.codemode.callsites import awaited_calls
from swink.tools.codemode.codelimits import CodeLimits
from swink.tools.codemode.machine import Answer, Machine, Pause
from swink.tools.codemode.signatures import ToolFunction
from swink.tools.toolcontext import CallWaits, ToolContext
from swink.tools.toolresult import ToolError

_LONGEST = 100_000
"""Characters of a program."""
_MOST = 1_000_000
"""Characters of a value; a part that is shared counts as often as it stands there, as it would in JSON."""
_NOTHING = "the program ended without a value; end it with an expression, or print what you want to see"


async def run_program(
    code: str, functions: Mapping[str, ToolFunction], ctx: ToolContext, limits: CodeLimits
) -> str:
    """What a program printed and came to; raises `ToolError` with the line at which it failed."""
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    if len(code) > _LONGEST:
        raise ToolError(f"error: a program has at most {_LONGEST:,} characters")
    awaited = await in_thread(awaited_calls, code, functions)
    machine = Machine(limits, _time_of_reply(ctx), ctx.call_id)
    program = Program(code, functions, ctx, limits, machine, awaited)
    try:
        value = await program.run()
    except monty.MontyError as error:
        raise ToolError(_told(machine.printed, _described(error, limits, len(program.calls)))) from None
    finally:
        await program.end()
    shown = value if isinstance(value, str) else encode(await in_thread(plain_data, value)).decode()
    return _told(machine.printed, "" if value is None else shown) or _NOTHING


class Program:
    """One program while it runs."""

    def __init__(
        self,
        code: str,
        functions: Mapping[str, ToolFunction],
        ctx: ToolContext,
        limits: CodeLimits,
        machine: Machine,
        awaited: Collection[tuple[int, int]],
    ) -> None:
        self.calls: list[asyncio.Task[Answer]] = []
        self._code = code
        self._functions = functions
        self._ctx = ctx
        self._limits = limits
        self._machine = machine
        self._awaited = awaited
        self._alone = any(function.tool.sequential for function in functions.values())
        self._futures: dict[int, asyncio.Task[Answer]] = {}
        """The calls that the program may still wait for, by the machine's numbers."""

    async def run(self) -> Any:
        """Answer what it asks until it ends; its value."""
        pause = await self._machine.start(self._code)
        while not isinstance(pause, monty.MontyComplete):
            pause = await self._go_on(pause)
        await self._wait_for_all()
        return pause.output

    async def end(self) -> None:
        """End what still runs of it, in every outcome."""
        try:
            for call in self.calls:
                call.cancel()
            await self._wait_for_all()
        finally:
            await self._machine.close()

    async def _go_on(self, pause: Pause) -> Pause:
        machine = self._machine
        match pause:
            case monty.FunctionSnapshot(is_os_function=True):
                return await machine.refuse(pause)
            case monty.FunctionSnapshot():
                return await machine.resume(pause, await self._take_call(pause))
            case monty.NameLookupSnapshot(variable_name=name):
                if name not in self._functions:
                    return await machine.refuse(pause)
                return await machine.resume(pause, _named(name))
            case monty.FutureSnapshot(pending_call_ids=pending):
                oldest = min(pending)
                return await machine.resume(pause, {oldest: await self._answer(self._futures.pop(oldest))})
            case _:
                raise AssertionError(pause)

    async def _take_call(self, pause: monty.FunctionSnapshot) -> Answer:
        """Begin a call; its answer, or a future if the program awaits it."""
        name = pause.function_name
        function = self._functions.get(name)
        if function is None:
            known = ", ".join(self._functions) or "none"
            return _raised("NameError", f"there is no function {name!r}; those of tools: {known}")
        if len(self.calls) >= self._limits.calls:
            return _raised("RuntimeError", f"a program makes at most {self._limits.calls} calls")
        try:
            given = function.bind(pause.args, pause.kwargs)
            arguments = cast("dict[str, Any]", await in_thread(plain_data, given))
        except TypeError as error:
            return _raised("TypeError", str(error))
        except ToolError as error:
            return _raised("RuntimeError", str(error))
        call = asyncio.create_task(self._call(function, arguments), name=f"run_code {name}")
        self.calls.append(call)
        place = pause.position.start, pause.position.end
        if not pause.allow_eager_await and place not in self._awaited:
            return await self._answer(call)
        if self._alone:
            await asyncio.wait([call])
        self._futures[pause.call_id] = call
        return {"future": ...}

    async def _call(self, function: ToolFunction, arguments: dict[str, Any]) -> Answer:
        try:
            result: ToolResult = await self._ctx.call(function.tool.name, arguments)
        except InvalidInput as error:
            return _raised("TypeError", f"{function.name}(): {error}")
        if result.is_error:
            return _raised("RuntimeError", result.text)
        return {"return_value": function.value_of(result)}

    async def _answer(self, call: "asyncio.Task[Answer]") -> Answer:
        """The answer of a call; if it waits for an approval, the others end first."""
        await asyncio.wait([call])
        try:
            return call.result()
        except CallWaits:
            await self._wait_for_all()
            raise

    async def _wait_for_all(self) -> None:
        if self.calls:
            await asyncio.wait(self.calls)
            for call in self.calls:
                mark_exception_seen(call)  # it is told elsewhere


def _time_of_reply(ctx: ToolContext) -> datetime:
    """The time at which the model wrote the program: the same when it is run again."""
    replies = [message for message in ctx.messages if isinstance(message, AssistantMessage)]
    return datetime.fromtimestamp(replies[-1].timestamp if replies else 0.0, UTC)


def _named(name: str) -> Any:
    """A function of that name, for a program that passes it on; the machine never calls it."""

    def function() -> None: ...

    function.__name__ = name
    return function


def _raised(kind: str, text: str) -> Answer:
    return {"exc_type": kind, "message": text}


def plain_data(value: Any) -> Any:
    """Values of a program as JSON data: tuples and sets as lists, instances of its classes as objects.

    Raises `ToolError` if it would be very large. It may take a second: call it in a thread.
    """
    room = _MOST

    def take(item: Any) -> Any:
        nonlocal room
        room -= 1 + (len(item) if isinstance(item, str) else 0)
        if room < 0:
            raise ToolError(f"error: a value has more than {_MOST:,} characters; return or pass less")
        match item:
            case monty.MontyClassProxy():
                return take(item.attributes)
            case dict():
                return {take(str(key)): take(each) for key, each in cast("dict[Any, Any]", item).items()}
            case list() | tuple() | set() | frozenset():
                return [take(each) for each in cast("list[Any]", item)]
            case None | bool() | int() | float() | str():
                return item
            case _:
                return as_data(str(item))

    return take(value)


def _described(error: monty.MontyError, limits: CodeLimits, calls: int) -> str:
    """What went wrong, and where."""
    lines: list[str] = []
    if isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
        for frame in error.traceback():
            inside = f", in {frame.function_name}" if frame.function_name not in (None, "<module>") else ""
            lines.append(f"line {frame.line}{inside}: {(frame.source_line or '').strip()}")
        text = error.display("type-msg")
    else:
        text = str(error)
    if isinstance(error, monty.MontyCrashedError):
        text = "the program was ended: it needed more time or memory than it may have"
    elif "time limit exceeded" in text:
        text = f"the program was ended: it computed for more than {limits.seconds:g} s"
    elif "memory limit exceeded" in text:
        text += f" (a program has {limits.memory:,} bytes, and may print {limits.printed:,})"
    made = f"\n({calls} calls were made before that, and are not undone)" if calls else ""
    return "\n".join(["error: the program failed", *lines, text]) + made


def _told(printed: str, text: str) -> str:
    return "\n".join(part for part in (printed.rstrip("\n"), text) if part)
