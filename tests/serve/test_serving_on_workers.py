"""Two workers over one PostgreSQL: what one of them began the other goes on with, however the first one ends."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from tests.counts import MORE, left_to_more
from tests.patience import until
from tests.serve.served import Client, text_of, types

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
rarely = pytest.mark.skipif(not MORE, reason="make test-more runs it")
LEASE = 2.0


class Workers:
    """Two workers in two processes, a client of each, and what really happened."""

    def __init__(
        self, directory: Path, processes: list[subprocess.Popen[str]], clients: list[Client]
    ) -> None:
        self._directory = directory
        self._processes = processes
        self.one, self.other = clients

    def open_the_gate(self) -> None:
        (self._directory / "go").touch()

    def log(self) -> list[str]:
        return (self._directory / "log").read_text().splitlines()

    def kill(self) -> None:
        """Kill the first worker with SIGKILL."""
        self._processes[0].kill()
        self._processes[0].wait()

    def stop(self) -> None:
        """Stop the first worker with SIGSTOP."""
        self._processes[0].send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._processes[0].send_signal(signal.SIGCONT)


@pytest.fixture
async def workers(postgres: str, tmp_path: Path) -> AsyncIterator[Workers]:
    store = f"PostgresStore({postgres!r}, schema='test_{token_hex(8)}')"
    async with AsyncExitStack() as stack:
        # One after the other: the first makes the tables.
        found = [await stack.enter_async_context(started(store, tmp_path)) for _ in range(2)]
        yield Workers(tmp_path, [process for process, _ in found], [client for _, client in found])


@asynccontextmanager
async def started(store: str, directory: Path) -> AsyncGenerator[tuple[subprocess.Popen[str], Client]]:
    process = subprocess.Popen(  # noqa: ASYNC220 - takes no time
        [sys.executable, str(Path(__file__).with_name("worker.py")), store, str(LEASE), str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = (await asyncio.to_thread(process.stdout.readline)).strip()
        async with Client(base_url=url, timeout=60) as client:
            yield process, client
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


async def read_until(client: Client, id: str, run: str, what: str) -> list[tuple[int, Any]]:
    """The events of a run up to the first one in which something stands."""
    seen: list[tuple[int, Any]] = []
    async for event in client.stream_events(id, run):
        seen.append(event)
        if what in str(event[1]):
            return seen
    raise AssertionError(f"no {what}: {types(seen)}")


def assert_whole(events: list[tuple[int, Any]]) -> None:
    """Every event is there, once."""
    numbers = [number for number, _ in events]
    assert numbers[0] == 1
    assert numbers == sorted(set(numbers))
    kinds = types(events)
    if "message_discarded" not in kinds:  # behind a lost reply, numbers begin where no client has been
        assert numbers == list(range(1, len(events) + 1))
    assert (kinds[0], kinds[-1]) == ("agent_start", "agent_end")
    assert [kinds.count(each) for each in ("agent_start", "agent_end")] == [1, 1]
    assert kinds.count("turn_start") == kinds.count("turn_end"), events
    assert events[-1][1]["stop_reason"] == "stop", events[-1]


async def texts(client: Client, id: str) -> list[str]:
    return [text_of(message) for message in (await client.messages(id))["messages"]]


@pytest.mark.more
@rarely
async def test_events_are_taken_up_on_the_other_worker_after_any_of_them(workers: Workers):
    id = await workers.one.begin()
    run = await workers.one.start(id, "say a b| c d")
    seen = await read_until(workers.one, id, run, "'b| '")
    following = asyncio.create_task(workers.other.events(id, run, seen[-1][0]))
    begun = await read_until(workers.other, id, run, "message_start")
    workers.open_the_gate()
    whole = await workers.one.events(id, run)
    assert seen + await following == whole
    assert begun == whole[: len(begun)]
    for after in range(len(whole) + 1):
        assert await workers.other.events(id, run, after) == whole[after:]
    assert_whole(whole)
    assert workers.log() == ["ask say a b| c d"]


@pytest.mark.more
@rarely
async def test_a_repeated_request_on_both_workers_at_once_runs_once(workers: Workers):
    body, headers = {"input": "say fine"}, {"Idempotency-Key": "k1"}
    for _ in range(5):
        id = await workers.one.begin()
        path = f"/conversations/{id}/runs"
        clients = [workers.one, workers.other] * 3
        answers = await asyncio.gather(*[each.post(path, json=body, headers=headers) for each in clients])
        assert {answer.status_code for answer in answers} <= {202, 409}, [each.text for each in answers]
        run = next(answer.json()["run_id"] for answer in answers if answer.status_code == 202)
        events = await workers.other.events(id, run)
        assert_whole(events)
        again = [(await each.post(path, json=body, headers=headers)).json() for each in clients]
        assert again == [{"run_id": run}] * 6
        assert {answer.json().get("run_id", run) for answer in answers} == {run}
        assert await texts(workers.other, id) == ["say fine", "fine "]
    assert workers.log() == ["ask say fine"] * 5


@left_to_more
@pytest.mark.more
async def test_a_worker_that_is_killed_in_a_tool_leaves_its_run_to_the_other_and_the_tool_runs_once(
    workers: Workers,
):
    id = await workers.one.begin()
    run = await workers.one.start(id, "count sheep")
    seen = await read_until(workers.one, id, run, "tool_execution_start")
    await until(lambda: "count sheep" in workers.log())
    workers.kill()
    workers.open_the_gate()
    rest = await workers.other.events(id, run, seen[-1][0])
    assert_whole(seen + rest)
    assert await workers.other.events(id, run) == seen + rest
    assert workers.log().count("count sheep") == 1
    said = await texts(workers.other, id)
    assert (said[0], said[-1], len(said)) == ("count sheep", "all done", 4)
    assert types(seen + rest).count("tool_execution_end") == 1


@pytest.mark.more
@rarely
async def test_a_worker_that_is_killed_in_a_reply_leaves_its_run_to_the_other_which_replies_anew(
    workers: Workers,
):
    id = await workers.one.begin()
    run = await workers.one.start(id, "say a b| c d")
    seen = await read_until(workers.one, id, run, "'b| '")
    workers.kill()
    workers.open_the_gate()
    rest = await workers.other.events(id, run, seen[-1][0])
    assert_whole(seen + rest)
    assert types(rest)[0] == "message_discarded"
    assert types(seen + rest).count("message_end") == 2  # the prompt and the reply
    assert await texts(workers.other, id) == ["say a b| c d", "a b| c d "]
    after = await workers.other.start(id, "say more")
    assert_whole(await workers.other.events(id, after))


@pytest.mark.more
@rarely
@pytest.mark.parametrize(
    ("prompt", "place"), [("say a b| c d", "'b| '"), ("count sheep", "tool_execution_start")]
)
async def test_a_worker_that_was_stopped_for_long_is_refused_and_nothing_is_doubled(
    workers: Workers, prompt: str, place: str
):
    id = await workers.one.begin()
    run = await workers.one.start(id, prompt)
    seen = await read_until(workers.one, id, run, place)
    await until(lambda: len(workers.log()) == (2 if "count" in prompt else 1))
    left = asyncio.create_task(workers.one.events(id, run))
    workers.stop()
    following = asyncio.create_task(workers.other.events(id, run, seen[-1][0]))
    # The other worker has the run as soon as it tells something: the claim of the stopped one has run out.
    if "count" not in prompt:
        await until(lambda: workers.log().count(f"ask {prompt}") == 2)
    else:
        await until(lambda: len(workers.log()) == 3)
    workers.open_the_gate()
    rest = await following
    assert_whole(seen + rest)
    said = await texts(workers.other, id)
    workers.go_on()
    told = await left
    assert "agent_end" not in types(told) or told == seen + rest, told[-1]
    assert await workers.one.events(id, run, seen[-1][0]) == rest
    assert await texts(workers.one, id) == await texts(workers.other, id) == said
    assert workers.log().count("count sheep") == prompt.count("count")
    after = await workers.one.start(id, "say more")
    assert_whole(await workers.other.events(id, after))
