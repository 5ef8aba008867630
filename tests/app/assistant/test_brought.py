"""What a project brings along: any change is asked about, and what was judged is what is used."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink import ModelSpec, ToolCall
from swink.app.assistant import brought as module
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.brought import BROUGHT_ALONG, read_brought
from swink.app.assistant.trust import Trust, answer, look_up
from swink.testing import ScriptedModel

TOOL = 'description = "Say it."\ncommand = {}\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one of each, which is trusted."""
    for name, value in {"HOME": "home", "USERPROFILE": "home", "XDG_CONFIG_HOME": "config"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    project = make(tmp_path / "src" / "project")
    answer(look_up(project), "y")
    return project


def make(project: Path) -> Path:
    write(project / ".mcp.json", json.dumps({"mcpServers": {"files": {"command": "x"}}}))
    write(project / ".swink" / "tools" / "hello.toml", TOOL.format('["echo", "hello"]'))
    write(project / ".swink" / "tools" / "bin" / "run.sh", "#!/bin/sh\necho hello\n", executable=True)
    write(project / ".swink" / "commands" / "ship.md", "Ship it.")
    return project


def write(path: Path, text: str, *, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755 if executable else 0o644)


def trust_file(project: Path) -> Path:
    return project.parent.parent / "config" / "swink" / "trust.json"


# What is asked about


def test_what_is_as_it_was_allowed_is_not_asked_about_again(project: Path):
    assert look_up(project).standing == "trusted"
    os.utime(project / ".mcp.json", (1, 1))
    (project / "main.py").write_text("print(42)")
    (project / "AGENTS.md").write_text("It is text, and starts nothing.")
    assert look_up(project).standing == "trusted"


def test_the_question_names_what_is_new_changed_and_removed(project: Path):
    servers = {"files": {"command": "y", "args": ["-v"]}, "web": {"url": "https://example.org/mcp"}}
    write(project / ".mcp.json", json.dumps({"mcpServers": servers}))
    write(project / ".swink" / "tools" / "new\u202e\n.toml", "x")
    (project / ".swink" / "commands" / "ship.md").unlink()
    trust = look_up(project)
    assert trust.standing == "changed"
    assert trust.changes == (
        "changed: server files of .mcp.json: y -v",
        "new: server web of .mcp.json: https://example.org/mcp",
        "changed: .mcp.json",
        "removed: .swink/commands/ship.md",
        "new: .swink/tools/new\\u202e\\n.toml",
    )
    assert "run swink trust in that folder" in (trust.notice or "")
    assert "and 2 more" in (trust.notice or "")


def test_secrets_in_the_command_line_of_a_server_are_not_shown(project: Path):
    key = "sk-ant-api03-" + "a1B2" * 20
    servers = {"files": {"command": "x", "args": ["--key", key], "env": {"TOKEN": "geheim"}}}
    write(project / ".mcp.json", json.dumps({"mcpServers": servers}))
    trust = look_up(project)
    for said in (*trust.changes, repr(trust), trust_file(project).read_text()):
        assert key not in said
        assert "geheim" not in said


def test_a_yes_allows_what_was_shown_and_not_what_is_there_meanwhile(project: Path):
    write(project / ".swink" / "commands" / "ship.md", "Ship it tomorrow.")
    asked = look_up(project)
    write(project / ".swink" / "commands" / "ship.md", "Ship it to the thief.")
    trust = answer(asked, "y")
    assert trust.brought.texts(".swink/commands", ".md").popitem()[1] == b"Ship it tomorrow."
    assert look_up(project).changes == ("changed: .swink/commands/ship.md",)


def test_a_no_is_remembered(project: Path):
    write(project / ".mcp.json", "{}")
    assert answer(look_up(project), "n").standing == "refused"
    assert look_up(project).standing == "refused"


def test_a_file_of_an_older_version_allows_nothing_that_is_there(project: Path):
    trust_file(project).write_text(json.dumps({str(project): {"trusted": True}}))
    trust = look_up(project)
    assert trust.standing == "changed"
    assert {line.partition(":")[0] for line in trust.changes} == {"new"}
    assert answer(trust, "y").is_trusted
    assert look_up(project).is_trusted


def test_trust_in_projects_below_is_asked_about_what_each_of_them_starts(project: Path):
    answer(look_up(project.parent), "a")
    plain, planted = project.parent / "plain", make(project.parent / "planted")
    plain.mkdir()
    assert look_up(plain).is_trusted
    trust = look_up(planted)
    assert trust.standing == "changed"
    assert "new: server files of .mcp.json: x" in trust.changes
    assert answer(trust, "y").is_trusted
    assert look_up(planted).is_trusted
    write(plain / ".mcp.json", "{}")
    assert look_up(plain).standing == "changed"


def test_an_answer_about_a_change_leaves_the_trust_in_projects_below(project: Path):
    answer(look_up(project.parent), "a")
    write(project.parent / ".mcp.json", "{}")
    answer(look_up(project.parent), "y")
    (project.parent / "plain").mkdir()
    assert look_up(project.parent / "plain").is_trusted


def test_a_link_to_the_project_does_not_hide_a_change(project: Path, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(project)
    assert look_up(link).is_trusted
    write(project / ".mcp.json", "{}")
    assert look_up(link).standing == "changed"


NAMING = [
    ({"command": "python3", "args": ["tools/server.py"]}, "tools/server.py"),
    ({"command": "python3", "args": ["${SWINK_NOPE:-tools/server.py}"]}, "tools/server.py"),
    ({"command": "${SWINK_NOPE:-./server}"}, "server"),
    ({"command": "python3", "args": ["server.py"], "cwd": "${SWINK_NOPE:-tools}"}, "tools/server.py"),
    ({"command": "node", "args": ["--require=./tools/server.js"]}, "tools/server.js"),
    ({"command": "node", "args": ["tools/server"]}, "tools/server.js"),
    ({"command": "node", "env": {"NODE_OPTIONS": "--require ./tools/server.js"}}, "tools/server.js"),
    ({"command": "sh", "args": ["-c", "exec python3 'tools/server.py';true"]}, "tools/server.py"),
    ({"command": "python3", "args": ["server"]}, "server"),
    ({"command": "python3", "args": ["-m", "tools.server"]}, "tools/server.py"),
    ({"command": "python3", "args": ["tools"]}, "tools/__main__.py"),
    ({"command": "python3", "args": ["./tools"]}, "tools/__main__.py"),
    (
        {"command": "x", "args": ["server"], "env": {"PATH": ":".join(f"/proc/{n}" for n in range(40))}},
        "server",
    ),
    ({"command": "uv", "args": ["--directory", "tools", "run", "server.py"]}, "tools/server.py"),
    ({"command": "x", "args": ["data.db", "a=b:server,\ud800", "~\ud800", "\0"]}, "server"),
]


@pytest.mark.parametrize(("fields", "program"), NAMING)
def test_a_program_of_the_project_that_a_server_names_is_asked_about(
    project: Path, fields: dict[str, Any], program: str
):
    for name in ("server", "other", "tools/server.py", "tools/server.js", "tools/__main__.py"):
        write(project / name, "1")
    write(project / ".mcp.json", json.dumps({"mcpServers": {"mine": fields}}))
    answer(look_up(project), "y")
    write(project / "other", "2")
    assert look_up(project).is_trusted
    write(project / program, "2")
    assert look_up(project).changes == (f"changed: {program}",)


def test_a_program_in_a_folder_that_a_server_is_to_work_on_is_not_asked_about(project: Path):
    servers = {"files": {"command": "npx", "args": ["-y", "server-filesystem", ".", "/", "/usr", "/etc"]}}
    write(project / ".mcp.json", json.dumps({"mcpServers": servers}))
    answer(look_up(project), "y")
    write(project / "index.js", "1")
    assert look_up(project).is_trusted


def test_a_database_that_a_server_writes_is_not_asked_about_unless_it_becomes_a_program(project: Path):
    servers = {"rows": {"command": "serve-rows", "args": ["--db-path=rows.db"]}}
    write(project / ".mcp.json", json.dumps({"mcpServers": servers}))
    (project / "rows.db").write_bytes(b"SQLite format 3\0one")
    answer(look_up(project), "y")
    (project / "rows.db").write_bytes(b"SQLite format 3\0two")
    assert look_up(project).is_trusted
    for program in (b"import os", b"\x7fELF\0\0", b"\xa7\r\r\n\0\0"):
        (project / "rows.db").write_bytes(program)
        assert look_up(project).changes == ("new: rows.db",)


@pytest.mark.skipif(os.name != "posix", reason="links need rights")
def test_a_folder_that_a_server_starts_in_is_asked_about_when_it_leads_elsewhere(project: Path):
    for name in ("a", "b"):
        write(project / name / "server.py", name)
    (project / "link").symlink_to("a")
    given = {"command": "python3", "args": ["server.py"]}
    servers = {"mine": {**given, "cwd": "link"}, "a": {**given, "cwd": "a"}, "b": {**given, "cwd": "b"}}
    write(project / ".mcp.json", json.dumps({"mcpServers": servers}))
    answer(look_up(project), "y")
    (project / "link").unlink()
    (project / "link").symlink_to("b")
    assert look_up(project).changes == ("changed: link/server.py",)


@pytest.mark.skipif(os.name != "posix", reason="links need rights")
def test_a_link_that_a_server_names_is_asked_about_when_it_leads_elsewhere(project: Path):
    for name in ("a.py", "b.py"):
        write(project / name, "1")
    (project / "link").symlink_to("a.py")
    (project / "python").symlink_to(sys.executable)
    servers = {"mine": {"command": "./python", "args": ["link"]}, "other": {"command": "x", "args": ["b.py"]}}
    write(project / ".mcp.json", json.dumps({"mcpServers": servers}))
    assert answer(look_up(project), "y").brought.data(".mcp.json") is not None
    assert look_up(project).is_trusted
    (project / "link").unlink()
    (project / "link").symlink_to("b.py")
    assert "changed: link" in look_up(project).changes


@pytest.mark.parametrize("words", [[str(n) for n in range(5_000)], [f"d{n}" for n in range(100)]])
def test_a_command_line_that_names_too_much_is_not_used(project: Path, words: list[str]):
    for number in range(100):
        (project / f"d{number}").mkdir()
    write(project / ".mcp.json", json.dumps({"mcpServers": {"mine": {"command": "x", "args": words}}}))
    found = read_brought(project)
    assert found.data(".mcp.json") is None
    assert "the command line of a server" in found.notices[0]


def test_a_server_whose_program_cannot_be_judged_is_not_started(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    write(project / "server.py", "x" * 2_000)
    servers = {"mine": {"command": "python3", "args": ["server.py"] * 1_000}}
    write(project / ".mcp.json", json.dumps({"mcpServers": servers}))
    assert read_brought(project).data(".mcp.json") is not None
    monkeypatch.setattr(module, "MOST_BYTES", 1_000)
    write(project / ".mcp.json", json.dumps({"mcpServers": {"mine": {"command": "./server.py"}}}))
    found = read_brought(project)
    assert found.data(".mcp.json") is None
    assert "of server.py: there are more than" in found.notices[0]


# Files that cannot be judged


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files")
def test_a_pipe_a_folder_and_what_leads_away_are_not_used(project: Path, tmp_path: Path):
    write(tmp_path / "outside" / "evil.toml", TOOL.format('"evil"'))
    tools = project / ".swink" / "tools"
    os.mkfifo(tools / "pipe.toml")
    (tools / "out.toml").symlink_to(tmp_path / "outside" / "evil.toml")
    (tools / "away").symlink_to(tmp_path / "outside")
    (tools / "itself.toml").symlink_to("itself.toml")
    (project / ".mcp.json").unlink()
    (project / ".mcp.json").mkdir()
    trust = look_up(project)
    assert trust.standing == "changed"
    assert [path.name for path in trust.brought.texts(".swink/tools", ".toml")] == ["hello.toml"]
    assert trust.brought.data(".mcp.json") is None
    assert len(trust.brought.notices) == 4
    answer(trust, "y")
    assert look_up(project).is_trusted


def test_a_folder_that_is_a_link_out_of_the_project_is_not_used(project: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    (project / ".swink").rename(elsewhere)
    (project / ".swink").symlink_to(elsewhere)
    trust = look_up(project)
    assert trust.brought.texts(".swink/tools", ".toml") == {}
    assert [notice.partition(": ")[2] for notice in trust.brought.notices] == [
        "it leads out of the project"
    ] * 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_not_used_and_asked_about_once_it_can(project: Path):
    script = project / ".swink" / "tools" / "hello.toml"
    script.chmod(0)
    trust = look_up(project)
    assert trust.changes == ("changed: .swink/tools/hello.toml",)
    assert answer(trust, "y").brought.texts(".swink/tools", ".toml") == {}
    script.chmod(0o644)
    assert look_up(project).standing == "changed"


def test_more_than_can_be_judged_is_not_used(project: Path, monkeypatch: pytest.MonkeyPatch):
    tools = project / ".swink" / "tools"
    monkeypatch.setattr(module, "MOST_FILES", 20)
    for number in range(20):
        (tools / f"{number}.toml").touch()
    trust = look_up(project)
    assert trust.brought.texts(".swink/tools", ".toml") == {}
    assert trust.brought.notices == [f"{tools} is not used: it holds more than 20 files"]
    assert "and" not in trust.changes[-1]
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    assert "more than 0 MB" in " ".join(read_brought(project).notices)


def test_many_scripts_are_told_in_twenty_lines(project: Path):
    for number in range(100):
        (project / ".swink" / "tools" / f"{number}.toml").touch()
    trust = look_up(project)
    assert len(trust.changes) == 21
    assert trust.changes[-1] == "and 80 more"
    assert answer(trust, "y").is_trusted
    assert look_up(project).is_trusted


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"mcpServers": {"a": ' * 20_000, "\0", '{"mcpServers": []}']
)
def test_a_file_of_servers_that_makes_no_sense_is_judged_too(project: Path, text: str):
    write(project / ".mcp.json", text)
    assert "changed: .mcp.json" in look_up(project).changes


# Any change


NAMES = st.sampled_from(
    [
        ".mcp.json",
        ".swink/tools/hello.toml",
        ".swink/tools/bin/run.sh",
        ".swink/tools/lib/deep/er.py",
        ".swink/commands/ship.md",
    ]
)
FILES = st.dictionaries(NAMES, st.tuples(st.binary(max_size=40), st.booleans()), min_size=1)


@pytest.mark.parametrize("kind", ["byte", "more", "less", "mode", "remove", "rename", "add"])
@tried(5, 100)
@given(FILES, st.data())
def test_every_change_of_bytes_names_or_modes_is_asked_about_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    files: dict[str, tuple[bytes, bool]],
    data: st.DataObject,
):
    root = tmp_path_factory.mktemp("any")
    before = lay_out(root / "before", files)
    assert lay_out(root / "same", files) == before
    changed = dict(files)
    name = data.draw(st.sampled_from(sorted(files)))
    content, executable = files[name]
    match kind:
        case "byte" if content:
            at = data.draw(st.integers(0, len(content) - 1))
            changed[name] = (
                bytes([*content[:at], content[at] ^ data.draw(st.integers(1, 255)), *content[at + 1 :]]),
                executable,
            )
        case "less" if content:
            changed[name] = content[:-1], executable
        case "mode":
            changed[name] = content, not executable
        case "remove":
            del changed[name]
        case "rename" if name != ".mcp.json":
            changed[f"{name}2"] = changed.pop(name)
        case "add":
            changed[".swink/tools/added"] = b"", False
        case _:
            changed[name] = content + b"!", executable
    assert lay_out(root / "changed", changed) != before


def lay_out(project: Path, files: dict[str, tuple[bytes, bool]]) -> dict[str, str]:
    for name, (content, executable) in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if executable else 0o644)
    return read_brought(project).digests


def test_every_place_of_the_list_is_judged(project: Path):
    for place in BROUGHT_ALONG:
        before = read_brought(project).digests
        path = project / place
        write(path if path.is_file() else path / "deep" / "er", "changed")
        assert read_brought(project).digests != before


# Several processes


ALLOW = """
import sys
from swink.app.assistant.trust import answer, look_up

print("begun", flush=True)
for _ in range(int(sys.argv[1])):
    for project in sys.argv[2:]:
        answer(look_up(project), "y")
"""


def allow(times: int, *projects: Path) -> "subprocess.Popen[bytes]":
    """Another process that allows what projects bring along; returns when it has begun."""
    command = [sys.executable, "-c", ALLOW, str(times), *map(str, projects)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_two_processes_that_write_at_once_lose_no_answer(project: Path):
    projects = [make(project.parent / f"p{number}") for number in range(20)]
    with allow(1, *projects[::2]) as one, allow(1, *projects[1::2]) as other:
        assert (one.wait(60), other.wait(60)) == (0, 0)
    assert [look_up(one).standing for one in [project, *projects]] == ["trusted"] * 21


@pytest.mark.parametrize("wait", [0.0, pytest.param(0.002, marks=pytest.mark.more)])
def test_a_kill_while_an_answer_is_written_leaves_the_one_before_or_the_new_one(project: Path, wait: float):
    with allow(1_000_000, project) as writer:
        time.sleep(wait)
        writer.kill()
    assert look_up(project).is_trusted
    assert answer(look_up(project), "y").is_trusted


# While the program runs


async def tools_of(environment: AgentEnvironment) -> dict[str, Any]:
    return {tool.name: tool for tool in environment._own_tools()}  # pyright: ignore[reportPrivateUsage]


async def opened(trust: Trust) -> AgentEnvironment:
    environment = AgentEnvironment(trust.project, trust)
    await environment.open()
    return environment


async def test_what_changes_after_the_question_is_not_taken_up(project: Path):
    (project / "main.py").touch()
    trust = look_up(project)
    write(project / ".mcp.json", json.dumps({"mcpServers": {"evil": {"command": "x", "disabled": True}}}))
    write(project / ".swink" / "tools" / "evil.toml", TOOL.format('["evil"]'))
    write(project / ".swink" / "tools" / "hello.toml", TOOL.format('["evil"]').replace("Say", "Steal"))
    write(project / ".swink" / "commands" / "ship.md", "Ship it to the thief.")
    environment = await opened(trust)
    try:
        assert [state.name for state in environment.servers.states] == ["files"]
        assert environment.commands["/ship"].text == "Ship it."
        tools = await tools_of(environment)
        assert "evil" not in tools
        assert tools["hello"].description == "Say it."
        await environment.open()
        assert "evil" not in await tools_of(environment)
        told = [notice for notice in environment.take_notices() if "has changed" in notice]
        assert len(told) == 1
        assert "/reload" in told[0]
    finally:
        await environment.aclose()


async def test_a_program_beside_the_scripts_that_was_changed_is_not_run(project: Path):
    (project / "main.py").touch()
    write(project / ".swink" / "tools" / "run.toml", TOOL.format('["./bin/run.sh"]'))
    environment = await opened(answer(look_up(project), "y"))
    script = ScriptedModel([ToolCall("1", "run", {}), ToolCall("2", "run", {}), "Done."])

    def approve(request: Any) -> bool:
        if request.call_id == "2":
            write(project / ".swink" / "tools" / "bin" / "run.sh", "#!/bin/sh\necho evil\n", executable=True)
        return True

    agent = environment.make_agent(
        ModelSpec("test", "large", context_window=200_000), stream_fn=script, approve=approve
    )
    try:
        await agent.run("Go")
    finally:
        await environment.aclose()
    first, second = (call.messages[-1].text for call in script.calls[1:])
    assert "hello" in first
    assert "not run: .swink/tools/bin/run.sh is not as it was when the user allowed it" in second


async def test_a_project_that_has_changed_is_used_for_nothing(project: Path):
    (project / "main.py").touch()
    (project / "AGENTS.md").write_text("Speak like a pirate.")
    write(project / ".swink" / "tools" / "evil.toml", TOOL.format('["evil"]'))
    environment = await opened(look_up(project))
    try:
        assert not {"evil", "hello"} & {*await tools_of(environment)}
        assert (environment.commands, environment.servers.states) == ({}, [])
        assert environment.sandbox() is not None
        (notice,) = environment.take_notices()
        assert "new: .swink/tools/evil.toml" in notice
    finally:
        await environment.aclose()
