"""Response scorers: what the agent said last, against what it should say."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from msgspec import UNSET

from swink.errors import InvalidInput, MisuseError
from swink.eval.case import Case, ExpectedResponse
from swink.eval.result import Score
from swink.eval.scorers.patterns import search
from swink.eval.scorers.registry import scorer
from swink.eval.scorers.values import NoJson, equal, likeness, read_json
from swink.eval.trajectory import Trajectory
from swink.messages.jsondata import decode, encode
from swink.system.shorten import clip_end
from swink.system.threads import in_thread
from swink.tools.schema import Shape

LONG, MOST = 4_000, 50_000
"""Characters of which the edit distance is computed in a thread, and not at all."""


@scorer("response", applies=lambda case: case.expected_response is not None)
async def response(case: Case, trajectory: Trajectory) -> Score:
    """The part of the case's `expected_response` that holds."""
    if case.expected_response is None:
        raise InvalidInput("the case has no expected_response")
    return score_of(await problems_with(trajectory.response, case.expected_response))


@scorer("exact_match")
async def exact_match(case: Case, trajectory: Trajectory, *, expected: str | None = None) -> Score:
    """Whether the response is the expected text, or the case's `reference`; outer whitespace is ignored."""
    wanted = wanted_text(case, expected)
    return Score(float(trajectory.response.strip() == wanted.strip()), against(wanted))


@scorer("levenshtein", threshold=0.8)
async def levenshtein(case: Case, trajectory: Trajectory, *, expected: str | None = None) -> Score:
    """1 - edits / characters: how many characters to insert, delete or replace until the texts are equal."""
    one, other = trajectory.response.strip(), wanted_text(case, expected).strip()
    longest = max(len(one), len(other))
    if longest > MOST:
        raise InvalidInput(f"a text of {longest:,} characters; levenshtein compares up to {MOST:,}")
    distance = partial(edit_distance, one, other)
    edits = distance() if longest <= LONG else await in_thread(distance)
    return Score(1.0 - edits / longest if longest else 1.0, f"{edits} edits in {longest} characters")


@scorer("json_match")
async def json_match(case: Case, trajectory: Trajectory, *, expected: Any = UNSET) -> Score:
    """The part of the values in a JSON object or list that are as expected.

    By default those of `expected_response.json`, or of the case's `reference`, are expected.
    """
    if expected is UNSET and case.expected_response is not None:
        expected = case.expected_response.json
    if expected is UNSET:
        expected = read_json(wanted_text(case, None))
    try:
        value = read_json(trajectory.response)
    except NoJson as error:
        return Score(0.0, str(error))
    return Score(likeness(expected, value), against(encode(expected).decode()))


@scorer("json_schema")
async def json_schema(case: Case, trajectory: Trajectory, *, schema: dict[str, Any] | None = None) -> Score:
    """Whether the response is JSON by a schema, or by `expected_response.schema`."""
    if schema is None and case.expected_response is not None:
        schema = case.expected_response.schema
    if schema is None:
        raise InvalidInput("json_schema needs the option schema, or a case with expected_response.schema")
    return score_of(await problems_with(trajectory.response, ExpectedResponse(schema=schema)))


async def problems_with(text: str, expected: ExpectedResponse) -> list[str | None]:
    """For each thing that is expected of a text what is wrong, or None."""
    problems: list[str | None] = []
    if expected.exact is not None:
        same = text.strip() == expected.exact.strip()
        problems.append(None if same else f"is not exactly {_quoted(expected.exact)}")
    if expected.contains is not None:
        parts = (expected.contains,) if isinstance(expected.contains, str) else expected.contains
        problems += [None if part in text else f"does not contain {_quoted(part)}" for part in parts]
    if expected.regex is not None:
        found = await search(expected.regex, text)
        problems.append(None if found else f"does not match {_quoted(expected.regex)}")
    if expected.json is not UNSET:
        problems.append(_json_problem(text, expected.json))
    if expected.schema is not None:
        problems.append(_schema_problem(text, expected.schema))
    if not problems:
        raise InvalidInput("expected_response is empty; give exact, contains, regex, json or schema")
    return problems


def score_of(problems: Sequence[str | None], what: str = "the response") -> Score:
    """The part of some checks that hold, and what is wrong with the others."""
    wrong = [problem for problem in problems if problem is not None]
    why = f"{what} {'; '.join(wrong)}" if wrong else "all that is expected holds"
    return Score(1.0 - len(wrong) / len(problems), why)


def edit_distance(one: str, other: str) -> int:
    """How many characters to insert, delete or replace until the texts are equal (Levenshtein).

    Myers' algorithm, in Hyyrö's form: a column of the table is two long integers, a bit for each character.
    """
    if len(one) < len(other):
        one, other = other, one
    if not other:
        return len(one)
    places: dict[str, int] = {}
    for index, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << index
    last, everything = 1 << len(one) - 1, (1 << len(one)) - 1
    more, less, distance = everything, 0, len(one)
    for character in other:
        match = places.get(character, 0)
        diagonal = ((((match & more) + more) ^ more) | match | less) & everything
        up = less | ~(diagonal | more) & everything
        down = diagonal & more
        distance += 1 if up & last else -1 if down & last else 0
        up = up << 1 | 1
        more = (down << 1 | ~(diagonal | up)) & everything
        less = diagonal & up & everything
    return distance


def _json_problem(text: str, expected: Any) -> str | None:
    try:
        value = read_json(text)
    except NoJson as error:
        return f"is not the expected JSON ({error})"
    return None if equal(expected, value) else f"is not the JSON {_quoted(encode(expected).decode())}"


def _schema_problem(text: str, schema: dict[str, Any]) -> str | None:
    try:
        value = read_json(text)
    except NoJson as error:
        return f"is not JSON by the schema ({error})"
    violations = _shape(encode(schema)).violations(value)
    return f"breaks the schema: {'; '.join(violations[:5])}" if violations else None


@lru_cache(64)
def _shape(schema: bytes) -> Shape:
    shape = Shape(decode(schema))
    try:
        shape.check()
    except Exception as error:
        # What the compiler of schemas raises for a bad one.
        raise MisuseError(f"the schema cannot be used: {error}") from error
    return shape


def wanted_text(case: Case, expected: str | None) -> str:
    """The text to compare with: the option's, or the case's reference."""
    if expected is not None:
        return expected
    if case.reference is None:
        advice = "give the case a reference, or the scorer's option expected"
        raise InvalidInput(f"nothing to compare with: {advice}")
    return case.reference


def against(wanted: str) -> str:
    """What was compared with, for people."""
    return f"expected: {_quoted(wanted)}"


def _quoted(text: str) -> str:
    return repr(clip_end(text, 300))
