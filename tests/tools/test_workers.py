"""Where tools run (P1, P7): threads see the caller's context and can be left behind, processes can be killed."""

import asyncio
import contextvars
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from tests import worker_tools
from tests.counts import MORE, left_to_more
from tests.patience import until

from swink.tools import ToolContext, workers
from swink.tools.workers import Abandoned, WorkerDied, run_in_process, run_in_thread

ENDS_THE_TREE = pytest.mark.skipif(sys.platform == "win32", reason="there the process alone is ended")

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def nothing() -> None:
    """For a caller that has nothing to cancel."""


async def isolated(made, **arguments):
    return await made.execute("1", arguments, ToolContext("1", made.name))


# Threads


async def test_a_function_runs_in_a_thread_of_its_own_with_the_callers_context_variables():
    variable.set("seen")

    def look(x: int) -> tuple[int, str, str]:
        found = variable.get()
        variable.set("changed")
        return x, threading.current_thread().name, found

    assert await run_in_thread(look, {"x": 5}, "look", nothing) == (5, "swink-tool-look", "seen")
    assert variable.get() == "seen", "what a tool sets stays with the tool"


async def test_what_a_function_raises_is_raised():
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await run_in_thread(fail, {}, "fail", nothing)


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()]
)
async def test_what_would_end_the_program_ends_only_the_tool(error):
    def leave() -> None:
        raise error

    with pytest.raises(Exception, match=type(error).__name__) as caught:
        await run_in_thread(leave, {}, "leave", nothing)
    assert isinstance(caught.value, Exception)


async def test_a_blocking_function_does_not_hold_up_the_loop():
    beaten = threading.Event()

    async def beat() -> None:
        for _ in range(5):
            await asyncio.sleep(0.01)
        beaten.set()

    heart = asyncio.create_task(beat())
    assert await run_in_thread(lambda: beaten.wait(60), {}, "nap", nothing), "the loop stood still"
    await heart


async def test_many_functions_run_at_once():
    together = threading.Barrier(20, timeout=60)
    await asyncio.gather(*(run_in_thread(together.wait, {}, "meet", nothing) for _ in range(20)))


async def test_a_function_that_stops_when_asked_gives_its_result(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workers, "GRACE", 60)
    begun, stop = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        return "stopped" if stop.wait(60) else ""

    task = asyncio.create_task(run_in_thread(work, {}, "polite", stop.set))
    await until(begun.is_set)
    task.cancel()
    assert await task == "stopped"


async def test_a_function_that_ignores_cancellation_is_left_behind_after_a_grace():
    begun, release = threading.Event(), threading.Event()
    asked: list[bool] = []

    def work() -> None:
        begun.set()
        release.wait(60)

    task = asyncio.create_task(run_in_thread(work, {}, "stubborn", lambda: asked.append(True)))
    await until(begun.is_set)
    task.cancel()
    with pytest.raises(Abandoned, match=r"may still be running and its effect is unknown"):
        await task
    assert asked == [True]
    assert await run_in_thread(lambda: "free", {}, "other", nothing) == "free", "others do not wait for it"
    release.set()


async def test_a_second_cancellation_does_not_wait_for_the_grace():
    release = threading.Event()
    task = asyncio.create_task(run_in_thread(lambda: release.wait(60), {}, "stubborn", nothing))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, Abandoned)):
        await task
    release.set()


def test_a_function_may_outlive_its_event_loop():
    release = threading.Event()

    async def main() -> None:
        task = asyncio.create_task(run_in_thread(lambda: release.wait(60), {}, "long", nothing))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(Abandoned):
            await task

    asyncio.run(main())
    release.set()


def test_a_function_left_behind_does_not_hold_up_the_exit(tmp_path: Path):
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(
            """
            import asyncio, time
            from swink.tools.workers import Abandoned, run_in_thread

            async def main():
                task = asyncio.create_task(run_in_thread(lambda: time.sleep(300), {}, "x", lambda: None))
                await asyncio.sleep(0.02)
                task.cancel()
                try:
                    await task
                except Abandoned:
                    print("left")

            asyncio.run(main())
            """
        )
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "left", "")


# Processes


def test_what_only_isolated_tools_need_is_imported_with_the_first_of_them():
    program = "import sys, swink.tools.workers; sys.exit(bool({'pickle', 'runpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


async def test_a_function_runs_in_a_process_of_its_own():
    facts = await isolated(worker_tools.facts)
    assert facts["pid"] != os.getpid()
    assert facts["cwd"] == os.getcwd()
    assert facts["stdin"] == "", "there is nobody to type anything"
    assert facts["argv"] == 1


async def test_arguments_are_converted_and_results_come_back_whole():
    big = "é" * 2_000_000
    three, mirrored, echoed = await asyncio.gather(
        isolated(worker_tools.add, a=1),
        isolated(worker_tools.mirrored, point={"x": 1, "y": 2}),
        isolated(worker_tools.echo, text=big),
    )
    assert three == 3
    assert mirrored == worker_tools.Point(2, 1)
    assert echoed == big


@pytest.mark.more
async def test_however_it_ends_the_caller_hears_of_it():
    endings = {
        "value": (ValueError, "bad value"),
        "touchy": (Exception, "one and two"),
        "exit": (Exception, "SystemExit: 3"),
        "interrupt": (Exception, "KeyboardInterrupt"),
        "crash": (WorkerDied, "ended with code 7 and no result"),
        "kill": (WorkerDied, "ended with code -9 and no result"),
        "lock": (Exception, "not picklable"),
        "lambda": (Exception, "not picklable"),
    }
    for one_like_another in () if MORE else ("interrupt", "kill", "lock"):
        del endings[one_like_another]
    outcomes = await asyncio.gather(
        *(isolated(worker_tools.fail, how=how) for how in endings), return_exceptions=True
    )
    for outcome, (error, says) in zip(outcomes, endings.values(), strict=True):
        assert isinstance(outcome, error)
        assert says in str(outcome)


async def test_what_a_function_prints_does_not_disturb_its_result(capfd):
    assert await isolated(worker_tools.noisy) == "clean"
    out, err = capfd.readouterr()
    assert out == ""
    assert {"on stdout", "straight to the descriptor", "from a child"} <= set(err.splitlines())


class Links:
    """A server that knows who is still connected."""

    async def __aenter__(self) -> "Links":
        self.ended: list[asyncio.Future[bytes]] = []
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self.server.close()
        await self.server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ended.append(asyncio.ensure_future(self._read(reader, writer)))

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    async def connected(self, number: int) -> None:
        async with asyncio.timeout(60):
            while len(self.ended) < number:
                await asyncio.sleep(0.02)

    async def all_gone(self) -> None:
        async with asyncio.timeout(40):  # what holds a link lives for 60 seconds
            await asyncio.gather(*self.ended)


@ENDS_THE_TREE
async def test_cancellation_kills_the_process_and_all_it_started():
    async with Links() as links:
        task = asyncio.create_task(isolated(worker_tools.hold, port=links.port))
        await links.connected(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await links.all_gone()


@ENDS_THE_TREE
async def test_what_a_finished_process_left_running_is_killed_too():
    async with Links() as links:
        assert await isolated(worker_tools.leave_behind, port=links.port) == "ready"
        await links.connected(1)
        await links.all_gone()


class Scattered:
    """Processes that `scatter` started, by the marks they left."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def marks(self) -> list[Path]:
        """Only what is complete: a mark gets its name when it is written."""
        return [path for path in self.directory.iterdir() if not path.name.startswith(".")]

    async def all_there(self) -> None:
        async with asyncio.timeout(60):
            while len(self.marks()) < 6:
                await asyncio.sleep(0.02)

    async def all_gone(self) -> None:
        async with asyncio.timeout(40):  # each lives for 60 seconds
            while self.alive():
                await asyncio.sleep(0.01)

    def alive(self) -> list[str]:
        found = []
        for path in self.marks():
            try:
                state = Path("/proc", path.read_text(), "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z":
                found.append(path.name)
        return found


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@needs_proc
@ENDS_THE_TREE
async def test_cancellation_reaches_children_in_sessions_of_their_own(tmp_path: Path):
    scattered = Scattered(tmp_path)
    task = asyncio.create_task(isolated(worker_tools.scatter, marks=str(tmp_path)))
    await scattered.all_there()
    assert len(scattered.alive()) == 6
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert scattered.alive() == []


@needs_proc
@ENDS_THE_TREE
async def test_a_result_comes_at_once_and_leaves_no_child_in_a_session_of_its_own(tmp_path: Path):
    """The children hold the pipe of the result, too."""
    async with asyncio.timeout(40):  # the children live for 60 seconds
        assert await isolated(worker_tools.scatter, marks=str(tmp_path), leave=True) == "done"
    assert Scattered(tmp_path).alive() == []


@needs_proc
@ENDS_THE_TREE
async def test_impatient_cancellation_leaves_no_child_either(tmp_path: Path):
    scattered = Scattered(tmp_path)
    task = asyncio.create_task(isolated(worker_tools.scatter, marks=str(tmp_path)))
    await scattered.all_there()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.001)
    await scattered.all_gone()


@needs_proc
@ENDS_THE_TREE
async def test_death_of_the_program_around_ends_its_isolated_tools(tmp_path: Path):
    program = f"""
import asyncio
from tests import worker_tools
from swink.tools import ToolContext
async def main():
    await worker_tools.scatter.execute("1", {{"marks": {str(tmp_path)!r}}}, ToolContext("1", "scatter"))
asyncio.run(main())
"""
    root = Path(__file__).parents[2]
    around = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=root)
    scattered = Scattered(tmp_path)
    await scattered.all_there()
    around.kill()
    await around.wait()
    await scattered.all_gone()


async def test_cancellation_at_any_moment_leaves_nothing():
    for pause in (0, 0, 0.001, 0.005, 0.02, 0.05):
        task = asyncio.create_task(isolated(worker_tools.hold, port=1))
        await asyncio.sleep(pause)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_name_that_is_not_the_tool_says_what_to_change():
    with pytest.raises(Exception, match=r"worker_tools\.plain is not a tool.*@tool\(isolation='process'\)"):
        await isolated(worker_tools.misnamed, x=1)


async def test_a_module_that_is_not_there_is_the_callers_to_hear():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        await run_in_process("no_such_module", "f", {})


async def test_files_of_the_working_directory_are_not_imported_by_accident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("json", "pickle", "runpy", "asyncio", "swink"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)
    assert await isolated(worker_tools.add, a=1) == 3


SCRIPT = """
import asyncio
import dataclasses
import os
from swink.tools import ToolContext, tool

@dataclasses.dataclass
class Point:
    x: int

class Oops(Exception):
    pass

@tool(isolation="process")
def double(point: Point) -> Point:
    "Double."
    if point.x < 0:
        raise Oops("negative")
    return Point(2 * point.x)

async def main():
    print(await double.execute("1", {"point": {"x": 21}}, ToolContext("1", "double")) == Point(42))
    try:
        await double.execute("1", {"point": {"x": -1}}, ToolContext("1", "double"))
    except Oops as error:
        print("Oops", error)
"""


GUARDED = SCRIPT + '\nif __name__ == "__main__":\n    asyncio.run(main())\n'


def run_python(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)


def test_a_function_of_the_main_script_works_with_types_of_its_own(tmp_path: Path):
    script = tmp_path / "main.py"
    script.write_text(GUARDED)
    done = run_python(script, cwd=tmp_path)
    assert (done.stdout.split("\n")[:2], done.stderr) == (["True", "Oops negative"], "")


@left_to_more
def test_that_a_tool_has_no_description_is_said_by_the_parent_alone(tmp_path: Path):
    script = tmp_path / "main.py"
    script.write_text(GUARDED.replace('    "Double."\n', ""))
    assert run_python(script, cwd=tmp_path).stderr.count("'double' has no description") == 1


@left_to_more
def test_a_function_of_a_main_module_works_too(tmp_path: Path):
    package = tmp_path / "job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text("")
    (package / "__main__.py").write_text("from . import other\n" + GUARDED)
    done = run_python("-m", "job", cwd=tmp_path)
    assert (done.stdout.split("\n")[:2], done.stderr) == (["True", "Oops negative"], "")


def test_a_main_script_without_a_guard_does_not_start_itself_for_ever(tmp_path: Path):
    script = tmp_path / "main.py"
    script.write_text(SCRIPT + "\nasyncio.run(main())\n")
    done = run_python(script, cwd=tmp_path)
    assert done.returncode != 0
    assert '__name__ == "__main__"' in done.stderr


def test_a_function_without_a_file_says_why_it_cannot_be_isolated(tmp_path: Path):
    done = run_python("-c", SCRIPT + "\nasyncio.run(main())\n", cwd=tmp_path)
    assert "a prompt or a notebook has none" in done.stderr
