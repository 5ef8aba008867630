"""Events as lines of JSON, as `swink run --output json` and the servers write them.

Names are those of Python, and `usage` and `cost` have all their fields wherever they stand;
docs/reference/cli.md lists every field.
"""

from typing import Any

import msgspec

from swink.events.kinds import (
    AgentEnd,
    AgentEvent,
    ContextCompacted,
    MessageEnd,
    MessageUpdate,
    NestedEvent,
    ToolExecutionUpdate,
    TurnEnd,
)
from swink.messages import Cost, Usage
from swink.messages.jsondata import encode
from swink.stream import TextDelta, ThinkingDelta


def encode_event(event: AgentEvent) -> bytes:
    """An event as JSON without its end of line; what has no JSON form is shown as text."""
    if type(event) is MessageUpdate:
        delta = event.delta
        if type(delta) is TextDelta or type(delta) is ThinkingDelta:  # most events are
            kind = b"text_delta" if type(delta) is TextDelta else b"thinking_delta"
            try:
                text = msgspec.json.encode(delta.text)
            except UnicodeEncodeError:
                text = encode(delta.text)
            return b'{"type":"message_update","delta":{"type":"%b","index":%d,"text":%b}}' % (
                kind,
                delta.index,
                text,
            )
    data = msgspec.json.decode(encode(event))
    _respell(event, data)
    return msgspec.json.encode(data)


def complete(message: dict[str, Any]) -> dict[str, Any]:
    """A message, a report or the result as JSON, now with all fields of its usage and its cost."""
    for name, empty in (("usage", Usage()), ("cost", Cost())):
        if isinstance(message.get(name), dict):
            message[name] = {
                **{field: getattr(empty, field) for field in empty.__struct_fields__},
                **message[name],
            }
    return message


def _respell(event: AgentEvent, data: dict[str, Any]) -> None:
    """Give an event's JSON the names of Python; what tools were given and gave back stays as it is."""
    match event:
        case MessageUpdate():
            delta = event.delta
            names = zip(delta.__struct_encode_fields__, delta.__struct_fields__, strict=True)
            data["delta"] |= {ours: data["delta"].pop(theirs) for theirs, ours in names}
        case MessageEnd() | TurnEnd():
            complete(data["message"])
        case AgentEnd():
            data["messages"] = [complete(message) for message in data["messages"]]
        case ContextCompacted():
            complete(data["report"])
        case ToolExecutionUpdate(update=NestedEvent(event=inner)):
            _respell(inner, data["update"]["event"])
        case _:
            pass
