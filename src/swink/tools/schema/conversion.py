"""Conversion: the JSON Schema of a type hint, and JSON data made into values of that type.

msgspec does both. What it does not know (pydantic, constraints of other libraries, unions of several classes)
is replaced in the hint by a stand-in: a class that msgspec asks us about. Constraints that JSON Schema can
express go into the schema, against which data is validated before; the others are checked after conversion.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from enum import Enum
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from swink.errors import InvalidTool
from swink.messages.codec import plain
from swink.tools.schema.constraints import (
    Annotations,
    applies,
    check_bound,
    express,
    make_adapter,
    notes_of,
    other_checks,
    run_checks,
    validate_with_pydantic,
)
from swink.tools.schema.hints import (
    MISSING,
    Field,
    fields_of,
    is_a,
    is_pydantic,
    is_struct,
    is_union,
    label,
    members_of,
    take_apart,
)
from swink.tools.schema.msgspec_hooks import NATIVE, Definitions, convert, stand_in, validator_of


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type hint; raises `InvalidTool` for a type that has none."""
    return describe_type(hint)[0]


def describe_type(hint: Any) -> tuple[dict[str, Any], Any]:
    """The JSON Schema of a type hint, and the hint with its stand-ins, for `convert`."""
    try:
        try:
            ours = _Replacement().replace(hint)
            return Definitions().complete(ours), ours
        except KeyError:
            # msgspec cannot name two classes of one qualified name; stand-ins are named by us.
            ours = _Replacement(every=True).replace(hint)
            return Definitions().complete(ours), ours
    except (TypeError, NotImplementedError, RecursionError) as error:
        text = (str(error) or type(error).__name__).splitlines()[-1]
        raise InvalidTool(
            f"{label(hint)} cannot be described in JSON Schema ({text}); use str, int, float, bool, Literal, "
            "Enum, list, dict, a dataclass, TypedDict, pydantic model or msgspec Struct"
        ) from None


class _Checked:
    """A type whose values are checked, or changed, once they are made."""

    def __init__(self, hint: Any, checks: Sequence[Callable[[Any], Any]] = ()) -> None:
        self._hint = hint
        self._checks = checks

    def describe(self, definitions: Definitions) -> dict[str, Any]:
        return definitions.describe(self._hint)

    def make(self, value: Any) -> Any:
        return run_checks(convert(value, self._hint), self._checks)


class _Model:
    """A type of pydantic's. Data is given to it as JSON, so that strict models take dates from text."""

    def __init__(self, hint: Any) -> None:
        self._adapter = make_adapter(hint)

    def describe(self, definitions: Definitions) -> dict[str, Any]:
        return definitions.adopt(self._adapter.json_schema(ref_template=NATIVE + "{model}"))

    def make(self, value: Any) -> Any:
        try:
            data = msgspec.json.encode(value)
        except UnicodeEncodeError:  # a lone surrogate, which JSON text cannot hold
            return validate_with_pydantic(self._adapter.validate_python, value)
        return validate_with_pydantic(self._adapter.validate_json, data)


class _Record:
    """A class with fields: a Struct with the replaced hints takes the data, its values make the class."""

    struct: Any

    def __init__(self, hint: Any) -> None:
        self._class: Any = get_origin(hint) or hint
        self.name = re.sub(r"[^\w.-]", "_", label(hint))

    def build(self, fields: Sequence[Field]) -> None:
        """Take the fields; apart from the constructor, since a field may be of the class itself."""
        cls = self._class
        options: dict[str, Any] = {}
        if is_struct(cls):
            config = cls.__struct_config__
            copied = ("tag", "tag_field", "array_like", "forbid_unknown_fields")
            options = {key: getattr(config, key) for key in copied}
        elif issubclass(cls, tuple):
            options = {"array_like": True, "forbid_unknown_fields": True}
        text = cls.__doc__ or ""
        self.struct = msgspec.defstruct(
            self.name,
            [_struct_field(field) for field in fields],
            namespace={"__doc__": "" if text.startswith(f"{cls.__name__}(") else text},
            rename={field.name: field.key for field in fields},
            kw_only=True,
            **options,
        )

    def describe(self, definitions: Definitions) -> dict[str, Any]:
        return definitions.refer(self)

    def make(self, value: Any) -> Any:
        return self._class(**collect_values(convert(value, self.struct)))


class _Choice:
    """A union that msgspec does not take: of several classes, or of what stand-ins stand for."""

    def __init__(self, options: Sequence[Any], hints: Sequence[Any]) -> None:
        self._options = options
        self._hints = hints
        self._validators: list[Any] = []

    def describe(self, definitions: Definitions) -> dict[str, Any]:
        return {"anyOf": [definitions.describe(option) for option in self._options]}

    def make(self, value: Any) -> Any:
        """The value as the member that fits best, see `_rate_misfit`."""
        if not self._validators:
            self._validators = [validator_of(Definitions().complete(option)) for option in self._options]
        problem = ValueError("fits no member of the union")
        ratings = [_rate_misfit(hint, value) for hint in self._hints]
        for number in sorted(range(len(ratings)), key=ratings.__getitem__):
            if self._validators[number].is_valid(value):
                try:
                    return convert(value, self._options[number])
                except ValueError as error:
                    problem = error
        raise problem


class _Replacement:
    """One walk over a hint; a class met again, also inside itself, gets the same stand-in."""

    def __init__(self, every: bool = False) -> None:
        self._every = every
        self._known: dict[Any, Any] = {}

    def replace(self, hint: Any) -> Any:
        """The hint as msgspec can take it; `every` class gets a stand-in if that was asked for."""
        if self._is_native(hint, set()):
            return hint
        base, extras = take_apart(hint)
        return self._replace_base(base, notes_of(extras))

    def _replace_base(self, base: Any, notes: Annotations) -> Any:
        """A hint without its extras, and what they say of it."""
        if is_union(base):
            return _annotate(self._replace_union(base, notes), notes.schema)
        if is_pydantic(base):
            model = _Model(Annotated[base, *notes.extras] if notes.extras else base)
            return _annotate(stand_in(model), notes.schema)
        keywords, checks = express(base, notes)
        hint = self._replace_bare(base)
        return _annotate(stand_in(_Checked(hint, checks)) if checks else hint, {**keywords, **notes.schema})

    def _replace_bare(self, base: Any) -> Any:
        """A hint without extras, which is neither a union nor pydantic's."""
        if self._is_native(base, set()):
            return base
        fields = fields_of(base)
        if fields is not None:
            if base in self._known:
                return self._known[base]
            record = _Record(base)
            known = self._known[base] = stand_in(record)
            record.build([structs.replace(field, hint=self.replace(field.hint)) for field in fields])
            return known
        if isinstance(base, type):
            return stand_in(_Checked(base))
        origin: Any = get_origin(base)
        arguments = get_args(base)
        if is_a(origin, Mapping):
            return self._replace_mapping(origin, *arguments)
        return origin[tuple([item if item is ... else self.replace(item) for item in arguments])]

    def _replace_mapping(self, origin: Any, key: Any, value: Any) -> Any:
        """A mapping; its keys are checked afterwards, since msgspec asks no stand-in about keys."""
        base, extras = take_apart(key)
        notes = notes_of(extras)
        if is_pydantic(base):
            return self._check_keys(origin, str, value, [_Model(key).make])
        keywords, checks = express(base, notes)
        if base is str:
            return self._check_keys(origin, _annotate(str, keywords), value, checks)
        bounds = [check_bound(*bound) for bound in notes.bounds]
        return self._check_keys(origin, base, value, [*bounds, *other_checks(base, notes)])

    def _check_keys(self, origin: Any, key: Any, value: Any, checks: Sequence[Callable[[Any], Any]]) -> Any:
        def check_keys(made: Mapping[Any, Any]) -> dict[Any, Any]:
            return {run_checks(name, checks): item for name, item in made.items()}

        hint = origin[key, self.replace(value)]
        return stand_in(_Checked(hint, [check_keys])) if checks else hint

    def _replace_union(self, base: Any, notes: Annotations) -> Any:
        """A union; what is said of the whole is said of each member but None, as far as it applies."""
        kept = [member for member in members_of(base) if member is not UnsetType]
        options = [self._replace_member(member, notes) for member in kept]
        for name, bound in notes.bounds:
            if not any(applies(take_apart(member)[0], name, bound) for member in kept):
                raise TypeError(f"{name}={bound!r} applies to no member of the union")
        union = Union[tuple(options)]  # noqa: UP007  built from values
        return union if _is_native_union(union) else stand_in(_Choice(options, kept))

    def _replace_member(self, member: Any, outer: Annotations) -> Any:
        base, extras = take_apart(member)
        if base is type(None) or not outer.checks:
            return self.replace(member)
        notes = notes_of(extras)
        notes.extras += outer.extras
        notes.bounds += [item for item in outer.bounds if is_union(base) or applies(base, *item)]
        notes.predicates += outer.predicates
        notes.pydantic += outer.pydantic
        return self._replace_base(base, notes)

    def _is_native(self, hint: Any, seen: set[Any]) -> bool:
        """Whether msgspec describes and converts the whole of a hint by itself."""
        base, extras = take_apart(hint)
        cls: Any = get_origin(base) or base
        if extras:
            notes = notes_of(extras)
            foreign = not all(isinstance(extra, Meta) for extra in extras)
            if (foreign or is_union(base) or is_a(cls, Set)) and (notes.checks or notes.schema):
                return False
        if cls is Literal:
            return True
        if is_pydantic(base) or (is_union(base) and not _is_native_union(base)):
            return False
        parts = get_args(base)
        if (fields := fields_of(base)) is not None:
            if base in seen:
                return True
            seen.add(base)
            parts = [field.hint for field in fields]
        if self._every and (fields is not None or is_a(cls, Enum)):
            return False
        if parts and is_a(cls, Mapping) and take_apart(parts[0])[1] and take_apart(parts[0])[0] is not str:
            return False
        return all(item is ... or self._is_native(item, seen) for item in parts)


def collect_values(struct: Any) -> dict[str, Any]:
    """The values of a Struct by name, without those that were not given."""
    return {name: value for name in struct.__struct_fields__ if (value := getattr(struct, name)) is not UNSET}


def _struct_field(field: Field) -> Any:
    if field.required:
        return field.name, field.hint
    default = {} if field.default is MISSING or field.default is UNSET else _json_default(field.default)
    return field.name, _annotate(Union[field.hint, UnsetType], default), UNSET  # noqa: UP007  hint is a value


def _json_default(value: Any) -> dict[str, Any]:
    try:
        return {"default": msgspec.json.decode(msgspec.json.encode(value, enc_hook=plain))}
    except (TypeError, ValueError, NotImplementedError):
        return {}


def _annotate(hint: Any, schema: dict[str, Any]) -> Any:
    return Annotated[hint, Meta(extra_json_schema=schema)] if schema else hint


def _is_native_union(hint: Any) -> bool:
    if len([item for item in members_of(hint) if item not in (type(None), UnsetType)]) < 2:
        return True
    try:
        msgspec.inspect.type_info(hint)
    except TypeError:
        return False
    return True


def _rate_misfit(hint: Any, value: Any) -> tuple[int, int]:
    """How badly a member of a union fits a value: keys it does not know, then how little it asks for.

    Text is a date or an enum rather than a plain string, and a number is of its own type rather than another.
    """
    cls, _ = take_apart(hint)
    if cls is Any:
        return 99, 0
    if isinstance(value, dict):
        keys = set(cast("dict[str, Any]", value))
        fields = fields_of(cls)
        if fields is None:
            return len(keys), 0
        known = {field.key for field in fields} | {field.name for field in fields}
        return len(keys - known), -sum(field.required for field in fields)
    if isinstance(value, str):
        return (str, bytes).index(cls) + 1 if cls in (str, bytes) else 0, 0
    return int(type(value) is not cls), 0
