"""Tool calls for models whose chat template has none: their grammar, their text, and their parser.

    {"tool":"weather","arguments":{"city":"Oslo"}}

The grammar fixes every character but the arguments, so the parser only has to count brackets.
"""

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from swink.errors import InvalidTool
from swink.local.gbnf import NEVER, Node, alt, grammar_text, lit, seq
from swink.local.grammar import compact, schema_grammar
from swink.messages import ToolCall
from swink.stream import ToolSpec

_HEAD = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*')


class CallGrammar(Struct, frozen=True):
    """The grammar of a call to one of several tools; the arguments of `unsure` tools must be checked."""

    text: str
    unsure: frozenset[str]


def call_grammar(tools: Sequence[ToolSpec]) -> CallGrammar:
    """A grammar under which a model can write nothing but one call."""
    options: list[Node] = []
    unsure: set[str] = set()
    for tool in tools:
        arguments = schema_grammar(tool.parameters_schema)
        if arguments.node == NEVER:
            raise InvalidTool(f"tool {tool.name!r}: no arguments of bounded size can fit its schema")
        if not arguments.exact:
            unsure.add(tool.name)
        options.append(seq(lit(f'{{"tool":{compact(tool.name)},"arguments":'), arguments.node, lit("}")))
    return CallGrammar(grammar_text(alt(*options)), frozenset(unsure))


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
