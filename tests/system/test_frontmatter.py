"""Front matter: what is read is what YAML says, what is refused has its line."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from swink.system.frontmatter import BadFrontMatter, has_front_matter, parse_fields, read_front_matter

REFUSED = {
    "no front matter": ("name: a\n", 1, "does not begin"),
    "not closed": ("---\nname: a\n", 3, "not closed"),
    "a list": ("---\n- a\n---\n", 2, "is a list"),
    "no key": ("---\nname: a\njust text\n---\n", 3, "expected `key: value`"),
    "a key twice": ("---\nname: a\nname: b\n---\n", 3, "twice"),
    "a key twice below": ("---\nmetadata:\n  a: b\n  a: c\n---\n", 4, "twice"),
    "a tab": ("---\nmetadata:\n\ta: b\n---\n", 3, "a tab"),
    "a second colon": ("---\nname: a\ndescription: Use it: now\n---\n", 3, "quotes"),
    "a second colon further down": ("---\ndescription: Use\n  it: now\n---\n", 3, "quotes"),
    "an anchor": ("---\nname: &a b\n---\n", 2, "anchor"),
    "an alias": ("---\nname: *a\n---\n", 2, "alias"),
    "a tag": ("---\nname: !!str b\n---\n", 2, "tag"),
    "an open quote": ('---\nname: "a\nb: c\n---\n', 3, "not closed"),
    "text after a quote": ('---\nname: "a" b\n---\n', 2, "after the closing quote"),
    "an unknown escape": ('---\nname: "\\q"\n---\n', 2, "no escape"),
    "half a character": ('---\nname: "\\ud800"\n---\n', 2, "no character"),
    "open brackets": ("---\ntools: [a, b\n---\n", 2, "not closed"),
    "too far in": ("---\nname: a #x\n  b: c\n---\n", 3, "further"),
    "too far out": ("---\n  name: a\nb: c\n---\n", 3, "less"),
    "control characters": ("---\nname: a\nb: \x07\n---\n", 3, "not allowed"),
    "a text behind a bar": ("---\nname: | a\n---\n", 2, "line break"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_has_its_line(kind: str):
    text, line, problem = REFUSED[kind]
    with pytest.raises(BadFrontMatter, match=problem) as caught:
        read_front_matter(text)
    assert caught.value.line == line


def test_nesting_has_an_end():
    text = "".join(f"{' ' * at}a:\n" for at in range(30))
    with pytest.raises(BadFrontMatter, match="nested deeper"):
        parse_fields(text)


def test_fields_lines_and_body():
    found = read_front_matter(
        "---\r\nname: a\r\n\r\n# why\r\ntools: # all\r\n- x\r\n- y: z\r\n---\r\n\r\n# Body\r\n"
    )
    assert found.fields == {"name": "a", "tools": ["x", {"y": "z"}]}
    assert found.lines == {"name": 2, "tools": 5}
    assert (found.body, found.body_line) == ("# Body", 10)
    assert not found.oddities


def test_a_rule_in_the_body_is_part_of_it():
    assert read_front_matter("---\na: b --- c\n---\nx\n---\ny").body == "x\n---\ny"


def test_brackets_are_read_and_noted():
    found = read_front_matter("---\ntools: [Read, \"Bash(a, b)\", 'it''s']\nwhere: {a: b}\nnone: []\n---\n")
    assert found.fields == {"tools": ["Read", "Bash(a, b)", "it's"], "where": {"a": "b"}, "none": []}
    assert [line for line, _ in found.oddities] == [2, 3, 4]


def test_a_lenient_reader_takes_the_rest_of_the_line():
    found = read_front_matter(
        "---\ndescription: Use it when: <example>user: hi</example>\n---\n", lenient=True
    )
    assert found.fields == {"description": "Use it when: <example>user: hi</example>"}
    assert [line for line, _ in found.oddities] == [2]


def test_whether_there_is_front_matter():
    assert has_front_matter("--- \nbroken")
    assert not has_front_matter("# Title\n---\n")


LEAVES = st.text(st.sampled_from("ab \n:#-'\"\\|>é&*[]{},?!%@\t0"), max_size=30)
KEYS = st.text(st.sampled_from("abz-_ 09"), min_size=1, max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(KEYS, inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=4),
    st.sampled_from([None, "'", '"', "|", ">"]),
    st.integers(10, 60),
    st.booleans(),
)
def test_what_a_writer_of_yaml_writes_is_read_as_meant_or_refused(
    fields: dict[str, Any], style: str | None, width: int, allow_unicode: bool
):
    text = yaml.dump(
        fields, default_style=style, default_flow_style=False, width=width, allow_unicode=allow_unicode
    )
    try:
        found = parse_fields(text).fields
    except BadFrontMatter:
        return
    assert found == yaml.load(text, Loader=yaml.BaseLoader)


PIECES = [
    *("a", "b: ", "c:", "\n", "\n  ", "\n    ", "\n- ", "- ", " ", "#", " #", ": ", "|", ">-", ">", "'", '"'),
    *("x y", "\\n", "\n\n", "[a, b]", "{a: b}", ",", "|+", "\t", "&a", "*a", "!", "?", "%"),
]


@given(
    st.lists(
        st.sampled_from(PIECES),
        max_size=16,
    )
)
def test_whatever_is_read_means_the_same_in_yaml(pieces: list[str]):
    text = "name: x\n" + "".join(pieces)
    try:
        found = parse_fields(text).fields
    except BadFrontMatter:
        return
    assert found == yaml.load(text, Loader=yaml.BaseLoader)


@given(st.dictionaries(KEYS.filter(lambda key: key.strip() == key and key[0].isalnum()), LEAVES, max_size=4))
def test_texts_in_double_quotes_come_back(fields: dict[str, str]):
    text = yaml.dump(fields, default_style='"', width=40, allow_unicode=True) if fields else ""
    assert parse_fields(text).fields == fields


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("*", "*"),
        ("[file] [name]", "[file] [name]"),
        ("[Bash(git diff:*, git log:*)]", "[Bash(git diff:*, git log:*)]"),
        ("@here: a text", "@here: a text"),
        ("- one", "- one"),
        ("a\ttab", "a tab"),
        ("\n  - a\n   - b: [\n  c", "- a - b: [ c"),
    ],
)
def test_a_lenient_reader_takes_for_a_text_what_yaml_refuses(value: str, text: str):
    whole = f"---\nhint: {value}\nname: x\n---\nbody"
    found = read_front_matter(whole, lenient=True)
    assert found.fields == {"hint": text, "name": "x"}
    assert (found.line("name"), found.body) == (whole.count("\n", 0, whole.index("name:")) + 1, "body")
    with pytest.raises(BadFrontMatter):
        read_front_matter(whole)


@pytest.mark.parametrize("value", ['"a', "'a", "[a, b", "{a: b", '"a" b'])
def test_a_lenient_reader_refuses_what_is_not_closed(value: str):
    with pytest.raises(BadFrontMatter, match=r"^line 2: "):
        read_front_matter(f"---\nhint: {value}\n---\nbody", lenient=True)
