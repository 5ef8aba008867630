"""Tool calls for people, in one line each."""

from collections.abc import Mapping
from typing import Any

import msgspec

from swink.messages.redact.shown import show_arguments


def format_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A call for people, in one line: `name(city="Oslo", days=3)`, secrets redacted."""
    shown = [f"{key}={json_line(value)}" for key, value in show_arguments(arguments).items()]
    return f"{name}({', '.join(shown)})"


def json_line(value: Any) -> str:
    """A value as JSON in one line."""
    return msgspec.json.encode(value, enc_hook=repr).decode()
