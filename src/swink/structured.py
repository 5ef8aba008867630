"""Structured output: a synthetic tool the model must call, and the policy that ends the run when it did."""

from typing import Any

from swink.errors import StructuredOutputFailed
from swink.policy import Inject, Policy, PolicyContext, Stop, Turn, Verdict
from swink.schema import Shape
from swink.tool import Tool, ToolContext, ToolError

NAME = "final_output"
_NUDGE = f"Give your answer by calling the tool {NAME!r}; plain text is not read."
DONE = "structured output received"


class StructuredOutput(Policy):
    """What a run with `output=` adds: one tool, one policy; both end with the run."""

    def __init__(self, hint: Any, retries: int) -> None:
        shape = Shape.of(hint)
        shape.check()
        self._wrapped = shape.schema.get("type") != "object"
        self._shape = (
            Shape({"type": "object", "properties": {"value": shape.schema}, "required": ["value"]})
            if self._wrapped
            else shape
        )
        self._convert = shape.convert
        self._allowed = retries + 1
        self.attempts = 0
        self.last_error = ""
        self.value: Any = None
        self.received = False
        self.tool = Tool.raw(
            NAME,
            "Give the final answer. Call this exactly once, as the last step.",
            _hoisted(self._shape.schema),
            self._receive,
        )

    @property
    def failure(self) -> StructuredOutputFailed | None:
        """The error, once the attempts are used up."""
        return (
            StructuredOutputFailed(self.attempts, self.last_error)
            if not self.received and self.attempts >= self._allowed
            else None
        )

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> Verdict:
        """Stop when the output is there or the attempts are used up; ask again when the model only talked."""
        if self.received:
            return Stop(DONE)
        rejected = [result for result in turn.tool_results if result.tool_name == NAME]
        if rejected:
            self.attempts += len(rejected)
            self.last_error = rejected[-1].text
        elif not turn.message.tool_calls:
            self.attempts += 1
            self.last_error = f"the model did not call {NAME!r}; it said: {turn.message.text[:500]!r}"
        if failure := self.failure:
            return Stop(str(failure))
        return Inject(_NUDGE) if not turn.message.tool_calls else None

    async def _receive(self, call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
        try:
            value = self._convert(arguments["value"] if self._wrapped else arguments)
        except ValueError as error:
            raise ToolError(f"error: invalid output: {error}") from error
        if not self.received:
            self.value, self.received = value, True
        return "received"


def _hoisted(schema: dict[str, Any]) -> dict[str, Any]:
    """Definitions at the root, where references look for them."""
    inner = schema.get("properties", {}).get("value", {})
    if "$defs" not in inner:
        return schema
    value = {key: item for key, item in inner.items() if key != "$defs"}
    return {**schema, "properties": {**schema["properties"], "value": value}, "$defs": inner["$defs"]}
