"""What the tests of worktrees share: a repository with one commit, and git to look at it."""

import os
import subprocess
from pathlib import Path

SETTINGS = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(place: Path, *words: str) -> str:
    done = subprocess.run(["git", *SETTINGS, *words], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_repository(place: Path) -> Path:
    """A repository with one commit on main, whose files are a.py and b.txt."""
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    (place / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 41)))
    (place / "b.txt").write_text("b\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    return place


def state(place: Path) -> dict[str, bytes | str]:
    """All files of a tree that are not git's, links by where they lead."""
    found: dict[str, bytes | str] = {}
    for folder, names, files in os.walk(place):
        if ".git" in names:
            names.remove(".git")
        for name in files:
            path = Path(folder) / name
            key = str(path.relative_to(place))
            found[key] = os.readlink(path) if path.is_symlink() else path.read_bytes()
    return found
