"""A call that a provider could not read goes back to the model, which sees what it said and tries again."""

import re
import uuid
from collections.abc import Sequence

from swink.errors import StreamError
from swink.stream import BlockWriter


def write_failed_call(reply: BlockWriter, said: str, tools: Sequence[str], prefix: str = "call_") -> None:
    """End a reply with the call, what was said as its arguments, which no tool takes.

    It is a call of the tool that it names first; one that names none is of the first tool there is.
    """
    if not tools:
        raise StreamError(f"the model made a malformed function call: {said}".rstrip(": "))
    named = [(found.start(), name) for name in tools if (found := _word(name).search(said))]
    index = reply.begin_call(prefix + uuid.uuid4().hex[:20], min(named)[1] if named else tools[0])
    reply.add(index, said or "malformed function call")
    reply.end(index)
    reply.done("tool_use")


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
