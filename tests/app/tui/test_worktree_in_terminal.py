"""`swink -w NAME` in a real terminal: the interface works in the worktree, and leaving it asks what becomes of it."""

import subprocess
from pathlib import Path

from command_line import Call, Place, Provider
from terminal import Terminal
from tests.counts import left_to_more


def git(place: Path, *words: str) -> str:
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *settings, *words], cwd=place, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@left_to_more
def test_leaving_the_interface_asks_and_what_is_chosen_is_taken(place: Place, provider: Provider):
    main = place.here
    git(main, "init", "-q", "-b", "main")
    place.write("a.txt", "".join(f"line {number}\n" for number in range(1, 31)))
    git(main, "add", ".")
    git(main, "commit", "-qm", "first")
    edit = {"path": "a.txt", "edits": [{"old": "line 3\n", "new": "three\n"}]}
    provider.replies = [[Call("edit_file", **edit)], ["Done."]]
    given = ["--model", "openai:gpt-4.1", "--approve", "off", "-w", "fix"]
    with Terminal(place, *given, env=provider.env, size=(110, 40)) as terminal:
        terminal.wait_for("worktree fix, branch swink/fix", "idle")
        terminal.type("go\r")
        terminal.wait_for("Done.", "idle")
        assert "three" not in (main / "a.txt").read_text()
        terminal.press("ctrl+q")
        terminal.wait_for("1 file changed (a.txt)", "what shall become of it? [t/K/d]")
        terminal.type("t\r")
        terminal.wait_for("part 1 of 1: take it? [y/n/a/q]")
        terminal.type("y\r")
        terminal.wait_for_end(with_others=False)
    assert "three\n" in (main / "a.txt").read_text()
    assert not (main.parent / "here-fix").exists()
    assert git(main, "branch", "--list", "swink/*") == ""
