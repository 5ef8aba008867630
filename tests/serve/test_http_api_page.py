"""docs/library/http-api.md: its shell blocks are pasted into one shell, in their order, beside the server that it starts."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.pages import FENCE, ROOT, files_of

PAGE = (ROOT / "docs" / "library" / "http-api.md").read_text("utf-8")
BLOCKS = [match["code"] for match in FENCE.finditer(PAGE) if match["language"] == "bash"]
START = re.findall(r"^```sh\nswink (serve agent .*)\n```$", PAGE, re.MULTILINE)


@pytest.mark.skipif(sys.platform == "win32", reason="bash")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed (package curl)")
def test_the_shell_blocks_of_the_page_run_as_pasted(tmp_path: Path):
    for name, code in files_of(PAGE).items():
        (tmp_path / name).write_text(code, "utf-8")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    arguments = [*START[0].split(), "--port", "0"]
    log = tmp_path / "server.log"
    with log.open("wb") as err:
        server = subprocess.Popen(
            [sys.executable, "-m", "swink", *arguments],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=err,
        )
    try:
        assert server.stdout is not None
        at = server.stdout.readline().decode().strip().removeprefix("http://")
        assert at, log.read_text()
        blocks = [block.replace("localhost:8090", at) for block in BLOCKS]
        done = subprocess.run(
            ["bash", "-e", "-c", "\necho; echo ---\n".join([*blocks, "wait"])],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    first, answer = done.stdout.split("---\n")[:2]
    events = [events_of(first), events_of((tmp_path / "events.txt").read_text("utf-8"))]
    assert [each[-1]["type"] for each in events] == ["agent_end", "agent_end"]
    assert [each[-1]["messages"][-1]["content"][0]["text"] for each in events] == [
        "Hello Ada.",
        "I leave it as it is.",
    ]
    assert "run_id" in json.loads(answer)
    assert "too expensive" in str(events[1])
    assert "is paid back" not in str(events[1])


def test_every_shell_block_of_the_page_is_run():
    assert (
        len(BLOCKS) + len(START)
        == len(re.findall(r"^```(?:sh|bash|console|shell)\b", PAGE, re.MULTILINE))
        > 2
    )


def events_of(text: str) -> list[Any]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
