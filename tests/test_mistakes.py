"""Mistakes as people make them in their first week: each is told, with what is wrong and what to do instead."""

import contextlib
import gc
import io
import linecache
import logging
import re
import socket
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.counts import in_cells

BEFORE = """
import asyncio, dataclasses, datetime, socket, threading
from dataclasses import dataclass
from typing import Any, Callable, Iterator
from swink import *
from swink import Agent, Policy, ToolCall, Stop, tool, defer
from swink.policies import Budget, MaxTurns
from swink.testing import ScriptedModel

def scripted(*replies, **options):
    return Agent("test:m", stream_fn=ScriptedModel(list(replies)), **options)

@dataclass
class City:
    name: str

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

"""
MOST_LINES = 15
"""Lines of a traceback above the sentence that says what to do."""

MISTAKES: dict[str, tuple[str, ...]] = {
    # The model and its key
    "a letter of the model is missing": (
        'Agent("anthropic:claude-sonet-4-6")',
        "claude-sonet-4-6",
        "did you mean 'anthropic:claude-sonnet-4-6'",
    ),
    "a fallback has a typo": (
        'Agent("anthropic:claude-sonnet-4-6", fallback_models=["openai:gpt-5-mni"])',
        "gpt-5-mni",
        "did you mean 'openai:gpt-5-mini'",
    ),
    "a model assigned later has a typo": (
        'agent = scripted("Hi.")\nagent = Agent("openai:gpt-5")\nagent.model = "openai:gpt-5-nanno"',
        "did you mean 'openai:gpt-5-nano'",
    ),
    "the provider has a typo": (
        'Agent("antropic:claude-sonnet-4-6")',
        "antropic",
        "did you mean 'anthropic'",
    ),
    "the provider is in capitals": ('Agent("OpenAI:gpt-5")', "'OpenAI'", "did you mean 'openai'"),
    "the provider of a fallback has a typo": (
        'Agent("anthropic:claude-sonnet-4-6", fallback_models=["opnai:gpt-5"])',
        "opnai",
        "did you mean 'openai'",
    ),
    "the provider is left out": (
        'Agent("claude-sonnet-4-6")',
        "'claude-sonnet-4-6' is not a model",
        "'anthropic:claude-sonnet-4-6'",
    ),
    "a slash instead of the colon": ('Agent("openai/gpt-5")', "provider:model", "'openai:gpt-5'"),
    "the name of another library": ('Agent("google:gemini-2.5-flash")', "'google'", "'gemini'"),
    "no model": ("Agent()", "needs a model", 'Agent("openai:gpt-5")'),
    "a number as the model": ("Agent(42)", "42 is not a model", "provider:model"),
    "no key": (
        'Agent("anthropic:claude-sonnet-4-6").run_sync("Hi")',
        "no API key for anthropic",
        "set ANTHROPIC_API_KEY",
    ),
    "a key given to the agent": ('Agent("openai:gpt-5", api_key="x")', "api_key", "StreamOptions(api_key=…)"),
    "nobody listens there": (
        """
        from swink.providers.ollama import OllamaStreamFn
        agent = Agent("ollama:llama3", stream_fn=OllamaStreamFn(base_url="http://127.0.0.1:PORT"),
                      retry=ExponentialBackoff(max_attempts=1))
        agent.run_sync("Hi").raise_for_error()
        """,
        "127.0.0.1:PORT",
        "check the connection",
    ),
    "nobody listens there, and the result is not asked": (
        """
        from swink.providers.ollama import OllamaStreamFn
        agent = Agent("ollama:llama3", stream_fn=OllamaStreamFn(base_url="http://127.0.0.1:PORT"),
                      retry=ExponentialBackoff(max_attempts=1))
        print(agent.run_sync("Hi").text)
        """,
        "127.0.0.1:PORT",
        "check the connection",
    ),
    # The keywords of an agent
    "instructions= as elsewhere": ('scripted(instructions="Be brief.")', "instructions", "system_prompt="),
    "prompt= as elsewhere": ('scripted(prompt="Be brief.")', "'prompt'", "system_prompt="),
    "system= as elsewhere": ('scripted(system="Be brief.")', "'system'", "system_prompt="),
    "llm= as elsewhere": ('Agent(llm="openai:gpt-5")', "'llm'", "model="),
    "output_type= as elsewhere": ("scripted(output_type=City)", "'output_type'", "output="),
    "temperature= as elsewhere": ("scripted(temperature=0)", "'temperature'", "StreamOptions(temperature=…)"),
    "max_turns= as elsewhere": ("scripted(max_turns=3)", "'max_turns'", "policies=[MaxTurns(…)]"),
    "a typo in a keyword": ('scripted(sytem_prompt="x")', "'sytem_prompt'", "system_prompt="),
    "a keyword like no other": ("scripted(frobnicate=1)", "'frobnicate'", "it has model, name"),
    "a typo in a keyword of a copy": (
        'scripted().copy(sytem_prompt="x")',
        "'sytem_prompt'",
        "system_prompt=",
    ),
    "a typo in a keyword of a run": ('scripted("Hi.").run_sync("x", deadlin=3)', "'deadlin'", "deadline"),
    "a keyword of the agent given to a run": (
        'scripted("Hi.").run_sync("x", tools=[add])',
        "'tools'",
        "Agent(tools=…)",
    ),
    "a typo in an option of a tool": ("tool(timout=3)(lambda: 1)", "'timout'", "timeout"),
    "a typo in an attribute": ('scripted().system_promt = "x"', "system_promt"),
    # Wrong types
    "one tool instead of a list": ("scripted(tools=add)", "tools is a list", "[...]"),
    "the name of a tool": ('scripted(tools=["add"])', "'add' is not a tool", "pass a typed function"),
    "the class of a tool": ("scripted(tools=[City])", "City is a class", "instance"),
    "the result of a tool": ("scripted(tools=[add(1, 2)])", "3 is not a tool", "pass a typed function"),
    "one tool twice": ("scripted(tools=[add, add])", "two tools are named 'add'", "rename one"),
    "a system prompt that is a list": (
        'scripted(system_prompt=["Be brief."])',
        "system_prompt is a str",
        "list",
    ),
    "policies as classes": (
        "scripted(policies=[MaxTurns])",
        "policies holds policy objects",
        "MaxTurns(...)",
    ),
    "one policy instead of a list": ("scripted(policies=MaxTurns(3))", "policies is a list", "[...]"),
    "a function as a policy": ("scripted(policies=[print])", "policy objects", "Policy"),
    "a dict of options": ('scripted(options={"temperature": 0})', "options", "StreamOptions"),
    "a number of retries": ("scripted(retry=3)", "retry is a strategy", "ExponentialBackoff(max_attempts=5)"),
    "an approval mode that is none": ('scripted(approval_mode="never")', "approval_mode", "'off'"),
    "approve=True": ("scripted(approve=True)", "approve is a function", "approval_mode"),
    "a thinking level that is none": ('scripted(thinking_level="maximum")', "maximum", "'high'"),
    "messages as dicts": (
        'scripted(messages=[{"role": "user", "content": "Hi"}]).run_sync("x")',
        "messages",
        "UserMessage",
    ),
    "a session that is a path": ('scripted(session="chat.jsonl")', "session is what", "store.create()"),
    "state that is a list": ("scripted(state=[1])", "state is a dict", "list"),
    "a timeout in words": ('scripted(tool_timeout="10s")', "tool_timeout", "number of seconds"),
    "a prompt that is a number": ('scripted("Hi.").run_sync(42)', "input takes a str", "not int"),
    "an empty prompt": ('scripted("Hi.").run_sync("")', "the input is empty", "give some text"),
    "a deadline in the past": (
        'scripted("Hi.").run_sync("x", deadline=-1).raise_for_error()',
        "deadline",
        "-1",
    ),
    # Tools
    "a tool without a docstring": (
        "@tool\ndef multiply(a: int, b: int) -> int:\n    return a * b",
        "'multiply' has no description",
        "docstring",
    ),
    "a parameter without annotation": (
        '@tool\ndef area(side) -> float:\n    "Area."\n    return side',
        "'side' has no type annotation",
        "`side: str`",
    ),
    "an annotation that is no JSON": (
        '@tool\ndef look(where: socket.socket) -> str:\n    "Look."\n    return ""',
        "'look'",
        "'where'",
        "socket",
        "use",
    ),
    "an annotation that does not exist": (
        '@tool\ndef look(where: "Plase") -> str:\n    "Look."\n    return ""',
        "Plase",
        "module level",
    ),
    "arguments of any number": (
        '@tool\ndef total(*numbers: int) -> int:\n    "Sum."\n    return 0',
        "'*numbers: int'",
        "named parameters",
    ),
    "a method of the class": (
        """
        class Shop:
            def sell(self, item: str) -> str:
                "Sell."
                return item
        scripted(tools=[Shop.sell])
        """,
        "'self'",
        "method of an instance",
    ),
    "a lambda as a tool": ("scripted(tools=[lambda: 1])", "needs a name", "named function"),
    "a default that is no JSON": (
        '@tool\ndef look(at: Any = object()) -> str:\n    "Look."\n    return ""',
        "default of 'at'",
        "use None",
    ),
    "a name with a blank": ('tool(name="my tool")(add.function)', "'my tool'", "@tool(name=...)"),
    "an object that is returned": (
        """
        @tool
        def find() -> Any:
            "Find."
            return threading.Lock()
        scripted(ToolCall("1", "find", {}), "Done.", tools=[find]).run_sync("x")
        """,
        "find",
        "lock",
        "return",
    ),
    "a tool that raises": (
        """
        @tool
        def find() -> str:
            "Find."
            return {}["x"]
        scripted(ToolCall("1", "find", {}), "Done.", tools=[find]).run_sync("x")
        """,
        "find",
        "KeyError",
    ),
    "a tool that forgets to await": (
        """
        async def fetch(): return "page"
        @tool
        async def find() -> Any:
            "Find."
            return [fetch()]
        scripted(ToolCall("1", "find", {}), "Done.", tools=[find]).run_sync("x")
        """,
        "find",
        "coroutine",
        "await",
    ),
    "a tool called without its context": (
        """
        @tool
        def whoami(ctx: ToolContext[City]) -> str:
            "Who."
            return ctx.deps.name
        scripted(ToolCall("1", "whoami", {}), "Done.", tools=[whoami]).run_sync("x")
        """,
        "whoami",
        "no dependencies",
        "pass deps=",
    ),
    "an MCP server among the tools": (
        'from swink.mcp import StdioServer\nscripted(tools=[StdioServer("time", "uvx", ["x"])])',
        "StdioServer",
        "McpServers",
    ),
    # Output
    "output=42": ('scripted("Hi.").run_sync("x", output=42)', "output", "42", "type"),
    "an output that is no JSON": (
        'scripted("Hi.").run_sync("x", output=socket.socket)',
        "socket",
        "dataclass",
    ),
    "an instance as the output": ('scripted("Hi.").run_sync("x", output=City("Oslo"))', "City", "type"),
    "output=42 of the agent": ("scripted(output=42)", "output", "42", "type"),
    "validate without output": (
        'scripted("Hi.").run_sync("x", validate=lambda value: value)',
        "validate= checks the output",
        "output=",
    ),
    "a validator that says True": (
        """
        call = ToolCall("1", "final_output", {"name": "Oslo"})
        scripted([call], "", "", "").run_sync("x", output=City, validate=lambda city: True).output
        """,
        "validate returned bool",
        "return the value",
    ),
    "an output that never comes": (
        'print(scripted("Hi.", "Hi.").run_sync("x", output=City, max_output_retries=1).output)',
        "no valid output after 2 attempts",
        "test:m",
        "max_output_retries",
    ),
    # Async and sync
    "run_sync in async code": (
        'async def main():\n    scripted("Hi.").run_sync("x")\nasyncio.run(main())',
        "run_sync()",
        "await agent.run(...)",
    ),
    "a forgotten await": ('scripted("Hi.").run("x")', "Agent.run' was never awaited"),
    "a stream that is never read": ('scripted("Hi.").stream("x")', "never read", "async with"),
    "a stream without async with": (
        'async def main():\n    for event in scripted("Hi.").stream("x"): pass\nasyncio.run(main())',
        "EventStream",
        "async with",
    ),
    "a plain with around a stream": (
        'with scripted("Hi.").stream("x") as run: pass',
        "EventStream",
        "async with",
    ),
    "a stream that is awaited": (
        'async def main():\n    await scripted("Hi.").stream("x")\nasyncio.run(main())',
        "EventStream",
        "async with",
    ),
    "two runs at once": (
        """
        async def main():
            agent = scripted("Hi.", "Ho.")
            await asyncio.gather(agent.run("a"), agent.run("b"))
        asyncio.run(main())
        """,
        "already running",
        "steer()",
    ),
    "an async subscriber": (
        "async def listen(event): pass\nscripted().subscribe(listen)",
        "plain function",
    ),
    "a run without anything to say": ("scripted().run_sync()", "nothing to continue from", "input"),
    # Runs that end early
    "a deferral that is ignored": (
        """
        @tool(requires_approval=True)
        def wipe() -> str:
            "Wipe."
            return ""
        print(scripted(ToolCall("1", "wipe", {}), tools=[wipe], approve=defer).run_sync("x").text)
        """,
        "wipe",
        "waits for an approval of wipe",
        "run(approvals={'1': True})",
    ),
    "an approval that nobody gives": (
        """
        @tool(requires_approval=True)
        def wipe() -> str:
            "Wipe."
            return ""
        print(scripted(ToolCall("1", "wipe", {}), "No.", tools=[wipe]).run_sync("x").text)
        """,
        "wipe needs approval",
        "no approve callback",
    ),
    "a limit of turns": (
        """
        call = ToolCall("1", "add", {"a": 1, "b": 2})
        print(scripted(call, call, tools=[add], policies=[MaxTurns(1)]).run_sync("x").text)
        """,
        "stopped before its answer",
        "max turns: 1 of 1",
    ),
    "a script that is too short": (
        'scripted(ToolCall("1", "add", {"a": 1, "b": 2}), tools=[add]).run_sync("x").raise_for_error()',
        "the script has 1 reply",
        "asked once more",
    ),
    "a policy without its slot": (
        "class Guard(Policy):\n    def before_tool(self, ctx, call): return Stop('no')\nscripted(policies=[Guard()])",
        "Guard",
        "pre_dispatch",
    ),
    "a policy that returns a text": (
        """
        class Guard(Policy):
            def pre_turn(self, ctx): return "no"
        scripted("Hi.", policies=[Guard()]).run_sync("x")
        """,
        "policy Guard failed in pre_turn",
        "pre_turn cannot return a str",
        "None or Stop or Inject",
    ),
}


class Told:
    """What a program said before its end, apart from what it printed."""

    def __init__(self, program: str, caplog: pytest.LogCaptureFixture) -> None:
        source = BEFORE + _dedented(program)
        linecache.cache["mistake.py"] = (len(source), None, source.splitlines(True), "mistake.py")
        self.traceback = ""
        with (
            warnings.catch_warnings(record=True) as seen,
            contextlib.redirect_stdout(io.StringIO()),
            caplog.at_level(logging.WARNING),
        ):
            warnings.simplefilter("always")
            try:
                exec(compile(source, "mistake.py", "exec"), {"__name__": "mistake"})
            except Exception as error:  # whatever the mistake leads to
                lines = traceback.format_exception(error.with_traceback(_own(error.__traceback__)))
                self.traceback = "".join(lines)
            gc.collect()
        self.logged = [record.getMessage() for record in caplog.records]
        self.text = "\n".join(
            [_sentence(self.traceback), *self.logged, *(str(each.message) for each in seen)]
        )


def _dedented(program: str) -> str:
    lines = program.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines) + "\n"


def _own(frames: Any) -> Any:
    """Without the frame of the test that executes the program."""
    return frames.tb_next


def _sentence(text: str) -> str:
    """The last exception of a traceback, without its frames."""
    return re.split(r"^(?=\w[\w.]*: )", text, flags=re.MULTILINE)[-1]


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_what_to_do(
    mistake: str,
    caplog: pytest.LogCaptureFixture,
    closed_port: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    program, *wanted = (part.replace("PORT", str(closed_port)) for part in MISTAKES[mistake])
    told = Told(program, caplog)
    assert "/swink/" not in re.sub(r"\nTraceback[^\0]*", "", told.text), "a path of ours"
    missing = [part for part in wanted if part not in told.text]
    assert not missing, f"not said: {missing}; said was: {told.text}"
    assert told.traceback.count("\n") <= MOST_LINES, told.traceback


@in_cells(
    "mistake",
    [
        "an annotation that is no JSON",
        "output=42",
        "an instance as the output",
        "an object that is returned",
        "nobody listens there",
        "two runs at once",
    ],
    every=3,
)
def test_what_a_program_leaves_on_the_screen_is_short(mistake: str, closed_port: int, tmp_path: Path):
    script = tmp_path / "mistake.py"
    script.write_text(BEFORE + _dedented(MISTAKES[mistake][0].replace("PORT", str(closed_port))), "utf-8")
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False).stderr
    assert len(shown.splitlines()) - 1 <= MOST_LINES, shown
    assert not [part for part in MISTAKES[mistake][1:] if part.replace("PORT", str(closed_port)) not in shown]
