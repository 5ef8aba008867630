"""Trust: which projects may bring instructions, servers, scripts, commands and agents along."""

from pathlib import Path

import pytest
from treescene import git, make_repository

from swink.app.assistant.trust import Trust, TrustError, find_project, forget, look_up
from swink.app.assistant.trust import answer as remember


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home" / "ada"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return home


def make(directory: Path, *, git: bool = False) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    if git:
        (directory / ".git").mkdir()
    return directory


def answer(directory: Path, key: str) -> Trust:
    return remember(look_up(directory), key)


def test_a_folder_is_asked_about_once_and_the_answer_stays(home: Path):
    one, other = make(home / "one"), make(home / "other")
    assert look_up(one).standing == "unasked"
    assert answer(one, "y").is_trusted
    assert answer(other, "n").standing == "refused"
    assert look_up(one).is_trusted
    assert look_up(other).standing == "refused"
    assert "is not trusted" in (look_up(other).notice or "")
    forget(other)
    assert look_up(other).standing == "unasked"


def test_trust_covers_the_repository_and_projects_below_only_if_that_was_said(home: Path):
    repository = make(home / "src" / "repository", git=True)
    inside, nested = make(repository / "package"), make(repository / "vendor" / "dependency", git=True)
    answer(inside, "y")
    assert look_up(inside).project == repository
    assert look_up(repository).is_trusted
    assert look_up(nested).standing == "unasked"
    answer(home / "src", "a")
    assert look_up(nested).is_trusted
    answer(nested, "n")
    assert look_up(nested).standing == "refused"


def test_a_folder_without_a_repository_covers_nothing_below_it(home: Path):
    answer(make(home / "notes"), "y")
    assert look_up(make(home / "notes" / "drafts")).standing == "unasked"


def test_home_and_what_is_above_it_are_never_trusted(home: Path):
    make(home, git=True)  # a repository for dotfiles
    for wide in (home, home.parent, Path("/")):
        assert answer(wide, "a").standing == "never"
        assert look_up(wide).standing == "never"
    project = make(home / "project")
    assert find_project(project) == project
    assert look_up(project).standing == "unasked"


def test_a_link_to_a_trusted_folder_is_trusted_and_a_trusted_name_that_moves_away_is_not(home: Path):
    real, bad, link = make(home / "real"), make(home / "bad"), home / "link"
    link.symlink_to(real)
    answer(link, "y")
    assert look_up(real).is_trusted
    link.unlink()
    link.symlink_to(bad)
    assert look_up(link).standing == "unasked"


def test_a_damaged_file_trusts_nothing_and_is_not_overwritten(home: Path, tmp_path: Path):
    project = make(home / "project")
    answer(project, "y")
    file = tmp_path / "config" / "swink" / "trust.json"
    file.write_text('{"/": ')
    with pytest.raises(TrustError, match="no folder is trusted"):
        look_up(project)
    with pytest.raises(TrustError):
        remember(Trust(project, "unasked"), "y")
    assert file.read_text() == '{"/": '


def test_a_line_in_the_file_that_trusts_the_whole_disk_has_no_effect(home: Path, tmp_path: Path):
    (tmp_path / "config" / "swink").mkdir(parents=True)
    (tmp_path / "config" / "swink" / "trust.json").write_text('{"/": {"trusted": true, "below": true}}')
    assert look_up(make(home / "project")).standing == "unasked"


# Worktrees


@pytest.fixture
def repository(home: Path) -> Path:
    """A repository with a server, that was committed."""
    repository = make_repository(home / "repository")
    (repository / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "true"}}}')
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "server")
    return repository


def add_tree(repository: Path, name: str = "tree") -> Path:
    git(repository, "worktree", "add", "-q", "-b", name, str(repository.parent / name))
    return repository.parent / name


def test_a_worktree_is_trusted_as_its_repository_is(repository: Path):
    tree = add_tree(repository)
    assert look_up(tree).standing == "unasked"
    answer(repository, "y")
    assert look_up(tree).is_trusted
    assert look_up(tree).project == tree
    answer(repository, "n")
    assert look_up(tree).standing == "refused"


@pytest.mark.parametrize("how", ["changed", "new", "removed"])
def test_a_worktree_that_brings_something_else_along_is_asked_about(repository: Path, how: str):
    tree = add_tree(repository)
    answer(repository, "y")
    match how:
        case "changed":
            (tree / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "false"}}}')
        case "new":
            make(tree / ".swink" / "commands")
            (tree / ".swink" / "commands" / "x.md").write_text("x")
        case _:
            (tree / ".mcp.json").unlink()
    assert look_up(tree).standing == "changed"
    assert any(line.startswith(how) for line in look_up(tree).changes)
    assert look_up(repository).is_trusted
    assert answer(tree, "y").is_trusted
    assert look_up(tree).is_trusted
    assert look_up(repository).is_trusted


def test_an_answer_about_a_worktree_is_its_own(repository: Path):
    tree, other = add_tree(repository), add_tree(repository, "other")
    answer(repository, "y")
    answer(tree, "n")
    assert look_up(tree).standing == "refused"
    assert look_up(other).is_trusted


def test_a_folder_that_only_claims_to_be_a_worktree_is_not_trusted(repository: Path, home: Path):
    tree = add_tree(repository)
    answer(repository, "y")
    claim = make(home / "claim")
    (claim / ".git").write_bytes((tree / ".git").read_bytes())
    (claim / ".mcp.json").write_bytes((tree / ".mcp.json").read_bytes())
    assert look_up(claim).standing == "unasked"
    (claim / ".git").write_text(f"gitdir: {repository / '.git'}\n")
    assert look_up(claim).standing == "unasked"
