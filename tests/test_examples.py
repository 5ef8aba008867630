"""Every example runs, and says what it promises."""

from pathlib import Path

import pytest

from tests.answering import answering_model
from tests.counts import cell_of_more
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
    "queue_worker.py": "job-2: The report of Cyd is on its way.\njob-0: The report of Ada is on its way.\n",
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
SLOW = {"durable_dbos.py", "folder_rag.py", "own_coding_agent.py"}
"""They load a model or a large package, or start a server: `make test-more` runs them."""


def test_every_example_has_its_expectation():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(SAYS) | set(REAL) | SERVED


@pytest.mark.parametrize("name", [cell_of_more(name) if name in SLOW else name for name in SAYS])
def test_the_example_runs(name: str, tmp_path: Path):
    said, warned = run_program((ROOT / "examples" / name).read_text("utf-8"), tmp_path)
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


@pytest.mark.parametrize("name", sorted({*REAL, "eval_in_ci.py", "fastapi_service.py", "chat_bot.py"}))
def test_the_example_is_short(name: str):
    """No longer than what others need for the same."""
    assert len((ROOT / "examples" / name).read_text("utf-8").splitlines()) <= 58
