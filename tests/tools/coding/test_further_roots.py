"""Further directories that tools and commands may write, guarded like the workspace itself."""

import os
import sys
from pathlib import Path

import pytest
from calling import call, complaint, named, shell

from swink.errors import InvalidInput
from swink.system.targets import look
from swink.tools.coding import Sandbox, Workspace, coding_tools
from swink.tools.coding.workspace import select_roots

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program of Linux")


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace, and a library beside it with a repository and a file of credentials."""
    work, library = tmp_path / "work", tmp_path / "library"
    work.mkdir()
    for name in ("hooks", "objects", "refs"):
        (library / ".git" / name).mkdir(parents=True)
    (library / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (library / ".git" / "config").write_text("[core]\n")
    (library / ".git" / "hooks" / "sample").touch()
    (library / ".env").write_text("TOKEN=secret-of-the-library\n")
    (library / "src").mkdir()
    (library / "src" / "code.py").write_text("needle = 1\n")
    return work, library


async def test_file_tools_reach_a_further_root_by_absolute_paths_and_nothing_beside_it(
    places: tuple[Path, Path],
):
    work, library = places
    tools = coding_tools(work, writable=[library])
    assert "needle" in (await call(named(tools, "read_file"), path=f"{library}/src/code.py")).text
    await call(named(tools, "write_file"), path=f"{library}/new/b.py", content="new\n")
    assert (library / "new" / "b.py").read_text() == "new\n"
    edits = [{"old": "needle", "new": "thread"}]
    await call(named(tools, "edit_file"), path=f"{library}/src/code.py", edits=edits)
    assert (library / "src" / "code.py").read_text() == "thread = 1\n"
    assert "code.py" in (await call(named(tools, "list_files"), path=f"{library}/src")).text
    found = await call(named(tools, "find_files"), path=str(library), pattern="src/*.py")
    assert "code.py" in found.text
    assert "code.py" in (await call(named(tools, "find_files"), path=str(library), pattern="*.py")).text
    assert "thread" in (await call(named(tools, "search_text"), path=str(library), pattern="thread")).text
    os.symlink("/etc", library / "out")
    os.symlink(library, work / "over")
    write, read = named(tools, "write_file"), named(tools, "read_file")
    for path in (f"{library}/../x", f"{library}2/x", f"{library}/.git/config", f"{library}/out/x", "over/x"):
        assert await complaint(write, path=path, content="x")
    assert "credentials" in await complaint(read, path=f"{library}/.env")
    assert not (library.parent / "x").exists()


def test_a_target_in_a_further_root_is_inside(places: tuple[Path, Path]):
    work, library = places
    workspace = Workspace(work, writable=[library])
    found = look(str(library / "src" / "code.py"))
    assert found is not None
    assert workspace.inside(found) == str(library / "src" / "code.py")
    assert Workspace(work).inside(found) is None


@linux
async def test_commands_write_in_a_further_root_but_not_what_programs_obey(places: tuple[Path, Path], need):
    need("bubblewrap")
    work, library = places
    box = Sandbox(work, writable=[library], backends=("bubblewrap",))
    code, output = await shell(box, f"echo 2 > {library}/src/code.py; cat {library}/src/code.py")
    assert (code, output) == (0, "2\n"), output
    lines = (
        f"cat {library}/.env",
        f"echo x > {library}/.git/config",
        f"echo x > {library}/.git/hooks/pre-commit",
        f"mv {library}/.git {library}/git",
    )
    for line in lines:
        code, output = await shell(box, line)
        assert code != 0, line
        assert "secret-of-the-library" not in output
    await shell(
        box, f"mkdir -p {library}/.vscode && echo x > {library}/.vscode/tasks.json; echo x > {library}/.envrc"
    )
    assert not (library / ".vscode" / "tasks.json").exists()
    assert not (library / ".envrc").exists()
    assert (library / ".git" / "config").read_text() == "[core]\n"
    assert os.listdir(library / ".git" / "hooks") == ["sample"]
    assert not (library.parent / "beside").exists()


def test_a_root_that_holds_the_workspace_or_a_home_is_refused(places: tuple[Path, Path]):
    work, library = places
    for place in (work.parent, Path("/"), Path.home(), library / "missing"):
        with pytest.raises(InvalidInput, match="cannot be written"):
            select_roots(work, [place])
    (work / "inside").mkdir()
    assert select_roots(work, [work, work / "inside"]) == ()
    assert select_roots(work, [library, library / "src"]) == (library,)
