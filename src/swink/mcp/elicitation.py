"""Elicitation: what a server asks of the person in the middle of a call, and which answers fit.

ElicitForm    a message and fields of text, numbers, yes or no, and choices
ElicitUrl     a message and an address to open in a browser: passwords and payments go there, not through us

`on_elicit` is given one of them and answers with the values by name, True (yes, with the defaults), False
(no) or None (it was dismissed).
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from swink.errors import InvalidInput
from swink.mcp.webaddress import web_address
from swink.messages import clean
from swink.messages.redact.shown import escape_invisible

_MOST_FIELDS = 50
_MOST_CHOICES = 1_000
_MOST_TEXT = 4_000
_LARGEST = 1e300
_YES, _NO = ("yes", "y", "true", "on", "1"), ("no", "n", "false", "off", "0")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")

Kind = Literal["text", "number", "integer", "boolean", "choice", "choices"]
_KINDS: dict[Any, Kind] = {"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}


class ElicitField(Struct, frozen=True):
    """One thing to fill in; `choices` maps what may be answered to the words for it.

    Args:
        name: its key in the answer
        kind: what is filled in
        title: what a form calls it
        description: what it is for
        required: whether it must be filled in
        default: what it holds at first
    """

    name: str
    kind: Kind
    title: str = ""
    description: str = ""
    required: bool = False
    default: Any = None
    choices: Mapping[str, str] = field(default_factory=dict[str, str])
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """minLength, maxLength, minimum, maximum, minItems, maxItems and format, where the server sets them."""

    def parse(self, text: str) -> Any:
        """The value that a typed text means; raises `InvalidInput` with what is wanted."""
        said = text.strip()
        match self.kind:
            case "text":
                value: Any = text
            case "boolean" if said.lower() in (*_YES, *_NO):
                value = said.lower() in _YES
            case "boolean":
                raise InvalidInput("please answer yes or no")
            case "integer" | "number":
                value = self._number(said)
            case "choice":
                value = self._choice(said)
            case "choices":
                value = [self._choice(part.strip()) for part in said.split(";") if part.strip()]
        self.check(value)
        return value

    def check(self, value: Any) -> None:
        """Raise `InvalidInput` if the value is none that the server takes."""
        if wrong := self._misfit(value):
            raise InvalidInput(wrong)

    def _number(self, said: str) -> int | float:
        try:
            return int(said) if self.kind == "integer" or said.lstrip("+-").isdecimal() else float(said)
        except ValueError:
            what = "a whole number" if self.kind == "integer" else "a number"
            raise InvalidInput(f"please answer with {what}") from None

    def _choice(self, said: str) -> str:
        for value, label in self.choices.items():
            if said in (value, label):
                return value
        raise InvalidInput(f"please choose one of {', '.join(self.choices.values())}")

    def _misfit(self, value: Any) -> str:
        match self.kind, value:
            case "boolean", bool():
                return ""
            case "text", str():
                return self._bad_text(value)
            case ("integer", int()) | ("number", int() | float()) if not isinstance(value, bool):
                if not abs(value) <= _LARGEST:
                    return "it must be a number"
                return self._out_of("minimum", "maximum", value, "it must be")
            case "choice", str() if value in self.choices:
                return ""
            case "choices", [*several] if all(
                isinstance(one, str) and one in self.choices for one in several
            ):
                return self._out_of("minItems", "maxItems", len(several), "choose")
            case _:
                wanted = {"text": "text", "boolean": "yes or no", "integer": "a whole number"}
                return f"it must be {wanted.get(self.kind, 'a number' if not self.choices else 'a choice')}"

    def _bad_text(self, text: str) -> str:
        if wrong := self._out_of("minLength", "maxLength", len(text), "the number of characters must be"):
            return wrong
        match self.limits.get("format"):
            case "email" if not _EMAIL.fullmatch(text):
                return "please give an e-mail address"
            case "uri" if not (_parses(urlsplit, text) and urlsplit(text).scheme):
                return "please give a URL"
            case "date" if not _parses(date.fromisoformat, text):
                return "please give a date such as 2026-01-31"
            case "date-time" if not _parses(datetime.fromisoformat, text):
                return "please give a date and time such as 2026-01-31T12:00:00Z"
            case _:
                return ""

    def _out_of(self, least: str, most: str, number: float, what: str) -> str:
        low, high = self.limits.get(least), self.limits.get(most)
        if low is not None and number < low:
            return f"{what} at least {low:g}"
        return f"{what} at most {high:g}" if high is not None and number > high else ""


class ElicitForm(Struct, frozen=True):
    """A server asks the person to fill in a form.

    Args:
        message: why the server asks
        fields: what is to be filled in
    """

    server: str
    message: str
    fields: tuple[ElicitField, ...]

    def fill(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values with the defaults of what they leave out; raises `InvalidInput` if they do not fit."""
        named = {one.name: one for one in self.fields}
        if unknown := [name for name in values if name not in named]:
            raise InvalidInput(f"it has no field {unknown[0]!r}")
        filled: dict[str, Any] = {}
        for name, one in named.items():
            value = values.get(name, one.default)
            if value is None and one.required:
                raise InvalidInput(f"{name!r} is missing")
            if value is None:
                continue
            try:
                one.check(value)
            except InvalidInput as error:
                raise InvalidInput(f"{name!r}: {error}") from None
            filled[name] = value
        return filled


class ElicitUrl(Struct, frozen=True):
    """A server asks the person to open an address in a browser; nothing of what is done there comes back.

    Args:
        message: why the server asks
        url: the address
    """

    server: str
    message: str
    url: str

    @property
    def host(self) -> str:
        """Where it leads: to be shown before anybody opens it."""
        return urlsplit(self.url).netloc


Elicitation = ElicitForm | ElicitUrl
OnElicit = Callable[[Any], Mapping[str, Any] | bool | Awaitable[Mapping[str, Any] | bool | None] | None]
"""Asks the person what an `Elicitation` says; sync functions run in a thread."""


def read_form(server: str, message: str, schema: Mapping[str, Any]) -> ElicitForm:
    """The form that a server asks for; raises `InvalidInput` if it has fields that are not flat."""
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or len(cast("Mapping[str, Any]", properties)) > _MOST_FIELDS:
        raise InvalidInput(f"a form has at most {_MOST_FIELDS} fields, by name")
    needed: Any = schema.get("required")
    required = cast("list[Any]", needed) if isinstance(needed, list) else []
    listed = cast("Mapping[str, Any]", properties).items()
    fields = tuple([_read_field(name, schema, name in required) for name, schema in listed])
    return ElicitForm(server, shown(message), fields)


def read_url(server: str, message: str, url: str) -> ElicitUrl:
    """The address that a server asks to open; raises `InvalidInput` for one that no browser should open."""
    return ElicitUrl(server, shown(message), web_address(url))


def shown(text: Any) -> str:
    """A server's words, short enough to be shown, in which nothing is invisible or turned around."""
    return escape_invisible(clean(str(text))[:_MOST_TEXT])


def _read_field(name: str, schema: Any, required: bool) -> ElicitField:
    if not isinstance(schema, Mapping):
        raise InvalidInput(f"the field {name!r} has no schema")
    spec = cast("Mapping[str, Any]", schema)
    choices: dict[str, str] | None = None
    if spec.get("type") == "array":
        kind: Kind | None = "choices"
        items: Any = spec.get("items")
        choices = _read_choices(cast("Mapping[str, Any]", items) if isinstance(items, Mapping) else {})
    else:
        kind = _KINDS.get(spec.get("type") if isinstance(spec.get("type"), str) else None)
        if kind == "text" and (choices := _read_choices(spec)) is not None:
            kind = "choice"
    if kind is None or (kind == "choices" and choices is None):
        raise InvalidInput(f"the field {name!r} is neither text, number, yes or no, nor a choice")
    about = shown(spec.get("title", "")), shown(spec.get("description", ""))
    found = ElicitField(name, kind, *about, required, None, choices or {}, _read_limits(spec))
    try:
        found.check(spec.get("default"))
    except InvalidInput:
        return found  # there is none, or none that would be accepted
    return replace(found, default=spec["default"])


def _read_choices(spec: Mapping[str, Any]) -> dict[str, str] | None:
    """What may be chosen, with its words: `enum` and `enumNames`, or `oneOf`, or `anyOf`."""
    pairs: list[tuple[Any, Any]]
    match spec:
        case {"enum": [*values]}:
            names: Any = spec.get("enumNames")
            labels = cast("list[Any]", names) if isinstance(names, list) else []
            pairs = list(zip(values, [*labels[: len(values)], *values[len(labels) :]], strict=True))
        case {"oneOf": [*options]} | {"anyOf": [*options]}:
            named = [cast("Mapping[str, Any]", option) for option in options if isinstance(option, Mapping)]
            known = [option for option in named if "const" in option]
            pairs = [(option["const"], option.get("title", option["const"])) for option in known]
        case _:
            return None
    if len(pairs) > _MOST_CHOICES or not all(isinstance(value, str) for value, _ in pairs) or not pairs:
        raise InvalidInput(f"a choice is between 1 and {_MOST_CHOICES} texts")
    return {value: shown(label) for value, label in pairs}


def _read_limits(spec: Mapping[str, Any]) -> dict[str, Any]:
    numbers = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems")
    given: dict[str, Any] = {name: spec[name] for name in numbers if type(spec.get(name)) in (int, float)}
    limits = {name: value for name, value in given.items() if abs(value) <= _LARGEST}
    return {**limits, "format": spec["format"]} if isinstance(spec.get("format"), str) else limits


def _parses(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True
