"""A served agent whose disk is full: clients are told, what was stored stays, and with room it goes on."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.serve.served import Client, text_of, types

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
ROOM = 768 * 1024
"""Bytes that a file of the server may have at first; SIGUSR1 makes room."""
PROGRAM = f"""
import resource, runpy, signal, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({ROOM}, resource.RLIM_INFINITY))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
room = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
signal.signal(signal.SIGUSR1, lambda *_: resource.setrlimit(resource.RLIMIT_FSIZE, room))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


async def test_a_full_disk_is_told_loses_nothing_and_with_room_the_conversation_goes_on(tmp_path: Path):
    program = str(Path(__file__).with_name("worker.py"))
    store = f"SqliteStore({str(tmp_path / 'a.db')!r})"
    process = subprocess.Popen(  # noqa: ASYNC220 - takes no time
        [sys.executable, "-c", PROGRAM, program, store, "1", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = (await asyncio.to_thread(process.stdout.readline)).strip()
        async with Client(base_url=url, timeout=60) as client:
            await fill_and_make_room(client, process)
    finally:
        said = (await asyncio.to_thread(process.communicate))[1]  # closes its input, which ends it
    assert process.returncode == 0, said
    assert "cannot be used" in said, said  # the log names the store


async def fill_and_make_room(client: Client, process: "subprocess.Popen[str]") -> None:
    id = await client.begin()
    kept = ["say fine", "fine "]
    assert types(await client.events(id, await client.start(id, kept[0])))[-1] == "agent_end"
    path, number = f"/conversations/{id}/runs", 0
    while True:
        number += 1
        prompt = f"say {number} {'x' * 20_000}"
        answer = await client.post(path, json={"input": prompt})
        if answer.status_code == 503:
            assert "nothing was lost" in answer.text or "could not begin" in answer.text
            break
        assert answer.status_code == 202, answer.text
        events = await client.events(id, answer.json()["run_id"])
        assert types(events)[-1] == "agent_end"
        if events[-1][1]["stop_reason"] == "error":
            break
        kept += [prompt, f"{prompt[4:]} "]
    assert 1 < number < 40
    process.send_signal(signal.SIGUSR1)
    said = [text_of(message) for message in (await client.messages(id))["messages"]]
    assert said[: len(kept)] == kept
    while (answer := await client.post(path, json={"input": "say again"})).status_code == 409:
        await asyncio.sleep(0.1)  # the claim could not be given back: it runs out
    after = await client.events(id, answer.json()["run_id"])
    assert after[-1][1]["stop_reason"] == "stop"
    again = [text_of(message) for message in (await client.messages(id))["messages"]]
    assert again[: len(said)] == said
    assert again[-2:] == ["say again", "again "]
