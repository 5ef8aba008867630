"""AuditLogger: every change of the log shows, and several writers make one sound chain."""

import asyncio
import json
import logging
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenes import Scene, call

from swink.policies import AuditLogger, Head


def written(path: Path, count: int = 5, **options: Any) -> AuditLogger:
    logger = AuditLogger(path, **options)
    for number in range(count):
        logger.append({"event": "note", "number": number, "text": "ä\n"})
    return logger


async def test_turns_and_runs_are_written_down(tmp_path: Path):
    path = tmp_path / "logs" / "audit.jsonl"
    scene = Scene(AuditLogger(path, label="agent 7"), [["Looking.", call(1, q="x")], "Found."], answer="42")
    await scene.run("Find it.")
    first, second, end = [json.loads(line) for line in path.read_text().splitlines()]
    assert (first["event"], first["turn"], first["reason"], first["model"]) == ("turn", 1, "tools_executed", "test:priced")
    assert (first["input"], first["text"], first["label"]) == (["Find it."], "Looking.", "agent 7")
    assert first["calls"] == [{"id": "call_1", "name": "act", "arguments": {"q": "x"}, "is_error": False, "result": "42"}]
    assert (second["text"], second["usage"]["total"]) == ("Found.", 2)
    assert (end["event"], end["turns"]) == ("end", 2)
    assert AuditLogger.verify(path).ok


async def test_secrets_are_redacted_and_long_texts_cut(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    key = "sk-live-abcdefghijklmnop"
    scene = Scene(
        AuditLogger(path, max_text=50), [[f"Using {key}", call(1, password="hunter2hunter2", note=key)], "x" * 500], answer=f"token {key}"
    )
    await scene.run(f"My key is {key}")
    text = path.read_text()
    assert key not in text
    assert "hunter2" not in text
    assert "450 more characters" in text


@given(position=st.integers(0, 10_000), change=st.integers(1, 255))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_single_byte_change_is_found(tmp_path: Path, position: int, change: int):
    path = tmp_path / "audit.jsonl"
    if not path.exists():
        written(path, 4)
    data = bytearray(path.read_bytes())
    data[position % len(data)] ^= change
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(data)
    assert not AuditLogger.verify(changed).ok


@given(position=st.integers(0, 10_000), byte=st.integers(0, 255), remove=st.booleans())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_byte_put_in_or_taken_out_is_found(tmp_path: Path, position: int, byte: int, remove: bool):
    path = tmp_path / "audit.jsonl"
    if not path.exists():
        written(path, 4)
    data = bytearray(path.read_bytes())
    if remove:
        del data[position % len(data)]
    else:
        data.insert(position % (len(data) + 1), byte)
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(data)
    assert not AuditLogger.verify(changed).ok


def test_lines_removed_moved_doubled_or_forged_are_found(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    other = tmp_path / "other.jsonl"
    written(other)
    forged = other.read_bytes().splitlines(keepends=True)[2]
    for changed in (
        [*lines[1:]],
        [*lines[:2], *lines[3:]],
        [lines[1], lines[0], *lines[2:]],
        [*lines, lines[-1]],
        [*lines[:2], forged, *lines[3:]],
        [*lines[:2], b"\n", *lines[2:]],
    ):
        path.write_bytes(b"".join(changed))
        assert not AuditLogger.verify(path).ok


def test_lines_cut_off_the_end_are_found_with_the_head(tmp_path: Path):
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "elsewhere.head"
    written(path, anchor=anchor)
    assert AuditLogger.verify(path, head=anchor).ok
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert AuditLogger.verify(path).ok, "a chain alone cannot tell"
    assert AuditLogger.verify(path, head=anchor).problems == ("there are 4 records, but the head says 5",)
    path.write_bytes(b"")
    assert not AuditLogger.verify(path, head=anchor).ok


def test_the_head_can_be_sent_elsewhere(tmp_path: Path):
    heads: list[Head] = []
    logger = written(tmp_path / "audit.jsonl", 3, anchor=heads.append)
    assert [head.records for head in heads] == [1, 2, 3]
    assert AuditLogger.verify(logger.path, head=heads[-1]).ok
    rewritten = written(tmp_path / "rewritten.jsonl", 3)
    assert not AuditLogger.verify(rewritten.path, head=heads[-1]).ok


def test_with_a_key_nobody_else_can_rewrite_the_log(tmp_path: Path):
    keyed = written(tmp_path / "keyed.jsonl", key="correct horse")
    assert AuditLogger.verify(keyed.path, key="correct horse").ok
    assert not AuditLogger.verify(keyed.path, key="wrong").ok
    assert not AuditLogger.verify(keyed.path).ok
    plain = written(tmp_path / "plain.jsonl")
    assert not AuditLogger.verify(plain.path, key="correct horse").ok


@pytest.mark.parametrize("cut", [1, 2, 10, 60, 150])
def test_a_line_torn_by_a_crash_is_vouched_for_and_the_chain_goes_on(tmp_path: Path, cut: int):
    path = tmp_path / "audit.jsonl"
    logger = written(path, 3)
    path.write_bytes(path.read_bytes()[:-cut])
    assert not AuditLogger.verify(path).ok
    logger.append({"event": "after"})
    assert AuditLogger.verify(path).ok
    lines = path.read_bytes().splitlines()
    assert json.loads(lines[-1])["event"] == "after"
    if cut > 1:
        path.write_bytes(path.read_bytes().replace(lines[2], lines[2][:-1]))
        assert not AuditLogger.verify(path).ok, "what is left of the torn line is protected too"


def test_a_long_record_is_found_again(tmp_path: Path):
    logger = AuditLogger(tmp_path / "audit.jsonl")
    logger.append({"text": "x" * 200_000})
    logger.append({"text": "y" * 70_000})
    logger.append({"text": "z"})
    assert AuditLogger.verify(logger.path).records == 3
    assert AuditLogger.verify(logger.path).ok


async def test_threads_share_a_log(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    loggers = [AuditLogger(path), AuditLogger(path)]
    await asyncio.gather(*(loggers[number % 2].write({"event": "note", "number": number}) for number in range(40)))
    assert AuditLogger.verify(path).records == 40
    assert AuditLogger.verify(path).ok


def _append_many(path: Path, count: int) -> None:
    for number in range(count):
        AuditLogger(path).append({"event": "note", "number": number})


def test_processes_share_a_log(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append_many, args=(path, 25)) for _ in range(2)]
    for process in processes:
        process.start()
    _append_many(path, 25)
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
        process.close()
    assert AuditLogger.verify(path).records == 75
    assert AuditLogger.verify(path).ok


async def test_a_log_that_cannot_be_written_is_reported_and_the_run_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.ERROR):
        scene = Scene(AuditLogger(tmp_path / "file" / "audit.jsonl"), ["done"])
        assert (await scene.run()).text == "done"
    assert "AuditLogger failed" in caplog.text


async def test_a_required_log_that_cannot_be_written_stops_the_run(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    scene = Scene(AuditLogger(tmp_path / "file" / "audit.jsonl", required=True), [call(), "done"])
    result = await scene.run()
    assert len(scene.model.calls) == 1
    assert "AuditLogger failed" in result.reason
