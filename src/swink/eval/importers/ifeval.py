"""IFEval: prompts with instructions that a program can verify.

{"key": 1000, "prompt": "…", "instruction_id_list": ["punctuation:no_comma", …], "kwargs": [{}, …]}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, cast

from swink.eval.case import Case, Evaluator
from swink.eval.importers.ifevalchecks import INSTRUCTIONS
from swink.eval.importers.rows import BadRows, BenchmarkRow, make_cases, read_rows
from swink.eval.result import Score
from swink.eval.scorers.registry import scorer
from swink.eval.trajectory import Trajectory


def read_ifeval(path: Path) -> Iterator[Case | BadRows]:
    """A case for each prompt of input_data.jsonl."""
    return make_cases(read_rows(path), _case)


def _case(number: int, row: BenchmarkRow) -> Case:
    names, arguments = row.texts("instruction_id_list"), row.objects("kwargs")
    if not names or len(names) != len(arguments):
        raise row.problem("'instruction_id_list' and 'kwargs' must have one item for each instruction")
    told: list[dict[str, Any]] = []
    for name, given in zip(names, arguments, strict=True):
        if name not in INSTRUCTIONS:
            raise row.problem(f"there is no instruction {name!r}")
        # Some copies of the data have every keyword in every object, most of them null.
        given = {key: value for key, value in given.items() if value is not None}
        if missing := [key for key in INSTRUCTIONS[name][1] if key not in given]:
            raise row.problem(f"{name} needs {', '.join(missing)} in 'kwargs'")
        told.append({"id": name, "arguments": {key: given[key] for key in INSTRUCTIONS[name][1]}})
    return Case(
        id=f"ifeval-{row.data.get('key', number)}",
        user_messages=(row.text("prompt"),),
        evaluators=(Evaluator("ifeval"),),
        metadata={"ifeval": told},
        tags=("ifeval", *sorted({name.partition(":")[0] for name in names})),
        place=row.place,
    )


@scorer("ifeval")
def ifeval(case: Case, trajectory: Trajectory, *, match: Literal["strict", "loose"] = "strict") -> Score:
    """The part of the instructions that are followed; all must be. "loose" forgives a first or last line, and
    asterisks."""
    told = case.metadata.get("ifeval")
    if not isinstance(told, list) or not told:
        raise ValueError("the case's metadata has no 'ifeval'; import it with import_cases('ifeval', …)")
    responses = variants(trajectory.response) if match == "loose" else (trajectory.response,)
    broken: list[str] = []
    instructions = cast("list[dict[str, Any]]", told)
    for instruction in instructions:
        check, _ = INSTRUCTIONS[instruction["id"]]
        if not any(text.strip() and check(text, instruction["arguments"]) for text in responses):
            broken.append(instruction["id"])
    why = f"not followed: {', '.join(broken)}" if broken else "every instruction is followed"
    return Score(1 - len(broken) / len(instructions), why)


def variants(response: str) -> tuple[str, ...]:
    """The response, and without its first line, its last one and both; each without asterisks too."""
    lines = response.split("\n")
    cut = [response, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return tuple(dict.fromkeys([*cut, *(text.replace("*", "") for text in cut)]))
