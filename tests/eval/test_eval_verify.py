"""Whether the results of a run are those that were written."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried
from tests.eval.runs import outcomes, result, save

from swink.eval.resultfile import BadResults, ResultFile
from swink.eval.verify import verify
from swink.messages import AssistantMessage, UserMessage
from swink.policies.chain import Chain


def told() -> list[object]:
    return [UserMessage("What should I wear?", 1.0), AssistantMessage("A jacket.", timestamp=2.0)]


@pytest.mark.parametrize("key", [None, b"secret"])
def test_a_run_as_it_was_written_verifies(tmp_path: Path, key: bytes | None):
    found = verify(save(tmp_path, outcomes("++ +-"), key=key), key)
    assert found.ok
    assert found.problems == found.notes == ()
    assert found.records == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"A jacket.", b"A jumper."),
        (b'"passed":false', b'"passed":true'),
        (b'"stop_reason":"stop"', b'"stop_reason":"length"'),
        (b'"cost":0.01', b'"cost":0.00'),
    ],
)
def test_a_changed_line_is_found(tmp_path: Path, old: bytes, new: bytes):
    run = save(tmp_path, [result(passed=False, transcript=told())])
    path = run / "results.jsonl"
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    found = verify(run)
    assert not found.ok
    assert "line 1" in found.problems[0]


def _drop(number: int) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: lines[:number] + lines[number + 1 :]


@pytest.mark.parametrize(
    "change",
    [
        _drop(0),
        _drop(1),
        _drop(2),
        lambda lines: [lines[1], lines[0], lines[2]],
        lambda lines: [*lines, lines[2]],
    ],
)
def test_lines_removed_moved_or_added_are_found(tmp_path: Path, change: Callable[[list[bytes]], list[bytes]]):
    run = save(tmp_path, outcomes("+ + -"))
    path = run / "results.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    assert not verify(run).ok


@tried(25, 1_000)
@given(st.sampled_from(["results.jsonl", "run.json"]), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_any_changed_byte_is_found(tmp_path: Path, name: str, place: float, change: int):
    run = tmp_path / "run"
    if not run.exists():
        save(run, [result(transcript=told()), result("b", False)])
    path = run / name
    whole = path.read_bytes()
    content = bytearray(whole)
    content[int(place * len(content))] ^= change
    path.write_bytes(content)
    assert not verify(run).ok
    path.write_bytes(whole)
    assert verify(run).ok


def test_a_changed_summary_is_found(tmp_path: Path):
    run = save(tmp_path, outcomes("+ -"))
    summary = msgspec.json.decode((run / "summary.json").read_bytes())
    (run / "summary.json").write_bytes(msgspec.json.encode(summary | {"passed": 2, "failed": 0}))
    assert verify(run).problems == (
        "summary.json: passed is not what the results come to",
        "summary.json: failed is not what the results come to",
    )


def test_a_cut_end_is_found_without_a_key(tmp_path: Path):
    run = save(tmp_path, outcomes("+ -"))
    os.truncate(run / "results.jsonl", (run / "results.jsonl").stat().st_size - 20)
    assert not verify(run).ok


def test_a_cut_end_with_a_head_to_match_is_found_with_a_key(tmp_path: Path):
    whole = save(tmp_path / "whole", outcomes("+ -"), key=b"secret")
    lines = (whole / "results.jsonl").read_bytes().splitlines(keepends=True)
    (whole / "results.jsonl").write_bytes(lines[0])
    summary = msgspec.json.decode((whole / "summary.json").read_bytes())
    digest = msgspec.json.decode(lines[0])["hash"]
    summary["head"] |= {"records": 1, "hash": digest, "size": len(lines[0])}
    (whole / "summary.json").write_bytes(msgspec.json.encode(summary))
    assert (
        "summary.json: its head was changed, or sealed with another key" in verify(whole, "secret").problems
    )


def test_a_run_written_anew_without_the_key_is_found(tmp_path: Path):
    forged = save(tmp_path, outcomes("+ +"))
    found = verify(forged, b"secret")
    assert len(found.problems) >= 3
    assert any("has no seal" in problem for problem in found.problems)


def test_another_key_does_not_verify(tmp_path: Path):
    assert not verify(save(tmp_path, outcomes("+"), key=b"secret"), b"other").ok
    assert not verify(tmp_path).ok


@pytest.mark.parametrize("key", [None, b"secret"])
def test_lines_cut_off_together_with_the_summary_are_found(tmp_path: Path, key: bytes | None):
    run = save(tmp_path, outcomes("+ - + - +"), key=key)
    (run / "summary.json").unlink()
    lines = (run / "results.jsonl").read_bytes().splitlines(keepends=True)
    for left in (0, 2, 4):
        (run / "results.jsonl").write_bytes(b"".join(lines[:left]))
        assert f"results.jsonl: 5 lines were written, {left} are left" in verify(run, key).problems
    (run / "results.head").unlink()
    assert any("summary.json and results.head are gone" in problem for problem in verify(run, key).problems)


def test_a_head_that_does_not_fit_the_lines_is_found(tmp_path: Path):
    run = save(tmp_path, outcomes("+ -"), key=b"secret")
    (run / "summary.json").unlink()
    kept = (run / "results.head").read_bytes()
    for changed, told in [
        (b"{", "cannot be read"),
        (b"{}", "changed, or sealed"),
        (kept.replace(b'"records":2', b'"records":1'), "changed, or sealed"),
    ]:
        (run / "results.head").write_bytes(changed)
        assert any(told in problem for problem in verify(run, b"secret").problems)
    (run / "results.head").write_bytes(kept.replace(b'"records":2', b'"records":1'))
    assert "results.jsonl: line 1 is not the one that was written" in verify(run).problems
    (run / "results.head").write_bytes(b"{}")
    assert "results.head: does not say how many lines there are" in verify(run).problems


@pytest.mark.parametrize("key", [None, b"secret"])
def test_an_interrupted_run_verifies_also_if_its_last_line_was_not_counted_yet(
    tmp_path: Path, key: bytes | None
):
    run = save(tmp_path, outcomes("+ - +"), key=key)
    counted = save(tmp_path / "before", outcomes("+ -"), key=key)
    (run / "summary.json").unlink()
    assert verify(run, key).ok
    # The hashes of the first lines depend on the time: what was counted is of the very same file.
    lines = (run / "results.jsonl").read_bytes().splitlines(keepends=True)
    (counted / "results.jsonl").write_bytes(b"".join(lines[:2]))
    with ResultFile(counted, resume=True, key=key) as file:
        assert file.head.records == 2
    (run / "results.head").write_bytes((counted / "results.head").read_bytes())
    assert verify(run, key).ok


def test_a_head_that_was_taken_out_is_found_with_a_key_and_noted_without(tmp_path: Path):
    for key in (None, b"secret"):
        run = save(tmp_path / str(key), outcomes("+ -"), key=key)
        summary = msgspec.json.decode((run / "summary.json").read_bytes())
        (run / "summary.json").write_bytes(msgspec.json.encode(summary | {"head": None}))
        found = verify(run, key)
        assert found.ok == (key is None)
        assert "has no head" in (*found.notes, *found.problems)[0]


def test_a_missing_manifest_is_found(tmp_path: Path):
    run = save(tmp_path, outcomes("+"))
    (run / "run.json").unlink()
    assert verify(run).problems == ("run.json: was changed",)


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
def test_a_damaged_file_is_a_problem_and_no_crash(tmp_path: Path, name: str):
    run = save(tmp_path, outcomes("+"))
    (run / name).write_bytes(b'{"cases": \xff')
    assert any(name in problem for problem in verify(run).problems)


@pytest.mark.parametrize("head", [b"{}", b"[]", b'"x"', b'{"records": "1", "hash": 3}'])
def test_a_head_that_is_none_is_found(tmp_path: Path, head: bytes):
    run = save(tmp_path, outcomes("+"))
    summary = msgspec.json.decode((run / "summary.json").read_bytes())
    (run / "summary.json").write_bytes(msgspec.json.encode(summary | {"head": msgspec.json.decode(head)}))
    assert not verify(run).ok


def test_nothing_to_verify_is_an_error(tmp_path: Path):
    with pytest.raises(BadResults):
        verify(tmp_path)


def test_a_whole_chain_of_what_are_no_results_is_a_problem(tmp_path: Path):
    run = save(tmp_path, outcomes("+"))
    (run / "results.jsonl").unlink()
    head, _ = Chain(run / "results.jsonl").append({"case_id": "c0", "metrics": 7, "passed": True}, {})
    summary = msgspec.json.decode((run / "summary.json").read_bytes())
    summary["head"] |= msgspec.to_builtins(head)
    (run / "summary.json").write_bytes(msgspec.json.encode(summary))
    assert "c0" in verify(run).problems[0]
