"""The result file: whatever a crash leaves of it can be continued."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.eval import BadResults, CaseResult, Metric, read_results
from swink.eval.resultfile import RESULTS, ResultFile, load_results, open_results
from swink.messages import AssistantMessage, UserMessage
from swink.policies.chain import verify


def result(number: int, **fields: Any) -> CaseResult:
    transcript = (UserMessage("hi"), AssistantMessage(f"héllo {number}"))
    given: dict[str, Any] = {"case_id": f"c{number}", "passed": True, "transcript": transcript}
    return CaseResult(**(given | fields))


def written(directory: Path, count: int, key: bytes | None = None) -> bytes:
    with ResultFile(directory, key=key) as file:
        for number in range(count):
            file.append(result(number))
    return (directory / RESULTS).read_bytes()


@tried(20, 1000)
@given(st.integers(0, 1 << 20))
def test_a_file_cut_anywhere_keeps_its_whole_lines_and_goes_on(drawn: int):
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        whole = written(directory, 4)
        cut = drawn % (len(whole) + 1)  # the length depends on the clock
        (directory / RESULTS).write_bytes(whole[:cut])
        lines = whole[:cut].count(b"\n")
        assert [item.case_id for item in read_results(directory)] == [f"c{n}" for n in range(lines)]
        with ResultFile(directory, resume=True) as file:
            assert len(file.entries) == lines
            for number in range(lines, 4):
                file.append(result(number))
            head = file.head
        checked = verify(directory / RESULTS, head=head)
        assert (checked.ok, checked.records) == (True, 4)
        assert list(open_results(directory)) == [result(number) for number in range(4)]


@tried(20, 500)
@given(st.integers(0, 1 << 20), st.integers(1, 255))
def test_a_changed_byte_is_found_and_nothing_else_is_lost(drawn: int, change: int):
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        whole = bytearray(written(directory, 3))
        whole[drawn % len(whole)] ^= change
        (directory / RESULTS).write_bytes(whole)
        assert not verify(directory / RESULTS).ok
        results, _ = load_results(directory)
        assert len(results) + len(results.problems) >= 2
        with ResultFile(directory, resume=True):
            pass


def test_the_later_line_about_an_attempt_counts(tmp_path: Path):
    with ResultFile(tmp_path) as file:
        file.append(result(0, passed=False, error="gone", error_source="provider"))
        file.append(result(1))
        file.append(result(0))
    assert [(item.case_id, item.passed) for item in read_results(tmp_path)] == [("c0", True), ("c1", True)]


def test_numbers_that_json_does_not_have_come_back(tmp_path: Path):
    metric = Metric("odd", float("nan"), 1.0, False)
    with ResultFile(tmp_path) as file:
        file.append(result(0, metrics=(metric,), metadata={"most": float("inf")}))
    read = read_results(tmp_path)[0]
    assert read.metrics[0].value != read.metrics[0].value
    assert read.metadata == {"most": float("inf")}


def test_a_key_is_needed_to_write_the_chain(tmp_path: Path):
    written(tmp_path, 2, key=b"secret")
    assert verify(tmp_path / RESULTS, key="secret").ok
    assert not verify(tmp_path / RESULTS).ok


def test_results_are_read_one_by_one_and_in_parts(tmp_path: Path):
    written(tmp_path, 4)
    results = open_results(tmp_path)
    assert (len(results), results[-1], list(results[1:3])) == (4, result(3), [result(1), result(2)])
    assert results.in_order(lambda entry: -int(entry.case_id[1:]))[0].case_id == "c3"


def test_a_second_writer_is_refused(tmp_path: Path):
    with ResultFile(tmp_path), pytest.raises(BadResults, match="another run"):
        ResultFile(tmp_path, resume=True)
    with ResultFile(tmp_path, resume=True) as file:
        file.append(result(0))
    with pytest.raises(BadResults, match="results already"):
        ResultFile(tmp_path)
