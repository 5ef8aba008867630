"""GSM8K: word problems whose answer is one number.

{"question": "…", "answer": "… reasoning …\\n#### 18"}
"""

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import takewhile
from pathlib import Path
from typing import Literal

from swink.eval.case import Case, Evaluator
from swink.eval.importers.rows import BadRows, BenchmarkRow, make_cases, read_rows
from swink.eval.result import Score
from swink.eval.scorers.registry import scorer
from swink.eval.trajectory import Trajectory

_NUMBER = re.compile(r"-?\$?\d[\d,]*(?:\.\d+)?")
_ASK = "\n\nThink step by step. End with a line that holds #### and the number alone, such as: #### 42"


def read_gsm8k(path: Path) -> Iterator[Case | BadRows]:
    """The problems of a file, such as test.jsonl."""
    return make_cases(read_rows(path), _case)


def _case(number: int, row: BenchmarkRow) -> Case:
    answer = _marked(row.text("answer"))
    if answer is None:
        raise row.problem("'answer' has no number after ####")
    return Case(
        id=f"gsm8k-{number}",
        user_messages=(row.text("question").strip() + _ASK,),
        reference=str(answer),
        evaluators=(Evaluator("gsm8k"),),
        tags=("gsm8k",),
        place=row.place,
    )


@scorer("gsm8k")
def gsm8k(case: Case, trajectory: Trajectory, *, match: Literal["flexible", "strict"] = "flexible") -> Score:
    """Whether the number after #### is the reference; "flexible" also takes the last number of the answer."""
    expected = _number(case.reference or "")
    if expected is None:
        raise ValueError(f"the case has no number as its reference, but {case.reference!r}")
    given = _marked(trajectory.response)
    if given is None and match == "flexible":
        numbers = _NUMBER.findall(trajectory.response)
        given = _number(numbers[-1]) if numbers else None
    if given is None:
        wanted = "a number after ####" if match == "strict" else "a number"
        return Score(0.0, f"the answer does not have {wanted}")
    return Score(float(given == expected), f"the answer is {given}, the reference {expected}")


def _marked(text: str) -> Decimal | None:
    """The last number that stands right behind ####, or behind #### and a dollar sign."""
    for part in reversed(text.split("####")[1:]):
        start = part.lstrip("#").lstrip().removeprefix("$")
        digits = takewhile(lambda sign: sign.isdecimal() or sign in ".,", start.removeprefix("-"))
        if (number := _number("-" * start.startswith("-") + "".join(digits))) is not None:
            return number
    return None


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", "").replace("$", "").rstrip("."))
    except InvalidOperation:
        return None
