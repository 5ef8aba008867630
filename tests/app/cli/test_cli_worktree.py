"""`swink -w NAME` and `swink worktree`: a change beside the main tree, taken, kept or dropped by the person."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import STALL, Call, Place, Provider, Screen, without_styles
from tests.counts import cell_of_more, left_to_more

EDIT = {"path": "a.py", "edits": [{"old": "line 3\n", "new": "line three\n"}]}
SETTINGS = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(place: Path, *words: str) -> str:
    done = subprocess.run(["git", *SETTINGS, *words], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def main(place: Place) -> Path:
    """The directory as a repository with one commit."""
    git(place.here, "init", "-q", "-b", "main")
    place.write("a.py", "".join(f"line {number}\n" for number in range(1, 31)))
    git(place.here, "add", ".")
    git(place.here, "commit", "-qm", "first")
    return place.here


@pytest.fixture
def editing(provider: Provider) -> Provider:
    """A model that edits a file, writes another one and says so."""
    provider.replies = [
        [Call("edit_file", **EDIT)],
        [Call("write_file", path="new.txt", content="new\n")],
        ["Done."],
    ]
    return provider


def run(place: Place, provider: Provider, *words: str) -> tuple[int, str, str]:
    given = ("run", "-w", "fix", "-m", "openai:m", "--approve", "off", *words)
    done = place.swink(*given, "go", env=provider.env)
    return done.code, done.out, done.err


def tree_of(main: Path) -> Path:
    return main.parent / f"{main.name}-fix"


# Without a person


def test_a_run_leaves_the_main_tree_alone_and_says_how_to_take_the_change(
    place: Place, main: Path, editing: Provider
):
    code, out, err = run(place, editing)
    assert (code, out) == (0, "Done.\n")
    assert "line three" not in (main / "a.py").read_text()
    assert not (main / "new.txt").exists()
    assert git(main, "status", "--porcelain") == ""
    assert f"worktree fix, branch swink/fix: {tree_of(main)}" in err
    assert "2 files changed (a.py, new.txt), kept on the branch swink/fix" in err
    assert "swink worktree take fix takes the change" in err
    assert git(main, "show", "swink/fix:new.txt") == "new"
    assert git(tree_of(main), "status", "--porcelain") == ""


@left_to_more
def test_the_next_run_of_that_name_goes_on(place: Place, main: Path, editing: Provider):
    run(place, editing)
    editing.replies = [[Call("write_file", path="more.txt", content="more\n")], ["More."]]
    code, _, err = run(place, editing)
    assert code == 0
    assert "worktree fix is taken up again" in err
    assert "3 files changed" in err


def test_a_run_that_changes_nothing_leaves_nothing(place: Place, main: Path, provider: Provider):
    code, out, err = run(place, provider)
    assert (code, out) == (0, "Hello there.\n")
    assert "nothing was changed: worktree fix is gone" in err
    assert not tree_of(main).exists()
    assert git(main, "branch", "--list", "swink/*") == ""


def test_a_worktree_with_ignored_files_alone_stays_until_it_is_dropped(
    place: Place, main: Path, provider: Provider
):
    place.write(".gitignore", "*.db\n")
    git(main, "add", ".")
    git(main, "commit", "-qm", "ignore")
    provider.replies = [[Call("write_file", path="data.db", content="new\n")], ["Done."]]
    _, _, err = run(place, provider)
    assert "nothing was changed; worktree fix stays because of what git ignores (data.db)" in err
    assert (tree_of(main) / "data.db").exists()
    refused = place.swink("worktree", "drop", "fix")
    assert refused.code == 2
    assert "what git ignores (data.db) would be lost" in refused.err
    done = place.swink("worktree", "drop", "fix", "--yes")
    assert "worktree fix is gone; lost for good: what git ignores (data.db)" in done.err
    assert not tree_of(main).exists()


def test_a_broken_worktree_hides_no_other_and_can_be_dropped(place: Place, main: Path):
    for name in ("fix", "other"):
        git(main, "worktree", "add", "-q", "-b", f"swink/{name}", str(main.parent / f"{main.name}-{name}"))
    git(tree_of(main), "commit", "-q", "--allow-empty", "-m", "second")
    made = git(main, "rev-parse", "swink/fix")
    (main / ".git/objects" / made[:2] / made[2:]).unlink()
    lines = place.swink("worktree", "list").out.splitlines()
    assert lines[1].startswith("fix    cannot be read: git rev-parse failed")
    assert lines[2].startswith("other  nothing changed")
    assert "a change that cannot be read" in place.swink("worktree", "drop", "fix").err
    done = place.swink("worktree", "drop", "fix", "--yes")
    assert done.code == 0, done.err
    assert not tree_of(main).exists()
    assert git(main, "branch", "--list", "swink/fix") == ""


def test_a_worktree_whose_branch_a_command_has_removed_is_listed_and_dropped(
    place: Place, main: Path, provider: Provider
):
    command = f"rm -rf {main}/.git; echo kept > kept.txt"
    provider.replies = [[Call("bash", command=command)], ["Done."]]
    run(place, provider)
    assert (tree_of(main) / "kept.txt").read_text() == "kept\n"
    assert git(main, "branch", "--list", "swink/fix") == ""
    assert git(main, "status", "--porcelain") == ""
    (line,) = place.swink("worktree", "list").out.splitlines()[1:]
    assert line.startswith("fix   cannot be read: ")
    assert line.endswith(str(tree_of(main)))
    assert place.swink("worktree", "drop", "fix", "--yes").code == 0
    assert not tree_of(main).exists()
    assert place.swink("worktree", "list").out == ""


@pytest.mark.parametrize(
    ("name", "told"), [("a/b", "such as a-b"), cell_of_more("x y", "such as x-y"), ("..", "of letters")]
)
def test_a_name_that_is_none_is_a_mistake_of_the_command_line(place: Place, main: Path, name: str, told: str):
    done = place.swink("run", "-w", name, "go")
    assert done.code == 2
    assert told in done.err
    assert place.swink("run", "-w", "-x", "go").code == 2


def test_outside_a_repository_nothing_is_asked_of_a_model(place: Place, provider: Provider):
    code, _, err = run(place, provider)
    assert code == 2
    assert "is in no git repository" in err
    assert provider.requests == []


def test_without_a_terminal_the_chat_needs_a_prompt(place: Place, main: Path, provider: Provider):
    done = place.swink("-w", "fix", env=provider.env)
    assert done.code == 2
    assert "swink run -w NAME" in done.err
    assert not tree_of(main).exists()


def test_a_run_that_was_killed_is_taken_up_with_all_that_it_did(place: Place, main: Path, editing: Provider):
    editing.replies = [[Call("edit_file", **EDIT)], [STALL]]
    process = place.start("run", "-w", "fix", "-m", "openai:m", "--approve", "off", "go", env=editing.env)
    while len(editing.requests) < 2:
        assert process.poll() is None, process.stderr and process.stderr.read()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    editing.over.set()
    assert "line three" in (tree_of(main) / "a.py").read_text()
    editing.replies = [["Nothing more."]]
    code, _, err = run(place, editing)
    assert code == 0
    assert "taken up again" in err
    assert "1 file changed (a.py), kept" in err


# The commands


def test_the_list_says_what_is_changed_and_where(place: Place, main: Path, editing: Provider):
    assert "no worktrees here" in place.swink("worktree").err
    assert "there is no worktree fix" in place.swink("worktree", "keep", "fix").err
    run(place, editing)
    lines = place.swink("worktree", "list").out.splitlines()
    assert lines[0].split() == ["NAME", "CHANGE", "WHERE"]
    assert lines[1].split()[:5] == ["fix", "2", "files", "changed", "(a.py,"]
    assert lines[1].endswith(str(tree_of(main)))


def test_taking_it_with_a_yes_brings_all_of_it_and_removes_the_worktree(
    place: Place, main: Path, editing: Provider
):
    run(place, editing)
    refused = place.swink("worktree", "take", "fix")
    assert refused.code == 2
    assert "--yes takes all of it" in refused.err
    done = place.swink("worktree", "take", "fix", "--yes")
    assert done.code == 0
    assert "not committed: a.py, new.txt" in done.err
    assert "line three" in (main / "a.py").read_text()
    assert (main / "new.txt").read_text() == "new\n"
    assert not tree_of(main).exists()
    back = done.err.partition("git branch swink/fix ")[2].split()[0]
    assert git(main, "show", f"{back}:new.txt") == "new"


@left_to_more
def test_what_would_be_overwritten_takes_nothing(place: Place, main: Path, editing: Provider):
    run(place, editing)
    place.write("a.py", "mine\n")
    done = place.swink("worktree", "take", "fix", "--yes")
    assert done.code == 2
    assert "nothing was taken: a.py would overwrite what has changed" in done.err
    assert not (main / "new.txt").exists()
    assert tree_of(main).exists()


@left_to_more
def test_dropping_needs_a_yes_where_nobody_can_be_asked(place: Place, main: Path, editing: Provider):
    run(place, editing)
    assert place.swink("worktree", "drop", "fix").code == 2
    assert tree_of(main).exists()
    assert place.swink("worktree", "drop", "fix", "--yes").code == 0
    assert not tree_of(main).exists()
    unknown = place.swink("worktree", "keep", "fix")
    assert unknown.code == 2
    assert "there is no worktree fix" in unknown.err


def test_parts_are_taken_one_by_one_on_a_terminal(place: Place, main: Path, provider: Provider):
    edits = [EDIT["edits"][0], {"old": "line 20\n", "new": "line twenty\n"}]  # type: ignore[index]
    provider.replies = [
        [Call("edit_file", path="a.py", edits=edits)],
        [Call("write_file", path="new.txt", content="new\n")],
        ["Done."],
    ]
    run(place, provider)
    screen = Screen(place, "worktree", "take", "fix")
    assert "+line three" in screen.wait_for("part 1 of 2: take it? [y/n/a/q] ")
    screen.type("n\n")
    assert "+line twenty" in screen.wait_for("part 2 of 2: take it? [y/n/a/q] ")
    screen.type("y\n")
    assert "creates new.txt" in screen.wait_for("take it? [y/n/a/q] ")
    screen.type("n\n")
    assert screen.end() == 0
    assert "the rest stays in the worktree" in screen.text
    text = (main / "a.py").read_text()
    assert "line 3\n" in text
    assert "line twenty\n" in text
    assert not (main / "new.txt").exists()
    assert tree_of(main).exists()


def test_leaving_the_review_takes_nothing(place: Place, main: Path, editing: Provider):
    run(place, editing)
    screen = Screen(place, "worktree", "take", "fix")
    screen.wait_for("take it? [y/n/a/q] ")
    screen.type("y\n")
    screen.wait_for("take it? [y/n/a/q] ")
    screen.type("q\n")
    assert screen.end() == 1
    assert "nothing was taken" in screen.text
    assert "line three" not in (main / "a.py").read_text()


# The end of a conversation


@pytest.mark.parametrize("answer", ["t", cell_of_more("k"), cell_of_more("d"), "\x04"])
def test_the_end_of_a_chat_asks_what_becomes_of_the_change(
    place: Place, main: Path, editing: Provider, answer: str
):
    screen = Screen(place, "-w", "fix", "-m", "openai:m", "--approve", "off", env=editing.env)
    screen.wait_for("> ")
    screen.type("go\n")
    screen.wait_for("Done.")
    screen.wait_for("> ")
    assert "line three" not in (main / "a.py").read_text()
    screen.type("/quit\n")
    shown = screen.wait_for("what shall become of it? [t/K/d] ")
    assert "2 files changed (a.py, new.txt)" in shown
    screen.type(answer if answer == "\x04" else f"{answer}\n")
    if answer == "t":
        screen.wait_for("take it? [y/n/a/q] ")
        screen.type("a\n")
    assert screen.end() == 0
    is_taken = "line three" in (main / "a.py").read_text()
    assert is_taken == (answer == "t")
    assert tree_of(main).exists() == (answer in ("k", "\x04"))
    if answer in ("k", "\x04"):
        assert git(main, "show", "swink/fix:new.txt") == "new"
    assert "Traceback" not in without_styles(screen.text)


def test_trust_of_the_repository_holds_in_the_worktree(place: Place, main: Path, provider: Provider):
    place.write("AGENTS.md", "Speak like a pirate.")
    git(main, "add", ".")
    git(main, "commit", "-qm", "instructions")
    place.trust()
    run(place, provider)
    assert "Speak like a pirate." in str(provider.requests[0]["messages"][0])


def test_commands_of_the_agent_commit_in_the_worktree(place: Place, main: Path, provider: Provider):
    line = "echo x > x && git add x && git -c user.name=A -c user.email=a@b commit -qm made"
    provider.replies = [[Call("bash", command=line)], ["Done."]]
    place.trust()
    code, _, err = run(place, provider)
    result = str(provider.requests[1]["messages"][-1])
    assert code == 0
    if "sandbox" in result and "cannot be had" in result:
        pytest.skip("no sandbox works here")
    assert git(main, "log", "-1", "--format=%s", "swink/fix") == "made", result
    assert "1 file changed (x)" in err
