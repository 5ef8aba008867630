"""AuditLogger: every change of the log shows, and several writers make one sound chain."""

import asyncio
import json
import logging
import multiprocessing
import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import PRICED, Scene, call
from tests.counts import left_to_more, tried
from tests.patience import until

from swink import (
    Agent,
    AssistantMessage,
    AuthError,
    Policy,
    Stop,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    tool,
)
from swink.agent.policy import PolicyContext, Turn
from swink.messages.jsondata import DEEPEST
from swink.messages.redact import redact_value
from swink.policies import AuditLogger, BrokenLog, Budget, Head
from swink.system.filelock import locked
from swink.testing import Pause, ScriptedModel


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
    assert (first["event"], first["turn"], first["reason"], first["model"]) == (
        "turn",
        1,
        "tools_executed",
        "test:priced",
    )
    assert (first["input"], first["text"], first["label"]) == (["Find it."], "Looking.", "agent 7")
    assert first["calls"] == [
        {"id": "call_1", "name": "act", "arguments": {"q": "x"}, "is_error": False, "result": "42"}
    ]
    assert (second["text"], second["usage"]["total"]) == ("Found.", 2)
    assert (end["event"], end["turns"]) == ("end", 2)
    assert AuditLogger.verify(path).ok


async def test_secrets_are_redacted_and_long_texts_cut(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    key = "sk-live-abcdefghijklmnop"
    scene = Scene(
        AuditLogger(path, max_text=50),
        [[f"Using {key}", call(1, password="hunter2hunter2", note=key)], "x" * 500],
        answer=f"token {key}",
    )
    await scene.run(f"My key is {key}")
    text = path.read_text()
    assert key not in text
    assert "hunter2" not in text
    assert "450 more characters" in text


@given(position=st.integers(0, 10_000), change=st.integers(1, 255))
@tried(75, 300)
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
@tried(50, 200)
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
    written(path, 3)
    path.write_bytes(path.read_bytes()[:-cut])
    assert not AuditLogger.verify(path).ok
    AuditLogger(path).append({"event": "after"})
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
    await asyncio.gather(
        *(loggers[number % 2].write({"event": "note", "number": number}) for number in range(40))
    )
    assert AuditLogger.verify(path).records == 40
    assert AuditLogger.verify(path).ok


def _append_many(path: Path, count: int) -> None:
    for number in range(count):
        AuditLogger(path).append({"event": "note", "number": number})


@left_to_more
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


async def test_a_log_that_cannot_be_written_is_reported_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
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


# What is cut off or deleted is found at the next append


def events(path: Path) -> list[str]:
    return [json.loads(line)["event"] for line in path.read_text().splitlines() if line.endswith("}")]


def _cut_lines(path: Path, anchor: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))


def _cut_bytes(path: Path, anchor: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def _delete(path: Path, anchor: Path) -> None:
    path.unlink()


def _empty(path: Path, anchor: Path) -> None:
    path.write_bytes(b"")


def _forge(path: Path, anchor: Path) -> None:
    path.unlink()
    written(path, 5)


def _forge_more(path: Path, anchor: Path) -> None:
    path.unlink()
    written(path, 9)


def _cut_the_middle(path: Path, anchor: Path) -> None:
    first, _, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, *rest]))


def _cut_the_beginning(path: Path, anchor: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[-1:]))


TAMPERING = [
    _cut_lines,
    _cut_bytes,
    _delete,
    _empty,
    _forge,
    _forge_more,
    _cut_the_middle,
    _cut_the_beginning,
]


@pytest.mark.parametrize("tamper", TAMPERING)
def test_what_was_taken_away_is_found_at_the_next_append(
    tmp_path: Path, tamper: Any, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "audit.jsonl"
    logger = written(path)
    tamper(path, tmp_path / "none")
    with caplog.at_level(logging.WARNING):
        logger.append({"event": "after"})
    assert "is broken" in caplog.text
    assert events(path)[-2:] == ["broken", "after"]
    assert any("the chain was broken" in problem for problem in AuditLogger.verify(path).problems)
    caplog.clear()
    logger.append({"event": "later"})
    assert events(path)[-1] == "later"
    assert events(path).count("broken") == 1, "once is enough"


@pytest.mark.parametrize("tamper", TAMPERING)
def test_with_an_anchor_it_is_found_after_a_restart_too(tmp_path: Path, tamper: Any):
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "kept" / "audit.head"
    written(path, anchor=anchor)
    kept = anchor.read_bytes()
    tamper(path, anchor)
    assert anchor.read_bytes() == kept
    AuditLogger(path, anchor=anchor).append({"event": "after"})
    assert events(path)[-2:] == ["broken", "after"]


def test_a_log_that_was_cut_together_with_its_anchor_is_found_after_a_restart(tmp_path: Path):
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "audit.head"
    written(path, anchor=anchor)
    _cut_lines(path, anchor)
    anchor.unlink()
    AuditLogger(path, anchor=anchor).append({"event": "after"})
    assert events(path)[-2:] == ["broken", "after"]


def test_a_log_gets_its_anchor_later_and_a_crash_before_its_first_record_breaks_nothing(tmp_path: Path):
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "audit.head"
    written(path)
    before = path.read_bytes()
    written(path, 1, anchor=anchor)
    assert AuditLogger.verify(path, head=anchor).ok
    path.write_bytes(before)
    anchor.write_text(
        json.dumps({"records": 5, "hash": AuditLogger.verify(path).head.hash})
    )  # as it was without a size
    written(path, 1, anchor=anchor)
    assert AuditLogger.verify(path, head=anchor).ok


def test_a_record_of_ones_own_may_use_any_name(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    logger = AuditLogger(path, label="a\ud800")
    for record in (
        {"seq": 7, "prev": "x", "time": 0, "anchored": True, "event": "odd"},
        {"hash": "y", "event": "mine"},
        {"event": "after"},
    ):
        logger.append(record)
    assert AuditLogger.verify(path).ok
    assert events(path)[-2:] == ["mine", "after"]


async def test_records_that_wait_for_the_disk_do_not_take_the_threads_of_others(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    logger = written(path, 1)
    with open(path, "ab") as file:
        with locked(file):
            writing = [asyncio.create_task(logger.write({"event": "note"})) for _ in range(50)]
            await asyncio.sleep(0.05)
            async with asyncio.timeout(20):
                await asyncio.to_thread(int)
        await asyncio.gather(*writing)
    assert AuditLogger.verify(path).records == 51


@pytest.mark.parametrize("damage", [b"", b"not a head", b'{"records":2}', None])
def test_an_anchor_that_was_damaged_or_deleted_is_found(tmp_path: Path, damage: bytes | None):
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "audit.head"
    logger = written(path, anchor=anchor)
    anchor.unlink() if damage is None else anchor.write_bytes(damage)
    logger.append({"event": "after"})
    assert events(path)[-2:] == ["broken", "after"]
    assert AuditLogger.verify(path, head=anchor).problems[0].startswith("line 6: the chain was broken")


def test_what_others_have_added_meanwhile_breaks_nothing(tmp_path: Path):
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "audit.head"
    first, second, unanchored = (
        AuditLogger(path, anchor=anchor),
        AuditLogger(path, anchor=anchor),
        AuditLogger(path),
    )
    for number in range(20):
        for logger in (first, second, unanchored, unanchored):
            logger.append({"event": "note", "number": number, "text": "x" * 20_000})
    assert AuditLogger.verify(path).ok
    assert AuditLogger.verify(path).records == 80


async def test_a_log_that_is_deleted_during_a_run_is_reported_and_a_required_one_stops_it(tmp_path: Path):
    for required in (False, True):
        path = tmp_path / f"{required}.jsonl"

        def delete(arguments: Any, path: Path = path) -> str:
            path.unlink()
            return "deleted"

        scene = Scene(AuditLogger(path, required=required), [call(1), call(2), "done"], answer=lambda _: "ok")
        await scene.run()
        scene = Scene(scene.agent._config.policies, [call(3), "done"], answer=delete)
        result = await scene.run()
        assert (result.reason == "AuditLogger failed: BrokenLog") == required
        assert len(scene.model.calls) == (1 if required else 2)
        assert events(path)[:2] == ["broken", "turn"]


def test_a_required_log_that_is_broken_still_gets_the_record(tmp_path: Path):
    logger = written(tmp_path / "audit.jsonl", required=True)
    logger.path.unlink()
    with pytest.raises(BrokenLog, match="5 records were written, 0 are left"):
        logger.append({"event": "after"})
    assert events(logger.path) == ["broken", "after"]


# Modes, locks and disks


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes")
def test_log_and_anchor_are_for_their_owner_alone(tmp_path: Path):
    path, anchor = tmp_path / "audit.jsonl", tmp_path / "audit.head"
    before = os.umask(0)
    try:
        logger = written(path, anchor=anchor)
        assert (mode(path), mode(anchor)) == (0o600, 0o600)
        path.chmod(0o644)
        anchor.chmod(0o666)
        logger.append({"event": "after"})
    finally:
        os.umask(before)
    assert (mode(path), mode(anchor)) == (0o600, 0o600)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["audit.head", "audit.jsonl"]


async def test_a_lock_that_nobody_releases_does_not_hang_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.policies.chain.LOCKED_WITHIN", 0.2)
    path = tmp_path / "audit.jsonl"
    with open(path, "ab") as file, locked(file), caplog.at_level(logging.ERROR):
        scene = Scene(AuditLogger(path), ["done"])
        assert (await asyncio.wait_for(scene.run(), 20)).text == "done"
    assert "was locked by another program" in caplog.text
    await scene.agent._config.policies[0].write({"event": "after"})  # type: ignore[attr-defined]
    assert events(path) == ["after"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes with the names of files")
async def test_what_is_no_file_is_refused_and_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    os.mkfifo(tmp_path / "pipe")
    with caplog.at_level(logging.ERROR):
        assert (
            await asyncio.wait_for(Scene(AuditLogger(tmp_path / "pipe"), ["done"]).run(), 20)
        ).text == "done"
    assert "is not a regular file" in caplog.text


def _append_on_a_full_disk(path: Path) -> None:
    import resource

    logger = AuditLogger(path)
    logger.append({"event": "before"})
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, resource.RLIM_INFINITY))
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        logger.append({"event": "too much", "text": "x" * 1_000})
    except OSError:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        logger.append({"event": "after"})
    else:
        raise AssertionError("the disk was not full")


@pytest.mark.skipif(sys.platform == "win32", reason="the disk is full by a limit of POSIX")
def test_a_full_disk_costs_the_record_and_the_next_one_follows_on(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    process = multiprocessing.get_context("spawn").Process(target=_append_on_a_full_disk, args=(path,))
    process.start()
    process.join(30)
    assert process.exitcode == 0
    process.close()
    assert events(path) == ["before", "after"]
    assert AuditLogger.verify(path).ok


# Turns that failed, were aborted or were stopped


@tool
async def hang() -> str:
    """Takes long."""
    await asyncio.sleep(60)
    return "never"


class Stopping(Policy):
    def post_turn(self, ctx: Any, turn: Any) -> Stop:
        return Stop("enough")


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_turn_that_failed_is_in_the_log(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    scene = Scene(AuditLogger(path), [call(1), ["par", AuthError("key sk-live-abcdefghijklmnop refused")]])
    await scene.run("Do it.")
    first, failed, end = records(path)
    assert (first["input"], first["reason"]) == (["Do it."], "tools_executed")
    assert (failed["event"], failed["turn"], failed["reason"], failed["text"]) == ("turn", 2, "error", "par")
    assert "refused" in failed["error"]
    assert "sk-live" not in path.read_text()
    assert (end["event"], end["stop_reason"], end["turns"]) == ("end", "error", 2)


async def test_a_first_turn_that_failed_is_in_the_log_with_what_was_asked(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    await Scene(AuditLogger(path), [AuthError("no")]).run("Do it.")
    failed, end = records(path)
    assert (failed["input"], failed["reason"]) == (["Do it."], "error")


@pytest.mark.parametrize("script", [[["par", Pause(60)]], [ToolCall("1", "hang")]])
async def test_a_turn_that_was_aborted_is_in_the_log_when_the_run_has_been_awaited(
    tmp_path: Path, script: list[Any]
):
    path = tmp_path / "audit.jsonl"
    agent = Agent("test:slow", stream_fn=ScriptedModel(script), tools=[hang], policies=[AuditLogger(path)])
    task = asyncio.create_task(agent.run("Do it."))
    await until(
        lambda: agent.pending_tool_calls or (agent.streaming_message and agent.streaming_message.text)
    )
    agent.abort()
    await task
    aborted, end = records(path)
    assert (aborted["input"], aborted["reason"], end["stop_reason"]) == (["Do it."], "aborted", "aborted")
    if script == [ToolCall("1", "hang")]:
        assert "cancelled" in aborted["calls"][0]["result"]
    assert AuditLogger.verify(path).ok


def test_a_turn_that_ends_with_the_event_loop_is_in_the_log(tmp_path: Path):
    path = tmp_path / "audit.jsonl"

    async def leave() -> None:
        agent = Agent(
            "test:slow", stream_fn=ScriptedModel([["par", Pause(60)]]), policies=[AuditLogger(path)]
        )
        task = asyncio.create_task(agent.run("Do it."))
        await asyncio.sleep(0.05)
        assert not task.done()

    asyncio.run(leave())
    assert [record["event"] for record in records(path)] == ["turn", "end"]


async def test_a_turn_after_which_another_policy_stopped_is_in_the_log(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    await Scene([Stopping(), AuditLogger(path)], [call(1), "done"]).run("Do it.")
    turn, end = records(path)
    assert (turn["input"], turn["calls"][0]["result"], end["reason"]) == (["Do it."], "ok", "enough")


async def test_a_run_that_was_stopped_before_its_first_turn_is_in_the_log(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    await Scene([Budget(max_tokens=10), AuditLogger(path)], ["never"]).run("Do it.")
    (end,) = records(path)
    assert (end["event"], end["turns"], end["input"]) == ("end", 0, ["Do it."])
    assert "budget" in end["reason"]


async def test_aborts_at_any_moment_leave_every_turn_in_the_log_once_and_in_order(tmp_path: Path):
    for ticks in range(0, 60, 3):
        path = tmp_path / f"{ticks}.jsonl"
        agent = Agent(
            "test:model",
            stream_fn=ScriptedModel([call(1), call(2), "done"]),
            tools=[],
            policies=[AuditLogger(path)],
        )
        task = asyncio.create_task(agent.run("Do it."))
        for _ in range(ticks):
            await asyncio.sleep(0.0002)
        agent.abort()
        await asyncio.wait([task])
        if not path.exists():
            continue
        assert AuditLogger.verify(path).ok
        turns = [record["turn"] for record in records(path) if record["event"] == "turn"]
        assert turns == list(range(1, len(turns) + 1))
        assert len(turns) == sum(message.role == "assistant" for message in agent.messages)
        assert events(path)[-1] == "end"


async def test_one_logger_serves_many_agents_at_once(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    logger = AuditLogger(path)
    scenes = [Scene(logger, [call(1), AuthError("no") if number % 2 else "done"]) for number in range(8)]
    await asyncio.gather(*(scene.run(f"Task {number}.") for number, scene in enumerate(scenes)))
    assert sorted(events(path)) == ["end"] * 8 + ["turn"] * 16
    assert AuditLogger.verify(path).ok


# What JSON cannot hold


async def test_nothing_that_json_cannot_hold_costs_a_turn(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    deep: Any = "end"
    for _ in range(DEEPEST - 2):
        deep = [deep]
    odd = {
        "half": "\ud83d",
        "\udc00": 1,
        "deep": deep,
        "big": 2**80,
        "nan": float("nan"),
        "set": {1},
        "path": Path("a"),
    }
    logger = AuditLogger(path)
    called = {key: value for key, value in odd.items() if key not in ("deep", "object")}  # refused in a call
    message = AssistantMessage([ToolCall("1", "act", called)], stop_reason="tool_use")
    context = PolicyContext(1, PRICED, "", (), (UserMessage((Text("half \ud800"),)),), Usage(), None, {})
    await logger.post_turn(
        context,
        Turn(message, (ToolResultMessage("1", "act", (Text("\udfff"),), details=odd),), "tools_executed"),
    )
    await logger.write({"event": "own", "details": object(), "text": "\ud800"})
    assert events(path) == ["turn", "own"]
    assert AuditLogger.verify(path).ok


async def test_lone_surrogates_do_not_cost_a_turn(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    scene = Scene(
        AuditLogger(path), [["text \ud800", call(1)], AuthError("half \udfff")], answer="\ud800 answer"
    )
    await scene.agent.run("Do \ud800 it.")
    assert events(path) == ["turn", "turn", "end"]
    assert AuditLogger.verify(path).ok


async def test_a_large_record_does_not_hold_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    redacted_in: list[int] = []

    def redact(value: Any) -> Any:
        redacted_in.append(threading.get_ident())
        return redact_value(value)

    monkeypatch.setattr("swink.policies.audit.redact_value", redact)
    logger = AuditLogger(tmp_path / "audit.jsonl")
    await logger.write({"event": "large", "text": ["password=hunter2hunter2 " * 100] * 4})
    assert redacted_in
    assert threading.get_ident() not in redacted_in
