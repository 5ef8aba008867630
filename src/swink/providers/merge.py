"""Options for providers whose bodies nest: extra fields join the objects that the adapter builds."""

from collections.abc import Mapping
from typing import Any, cast


def merged(extra: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Both, object by object; where they disagree the body wins."""
    result = {**extra, **body}
    for name, value in body.items():
        other = extra.get(name)
        if isinstance(value, dict) and isinstance(other, Mapping):
            result[name] = merged(cast("Mapping[str, Any]", other), cast("dict[str, Any]", value))
    return result
