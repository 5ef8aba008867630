"""Lines of JSON: any value in one line, whatever a tool or a model put into it."""

from typing import Any

from swink.messages.jsondata import encode


def encode_line(value: Any) -> bytes:
    """One line; what has no JSON form is shown as text."""
    return encode(value) + b"\n"
