"""Schemas for the grammar engine: what it cannot say is known, and what a model writes under it fits."""

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from talking import Spec, ask
from tests.counts import MORE, left_to_more

from swink.errors import InvalidTool
from swink.local import LocalStreamFn
from swink.local.callgrammar import call_grammar
from swink.local.schemas import LengthLimits, compact, guide
from swink.stream import Done
from swink.tools.schema import Shape

EXACT = {
    "string": {"type": "string"},
    "bounded string": {"type": "string", "minLength": 2, "maxLength": 5},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3,4}$"},
    "quotes in a class of a pattern": {"type": "string", "pattern": '^[^"\\n]{2}[a"]$'},
    "enum": {"enum": ["a", 'quote "', 3, None, {"x": [1.5]}]},
    "enum of a type": {"type": "string", "enum": ["a", 3]},
    "const": {"const": "exactly"},
    "boolean or null": {"type": ["boolean", "null"]},
    "integer": {"type": "integer"},
    "integer range": {"type": "integer", "minimum": -17, "maximum": 1204},
    "integer above": {"type": "integer", "minimum": 100},
    "multiples": {"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 700},
    "number": {"type": "number"},
    "number range": {"type": "number", "minimum": -1.5, "maximum": 3},
    "steps of a number": {"type": "number", "multipleOf": 0.25},
    "a pattern with a length": {"type": "string", "pattern": "a+", "maxLength": 3},
    "date": {"type": "string", "format": "date"},
    "date-time": {"type": "string", "format": "date-time"},
    "uuid": {"type": "string", "format": "uuid"},
    "array": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    "tuple": {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string", "maxLength": 3}],
        "items": False,
        "minItems": 2,
    },
    "object": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        "required": ["b"],
        "additionalProperties": False,
    },
    "all optional": {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
        "additionalProperties": False,
    },
    "required but not described": {"type": "object", "required": ["x"]},
    "dictionary": {"type": "object", "additionalProperties": {"type": "integer"}},
    "free object": {"type": "object"},
    "nothing said": {},
    "references": {
        "$ref": "#/$defs/P",
        "$defs": {
            "P": {"type": "object", "properties": {"q": {"$ref": "#/$defs/Q"}}, "required": ["q"]},
            "Q": {"type": "null"},
        },
    },
    "a tree": {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "v": {"type": "boolean"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "maxItems": 2},
                },
                "required": ["v", "children"],
            }
        },
    },
    "a tree through allOf": {
        "$ref": "#/$defs/N",
        "$defs": {
            "N": {
                "type": "object",
                "properties": {"n": {"allOf": [{"$ref": "#/$defs/N"}]}},
                "additionalProperties": False,
            }
        },
    },
    "anyOf": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
    "anyOf with siblings": {
        "type": "object",
        "properties": {"k": {"type": "string", "maxLength": 2}},
        "anyOf": [{"required": ["k"]}, {"required": ["z"]}],
    },
    "allOf": {
        "allOf": [
            {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
            {"properties": {"b": {"const": 2}}, "required": ["b"]},
        ]
    },
    "integer and number": {"allOf": [{"type": "number"}, {"type": "integer", "minimum": 1}, {"maximum": 3}]},
}
INEXACT = {
    "unique items": {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True},
    "not": {"type": "integer", "not": {"const": 3}},
    "oneOf": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    "quotes in a pattern": {"type": "string", "pattern": '^"[^"]+"\\\\$'},
    "a line end in a pattern": {"type": "string", "pattern": "^a\\n[a-z]{3}$"},
    "a pattern with a look-ahead": {"type": "string", "pattern": "^(?=a)a$"},
    "between two integers": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
    "few properties": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
    "if": {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}},
}


SMALL = LengthLimits(text=12, items=2)


def prepared(schema: dict[str, Any], limits: LengthLimits = LengthLimits()) -> dict[str, Any]:
    text = json.loads(guide(schema, limits).text)
    del text["x-guidance"]
    return text


@pytest.mark.parametrize("name", [*EXACT, *INEXACT])
def test_a_schema_says_whether_its_values_must_be_checked(name: str):
    schema = {**EXACT, **INEXACT}[name]
    assert guide(schema).exact == (name in EXACT)
    assert Shape(prepared(schema)).check() is None


@left_to_more
@pytest.mark.more
async def test_what_a_model_writes_under_a_schema_fits_it(model: LocalStreamFn):
    schemas = [*EXACT.items(), *INEXACT.items()]
    for name, schema in schemas if MORE else schemas[::24]:
        text = guide(schema, SMALL).text
        message, done = await ask(
            model,
            "Hi",
            max_tokens=120 if MORE else 40,
            temperature=1.5,
            seed=7,
            extra={"grammar": f"%llguidance {{}}\nstart: %json {text}"},
        )
        assert isinstance(done, Done), f"{name}: {done}"
        if done.stop_reason == "stop":
            value = json.loads(message.text)
            if name in EXACT:
                jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(
                    value
                )


def test_objects_are_closed_unless_several_schemas_describe_them():
    assert prepared({"properties": {"a": {}}})["additionalProperties"] is False
    assert prepared({"properties": {"a": {}}, "additionalProperties": True})["additionalProperties"] is True
    assert "additionalProperties" not in prepared({"properties": {"a": {}}, "patternProperties": {"^b": {}}})
    assert prepared(EXACT["allOf"]) == EXACT["allOf"]
    assert prepared(EXACT["anyOf with siblings"]) == EXACT["anyOf with siblings"]


def test_texts_and_lists_without_a_limit_get_one():
    schema = {
        "properties": {
            "title": {"type": "string"},
            "short": {"type": "string", "maxLength": 3},
            "date": {"type": "string", "format": "date"},
            "list": {"type": ["array", "null"], "items": {"type": "string", "minLength": 20}},
        }
    }
    assert prepared(schema, SMALL)["properties"] == {
        "title": {"type": "string", "maxLength": 12},
        "short": {"type": "string", "maxLength": 3},
        "date": {"type": "string", "format": "date"},
        "list": {
            "type": ["array", "null"],
            "items": {"type": "string", "minLength": 20, "maxLength": 20},
            "maxItems": 2,
        },
    }
    assert prepared(schema)["properties"] == schema["properties"]


def test_a_property_may_have_the_name_of_a_keyword():
    schema = {"type": "object", "properties": {"not": {"type": "null"}, "title": {"enum": [{"if": 1}]}}}
    assert guide(schema).exact
    assert prepared(schema)["properties"] == schema["properties"]


def test_what_the_engine_refuses_is_taken_out_or_reported():
    for pattern in ("(?=a)", "(?<!a)b", "\\bword", "(a)\\1", '"[a-z]', '["]a', "\\\\\\\\a", "\ta"):
        assert not guide({"type": "string", "pattern": pattern}).exact
        assert prepared({"type": "string", "pattern": pattern}) == {"type": "string"}
    with pytest.raises(InvalidTool, match=r"'broken'.*never fetched"):
        call_grammar([Spec("broken", "", {"a": {"$ref": "https://example.org/schema.json"}})])
    with pytest.raises(InvalidTool, match="does not contain"):
        guide({"$ref": "#/$defs/Missing"})


@left_to_more
async def test_an_enum_of_many_values_is_ready_at_once(model: LocalStreamFn):
    values = list(range(20_000 if MORE else 5_000))
    tool = Spec("pick", "Pick one.", {"value": {"enum": values}})
    message, _ = await asyncio.wait_for(
        ask(model, "Pick.", tools=[tool], tool_choice="pick", max_tokens=24), 60
    )
    assert message.tool_calls[0].arguments["value"] in values


def test_compact_json_is_what_the_grammar_writes():
    assert compact({"city": "São Paulo", "n": [1, 2.5, None]}) == '{"city":"São Paulo","n":[1,2.5,null]}'


@pytest.mark.parametrize("count", ["minItems", "maxItems"])
def test_a_number_of_items_that_would_hold_up_everybody_is_left_to_the_check_of_the_arguments(count: str):
    found = guide({"type": "array", "items": {"type": "integer"}, count: 10**7})
    assert count not in json.loads(found.text)
    assert not found.exact
