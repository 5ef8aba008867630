"""Grammars: whatever a model writes under one parses, and fits the schema it was made from."""

import json
from fractions import Fraction

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sampling import texts

from swink.errors import InvalidTool
from swink.local.gbnf import NEVER, grammar_text, lit, seq
from swink.local.grammar import MAX_ITEMS, MAX_STRING, compact, schema_grammar
from swink.local.numbers import integer, number
from swink.local.regex import pattern_node
from swink.schema import Shape

LEAN = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))

EXACT = {
    "string": {"type": "string"},
    "bounded string": {"type": "string", "minLength": 2, "maxLength": 5},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3,4}$"},
    "quotes in a pattern": {"type": "string", "pattern": '^"[^"]+"\\\\$'},
    "enum": {"enum": ["a", 'quote "', 3, None, {"x": [1.5]}]},
    "enum of a type": {"type": "string", "enum": ["a", 3]},
    "const": {"const": "exactly"},
    "boolean or null": {"type": ["boolean", "null"]},
    "integer": {"type": "integer"},
    "integer range": {"type": "integer", "minimum": -17, "maximum": 1204},
    "integer above": {"type": "integer", "exclusiveMinimum": 99},
    "multiples": {"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 700},
    "number": {"type": "number"},
    "number range": {"type": "number", "minimum": -1.5, "exclusiveMaximum": 3},
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
    "dictionary": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
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
    "a pattern with a look-ahead": {"type": "string", "pattern": "^(?=a)a$"},
    "a pattern with a length": {"type": "string", "pattern": "a+", "maxLength": 3},
    "between two integers": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
    "steps of a number": {"type": "number", "multipleOf": 0.25},
    "if": {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}},
}


@pytest.mark.parametrize("name", EXACT)
@LEAN
@given(data=st.data())
def test_what_a_grammar_allows_fits_the_schema(name: str, data: st.DataObject):
    schema = EXACT[name]
    grammar = schema_grammar(schema)
    assert grammar.exact
    value = json.loads(data.draw(texts(grammar.node)))
    assert Shape(schema).violations(value) == []
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(value)


@pytest.mark.parametrize("name", INEXACT)
@LEAN
@given(data=st.data())
def test_what_a_grammar_cannot_say_is_admitted_and_still_parses(name: str, data: st.DataObject):
    grammar = schema_grammar(INEXACT[name])
    assert not grammar.exact
    json.loads(data.draw(texts(grammar.node)))


def test_strings_and_arrays_without_a_limit_get_one():
    assert f"{{0,{MAX_STRING}}}" in grammar_text(schema_grammar({"type": "string"}).node)
    assert f"{{0,{MAX_ITEMS - 1}}}" in grammar_text(
        schema_grammar({"type": "array", "items": {"const": 1}}).node
    )


def test_a_schema_that_nothing_fits_is_never():
    assert schema_grammar({"type": "object", "properties": {"a": False}, "required": ["a"]}).node == NEVER
    assert (
        schema_grammar(
            {
                "$ref": "#/$defs/N",
                "$defs": {
                    "N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]}
                },
            }
        ).node
        == NEVER
    )


def test_an_external_reference_is_refused():
    with pytest.raises(InvalidTool, match="never fetched"):
        schema_grammar({"$ref": "https://example.org/schema.json"})
    with pytest.raises(InvalidTool, match="does not contain"):
        schema_grammar({"$ref": "#/$defs/Missing"})


@LEAN
@given(st.integers(-3000, 3000), st.integers(0, 3000), st.data())
def test_integers_stay_within_their_bounds(low: int, span: int, data: st.DataObject):
    assert low <= int(data.draw(texts(integer(low, low + span)))) <= low + span


def test_every_integer_within_the_bounds_can_be_written():
    assert _all(integer(-12, 123)) == {str(value) for value in range(-12, 124)}


@LEAN
@given(st.decimals(-50, 50, places=2), st.decimals(0, 50, places=2), st.booleans(), st.booleans(), st.data())
def test_numbers_stay_within_their_bounds(low, span, above: bool, below: bool, data: st.DataObject):
    node, exact = number(float(low), float(low + span), above=above, below=below)
    value = Fraction(data.draw(texts(node)))
    if exact:
        assert low < value if above else low <= value
        assert value < low + span if below else value <= low + span


@pytest.mark.parametrize(
    "pattern",
    [
        "^a|b$",
        "(ab)?c*",
        "[^a-y]{2}",
        "\\w+@\\w+\\.(com|org)",
        "^[\\w.-]+$",
        "",
        "x{3}",
        "\\S\\s\\D",
        "[\\]\\-]+?",
        "é[à-ü]",
    ],
)
@LEAN
@given(data=st.data())
def test_texts_of_a_pattern_match_it(pattern: str, data: st.DataObject):
    node = pattern_node(pattern)
    assert node is not None
    value = json.loads(data.draw(texts(seq(lit('"'), node, lit('"')))))
    assert Shape({"pattern": pattern}).violations(value) == []


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "\\bword", "(a)\\1", "a{,3}", "[z-a]", "(a", "a**", "(^a)", "a$b", "\\u0041", "["]
)
def test_patterns_beyond_the_reader_are_declined(pattern: str):
    assert pattern_node(pattern) is None


def test_compact_json_is_what_the_grammar_writes():
    assert compact({"city": "São Paulo", "n": [1, 2.5, None]}) == '{"city":"São Paulo","n":[1,2.5,null]}'


def _all(node) -> set[str]:
    from swink.local.gbnf import Alt, Chars, Lit, Repeat, Seq

    match node:
        case Lit(text):
            return {text}
        case Chars(ranges, False):
            return {chr(code) for low, high in ranges for code in range(low, high + 1)}
        case Alt(options):
            return set().union(*map(_all, options))
        case Seq(parts):
            result = {""}
            for part in parts:
                result = {head + tail for head in result for tail in _all(part)}
            return result
        case Repeat(inner, low, high):
            return set().union(*(_all(Seq((inner,) * count)) for count in range(low, high + 1)))
