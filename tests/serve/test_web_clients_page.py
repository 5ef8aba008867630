"""docs/library/web-clients.md: the programs for Node run against a served agent."""

import asyncio
import re
import subprocess
from pathlib import Path

import pytest
from tests.counts import left_to_more
from tests.pages import ROOT
from tests.serve.served import served
from tests.serve.webscenes import MODULES, delete, node

from swink.messages import ToolCall

PAGE = "docs/library/web-clients.md"
PROGRAMS = re.findall(r"```javascript\n(.*?)```", (ROOT / PAGE).read_text("utf-8"), re.DOTALL)


@left_to_more
@pytest.mark.parametrize(
    ("package", "program", "printed"), [("@ag-ui/client", 0, "Deleting.Gone.\n"), ("ai", 1, "Deleting.\n")]
)
async def test_the_programs_of_the_clients_run(tmp_path: Path, package, program, printed):
    if not (MODULES / package).exists():
        pytest.skip(f"the npm package {package} is not installed; .ci/run brings it")
    (tmp_path / "node_modules").symlink_to(MODULES, target_is_directory=True)
    script = [["Deleting.", ToolCall("c", "delete", {"path": "a.txt"})], "Gone."]
    async with served(script, {"tools": [delete]}, protocols=["native", "ag-ui", "vercel"]) as client:
        url = str(client.base_url).rstrip("/")
        file = tmp_path / "program.mjs"
        file.write_text(PROGRAMS[program].replace("http://127.0.0.1:8090", url), "utf-8")
        process = await asyncio.create_subprocess_exec(
            node(), str(file), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            async with asyncio.timeout(60):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert (out.decode(), process.returncode) == (printed, 0), err.decode()
