"""Structured output: a schema that the provider sees to, or else a tool that the model must call.

Which of them a request has is decided when it is sent (`agent.engine.request`); the policy here takes the
answer either way, and ends the run when it is there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, is_typeddict
from urllib.parse import urljoin

from msgspec import UNSET
from msgspec.structs import replace

from swink.agent.agentresult import AgentResult
from swink.agent.engine.run import Run
from swink.agent.policy import Inject, Policy, PolicyContext, ReplyVerdict, Stop, Turn
from swink.errors import InvalidInput, InvalidTool, StructuredOutputFailed
from swink.messages import AssistantMessage, ModelSpec, Text
from swink.messages.redact import describe_error
from swink.stream import Assembly, parse_arguments
from swink.tools import FINAL_OUTPUT, Tool, ToolContext, ToolError, call_off_loop
from swink.tools.schema import Shape, check_is_type, partial_json, partial_value

NAME = FINAL_OUTPUT
_NUDGE = f"Give your answer by calling the tool {NAME!r}, or as JSON alone where there is no such tool."
_AGAIN = "Your answer is not what was asked for: {}\nAnswer again, with the JSON alone."
_BROKEN = "the JSON is cut off or malformed"
_FENCED = re.compile(r"^```(?:json)?[ \t]*\n\s*(\{(?:(?!^```).)*)^```\s*\Z", re.MULTILINE | re.DOTALL)
"""A block of code at the end of a text, in which models without a mode for JSON put it."""
DONE = "structured output received"
NOTHING: Any = object()
"""What `StructuredOutput.partial` gives while there is nothing to show."""


class StructuredOutput(Policy):
    """What a run with `output=` adds: one tool, one policy; both end with the run.

    `validate(value)`, sync or async, sees each value before it is accepted: it raises `ToolError` to send the
    model a reason to try again, and may return another value to take instead.
    """

    def __init__(self, hint: Any, retries: int, validate: Callable[[Any], Any] | None = None) -> None:
        check_retries(retries)
        if validate is not None and not callable(validate):
            raise InvalidInput(f"validate is {validate!r}; pass a function of the output")
        self._hint = hint
        self._validate = validate
        check_is_type("output", hint)
        try:
            shape = Shape.of(hint)
            shape.check()
        except InvalidTool as error:
            raise InvalidTool(f"output=: {error}") from None
        self._wrapped = shape.schema.get("type") != "object"
        self._convert = shape.convert
        self._allowed = retries + 1
        self._raised: Exception | None = None
        self._cause: Exception | None = None
        self._read = 0
        self._model = ""
        self.attempts = 0
        self.last_error = ""
        self.value: Any = None
        self.received = False
        self.tool = Tool.raw(
            NAME,
            "Give the final answer. Call this exactly once, as the last step.",
            _wrap(shape.schema) if self._wrapped else shape.schema,
            self._receive,
        )

    @property
    def failure(self) -> StructuredOutputFailed | None:
        """The error, once the attempts are used up."""
        if self.received or self.attempts < self._allowed:
            return None
        error = StructuredOutputFailed(self.attempts, self.last_error, self._model)
        error.__cause__ = self._cause
        return error

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> ReplyVerdict:
        """Stop when the output is there or the attempts are used up; ask again when the model only talked."""
        self._model = str(ctx.model)
        if self.received:
            return Stop(DONE, expected=True)
        if turn.reason == "steering_interrupt":
            return None
        self._cause, self._raised = self._raised, None
        self._model = str(ctx.model)
        rejected = [result for result in turn.tool_results if result.tool_name == NAME]
        if rejected:
            self.attempts += len(rejected)
            self.last_error = rejected[-1].text
        elif not turn.message.tool_calls:
            problem = await self._read_text(turn.message)
            if self.received:
                return Stop(DONE, expected=True)
            self.attempts += 1
            wrong = problem or "the model gave no output"
            self.last_error = f"{wrong}; it said: {turn.message.text[:500]!r}"
            self._cause, self._raised = self._raised, None
            if (failure := self.failure) is None:
                return Inject(_NUDGE if problem is None else _AGAIN.format(problem))
        if failure := self.failure:
            return Stop(str(failure), failure)
        return None

    async def _read_text(self, message: AssistantMessage) -> str | None:
        """Take an answer that is JSON; what is wrong with it, None if it is no JSON at all.

        A model may say what it is about to do before it answers, in a text of its own.
        """
        texts = [block.text for block in message.content if type(block) is Text]
        ends = ["".join(texts[start:]) for start in range(len(texts))]
        answers = [text for text in ends if text.lstrip().startswith("{")]
        if not answers and ends and (fenced := _FENCED.search(ends[0])):
            answers = [fenced.group(1)]
        if not answers:
            return None
        found = (arguments for text in answers if (arguments := parse_arguments(text)) is not None)
        if (arguments := next(found, None)) is None:
            return _BROKEN
        try:
            await self._take(self.tool.prepare(arguments))
        except ToolError as error:
            return str(error)
        except Exception as error:
            # The application's code: what it raises goes to the model, and is kept as the cause.
            return describe_error(error)
        return None

    def partial(self, text: str) -> Any:
        """The growing value: what the incomplete JSON text of the call's arguments says so far, or `NOTHING`.

        Fields that have not arrived are None; nothing is validated.
        """
        try:
            match partial_json(text):
                case {"value": data} if self._wrapped and data != {}:
                    shown: Any = data
                case {**data} if data and not self._wrapped:
                    shown = data
                case _:
                    return NOTHING
            return shown if isinstance(self._hint, Mapping) else partial_value(self._hint, shown)
        except Exception:
            # The text may be anything, and so may the user's classes: a preview never fails the run.
            return NOTHING

    def grow(self, run: Run, index: int) -> Any:
        """The growing value while a run streams it; UNSET until it has grown enough to be read again."""
        assembly = run.ledger.attempt.assembly
        if assembly is None:
            return UNSET
        parts = assembly.argument_parts(index, NAME) or _json_parts(assembly, index)
        # A sixteenth more each time: reading a growing answer costs a multiple of it, not its square.
        if not parts or 0 <= len(parts) - self._read < max(1, self._read >> 4):
            return UNSET
        self._read = len(parts)
        value = self.partial("".join(map(str, parts)))
        return UNSET if value is NOTHING else value

    def complete(self, result: AgentResult[Any]) -> AgentResult[Any]:
        """The result of a run with its output, or with the reason why there is none."""
        if not self.received or result.stop_reason in ("aborted", "error"):
            return replace(result, value=UNSET)
        reason = None if result.reason == DONE else result.reason
        return replace(result, value=self.value, reason=reason, stopped=False)

    def _check_validated(self, value: object) -> None:
        """Refuse what is no value of the output type, such as the True of a check that does not raise."""
        kind = dict if is_typeddict(self._hint) else self._hint
        if value is None or not isinstance(kind, type):
            return
        if not isinstance(value, kind) or (type(value) is bool and kind is int):
            given = type(value).__name__
            raise InvalidInput(
                f"validate returned {given}; return the value, or None to keep it, or raise ToolError"
            )

    async def _receive(self, call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
        await self._take(arguments, ctx.cancel)
        return "received"

    async def _take(self, arguments: dict[str, Any], cancel: Callable[[], None] = lambda: None) -> None:
        try:
            value = self._convert(arguments["value"] if self._wrapped else arguments)
        except ValueError as error:
            self._raised = error
            raise ToolError(f"error: invalid output: {error}") from error
        if self._validate is not None:
            try:
                replaced = await call_off_loop(self._validate, value, name=NAME, cancel=cancel)
                self._check_validated(replaced)
            except Exception as error:
                # The application's code: what it raises goes to the model, and is kept as the cause.
                self._raised = error
                raise
            value = value if replaced is None else replaced
        if not self.received:
            self.value, self.received = value, True


def _json_parts(assembly: Assembly, index: int) -> Sequence[str]:
    """What has arrived of a text block that may be the answer itself."""
    parts = assembly.text_parts(index)
    return parts if parts and parts[0].lstrip()[:1] in ("{", "") else ()


def check_capable(model: ModelSpec) -> None:
    """Refuse a model that is known to give no structured output, before it is asked."""
    can = model.capabilities
    if can is not None and not can.json_schema and not (can.tools and can.structured_output is not False):
        lacks = "structured output" if can.tools else "tools, by which an output is given"
        raise InvalidInput(
            f"output= cannot be had from {model}: it has no {lacks}; ask another model, or for text"
        )


def check_retries(retries: int) -> None:
    """Refuse a number of attempts that cannot be counted down."""
    if type(retries) is not int or retries < 0:
        raise InvalidInput(f"max_output_retries is {retries!r}; pass a whole number, 0 or more")


def _wrap(schema: dict[str, Any]) -> dict[str, Any]:
    """An object with the value as its one property; definitions stay at the root, where providers look."""
    base = str(schema.get("$id", ""))
    root = {key: value for key, value in schema.items() if key in ("$schema", "$defs", "definitions")}
    value = {key: value for key, value in schema.items() if key not in root and key != "$id"}
    return {
        "type": "object",
        "properties": {"value": _rebase(value, base)},
        "required": ["value"],
        **{key: _rebase(item, base) for key, item in root.items()},
    }


def _rebase(node: Any, base: str) -> Any:
    """A schema whose references to its old root, `base`, lead to the property it has become."""
    match node:
        case list():
            return [_rebase(item, base) for item in cast("list[Any]", node)]
        case {"$id": _}:
            return node  # a root of its own
        case dict():
            return {
                key: _rebase_reference(value, base)
                if key == "$ref" and isinstance(value, str)
                else value
                if key in ("enum", "const", "default", "examples")
                else _rebase(value, base)
                for key, value in cast("dict[str, Any]", node).items()
            }
        case _:
            return node


def _rebase_reference(reference: str, base: str) -> str:
    address, _, place = reference.partition("#")
    if address and urljoin(base, address) != base.partition("#")[0]:
        return reference
    if place.startswith(("/$defs/", "/definitions/")) or (place and not place.startswith("/")):
        return f"#{place}"
    return f"#/properties/value{place}"
