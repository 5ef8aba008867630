"""The tool of code mode: `run_code(code)`, with the functions that a program may call in its description."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from swink.errors import InvalidTool, MisuseError
from swink.tools.codemode.codelimits import CodeLimits
from swink.tools.codemode.signatures import functions_of
from swink.tools.definition import Inside, Tool, as_tools
from swink.tools.toolcontext import ToolContext

RUN_CODE = "run_code"

_DESCRIPTION = """\
Run a Python program that calls the functions below, and get what it prints and the value of its last \
expression. Use it for several calls at once, for loops over results, and to keep only what matters of them: \
what a call returns stays in the program unless you print or return it.

- Call the functions plainly, `x = f(1)`, or concurrently: `a, b = await asyncio.gather(f(1), f(2))`.
- A call that fails raises RuntimeError with the reason; catch it where the program should go on.
- No files, no network, no packages; of the standard library asyncio, collections, dataclasses, datetime, \
functools, itertools, json, math, random, re, statistics and some others. No generators (`yield`). The \
clock stands still, and sleeping takes no time.
- Each program begins anew: nothing is kept from one to the next.

"""
_SCHEMA = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "The program."}},
    "required": ["code"],
    "additionalProperties": False,
}


def code_mode(tools: Sequence[Any], limits: CodeLimits = CodeLimits()) -> Tool:
    """One tool, `run_code`, whose programs call these tools: `Agent(tools=[code_mode([search, fetch])])`.

    Each call of a program passes policies, approvals, the journal and telemetry as one of the model's own.

    Args:
        limits: what a program may use
        tools: what it may call
    """
    inside = as_tools(tools)
    if any(tool.inside is not None for tool in inside):
        raise InvalidTool("run_code is no function of another run_code; give each its own tools")
    run_program = _load()
    functions = functions_of(inside)

    async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
        return await run_program(arguments["code"], functions, ctx, limits)

    signatures = "\n\n".join(map(str, functions.values())) or "(There are no functions now.)"
    made = Tool.raw(
        RUN_CODE,
        f"{_DESCRIPTION}```python\n{signatures}\n```",
        _SCHEMA,
        execute,
        label="run code",
        idempotent=True,  # what its calls came to is in the journal, and a program repeats them in order
        read_only=all(tool.read_only for tool in inside),
        sequential=any(tool.sequential for tool in inside),
    )
    return replace(made, inside=Inside(inside, lambda kept: code_mode(kept, limits)))


def _load() -> Any:
    try:
        from swink.tools.codemode.program import run_program  # it needs the extra
    except ImportError as error:
        from swink.system.extras import install_command

        advice = f"install it with: {install_command('code')}"
        raise MisuseError(f"code mode needs pydantic-monty ({error}); {advice}") from error
    return run_program
