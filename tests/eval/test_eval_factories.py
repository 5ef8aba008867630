"""Factories, cassettes of runs, and the suite to begin with."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, CacheMiss, MisuseError
from swink.eval import Case, Suite, evaluate, load_suite
from swink.eval.cassettes import recording
from swink.eval.factories import load_factory, suite_factory
from swink.eval.starting import write_suite
from swink.testing import ScriptedModel

CASE = Case(id="a", user_messages=("hi",))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("factories_of_a_test:mak", "did you mean 'make'"),
        ("factories_of_a_test:number", "is int, not a function that takes a case"),
        ("factories_of_a_test:agent", "is one agent for all cases"),
        ("factories_of_a_test:nothing", "must take one argument, the case"),
        ("no_module_of_a_test:make", "no module 'no_module_of_a_test'"),
        ("make", "write MODULE:FUNCTION"),
    ],
)
def test_a_factory_that_cannot_be_used_is_explained(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    (tmp_path / "factories_of_a_test.py").write_text(
        "from swink import Agent\nnumber = 7\nagent = Agent('openai:gpt-5')\n"
        "def make(case): return agent\ndef nothing(): return agent\n"
    )
    with pytest.raises(MisuseError) as raised:
        load_factory(name, tmp_path)
    assert said in str(raised.value)
    assert callable(load_factory("factories_of_a_test:make", tmp_path))


def test_a_suite_without_a_factory_makes_agents_of_its_model_prompt_and_tools():
    suite = Suite(
        name="s",
        cases=(CASE,),
        model="openai:gpt-5",
        system_prompt="Be brief.",
        tools=("swink.eval.starter.weather:weather",),
    )
    make: Any = suite_factory(suite)
    first, second = make(CASE), make(CASE)
    assert isinstance(first, Agent)
    assert first is not second
    assert (str(first.model), first.system_prompt) == ("openai:gpt-5", "Be brief.")
    assert [tool.name for tool in first.tools] == ["weather"]
    other: Any = suite_factory(suite, "anthropic:claude-sonnet-4-6")
    assert str(other(CASE).model) == "anthropic:claude-sonnet-4-6"


def test_a_suite_that_names_no_model_says_where_to_name_one():
    with pytest.raises(MisuseError, match="neither a model nor an agent"):
        suite_factory(Suite(name="s", cases=(CASE,)))


def test_the_suite_to_begin_with_passes_without_a_key_and_again_with_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    monkeypatch.delitem(__import__("sys").modules, "tools", raising=False)
    files = write_suite(tmp_path / "new")
    assert all(file.is_file() for file in files)
    suite = load_suite(tmp_path / "new")
    assert suite.cassette is not None
    with recording(suite.cassette, "replay"):
        run = asyncio.run(evaluate(suite_factory(suite), suite, repeat=2))
    monkeypatch.delitem(__import__("sys").modules, "tools", raising=False)
    assert (run.passed, run.failed, run.errors) == (3, 0, 0)
    before = (tmp_path / "new/cases.yaml").read_text()
    with pytest.raises(MisuseError, match=r"has README\.md, cases\.yaml.* already"):
        write_suite(tmp_path / "new")
    assert (tmp_path / "new/cases.yaml").read_text() == before
    (tmp_path / "file").write_text("")
    with pytest.raises(MisuseError, match="cannot write"):
        write_suite(tmp_path / "file")


async def test_a_recording_that_fails_leaves_the_old_one(tmp_path: Path):
    path = tmp_path / "deep/cassette.jsonl"
    with recording(path, "record"):
        assert (await Agent("test:m", stream_fn=ScriptedModel(["one"])).run("hi")).text == "one"
    old = path.read_text()
    with pytest.raises(KeyError):
        with recording(path, "record"):
            await Agent("test:m", stream_fn=ScriptedModel(["two"])).run("hi")
            raise KeyError("the test failed")
    assert path.read_text() == old
    assert list(path.parent.iterdir()) == [path], "nothing is left beside it"
    with recording(path, "replay"):
        for _ in range(3):
            assert (await Agent("test:m", stream_fn=ScriptedModel([])).run("hi")).text == "one"
    with recording(path, "replay", again=False):
        await Agent("test:m", stream_fn=ScriptedModel([])).run("hi")
        with pytest.raises(CacheMiss, match="more often"):
            (await Agent("test:m", stream_fn=ScriptedModel([])).run("hi")).raise_for_error()
    with recording(path, "off"):
        assert (await Agent("test:m", stream_fn=ScriptedModel(["live"])).run("hi")).text == "live"


async def test_a_missing_cassette_says_what_records_it(tmp_path: Path):
    with pytest.raises(
        CacheMiss, match=r"there is no cassette at .*none\.jsonl; record it with: pytest --record"
    ):
        with recording(tmp_path / "none.jsonl", "replay", how="pytest --record"):
            pass
