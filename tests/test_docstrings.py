"""Docstrings: every public name says what it is, every parameter is named, and examples in them run."""

import ast
import asyncio
import importlib
import inspect
import itertools
import os
import pydoc
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tools.site import public_names, reference_of, taught_names, value_of

import swink
from swink.stream.wrappers import through
from swink.telemetry.otel import uninstrument
from swink.testing import ScriptedModel
from tests.counts import MORE

MODULES = [
    "swink", "swink.errors", "swink.events", "swink.messages", "swink.stream", "swink.stream.wrappers",
    "swink.tools", "swink.memory", "swink.policies", "swink.providers", "swink.teams", "swink.mcp",
    "swink.telemetry", "swink.local", "swink.testing", "swink.eval", "swink.agent", "swink.serve",
    "swink.models", "swink.models.catalog", "swink.messages.providertools",
]  # fmt: skip

MODEL = "anthropic:claude-sonnet-4-6"


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The classes and functions of ours that a module offers."""
    for name in public_names(module):
        value = getattr(module, name)
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("swink"):
            yield f"{module.__name__}.{name}", value


def undocumented(name: str, value: Any) -> Iterator[str]:
    """What of a public name has no words: itself, one of its parameters, methods and properties."""
    if inspect.isfunction(value):
        yield from unnamed(name, value, value.__doc__ or "")
        return
    if not value.__dict__.get("__doc__"):
        yield f"{name}: no docstring"
    if not issubclass(value, BaseException) and not getattr(value, "_is_protocol", False):
        said = " ".join(base.__dict__.get("__doc__") or "" for base in ours(value))
        said += " ".join(f"{field} " for base in ours(value) for field in described_fields(base))
        yield from unnamed(name, value, said)
    for attribute, member in value.__dict__.items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not attribute.startswith("_") and inspect.isfunction(function):
            yield from unnamed(f"{name}.{attribute}", function, inherited_words(value, attribute))


def unnamed(name: str, value: Any, said: str) -> Iterator[str]:
    """The parameters that a docstring does not name."""
    if not said.strip():
        yield f"{name}: no docstring"
    try:
        parameters = inspect.signature(value).parameters
    except ValueError:
        return
    words = set(re.findall(r"\w+", said))
    missing = [one for one in parameters if one not in ("self", "cls", *words) and not one.startswith("_")]
    if missing:
        yield f"{name}: does not say what {', '.join(missing)} is"


def ours(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.startswith("swink")]


def inherited_words(cls: type, attribute: str) -> str:
    """What is said of a method, here or where it is declared first."""
    members = [base.__dict__[attribute] for base in ours(cls) if attribute in base.__dict__]
    return " ".join(getattr(member, "__doc__", None) or "" for member in members)


@cache
def classes_of(file: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(Path(file).read_text("utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def described_fields(cls: type) -> list[str]:
    """The fields of a class that have a text of their own below them."""
    node = classes_of(str(sys.modules[cls.__module__].__file__)).get(cls.__name__)
    body = node.body if node else []
    return [
        one.target.id
        for one, after in itertools.pairwise(body)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    ]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_and_every_parameter_is_explained(module: str):
    missing = [
        line for name, value in public(importlib.import_module(module)) for line in undocumented(name, value)
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("name", sorted(taught_names()))
def test_every_name_that_a_page_uses_is_explained_too(name: str):
    """Names of modules without a page of their own: the reference has them, as a page tells people to use them."""
    value = value_of(name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert not list(undocumented(name, value))


def test_the_reference_has_the_names_that_pages_use():
    assert "swink.eval.improve.improve" in taught_names()
    assert "::: swink.eval.improve.improve\n" in reference_of("swink.eval")
    assert "::: swink.providers.bedrock.BedrockStreamFn\n" in reference_of("swink.providers")


def test_the_rule_sees_what_it_should():
    def bare(path: str) -> None: ...

    def said(path: str, mode: str) -> None:
        """Write to `path`."""

    class Value:
        """A value."""

        def __init__(self, size: int) -> None: ...
        def change(self) -> None: ...

    Value.__module__ = "swink.errors"
    assert list(undocumented("f", bare)) == ["f: no docstring", "f: does not say what path is"]
    assert list(undocumented("g", said)) == ["g: does not say what mode is"]
    assert list(undocumented("V", Value)) == ["V: does not say what size is", "V.change: no docstring"]


def test_every_argument_of_a_section_is_one():
    """A parameter that was renamed or removed is not explained any more."""
    wrong: list[str] = []
    for module in MODULES:
        for name, value in public(importlib.import_module(module)):
            said = inspect.getdoc(value) or ""
            listed = re.findall(
                r"^    (\w+): ", said.partition("Args:\n")[2].partition("\n\n")[0], re.MULTILINE
            )
            known = {*inspect.signature(value).parameters} if listed else set()
            wrong += [f"{name}: {one}" for one in listed if one not in known]
    assert not wrong, "\n".join(wrong)


def test_help_is_enough_to_write_a_program():
    """Whoever reads help(Agent) learns every keyword, how to run it, and sees a program that runs."""
    said = pydoc.plain(pydoc.render_doc(swink.Agent))
    words = said.partition("Args:")[2]
    keywords = [name for name in inspect.signature(swink.Agent).parameters if name != "unknown"]
    assert not [name for name in keywords if f"{name}: " not in words]
    for name in ("run(", "run_sync(", "stream(", "abort(", "steer("):
        assert name in said
    program = example(swink.Agent.__doc__ or "")
    assert "Agent(" in program
    assert "run_sync(" in program


PLUGGED_IN = {
    "McpServers": "swink.mcp", "Budget": "swink.policies", "ScriptedModel": "swink.testing",
    "SqliteStore": "swink.memory", "WebSearch": "swink.messages.providertools",
}  # fmt: skip
"""What an agent is given of modules that help(Agent) has to name."""


def test_help_says_where_what_an_agent_is_given_comes_from():
    said = inspect.getdoc(swink.Agent) or ""
    for name, module in PLUGGED_IN.items():
        assert re.search(rf"`[^`]*\b{name}\b[^`]*` of\s+`{module}`", said), name
        assert hasattr(importlib.import_module(module), name)
    assert "help(swink)" in said
    program = example(swink.__doc__ or "")
    for module, name in [
        *((module, name) for name, module in PLUGGED_IN.items()),
        ("swink.stream", "TextDelta"),
    ]:
        assert re.search(rf"^from {module} import .*\b{name}\b", program, re.MULTILINE), name
    assert "session=" in program


def test_help_of_a_result_names_all_that_it_has():
    said = pydoc.plain(pydoc.render_doc(swink.AgentResult))
    listed = said.partition("Args:")[2]
    assert not [name for name in swink.AgentResult.__struct_fields__ if f"  {name}: " not in listed]


def test_help_names_types_as_the_code_does():
    """An alias that is written out, such as that of messages, makes a signature that nobody reads."""
    said = pydoc.plain(pydoc.render_doc(swink.Agent))
    assert "model: 'Model | None' = None" in said
    assert not re.findall(r"(?<!`)swink\.messages\.\w+|collections\.abc\.\w+", said)


def example(said: str) -> str:
    """The program that a docstring shows."""
    lines = [line.strip() for line in said.splitlines()]
    return "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))


def examples() -> dict[str, str]:
    """Every program in a docstring of a module, of a public name in it, or of a method of one."""
    found: dict[str, str] = {}
    for module in MODULES:
        if ">>> " in (words := importlib.import_module(module).__doc__ or ""):
            found[module] = example(words)
        for name, value in public(importlib.import_module(module)):
            members = vars(value).items() if inspect.isclass(value) else ()
            said = {
                name: value.__doc__,
                **{f"{name}.{key}": getattr(one, "__doc__", None) for key, one in members},
            }
            found |= {key: example(text) for key, text in said.items() if text and ">>> " in text}
    return {code: name for name, code in found.items()}


def examined() -> list[Any]:
    """One that starts a server of others is left to make test-more."""
    marks = [pytest.mark.more, pytest.mark.skipif(not MORE, reason="make test-more runs it")]
    shown = examples().items()
    return [pytest.param(code, id=name, marks=marks if "mcp-server" in code else ()) for code, name in shown]


def stand_ins(directory: Path) -> dict[str, Any]:
    """What the examples speak of: every public name, a model that says what is expected of it, some agents."""
    (directory / "project").mkdir()
    (directory / "cases.yaml").write_text(
        "name: x\ncases:\n- id: a\n  user_messages: [hi]\n  tags: [smoke]\n"
    )
    names = {
        name.rpartition(".")[2]: value for m in MODULES for name, value in public(importlib.import_module(m))
    }

    def agent() -> swink.Agent[Any, Any]:
        return swink.Agent(MODEL, stream_fn=ScriptedModel(["APPROVED"] * 9))

    people = [
        "writer",
        "editor",
        "critic",
        "lawyer",
        "accountant",
        "researcher",
        "support",
        "billing",
        "agent",
    ]
    said: dict[str, Any] = {
        "model": MODEL, "swink": swink, "re": re, "today": "2026-01-01", "ask": lambda request: True,
        "store": lambda data: None, "factory": lambda case: agent(), "make_agent": lambda case: agent(),
        "cases": [names["Case"](id="a", user_messages=("hi",))],
    }  # fmt: skip
    return {**names, **said, **{name: agent() for name in people}}


@pytest.mark.parametrize("code", examined())
def test_the_example_of_a_docstring_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    said = stand_ins(tmp_path)
    compiled = compile(code, str(tmp_path / "example.py"), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    def scripted(stream_fn: swink.StreamFn) -> swink.StreamFn:
        return stream_fn if isinstance(stream_fn, ScriptedModel) else ScriptedModel(["APPROVED"] * 9)

    with through(scripted):
        done = eval(compiled, said)
        if inspect.iscoroutine(done):
            asyncio.run(done)
    uninstrument()
