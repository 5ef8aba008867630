"""Starting: the small suite that `swink eval init` writes."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from swink import Agent
from swink.errors import MisuseError
from swink.eval.case import Case
from swink.eval.casefile import load_suite
from swink.eval.caseschema import SCHEMA_FILE
from swink.eval.cassettes import recording
from swink.eval.runner import evaluate
from swink.eval.starter.weather import weather
from swink.messages import ModelSpec, ToolCall, Usage, UserMessage
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions
from swink.system.threads import run_to_end
from swink.testing.scripted import Pause, script

_STARTER = Path(__file__).with_name("starter")
_FILES = {
    "README.md": _STARTER / "README.md",
    "cases.yaml": _STARTER / "cases.yaml",
    "tools.py": _STARTER / "weather.py",
    "cases.schema.json": SCHEMA_FILE,
    ".github/workflows/eval.yml": _STARTER / "eval.yml",
}
_CASSETTE = "cassette.jsonl"
_ANSWERS = {
    "4 degrees": "Wear a warm jacket: it is 4 degrees.",
    "31 degrees": "A linen T-shirt: it is 31 degrees.",
}


def write_suite(directory: str | Path) -> list[Path]:
    """Write a suite that passes without a key; returns the files, in the order to read them.

    Where one of them exists already, nothing is written and `MisuseError` is raised.
    """
    directory = Path(directory)
    there = [name for name in (*_FILES, _CASSETTE) if (directory / name).exists()]
    if there:
        raise MisuseError(f"{directory} has {', '.join(there)} already; name another directory")
    with tempfile.TemporaryDirectory(prefix="swink-eval-") as made:
        run_to_end(_record(Path(made)))
        try:
            for name, source in {**_FILES, _CASSETTE: Path(made) / _CASSETTE}.items():
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, directory / name)
        except OSError as error:
            raise MisuseError(f"cannot write to {directory}: {error.strerror or error}") from error
    return [directory / name for name in (*_FILES, _CASSETTE)]


async def _record(directory: Path) -> None:
    """Run the suite with replies that are made up, through the recorder, so that the cassette fits it."""
    shutil.copyfile(_FILES["cases.yaml"], directory / "cases.yaml")
    suite = load_suite(directory / "cases.yaml")

    def make(case: Case) -> Agent:
        model = suite.model
        return Agent(model, system_prompt=suite.system_prompt, tools=[weather], stream_fn=_made_up)

    with recording(directory / _CASSETTE, "record"):
        run = await evaluate(make, suite, concurrency=1)
    assert run.passed == len(suite.cases), "the suite that is written passes"


async def _made_up(
    model: ModelSpec, context: LlmContext, options: StreamOptions
) -> AsyncIterator[AssistantMessageEvent]:
    last = context.messages[-1]
    if not isinstance(last, UserMessage):
        reply = _ANSWERS.get(last.text, last.text)
    else:
        cities = [city for city in ("Oslo", "Cairo") if city in last.text]
        reply = ToolCall("call_1", "weather", {"city": cities[0]}) if cities else "Hello! Where to?"
    for event in script(reply, Usage(input=80, output=20)):
        if not isinstance(event, Pause | BaseException):
            yield event
