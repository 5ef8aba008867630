"""Tool calls for models whose chat template has none: their grammar, their text, and their parser.

    {"tool":"weather","arguments":{"city":"Oslo"}}

The grammar fixes every character but the arguments, so the parser only has to count brackets.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import InvalidTool
from swink.local.schemas import LengthLimits, compact, guide
from swink.messages import ToolCall
from swink.stream import ToolSpec
from swink.tools.schema import Shape

_HEAD = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*')
_LARK = "%llguidance {}\n"
_WORDS = r"/[^{`\s](.|\n)*/"  # text that does not begin like a call, which models also put between backticks

NO_CALL = "root ::= [^{ \\n\\t`] [^\\x00]*\n"
"""Words, and no call; in llama.cpp's own notation, whose texts may end with any token that ends a reply."""


def output_grammar(schema: Mapping[str, Any], limits: LengthLimits = LengthLimits()) -> str:
    """The grammar of JSON that fits a schema."""
    return f"{_LARK}start: %json {guide(schema, limits).text}\n"


class CallGrammar(Struct, frozen=True):
    """The grammar of a call to one of several tools; the arguments of `unsure` ones must be checked."""

    rules: str
    count: int
    unsure: Mapping[str, Shape]

    @property
    def text(self) -> str:
        """The grammar under which a model writes one call, and nothing else."""
        return f"{_LARK}start: {self._calls}\n{self.rules}"

    def or_words(self, end_token: int | None) -> str:
        """The grammar under which it may write words instead, up to the token that ends a reply."""
        end = "" if end_token is None else f" <[{end_token}]>"
        return f"{_LARK}start: {self._calls} | words{end}\nwords: {_WORDS}\n{self.rules}"

    @property
    def _calls(self) -> str:
        return " | ".join(f"call{number}" for number in range(self.count))


def call_grammar(tools: Sequence[ToolSpec], limits: LengthLimits = LengthLimits()) -> CallGrammar:
    """The grammar of a call to one of the tools."""
    rules: list[str] = []
    unsure: dict[str, Shape] = {}
    for number, tool in enumerate(tools):
        try:
            arguments = guide(tool.parameters_schema, limits)
        except InvalidTool as error:
            raise InvalidTool(f"tool {tool.name!r}: {error}") from error
        if not arguments.exact:
            unsure[tool.name] = Shape(tool.parameters_schema)
        head = compact(f'{{"tool":{compact(tool.name)},"arguments":')
        rules.append(f'call{number}: {head} arguments{number} "}}"\n')
        rules.append(f"arguments{number}: %json {arguments.text}\n")
    return CallGrammar("".join(rules), len(tools), unsure)


def call_text(call: ToolCall) -> str:
    """A call of the history exactly as the model wrote it, so that the prompt cache still matches."""
    return f'{{"tool":{compact(call.name)},"arguments":{compact(call.arguments)}}}'


class CallParser:
    """A call that arrives in pieces: `name` once it is known; `feed` returns what is new of the arguments."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.complete = False
        self._head = ""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> str:
        """The part of this piece that belongs to the arguments."""
        if self.name is None:
            self._head += text
            head = _HEAD.match(self._head)
            if head is None or head.end() == len(self._head):
                return ""
            self.name = msgspec.json.decode(head[1], type=str)
            text = self._head[head.end() :]
        for at, char in enumerate(text):
            if self.complete:
                return text[:at]
            self._count(char)
        return text

    def _count(self, char: str) -> None:
        if self._in_string:
            if self._escaped:
                self._escaped = False
            elif char == "\\":
                self._escaped = True
            elif char == '"':
                self._in_string = False
        elif char == '"':
            self._in_string = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
            self.complete = self._depth == 0
