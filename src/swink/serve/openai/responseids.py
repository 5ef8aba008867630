"""Ids of responses: they name the conversation and a message of the run, so that no table is needed.

    resp_{conversation}_{number of the last message that the client sent}

The response ends where a later message of a user follows a reply without calls, or with the conversation.
"""

import secrets
from collections.abc import Sequence

from swink.messages import AssistantMessage, Message, UserMessage
from swink.serve.wire import Refused

_PREFIX = "resp_"


def new_response_id() -> str:
    """The id of a response that is not stored."""
    return f"{_PREFIX}{secrets.token_hex(16)}"


def stored_id(conversation: str, at: int) -> str:
    """The id of a response in a conversation, whose run was asked by the message of that number."""
    return f"{_PREFIX}{conversation}_{at}"


def read_response_id(id: str) -> tuple[str, int]:
    """The conversation and the number in an id; `Refused` if it is none of a stored response."""
    conversation, _, number = id.removeprefix(_PREFIX).rpartition("_")
    if not id.startswith(_PREFIX) or not conversation or not number.isascii() or not number.isdigit():
        raise Refused(404, "there is no stored response of that id; send the whole history as input")
    return conversation, int(number[:18])


def end_of_response(messages: Sequence[Message], at: int) -> int:
    """How many messages there were when the response was complete."""
    for number in range(at + 1, len(messages)):
        before = messages[number - 1]
        if (
            isinstance(messages[number], UserMessage)
            and isinstance(before, AssistantMessage)
            and not before.tool_calls
        ):
            return number
    return len(messages)
