"""Evidence: an attempt as text for a judge, between marks that nothing in it can forge."""

import hashlib
from collections.abc import Iterator

from swink.eval.case import Case
from swink.eval.trajectory import Trajectory
from swink.messages.blocks import Text, Thinking, ToolCall
from swink.messages.jsondata import encode
from swink.messages.message import AssistantMessage, CustomMessage, Message, ToolResultMessage
from swink.messages.redact import redact_text
from swink.system.shorten import clip_middle

MOST_OF_MESSAGE = 8_000
MOST_OF_ALL = 120_000
"""Characters of a message, and of the whole transcript; the middle of what is longer is left out."""


def fenced(case: Case, trajectory: Trajectory) -> str:
    """What was asked, done and expected, each between two lines with the same mark.

    The mark is a digest of all that stands between: no text holds its own, so none can pretend to end there,
    and the same attempt gives the same request, which a cassette can replay.
    """
    ending = trajectory.stop_reason, trajectory.error or trajectory.reason
    parts = {
        "transcript": _cut("\n\n".join(_lines(trajectory)), MOST_OF_ALL),
        "final response": _cut(trajectory.response, MOST_OF_MESSAGE) or "(none)",
        "how it ended": ": ".join(filter(None, ending)),
        "expected": _cut("\n".join(_expected(case)), MOST_OF_ALL) or "(nothing was written down)",
    }
    parts = {title: redact_text(text) for title, text in parts.items()}
    mark = "=" * 3 + hashlib.sha256(encode(parts)).hexdigest()[:24]
    sections = [f"{mark} {title}\n{text}\n{mark} end of {title}" for title, text in parts.items()]
    return f"The mark is {mark}\n\n" + "\n\n".join(sections)


def _lines(trajectory: Trajectory) -> Iterator[str]:
    if trajectory.system_prompt:
        yield f"[system prompt]\n{_cut(trajectory.system_prompt, MOST_OF_MESSAGE)}"
    if trajectory.tools:
        yield f"[tools the agent had]\n{', '.join(trajectory.tools)}"
    for message in trajectory.messages:
        yield f"[{_speaker(message)}]\n{_cut(_content(message), MOST_OF_MESSAGE)}"


def _speaker(message: Message) -> str:
    match message:
        case ToolResultMessage():
            return f"{'error' if message.is_error else 'result'} of {message.tool_name}"
        case AssistantMessage():
            return "agent"
        case CustomMessage():
            return f"note: {message.kind}"
        case _:
            return "user"


def _content(message: Message) -> str:
    if isinstance(message, CustomMessage):
        return encode(message.data).decode()
    parts: list[str] = []
    for block in message.content:
        match block:
            case Text(text):
                parts.append(text)
            case ToolCall():
                call = block.resolved
                parts.append(f"calls {call.name} with {encode(call.arguments).decode()}")
            case Thinking():
                continue  # what it said and did is judged
            case _:
                parts.append(f"({type(block).__name__.lower()})")
    return "\n".join(parts) or "(nothing)"


def _expected(case: Case) -> Iterator[str]:
    if case.reference is not None:
        yield f"The answer that people agreed on: {case.reference}"
    if case.expected_assertion is not None:
        yield f"What should be true of the run: {case.expected_assertion}"
    if (response := case.expected_response) is not None:
        yield f"The response should meet: {encode(response).decode()}"
    if (calls := case.expected_trajectory) is not None:
        yield f"The tool calls that are expected ({case.mode}): {encode(calls).decode()}"


def _cut(text: str, limit: int) -> str:
    half = limit // 2
    mark = f"\n[… {len(text) - 2 * half:,} characters left out …]\n"
    return clip_middle(text, half, half, mark, most=limit)
