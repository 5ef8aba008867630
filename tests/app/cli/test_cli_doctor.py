"""`swink doctor`: what it finds, and when it calls something a problem."""

import socket
from pathlib import Path

import pytest
from command_line import KEY, Place, Provider, call
from test_cli_models import SIZE, file, own_cache

__all__ = ["file"]
from swink import AgentResult
from swink.app.cli.explain import explain
from swink.memory.jsonl import JsonlStore
from swink.models.catalog import parse_model
from swink.system.extras import install_command


def findings(text: str) -> dict[str, tuple[str, str]]:
    """Level and text by subject; of several lines the last one."""
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    return {rest[:12].strip(): (level, rest[12:].strip()) for level, rest in lines}


def test_a_fresh_machine_has_warnings_but_no_problem(file: Path, capsys: pytest.CaptureFixture[str]):
    code = call("doctor")
    found = findings(capsys.readouterr().out)
    assert code == 0, found
    assert found["python"][0] == "ok"
    assert found["keys"] == (
        "warning",
        "none: only local models work; store one with: swink keys set PROVIDER",
    )
    assert found["local model"][0] in ("warning", "ok")
    assert found["model"][1].startswith("local:smollm2-135m unless --model says otherwise")
    assert found["sandbox"][0] in ("ok", "warning")
    assert found["screen"][0] in ("ok", "warning")
    assert found["trust"] == ("ok", f"{Path.cwd()}: swink will ask about it")


def test_a_reachable_provider_is_well_and_its_key_stays_at_home(
    file: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name, value in provider.env.items():
        monkeypatch.setenv(name, value)
    code = call("doctor")
    shown = capsys.readouterr().out
    found = findings(shown)
    assert code == 0, found
    assert found["openai"] == ("ok", f"{provider.url} answers")
    assert found["keys"] == ("ok", "openai: OPENAI_API_KEY")
    assert provider.keys == [None]
    assert KEY not in shown


def test_everything_that_is_wrong_is_a_problem_with_its_remedy(place: Place):
    env, file = own_cache(place, size=SIZE)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        env["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{closed.getsockname()[1]}"
        place.configure('default_model = "opnai:gpt-5"\n')
        (place.config / "keys.json").write_text(
            '{"anthropic": {"place": "file", "key": "sk-ant-0123456789"}}'
        )
        (place.config / "keys.json").chmod(0o644)
        done = place.swink("doctor", env=env)
    found = findings(done.out)
    assert done.code == 1
    assert found["anthropic"][0] == "problem"
    assert "cannot be reached" in found["anthropic"][1]
    assert found["keys"] == (
        "problem",
        f"others may read the stored keys; close the file with: chmod 600 '{place.config / 'keys.json'}'",
    )
    assert found["local model"] == (
        "problem",
        f"{file} is damaged: its checksum is wrong; delete it with: swink models rm smollm2-135m",
    )
    assert found["model"][0] == "problem"
    assert "did you mean openai:gpt-5" in found["model"][1]
    assert "sk-ant" not in done.out


def test_without_llama_cpp_and_without_a_key_nothing_can_run(place: Place):
    place.write("xllamacpp.py", "raise ImportError('no llama.cpp here')\n")
    path = place.configure("default_model = \n")
    done = place.swink("doctor", env={"PYTHONPATH": str(place.here)})
    found = findings(done.out)
    assert done.code == 1
    assert found["local model"] == (
        "problem",
        f"llama.cpp is not installed; install it with: {install_command('local')}",
    )
    assert found["settings"][0] == "problem"
    assert str(path) in found["settings"][1]


def test_saved_conversations_are_looked_at(
    file: Path, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("SWINK_SESSIONS_DIR", str(place.sessions))

    def look() -> tuple[str, str]:
        call("doctor")
        return findings(capsys.readouterr().out)["sessions"]

    assert look() == ("ok", f"none yet; they will be kept in {place.sessions}")
    JsonlStore(place.sessions).sync.create("One")
    level, text = look()
    assert level == "ok"
    assert text.startswith(f"1 in {place.sessions}, all sound")
    (place.sessions / "diary.jsonl").write_text("Monday: nothing")
    assert look() == (
        "problem",
        f"1 of 2 in {place.sessions} are damaged; see what can be saved with: swink sessions check",
    )
    place.sessions.chmod(0o755)
    call("doctor")
    assert f"chmod 700 '{place.sessions}'" in capsys.readouterr().out
    monkeypatch.setenv("SWINK_SESSIONS_DIR", str(place.write("file", "")))
    assert look()[0] == "problem"


def test_an_error_sends_people_to_the_doctor_only_for_servers_that_it_looks_at(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    def advice(name: str) -> str:
        return explain(AgentResult((), "error", error="down", error_kind="network"), parse_model(name))

    assert advice("ollama:llama3") == (
        "down; check the connection and whether the server runs, or set OLLAMA_HOST to its address"
    )
    assert advice("vllm:m") == "down; check the connection and whether the server runs"
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    assert advice("ollama:llama3") == "down; swink doctor tells whether ollama can be reached"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert advice("openai-responses:gpt-5") == (
        "down; swink doctor tells whether openai-responses can be reached"
    )
