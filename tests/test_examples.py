"""Every example runs, and says what it promises."""

import re
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from pathlib import Path
from runpy import run_path
from shutil import which
from typing import Any, NamedTuple

import pytest

from swink.serve.asgi import serve_app
from tests.answering import answering_model
from tests.counts import cell_of_more, left_to_more
from tests.local.conftest import weights as weights
from tests.pages import ROOT, run_program

SAYS = {
    "chat_bot.py": "bob: Who am I? -> Hello, Bob.\n2 answers in the chat of ada\n",
    "code_mode.py": '["ordered 10 for Turin","ordered 10 for Porto"]\nTurin and Porto get ten each.\n',
    "compare_runs.py": "FAILED regressions: 10 of 30 cases passed in the baseline and do not now, 2 allowed",
    "deferred_approval.py": "the run ended: approval\nrefund {'order': 7, 'amount': 19.5}: approved\n"
    "paid back $19.50 for order 7\nYour money is on its way.\n",
    "dependencies.py": "Grace: You have no order 7. (there is no order 7; the orders are [8])\n"
    "You work in a shop and talk to Grace.",
    "durable_dbos.py": "booking Aurora\noutcome unknown: the program ended while this call was running",
    "hello.py": "A light jacket will do",
    "memory_tools.py": '"text":"Deploy with `make ship`, never on Fridays."}\n</memories>\nNot on a Friday.',
    "policy.py": "search was asked for the same thing twice",
    # Two workers: whose line comes first depends on the machine; a job that comes twice is done once.
    "queue_worker.py": "job-0: The report of Ada is on its way.\njob-0: The report of Ada is on its way.\n"
    "job-1: The report of Bob is on its way.\njob-2: The report of Cyd is on its way.\n"
    "sent to Ada\nsent to Bob\nsent to Cyd\n",
    "resume_after_crash.py": "paying invoice 1\npaying invoice 2\ntaking up a run with 3 messages\n"
    "assistant: calls a tool\ntool_result: outcome unknown",
    "scorer.py": "response  1.00  passed",
    "session.py": "3 messages sent: Ada.\nMy name is Ada, and I like tea.: 2 turns\n",
    "steering.py": "tool call cancelled: user requested steering interrupt",
    "streaming.py": "→ count {'upto': 3} 1 2 3 ✓",
    # How many growing values come before depends on how fast the reader is.
    "structured.py": "City(name='Tokyo', people=14000000)\nTokyo has 14,000,000 people",
}
SAYS["eval_in_ci.py"] = "100.0 % demanded; 0 of 2 cases did not pass"
REAL = {
    "batch_extraction.py": '{"file":"a.txt","data":{"customer":"Oslo","kind":"complaint","amount":0',
    "folder_rag.py": "found: ",
    "own_coding_agent.py": "> read_file {'path': 'Oslo'}\nIt is 18 °C and clear.",
    "research_assistant.py": "# Oslo\n\nOslo",
}
"""Programs that name a real model: it is one on loopback, which calls the first tool and then says the weather."""
FILES = {
    "mails/a.txt": "My lamp arrived broken.",
    "notes/farm.md": "The harvest is in August.\n\nThe barn is red.",
    "notes/town.md": "The market is on Fridays.",
}
SERVED = {"serve_fastapi.py", "serve_starlette.py", "fastapi_service.py"}
"""Applications, which tests/serve/test_mounted.py asks."""
IN_ANY_ORDER = {"queue_worker.py"}
"""Their lines are compared in alphabetical order."""
SLOW = {"durable_dbos.py", "folder_rag.py", "own_coding_agent.py"}
"""They load a model or a large package, or start a server: `make test-more` runs them."""


def test_every_example_has_its_expectation():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(SAYS) | set(REAL) | SERVED


@pytest.mark.parametrize("name", [cell_of_more(name) if name in SLOW else name for name in SAYS])
def test_the_example_runs(name: str, tmp_path: Path):
    said, warned = run_program((ROOT / "examples" / name).read_text("utf-8"), tmp_path)
    if name in IN_ANY_ORDER:
        said = "".join(sorted(said.splitlines(keepends=True)))
    assert SAYS[name] in said
    assert not warned


@pytest.mark.parametrize("name", [cell_of_more(name) if name in SLOW else name for name in REAL])
def test_the_example_with_a_real_model_runs(name: str, tmp_path: Path, request: pytest.FixtureRequest):
    for file, text in FILES.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, "utf-8")
    cache = {"SWINK_CACHE_DIR": str(request.getfixturevalue("weights").parents[1])} if "rag" in name else {}
    with answering_model() as variables:
        said, warned = run_program(
            (ROOT / "examples" / name).read_text("utf-8"), tmp_path, **variables, **cache
        )
    assert REAL[name] in said
    assert "Traceback" not in warned


@left_to_more
@pytest.mark.skipif(not (which("curl") and which("jq")), reason="needs curl and jq")
async def test_the_commands_of_the_service_run_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "examples" / "fastapi_service.py").read_text("utf-8")
    commands = text.partition('"""\n\nfrom')[0].partition("\n\nALL=")[2]
    waiting = "until curl -s $HERE/messages | grep -q call_id; do sleep 0.05; done\nCALL="
    approved, abort = commands.replace("CALL=", waiting).rstrip().rsplit("\n", 1)
    with answering_model() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        app: Any = run_path(str(ROOT / "examples" / "fastapi_service.py"))["app"]
        async with app.router.lifespan_context(app), serve_app(app) as url:
            script = f"ALL={approved}\nwait\n{abort}".replace("localhost:8000", url)
            shell = await create_subprocess_exec("bash", "-euc", script, stdout=PIPE, stderr=PIPE)
            said, _ = await shell.communicate()
    assert shell.returncode == 0
    assert "order Oslo is paid back" in said.decode()
    assert re.fullmatch(r'{"run_id":"run_\w+"}', said.decode().splitlines()[-1])


def test_every_example_is_linked_from_the_page_of_examples():
    text = (ROOT / "docs" / "library" / "examples.md").read_text("utf-8")
    linked = re.findall(r"\]\(../../(examples/[\w./]+)\)", text)
    files = [path for path in (ROOT / "examples").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sorted(linked) == sorted(path.relative_to(ROOT).as_posix() for path in files)


class Peer(NamedTuple):
    """The shortest example of a task that another library publishes, as counted in its source distribution."""

    package: str
    files: str
    lines: int


PYDANTIC, OPENAI, CLAUDE = (
    "pydantic-ai-examples 2.62.0",
    "openai-agents 0.24.0",
    "claude-agent-sdk 0.2.184",
)
"""The libraries under docs/coming-from that publish Python programs; LangGraph has notebooks, the AI SDK TypeScript."""
EVALS = 2 + 56 + 57 + 69 + 112
"""Lines of evals/__init__.py, agent.py, models.py, custom_evaluators.py and datasets/time_range_v2.yaml."""
PEERS = {
    "chat_bot.py": Peer(OPENAI, "memory/sqlite_session_example.py", 77),
    "code_mode.py": Peer(OPENAI, "tools/programmatic_tool_calling.py", 129),
    "compare_runs.py": Peer(PYDANTIC, "evals/example_04_compare_models.py", 38 + EVALS),
    "deferred_approval.py": Peer(OPENAI, "agent_patterns/human_in_the_loop_server.py", 136),
    "dependencies.py": Peer(OPENAI, "basic/dynamic_system_prompt.py", 70),
    "eval_in_ci.py": Peer(PYDANTIC, "evals/example_03_unit_testing.py", 42 + EVALS),
    "fastapi_service.py": Peer(PYDANTIC, "ag_ui/api/tool_approval.py", 43),
    "folder_rag.py": Peer(OPENAI, "tools/file_search.py", 85),
    "hello.py": Peer(OPENAI, "basic/tools.py", 40),
    "memory_tools.py": Peer(OPENAI, "sandbox/memory.py", 229),
    "own_coding_agent.py": Peer(CLAUDE, "agents.py", 124),
    "policy.py": Peer(OPENAI, "agent_patterns/output_guardrails.py", 80),
    "research_assistant.py": Peer(OPENAI, "research_bot/**/*.py", 17 + 131 + 41 + 31 + 17 + 35 + 1),
    "scorer.py": Peer(OPENAI, "agent_patterns/llm_as_a_judge.py", 89),
    "serve_fastapi.py": Peer(PYDANTIC, "ag_ui/api/agentic_chat.py", 38),
    "session.py": Peer(OPENAI, "memory/sqlite_session_example.py", 77),
    "streaming.py": Peer(OPENAI, "basic/stream_items.py", 71),
    "structured.py": Peer(PYDANTIC, "stream_whales.py", 83),
}
ALONE = {
    "batch_extraction.py": "pydantic_model.py of pydantic-ai-examples takes 33 lines for one text, without a batch",
    "durable_dbos.py": "none kills a run and continues it with DBOS",
    "queue_worker.py": "none has workers that take jobs from a queue",
    "resume_after_crash.py": "none kills its process in a tool",
    "serve_starlette.py": "ag_ui/api/agentic_chat.py takes 38 lines without other routes and a store",
    "steering.py": "none steers a run with a tool under way",
}
"""Examples whose task no example of these libraries has, and what comes nearest."""


def test_every_program_is_set_against_one_of_another_library_where_there_is_one():
    programs = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert programs == {*PEERS, *ALONE}
    assert not {*PEERS} & {*ALONE}


@pytest.mark.parametrize("name", PEERS)
def test_the_example_is_no_longer_than_what_another_library_needs_for_the_task(name: str):
    assert lines_of(name) <= PEERS[name].lines


@pytest.mark.parametrize("name", ALONE)
def test_an_example_without_a_peer_is_short(name: str):
    assert lines_of(name) <= 70


def lines_of(name: str) -> int:
    return len((ROOT / "examples" / name).read_text("utf-8").splitlines())
