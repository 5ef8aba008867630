"""Stand-ins: classes in hints that msgspec asks us about, for their schemas and for their values."""

from collections.abc import Mapping
from typing import Any, Protocol, cast

import msgspec

from swink.errors import InvalidTool
from swink.tools.schema.hints import label

_NAMED = ("properties", "patternProperties", "$defs", "mapping")
_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
NATIVE = "#/native/"
"""Before the names in references that are still to be adopted into the definitions of the whole schema."""


def convert(value: Any, hint: Any) -> Any:
    """Valid data as a value of a hint with stand-ins; raises `ValueError` if it cannot be made."""
    try:
        return msgspec.convert(value, hint, str_keys=True, dec_hook=_make)
    except msgspec.ValidationError:
        # JSON Schema counts 1.0 as an integer; Python's int does not take it.
        whole = _whole_numbers(value)
        if whole is value:
            raise
        return msgspec.convert(whole, hint, str_keys=True, dec_hook=_make)


def validator_of(schema: dict[str, Any]) -> Any:
    """The compiled validator of a JSON Schema; raises `InvalidTool` for a schema that is none."""
    import jsonschema_rs  # 50 ms: paid by the first validation, not by the import of swink

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except ValueError as error:
        text = str(error).split("\n\n")[0]
        raise InvalidTool(f"not a usable JSON Schema: {text}") from error


class Named(Protocol):
    """A class with a definition of its own in a schema, described by a Struct."""

    name: str
    struct: Any


class Definitions:
    """The `$defs` of one schema; two classes of one name get two names."""

    def __init__(self) -> None:
        self._bodies: dict[str, Any] = {}
        self._names: dict[Named, str] = {}

    def complete(self, hint: Any) -> dict[str, Any]:
        """A whole schema; at its root stands the object itself, not a reference to it."""
        schema = self.describe(hint)
        name = schema.pop("$ref", "").removeprefix("#/$defs/")
        if name:
            schema = {**self._bodies[name], **schema}
            if f'"#/$defs/{name}"' not in msgspec.json.encode(self._bodies).decode():
                del self._bodies[name]
        return {**schema, "$defs": self._bodies} if self._bodies else schema

    def describe(self, hint: Any) -> dict[str, Any]:
        """The schema of a hint; what it refers to is added to the definitions."""
        return self.adopt(self._raw_schema(hint))

    def adopt(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A schema whose own definitions are moved here, renamed where a different one has the name."""
        own = schema.pop("$defs", {})
        names = {name: name for name in own}
        if any(self._bodies.get(name, body) != body for name, body in _tidy(own, names, named=True).items()):
            names = {name: self._free_name(name) for name in own}
        self._bodies |= {names[name]: _tidy(body, names) for name, body in own.items()}
        return _tidy(schema, names)

    def refer(self, named: Named) -> dict[str, Any]:
        """A reference to the definition of a class, which is made on the first one."""
        if named not in self._names:
            name = self._names[named] = self._free_name(named.name)
            self._bodies[name] = None
            schema = self._raw_schema(named.struct)
            body = schema["$defs"].pop(schema.pop("$ref").removeprefix(NATIVE))
            self._bodies[name] = self.adopt({**body, "$defs": schema["$defs"]})
        return {"$ref": f"#/$defs/{self._names[named]}"}

    def _raw_schema(self, hint: Any) -> dict[str, Any]:
        return msgspec.json.schema(hint, schema_hook=self._describe_stand_in, ref_template=NATIVE + "{name}")

    def _describe_stand_in(self, cls: Any) -> dict[str, Any]:
        if not isinstance(cls, StandIn):
            raise NotImplementedError
        return cls.part.describe(self)

    def _free_name(self, name: str) -> str:
        number, free = 2, name
        while free in self._bodies:
            number, free = number + 1, f"{name}_{number}"
        return free


class Replaced(Protocol):
    """What a stand-in stands for: it describes itself and makes values from valid data."""

    def describe(self, definitions: Definitions) -> dict[str, Any]:
        """Its schema; what that refers to goes into the definitions."""
        ...

    def make(self, value: Any) -> Any:
        """A value from valid data; raises `ValueError` if it cannot be made."""
        ...


class StandIn(type):
    """The class of stand-ins; whatever a part makes passes for an instance, as msgspec checks that."""

    part: Replaced

    def __instancecheck__(cls, instance: Any) -> bool:
        return True


def stand_in(part: Replaced) -> Any:
    """A class to put into a hint instead of what msgspec does not know."""
    return StandIn("StandIn", (), {"part": part})


def _make(cls: Any, value: Any) -> Any:
    """msgspec's hook for types it does not know."""
    if isinstance(cls, StandIn):
        return cls.part.make(value)
    raise NotImplementedError(f"{label(cls)} cannot be made from JSON")


def _tidy(node: Any, names: Mapping[str, str], *, named: bool = False) -> Any:
    """A schema made exact: sets take repeated items, base64 text is checked, titles are left out.

    References get the names of their definitions.
    """
    if isinstance(node, list):
        return [_tidy(item, names) for item in cast("list[Any]", node)]
    if isinstance(node, str) and node.startswith(NATIVE):
        name = node.removeprefix(NATIVE)
        return f"#/$defs/{names.get(name, name)}"
    if not isinstance(node, dict):
        return node
    node = cast("dict[str, Any]", node)
    if named:
        return {key: _tidy(value, names) for key, value in node.items()}
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "title" or key == "uniqueItems" or (key == "required" and not value):
            continue
        literal = key in ("default", "enum", "const", "examples")
        result[key] = value if literal else _tidy(value, names, named=key in _NAMED)
    if result.get("contentEncoding") == "base64":
        result["pattern"] = _BASE64
    return result


def _refuse(uri: str) -> Any:
    raise ValueError(f"external references are never fetched; put {uri} under $defs")


def _whole_numbers(value: Any) -> Any:
    """The value with 1 for 1.0, at every depth; the value itself if there is nothing to replace.

    Stand-ins convert inside a conversion: if each tried twice what fails, the time would double per level.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        whole = {key: _whole_numbers(item) for key, item in items.items()}
        return whole if any(whole[key] is not item for key, item in items.items()) else items
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        numbers = [_whole_numbers(item) for item in listed]
        changed = any(new is not old for new, old in zip(numbers, listed, strict=True))
        return numbers if changed else listed
    return value
