"""What a small local model gets: a short prompt, six tools with short schemas, results that are cut short.

The tools are those of the directory, with their names: validation, approvals, rules, sandbox and transcript
know no difference. The prompt is the same in every directory, so that it has to be read only once.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink.messages import ModelSpec
from swink.tools import Tool
from swink.tools.schema import Shape

MOST_TOKENS = 600
"""Tokens of the prompt and the tools together."""
MOST_RESULT = 1_500
"""Characters of a result that the model sees; the person sees all of it."""
SMALL_FILE = 2_000_000_000
"""Bytes of weights up to which a local model counts as small: about three billion parameters."""

PROMPT = """You are swink, a coding agent in a terminal. You work in the user's folder with tools.
- Never guess what a file says: read it or search first.
- Call one tool at a time. After its result, answer in one or two short sentences, or call the next tool.
- Do only what was asked. Greetings and general questions need no tool."""

_TEXT: Mapping[str, Any] = {"type": "string"}
_PATH: Mapping[str, Any] = {"path": _TEXT}


class _Short(Struct, frozen=True):
    """How a tool is put to a small model: the words by which people ask for it, and a call as an example."""

    does: str
    words: str
    example: str
    properties: Mapping[str, Any]

    @property
    def description(self) -> str:
        return f"{self.does}\n\nWords: {self.words}\nExample: {self.example}"

    def is_part_of(self, tool: Tool) -> bool:
        """Whether the tool takes these arguments: a script may have the name of another tool."""
        return self.properties.keys() <= tool.parameters_schema.get("properties", {}).keys()

    @property
    def shape(self) -> Shape:
        closed = {"required": list(self.properties), "additionalProperties": False}
        return Shape({"type": "object", "properties": self.properties, **closed})


_EDIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"old": _TEXT, "new": _TEXT},
    "required": ["old", "new"],
    "additionalProperties": False,
}
_TOOLS: Mapping[str, _Short] = {
    "read_file": _Short(
        "Read a file.",
        "read, open, show, say, content, contents, summarize, explain, describe",
        'What does notes.txt say? {"path":"notes.txt"}',
        _PATH,
    ),
    "find_files": _Short(
        "Find files by name.",
        "find, file, list, folder, directory, named, called",
        'Which Python files are there? {"pattern":"*.py"}',
        {"pattern": _TEXT},
    ),
    "search_text": _Short(
        "Search in all files.",
        "search, find, grep, where, defined, use, contain, mention",
        'Where is main defined? {"pattern":"def main"}',
        {"pattern": _TEXT},
    ),
    "edit_file": _Short(
        "Replace text in a file.",
        "edit, change, replace, rename, fix, set, update, add, insert, append, remove, correct",
        'Change red to blue in a.css. {"path":"a.css","edits":[{"old":"red","new":"blue"}]}',
        {**_PATH, "edits": {"type": "array", "items": _EDIT, "minItems": 1, "maxItems": 1}},
    ),
    "write_file": _Short(
        "Make a new file.",
        "write, create, make, save, new file",
        'Create b.txt with the word hi. {"path":"b.txt","content":"hi"}',
        {**_PATH, "content": _TEXT},
    ),
    "bash": _Short(
        "Run a shell command.",
        "run, execute, command, test, git, count, how many, output, delete, move, install",
        'Run the tests. {"command":"pytest -q"}',
        {"command": _TEXT},
    ),
}


def is_small_local(model: ModelSpec) -> bool:
    """Whether a model is a small one in this process."""
    return model.provider == "local" and _is_small_name(model.model_id)


def small_tools(tools: Sequence[Tool]) -> list[Tool]:
    """Those of a directory's tools that a small model gets, put briefly."""
    return [
        replace(tool, description=short.description, shape=short.shape, max_result=MOST_RESULT)
        for tool in tools
        if (short := _TOOLS.get(tool.name)) is not None and short.is_part_of(tool)
    ]


@lru_cache(64)
def _is_small_name(model_id: str) -> bool:
    """Whether the weights behind a name are small; asked once, so that a conversation keeps its prompt."""
    from swink.errors import UnknownModel
    from swink.local.weights import KNOWN, locate

    if (known := KNOWN.get(model_id)) is not None:
        return known.size <= SMALL_FILE
    try:
        path = locate(model_id)
        return path is not None and path.stat().st_size <= SMALL_FILE
    except (OSError, UnknownModel):
        return False
