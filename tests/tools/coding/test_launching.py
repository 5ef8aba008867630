"""What the tools start outside the sandbox is not what a command has planted in the workspace."""

import os
from pathlib import Path
from typing import Any

import pytest
from calling import call, named, shell
from tests.counts import in_cells

from swink.system.programs import find_program
from swink.tools import coding_tools
from swink.tools.coding.process import find_shell
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.search import search_tools
from swink.tools.coding.workspace import Workspace

PLANTED = ("bwrap", "rg", "bash", "sh", "python3", "ps")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "workspace" / "notes.txt").write_text("needle\n")
    return tmp_path / "workspace"


def plant(canary: Path) -> str:
    """A command that plants programs in every place of the workspace that may be on a PATH."""
    return "\n".join(
        f"mkdir -p {place}; printf '#!/bin/sh\\ntouch {canary}\\n' > {place}/{name}; chmod 755 {place}/{name}"
        for place in (".", "bin", ".venv/bin")
        for name in PLANTED
    )


@in_cells(
    ("backend", "entry"),
    [
        (backend, entry)
        for backend in ("bubblewrap", "landlock")
        for entry in ("", "{root}/.venv/bin", ".", "bin", "{root}/bin", "{root}/../workspace/bin")
    ],
    every=7,
)
async def test_programs_that_a_command_plants_on_the_path_are_never_started(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, backend: Any, entry: str, need: Any
):
    need(backend)
    canary = workspace.parent / "canary"
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PATH", f"{entry.replace('{root}', str(workspace))}:{os.environ['PATH']}")
    tools = coding_tools(workspace)
    box = Sandbox(workspace, backends=(backend,))
    await shell(box, plant(canary))
    assert await shell(box, "echo works") == (0, "works\n")
    assert await box.backend() == backend, "no other backend takes over unseen"
    found = await call(named(tools, "search_text"), pattern="needle", path="notes.txt")
    assert "notes.txt" in found.text
    assert not canary.exists()
    for name in ("bash", "bwrap", "rg"):
        program = find_program(name)
        assert program is None or not program.startswith(str(workspace))
    assert not find_shell().startswith(str(workspace))


async def test_a_bubblewrap_of_the_workspace_is_named_where_there_is_no_other(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    from swink.tools.coding.sandbox import SandboxUnavailable

    (tmp_path / "bin").mkdir()
    for name in ("bash", "sh"):
        (tmp_path / "bin" / name).symlink_to(find_program(name) or "/bin/sh")
    planted = workspace / ".venv" / "bin" / "bwrap"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:{tmp_path / 'bin'}")
    with pytest.raises(
        SandboxUnavailable, match=r"\.venv/bin/bwrap is not used, because the model can write it"
    ):
        await Sandbox(workspace, backends=("bubblewrap",)).backend()


async def test_libraries_named_by_the_environment_reach_the_command_and_not_bubblewrap(
    workspace: Path, need: Any
):
    need("bubblewrap")
    box = Sandbox(
        workspace, backends=("bubblewrap",), environment={"LD_LIBRARY_PATH": str(workspace / "lib")}
    )
    launch = await box.launch(["/bin/true"])
    assert not [name for name in launch.env if name.startswith("LD_")]
    assert await shell(box, "echo $LD_LIBRARY_PATH") == (0, f"{workspace}/lib\n")


async def test_a_search_goes_on_without_a_ripgrep_that_was_replaced(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("rg", "new"):
        (place / name).write_text("#!/bin/sh\nexit 2\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    (tool,) = search_tools(Workspace(workspace))
    assert "notes.txt" in (await call(tool, pattern="needle")).text
    (place / "new").replace(place / "rg")
    assert "notes.txt" in (await call(tool, pattern="needle")).text
    assert [record.message for record in caplog.records if "start swink again" in record.message]


@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
async def test_no_program_is_taken_from_the_home_and_temp_files_of_commands(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, backend: Any, need: Any
):
    need(backend)
    box = Sandbox(workspace, backends=(backend,))
    await shell(
        box, 'for d in "$HOME" "$TMPDIR"; do echo "#!/bin/sh" > "$d/planted"; chmod 755 "$d/planted"; done'
    )
    places = [path.parent for path in Path(str(box.private)).rglob("planted")]
    assert places
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, places)))
    assert find_program("planted") is None
