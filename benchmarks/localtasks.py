"""What local models can do: forty tasks on small folders, done by the coding agent that the terminal makes.

    python benchmarks/localtasks.py                                 the known models that are on this machine
    python benchmarks/localtasks.py qwen2.5-coder-1.5b --limit 8    one model, the first eight tasks
    python benchmarks/localtasks.py --write-docs                    the results into page and package

The tasks are in localtasks.toml; their kinds take turns, so that the first eight are two of each. Every
finished task is kept in the results, and the next run goes on from there; `--fresh` begins anew. A model has
a process of its own for each of its parts, with settings and saved states that are empty at first:

    tasks    solved, calls, the most memory, the wait for the first token; with the load for the first task
    start    the first task in a new process, which finds what the one before has saved
    speed    tokens a second, reading and writing

Waits are told with the CPU time that the process took for them: on a busy machine they are longer than that.
"""

import argparse
import asyncio
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.localfigures import FILE, LocalFigures
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.trust import Trust
from swink.events import AgentEvent, MessageUpdate
from swink.local import cache_dir, pull, say_on_stderr
from swink.local.llamacpp import Settings, physical_cores, reading_threads, thread_count
from swink.local.speed import measure
from swink.local.weights import KNOWN, locate
from swink.messages import AssistantMessage, ModelSpec
from swink.models import parse_model
from swink.stream import StreamFn

HERE = Path(__file__).parent
TASKS = HERE / "localtasks.toml"
KEPT = HERE / "localtasks.json"
"""The results that the table in the documentation was made from."""
RESULTS = HERE.parent / ".cache" / "localtasks.json"
PAGE = HERE.parent / "docs" / "guarantees" / "measured-local.md"
BEGIN, END = "<!-- made by benchmarks/localtasks.py -->", "<!-- end of the table -->"
KINDS = ("question", "find", "edit", "command")
START_LIMIT = 600.0
"""Seconds for the first task after a start: its wait is measured, however long it is."""


class Task(Struct, frozen=True):
    """What a person asks for, and what shows that it was done."""

    id: str
    folder: str
    prompt: str
    answer: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    file: str = ""
    old: str = ""
    new: str = ""

    @property
    def kind(self) -> str:
        return self.id.partition("-")[0]


class TaskBook(Struct, frozen=True):
    """The tasks, the folders they are done in, and the tools that are right for each kind."""

    tools: dict[str, tuple[str, ...]]
    folders: dict[str, dict[str, str]]
    tasks: tuple[Task, ...]

    def in_turn(self) -> list[Task]:
        """The tasks, kind after kind."""
        kinds = [[task for task in self.tasks if task.kind == kind] for kind in KINDS]
        return [task for task in chain(*zip_longest(*kinds)) if task is not None]

    def expected_files(self, task: Task) -> dict[str, str]:
        """What the files hold when the task is done."""
        files = dict(self.folders[task.folder])
        if task.file:
            files[task.file] = files[task.file].replace(task.old, task.new)
        return files


class Wait(Struct, frozen=True):
    """Seconds on the clock, and of CPU time in all threads of the process."""

    clock: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.clock:.1f} s ({self.cpu:.1f} s CPU)"


class Outcome(Struct, frozen=True):
    """What came of a task; `missing` says why it is not solved."""

    task: str
    missing: str
    calls: tuple[str, ...]
    has_right_call: bool
    first_token: Wait | None
    seconds: float
    answer: str
    load: float = 0.0
    """The load average of the machine at the end."""
    is_after_start: bool = False


class ModelResult(Struct):
    """What was measured of one model; None and 0 are not measured yet. Memory is in MB."""

    machine: str
    day: str
    limit: float
    outcomes: dict[str, Outcome] = {}
    first_start: Wait | None = None
    later_start: Wait | None = None
    reading: float = 0.0
    writing: float = 0.0
    memory: float = 0.0


Results = dict[str, ModelResult]


def read_tasks(path: Path = TASKS) -> TaskBook:
    """The tasks of a file."""
    return msgspec.convert(tomllib.loads(path.read_text("utf-8")), TaskBook)


def read_results(path: Path) -> Results:
    """The results of earlier runs, if there are any."""
    return msgspec.json.decode(path.read_bytes(), type=Results) if path.exists() else {}


def write_results(path: Path, results: Results) -> None:
    """Replace the file as a whole: a run may be ended at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    part.replace(path)


# Checks


def says(answer: str, word: str) -> bool:
    """Whether an answer contains a word, number or path, and not only as a part of a longer one."""
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", answer)
    return re.search(rf"(?<![\w.-]){re.escape(word)}(?!\.?\w)", plain, re.IGNORECASE) is not None


def what_is_missing(book: TaskBook, task: Task, answer: str, folder: Path) -> str:
    """Why the task is not solved; empty if it is."""
    for name, expected in book.expected_files(task).items():
        path = folder / name
        if not path.is_file():
            return f"{name} is gone"
        if path.read_text("utf-8", "replace").rstrip() != expected.rstrip():
            return f"{name} is not as it should be"
    if lacking := [word for word in task.answer if not says(answer, word)]:
        return f"the answer lacks {', '.join(lacking)}"
    if surplus := [word for word in task.without if says(answer, word)]:
        return f"the answer has {', '.join(surplus)} too"
    return ""


# Doing tasks


def lay_out(book: TaskBook, task: Task, folder: Path) -> None:
    """Make the folder anew, always at the same place: its path is in the prompt."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in book.folders[task.folder].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


async def do_task(
    book: TaskBook,
    task: Task,
    folder: Path,
    model: ModelSpec,
    limit: float,
    stream_fn: StreamFn | None = None,
) -> Outcome:
    """Have the agent of the terminal do a task in a trusted folder, without questions."""
    lay_out(book, task, folder)
    environment = AgentEnvironment(
        folder, Trust(folder, "trusted"), UserSettings(folder.parent / "config.toml")
    )
    agent = environment.make_agent(model, approval_mode="off", stream_fn=stream_fn)
    first_token, trouble = None, ""
    began, cpu = time.perf_counter(), time.process_time()

    def watch(event: AgentEvent) -> None:
        nonlocal first_token
        if isinstance(event, MessageUpdate) and first_token is None:
            waited = time.perf_counter() - began, time.process_time() - cpu
            first_token = Wait(*[round(seconds, 2) for seconds in waited])

    agent.subscribe(watch)
    try:
        await environment.open()
        began, cpu = time.perf_counter(), time.process_time()
        async with asyncio.timeout(limit):
            result = await agent.run(task.prompt)
        trouble = result.error or ""
    except TimeoutError:
        trouble = f"not done within {limit:.0f} s"
    finally:
        seconds = time.perf_counter() - began
        await environment.aclose()
    replies = [message for message in agent.messages if isinstance(message, AssistantMessage)]
    calls = tuple(call.name for reply in replies for call in reply.tool_calls)
    answer = replies[-1].text if replies else ""
    return Outcome(
        task.id,
        trouble or what_is_missing(book, task, answer, folder),
        calls,
        any(call in book.tools[task.kind] for call in calls),
        first_token,
        round(seconds, 1),
        answer[:300],
        round(os.getloadavg()[0], 1),
    )


async def do_tasks(
    book: TaskBook,
    todo: Sequence[Task],
    folder: Path,
    model: ModelSpec,
    limit: float,
    keep: Callable[[Outcome], None],
    stream_fn: StreamFn | None = None,
) -> None:
    """Do the tasks one after the other, and hand over each outcome at once."""
    for number, task in enumerate(todo):
        most = limit if number else max(limit, START_LIMIT)
        outcome = await do_task(book, task, folder, model, most, stream_fn)
        keep(replace(outcome, is_after_start=not number))


# The table


def table(results: Mapping[str, ModelResult]) -> str:
    """The results in Markdown, a row a model."""
    head = ["model", "solved", *(f"{kind}s" for kind in KINDS), "right tool called"]
    head += ["first token after the first start", "after a later start", "at later prompts"]
    head += ["tokens/s read", "written", "most memory"]
    rows = [[f"`local:{name}`", *_cells(result)] for name, result in results.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def figures(results: Mapping[str, ModelResult]) -> list[LocalFigures]:
    """The results in brief, as the first screen shows them."""
    brief: list[LocalFigures] = []
    for name, result in results.items():
        done = list(result.outcomes.values())
        loads = [outcome.load for outcome in done] or [0.0]
        solved = sum(not outcome.missing for outcome in done)
        waits = [wait.clock if wait else None for wait in (result.first_start, _later(done))]
        speeds = [round(each, 1) or None for each in (result.writing, result.memory)]
        known = KNOWN[name].wheel_size if name in KNOWN else 0
        counts = (name, solved, len(done), *waits, *speeds, known)
        brief.append(LocalFigures(*counts, result.day, (min(loads), max(loads)), result.machine))
    return brief


def _cells(result: ModelResult) -> list[str]:
    done = list(result.outcomes.values())
    solved = [outcome for outcome in done if not outcome.missing]
    cells = [f"{len(solved)} of {len(done)}"]
    for kind in KINDS:
        own = f"{kind}-"
        count = sum(outcome.task.startswith(own) for outcome in solved)
        cells.append(f"{count} of {sum(outcome.task.startswith(own) for outcome in done)}")
    cells.append(f"{sum(outcome.has_right_call for outcome in done)} of {len(done)}")
    cells += [str(each or "–") for each in (result.first_start, result.later_start, _later(done))]
    cells += [f"{each:.1f}" if each else "–" for each in (result.reading, result.writing)]
    return [*cells, f"{result.memory:.0f} MB" if result.memory else "–"]


def _later(done: Sequence[Outcome]) -> Wait | None:
    """The median of the waits that were not after a start."""
    waits = [outcome.first_token for outcome in done if outcome.first_token and not outcome.is_after_start]
    if not waits:
        return None
    middle = statistics.median
    return Wait(middle(wait.clock for wait in waits), middle(wait.cpu for wait in waits))


def figures_file(results: Mapping[str, ModelResult]) -> bytes:
    """The file of the figures that the package brings along."""
    return msgspec.json.format(msgspec.json.encode(figures(results)), indent=1) + b"\n"


def page_section(results: Mapping[str, ModelResult], total: int) -> str:
    """What the page says: the table, and on what it was measured."""
    lines = [table(results), ""]
    for name, result in results.items():
        done = result.outcomes.values()
        loads = [outcome.load for outcome in done] or [0.0]
        late = sum(outcome.missing.startswith("not done within") for outcome in done)
        lines.append(
            f"- `local:{name}`: {len(done)} of {total} tasks were run on {result.day}; "
            f"{late} of them ran out of time ({result.limit:.0f} s, after a start {START_LIMIT:.0f} s). "
            f"The machine: {result.machine}, at a load average of {min(loads):.1f} to {max(loads):.1f}."
        )
    return "\n".join(lines)


def with_section(page: str, section: str) -> str:
    """The page with another section between the marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"the page has no {BEGIN} with an {END}")
    return f"{before}{BEGIN}\n{section}\n{END}{after}"


# Processes


def measure_model(model: str, options: argparse.Namespace) -> None:
    """Run the parts of a model that are not measured yet, each in a process of its own."""
    book, results = read_tasks(), read_results(options.results)
    if options.fresh or model not in results:
        machine = (
            f"{physical_cores()} cores ({platform.machine()}), threads: "
            f"{reading_threads(options.threads)} to read, {thread_count(options.threads)} to write"
        )
        results[model] = ModelResult(machine, date.today().isoformat(), options.seconds)
        write_results(options.results, results)
    with tempfile.TemporaryDirectory(prefix="swink-localtasks-") as scratch:
        environ = _environ(Path(scratch), options.threads)
        wanted = [task.id for task in book.in_turn()[: options.limit]]
        parts = [
            ("tasks", not set(wanted) <= set(results[model].outcomes)),
            ("start", results[model].later_start is None),
            ("speed", not results[model].reading),
        ]
        limit = [] if options.limit is None else ["--limit", options.limit]
        for part, is_needed in parts:
            if is_needed:
                print(f"{model}: {part}", flush=True)
                words = [model, "--part", part, *limit, "--results", options.results]
                words += ["--scratch", scratch, "--seconds", options.seconds]
                command = [sys.executable, __file__, *map(str, words)]
                if subprocess.run(command, env=environ, check=False).returncode:
                    print(f"{model}: {part} failed", flush=True)


def _environ(scratch: Path, threads: int | None) -> dict[str, str]:
    """Nothing of the user's but the weights: settings, sessions and saved states are the run's own."""
    (scratch / "cache").mkdir()
    for name in ("models", "hub"):
        (scratch / "cache" / name).symlink_to(cache_dir() / name)
    places = {f"XDG_{name}_HOME": str(scratch / name.lower()) for name in ("CONFIG", "DATA", "STATE")}
    environ = {**os.environ, **places, "SWINK_CACHE_DIR": str(scratch / "cache")}
    return environ | ({} if threads is None else {"SWINK_LOCAL_THREADS": str(threads)})


async def run_part(name: str, options: argparse.Namespace) -> None:
    """One part, in the process made for it."""
    book, results = read_tasks(), read_results(options.results)
    result, model = results[name], parse_model(f"local:{name}")
    folder, todo = options.scratch / "folder", book.in_turn()[: options.limit]
    match options.part:
        case "start":
            outcome = await do_task(book, todo[0], folder, model, START_LIMIT)
            _show(outcome, "start")
            result.later_start = outcome.first_token
        case "tasks":

            def keep(outcome: Outcome) -> None:
                if not result.outcomes:
                    result.first_start = outcome.first_token
                result.outcomes[outcome.task] = outcome
                result.memory = max(result.memory, _peak_megabytes())
                write_results(options.results, results)
                _show(outcome, f"{len(result.outcomes)} of {len(todo)}")

            left = [task for task in todo if task.id not in result.outcomes]
            await do_tasks(book, left, folder, model, options.seconds, keep)
        case _:
            speed = await measure(name, Settings(context=512, parallel=1))
            result.reading, result.writing = speed.reading, speed.writing
    write_results(options.results, results)


def _show(outcome: Outcome, place: str) -> None:
    first = outcome.first_token or "never"
    ending = outcome.missing or "solved"
    calls = ", ".join(outcome.calls) or "no calls"
    print(
        f"  {place}  {outcome.task}: {ending}; {outcome.seconds} s, first token {first}; {calls}", flush=True
    )


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def main() -> None:
    """Measure what is asked for, and print the table of all results."""
    parser = argparse.ArgumentParser(description="What local models can do.")
    option: Any = parser.add_argument
    option("models", nargs="*", help="names after local:; without any, the known ones that are here")
    option("--limit", type=int, help="the first so many tasks only")
    option("--seconds", type=float, default=90.0, help="time limit of a task")
    option("--threads", type=int, help="threads of the model; else the default")
    option("--results", type=Path, default=RESULTS, help="the JSON file that results are kept in")
    option("--fresh", action="store_true", help="begin anew instead of going on")
    option("--write-docs", action="store_true", help="the results into the page and the first screen")
    option("--part", help=argparse.SUPPRESS)
    option("--scratch", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        asyncio.run(run_part(options.models[0], options))
        return
    if options.write_docs:
        results = read_results(options.results)
        write_results(KEPT, results)
        section = page_section(results, len(read_tasks().tasks))
        PAGE.write_text(with_section(PAGE.read_text("utf-8"), section), "utf-8")
        FILE.write_bytes(figures_file(results))
        return
    for model in options.models or [name for name in KNOWN if locate(name) is not None]:
        pull(model, progress=say_on_stderr())
        measure_model(model, options)
    print(table(read_results(options.results)))


if __name__ == "__main__":
    main()
