"""Script tools: TOML files that become tools, follow their directory, and never splice an argument into a shell command."""

import asyncio
import os
from pathlib import Path

import pytest
from calling import call, complaint
from tests.counts import in_cells

from swink import Agent, ToolCall
from swink.testing import ScriptedModel
from swink.tools import Tool, as_tools, coding_tools
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.scripts import BadScript, ScriptTools, script_tools

GREET = """
name = "greet"
description = "Say hello."
command = 'echo "hello $ARG_NAME"'
[parameters_schema]
type = "object"
required = ["name"]
properties.name = { type = "string" }
"""
NASTY = [
    "plain",
    "two words",
    "a; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "-n",
    "a\nb",
    "é✓",
    "*",
    "${HOME}",
    "\\",
    "",
]


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / f"{name}.toml"
    path.write_text(text)
    os.utime(path, ns=(0, write.clock))
    write.clock += 1_000_000_000
    return path


write.clock = 1_700_000_000_000_000_000


def only(scripts: ScriptTools) -> Tool:
    (tool,) = scripts
    return tool


@in_cells("value", NASTY, every=2)
async def test_an_argument_in_the_environment_is_never_code(tmp_path: Path, value: str):
    write(tmp_path, "greet", GREET)
    result = await call(only(script_tools(tmp_path)), name=value)
    assert result.text == f"hello {value}\n[exit code 0]"
    assert not (tmp_path / "pwned").exists()


@in_cells("value", [*NASTY[1:], NASTY[0]], every=2)
async def test_an_argument_on_the_command_line_is_one_word(tmp_path: Path, value: str):
    write(
        tmp_path,
        "show",
        GREET.replace(
            """'echo "hello $ARG_NAME"'""", """["printf", "<%s>", "--", "{name}", "literal {name}"]"""
        ),
    )
    result = await call(only(script_tools(tmp_path)), name=value)
    assert result.text == f"<--><{value}><literal {{name}}>\n[exit code 0]".replace("<-->", "<-->")
    assert not (tmp_path / "pwned").exists()


async def test_kinds_of_arguments(tmp_path: Path):
    schema = 'type = "object"\nproperties = { files = { type = "array" }, deep = { type = "object" }, yes = { type = "boolean" }, n = { type = "number" }, missing = { type = "string" } }'
    write(
        tmp_path,
        "t",
        f'description = "x"\ncommand = ["./show.sh", "{{files}}", "{{missing}}", "{{yes}}", "{{n}}"]\n[parameters_schema]\n{schema}',
    )
    script = tmp_path / "show.sh"
    script.write_text('#!/bin/sh\nprintf "<%s>" "$@" "$ARG_DEEP" "$ARG_FILES" "${ARG_MISSING-unset}"')
    script.chmod(0o755)
    result = await call(only(script_tools(tmp_path)), files=["a b", "c"], deep={"k": [1]}, yes=True, n=2.5)
    assert result.text.startswith('<a b><c><true><2.5><{"k": [1]}><["a b", "c"]><unset>')
    assert "NUL" in await complaint(only(script_tools(tmp_path)), files=["a\0b"])


async def test_arguments_are_checked_against_the_schema(tmp_path: Path):
    write(tmp_path, "greet", GREET)
    assert "name" in await complaint(only(script_tools(tmp_path)))


async def test_failure_timeout_and_missing_program_are_results(tmp_path: Path):
    write(tmp_path, "a", 'description = "x"\ncommand = "echo oops >&2; exit 2"')
    write(tmp_path, "b", 'description = "x"\ncommand = ["sleep", "30"]\ntimeout = 0.3')
    write(tmp_path, "c", 'description = "x"\ncommand = ["no-such-program"]')
    failing, slow, missing = script_tools(tmp_path)
    assert (await call(failing)).text == "oops\n[exit code 2]"
    assert "timed out after 0.3 s" in (await call(slow)).text
    assert "no-such-program of this tool is not there" in await complaint(missing)


async def test_scripts_run_in_a_sandbox_when_given_one(tmp_path: Path, need):
    need("bubblewrap")
    scripts, workspace = tmp_path / "scripts", tmp_path / "workspace"
    scripts.mkdir()
    workspace.mkdir()
    write(scripts, "w", f'description = "x"\ncommand = "pwd; touch inside; touch {tmp_path}/outside"')
    box = Sandbox(workspace, backends=("bubblewrap",))
    result = await call(only(script_tools(scripts, sandbox=box)))
    assert result.text.startswith(f"{workspace}\n")
    assert (workspace / "inside").exists()
    assert not (tmp_path / "outside").exists()


SILENT = 'description = "x"\ncommand = "true"\nrequires_approval = false'


def test_scripts_ask_unless_they_say_otherwise(tmp_path: Path):
    scripts, workspace = tmp_path / "scripts", tmp_path / "workspace"
    scripts.mkdir()
    workspace.mkdir()
    write(scripts, "a", 'description = "x"\ncommand = "true"')
    write(scripts, "b", SILENT)
    assert [tool.needs_approval({}) for tool in script_tools(scripts, sandbox=Sandbox(workspace))] == [
        True,
        False,
    ]


def test_scripts_that_commands_can_write_always_ask(tmp_path: Path):
    """Else a command writes itself a tool that runs unasked, and with the rights of the user."""
    trusted, workspace = tmp_path / "trusted", tmp_path / "workspace"
    trusted.mkdir()
    (workspace / "tools").mkdir(parents=True)
    write(workspace / "tools", "planted", SILENT)
    write(trusted, "beside", SILENT.replace('"true"', f'["{workspace}/program"]'))
    (trusted / "linked.toml").symlink_to(workspace / "tools/planted.toml")
    box = Sandbox(workspace)
    assert all(tool.needs_approval({}) for tool in script_tools(workspace / "tools"))
    assert all(tool.needs_approval({}) for tool in script_tools(workspace / "tools", sandbox=box))
    assert [tool.needs_approval({}) for tool in script_tools(trusted, sandbox=box)] == [True, True]


def test_scripts_whose_program_the_path_finds_in_a_workspace_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trusted, workspace = tmp_path / "trusted", tmp_path / "workspace"
    trusted.mkdir()
    (workspace / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{workspace}/bin:{os.environ['PATH']}")
    write(trusted, "listed", SILENT.replace('"true"', '["wc", "-l"]'))
    write(trusted, "shell", SILENT)
    listed, shell = script_tools(trusted, sandbox=Sandbox(workspace))
    assert not listed.needs_approval({})
    assert shell.needs_approval({})  # nobody knows which programs a shell looks for
    (workspace / "bin/wc").write_text("#!/bin/sh\n")
    (workspace / "bin/wc").chmod(0o755)
    assert listed.needs_approval({})


def test_scripts_ask_in_the_workspace_of_another_sandbox(tmp_path: Path):
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    workspace.mkdir()
    elsewhere.mkdir()
    write(workspace, "planted", SILENT)
    tool = only(script_tools(workspace, sandbox=Sandbox(elsewhere)))
    assert not tool.needs_approval({})
    other = coding_tools(tmp_path)
    assert tool.needs_approval({})
    assert other


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not toml at all", "Expected"),
        ('command = "x"', "description must be a text"),
        ('description = "x"', "command must be a list of texts"),
        ('description = "x"\ncommand = []', "command must be"),
        ('description = "x"\ncommand = ["a", 1]', "command must be"),
        (
            'description = "x"\ncommand = ["a", "{gone}"]',
            "uses {gone}, which parameters_schema does not have",
        ),
        (
            'description = "x"\ncommand = ["{p}"]\n[parameters_schema]\ntype = "object"\nproperties.p = {}',
            "the program itself",
        ),
        ('description = "x"\ncommand = "x"\nparameters_schema = "y"', "parameters_schema must be a table"),
        (
            'description = "x"\ncommand = "x"\n[parameters_schema]\ntype = "object"\nproperties.a = { type = "nonsense" }',
            "not a usable JSON Schema",
        ),
        ('description = "x"\ncommand = "x"\n[parameters_schema]\ntype = "array"', 'type = "object"'),
        ('description = "x"\ncommand = "x"\ntimeout = "soon"', "timeout must be"),
        ('description = "x"\ncommand = "x"\nshell = true', "unknown keys shell"),
        ('description = "x"\ncommand = "x"\nname = "bad name"', "must be 1 to 64"),
        ('description = "x"\ncommand = "x"\ntimeout = nan', "timeout must be a number"),
        (f"description = {'[' * 100_000}{']' * 100_000}", "nested too deeply"),
        ('description = "x"\ncommand = "x"\nrequires_approval = "maybe"', "requires_approval must be"),
        ('description = "x"\ncommand = "x"\nname = "good"', "another file is named 'good' too"),
    ],
)
def test_a_bad_file_is_reported_and_skipped(tmp_path: Path, text: str, reason: str):
    write(tmp_path, "good", 'description = "x"\ncommand = "true"')
    bad = write(tmp_path, "hopeless", text)
    reported: list[BadScript] = []
    scripts = script_tools(tmp_path, on_bad=reported.append)
    assert [tool.name for tool in scripts] == ["good"]
    assert [problem.path for problem in scripts.bad] == [str(bad)]
    assert reason in scripts.bad[0].reason
    assert reported == list(scripts.bad)
    list(scripts)
    assert len(reported) == 1, "reported once, not at every look"


def test_a_bad_file_is_logged_once_if_nobody_asks_for_it(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "bad.toml").write_text('description = "Nothing."')
    scripts = script_tools(tmp_path)
    assert (len(scripts), len(script_tools(tmp_path))) == (0, 0)
    (record,) = [record for record in caplog.records if record.name == "swink.tools"]
    assert record.getMessage().startswith(f"{tmp_path / 'bad.toml'} is no script tool: command must be")


def test_a_pipe_is_a_bad_file_and_nobody_waits_for_it(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.toml")
    scripts = script_tools(tmp_path)
    assert list(scripts) == []
    assert [bad.reason for bad in scripts.bad] == ["it is no regular file"]


def test_bytes_that_are_no_text_are_a_bad_file(tmp_path: Path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    scripts = script_tools(tmp_path)
    assert (list(scripts), len(scripts.bad)) == ([], 1)


def test_tools_follow_the_directory(tmp_path: Path):
    scripts = script_tools(tmp_path / "later")
    assert list(scripts) == []
    (tmp_path / "later").mkdir()
    first = write(tmp_path / "later", "one", 'description = "first"\ncommand = "true"')
    assert [tool.description for tool in scripts] == ["first"]
    before = scripts.refresh()
    assert scripts.refresh() is before, "nothing changed, nothing is read again"
    write(tmp_path / "later", "one", 'description = "second"\ncommand = "true"')
    write(tmp_path / "later", "two", 'description = "broken"')
    assert [tool.description for tool in scripts] == ["second"]
    write(tmp_path / "later", "two", 'description = "mended"\ncommand = "true"')
    assert [tool.description for tool in scripts] == ["second", "mended"]
    assert scripts.bad == ()
    first.unlink()
    assert [tool.name for tool in as_tools(scripts)] == ["two"]
    assert scripts[0].name == "two"


async def test_changes_can_be_waited_for(tmp_path: Path):
    write(tmp_path, "one", 'description = "x"\ncommand = "true"')
    changes = script_tools(tmp_path).changes(every=0.01)
    assert [tool.name for tool in await anext(changes)] == ["one"]
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    write(tmp_path, "two", 'description = "x"\ncommand = "true"')
    async with asyncio.timeout(20):
        assert [tool.name for tool in await waiting] == ["one", "two"]
    await changes.aclose()


async def test_the_example_of_the_documentation_works(tmp_path: Path):
    text = (Path(__file__).parents[3] / "docs/library/script-tools.md").read_text("utf-8")
    write(tmp_path, "example", text.split("```toml\n")[1].split("```")[0])
    (tmp_path / "-three").write_text("1\n2\n3\n")
    assert (await call(only(script_tools(tmp_path)), path="-three")).text == "3 -three\n[exit code 0]"


async def test_an_agent_sees_new_changed_and_removed_files_at_its_next_turn(tmp_path: Path):
    keep = 'command = "true"\nrequires_approval = false'
    write(tmp_path, "old", f'description = "first"\n{keep}')

    def change() -> str:
        """Change the files while a turn runs."""
        write(tmp_path, "old", f'description = "second"\n{keep}')
        write(tmp_path, "new", f'description = "new"\n{keep}')
        write(tmp_path, "broken", "description = ")
        return "changed"

    def remove() -> str:
        """Remove a file."""
        (tmp_path / "old.toml").unlink()
        return "removed"

    reported: list[BadScript] = []
    model = ScriptedModel([[ToolCall("1", "change")], [ToolCall("2", "remove")], "done"])
    scripts = script_tools(tmp_path, on_bad=reported.append)
    agent = Agent("test:m", stream_fn=model, tools=[change, remove, scripts])
    (await agent.run("Go.")).raise_for_error()
    offered = [
        {tool.name: tool.description for tool in request.tools if tool.name in ("old", "new", "broken")}
        for request in model.calls
    ]
    assert offered == [{"old": "first"}, {"old": "second", "new": "new"}, {"new": "new"}]
    assert [Path(bad.path).name for bad in reported] == ["broken.toml"], "reported once"


async def test_scripts_may_be_all_the_tools_of_an_agent(tmp_path: Path):
    model = ScriptedModel(["one", "two"])
    agent = Agent("test:m", stream_fn=model, tools=script_tools(tmp_path))
    await agent.run("Go.")
    write(tmp_path, "new", 'description = "new"\ncommand = "true"')
    await agent.run("Go.")
    assert [[tool.name for tool in request.tools] for request in model.calls] == [[], ["new"]]


def test_a_directory_that_is_not_there_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    scripts = script_tools(tmp_path / "tols")
    assert not list(scripts)
    assert "tols is no directory" in caplog.text
    (tmp_path / "tols").mkdir()
    (tmp_path / "tols" / "greet.toml").write_text(GREET)
    assert [tool.name for tool in scripts] == ["greet"]
