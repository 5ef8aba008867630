"""A workspace with everything in it that a looking command could be led astray by, and a secret beside it."""

import os
import subprocess
from pathlib import Path

IDENTITY = (
    "-c",
    "user.name=A B",
    "-c",
    "user.email=a@example.org",
    "-c",
    "init.defaultBranch=main",
    "-c",
    "core.hooksPath=/dev/null",
)


def git(directory: Path, *arguments: str) -> None:
    """Run git with a name and nobody's settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(
        ["git", *IDENTITY, *arguments], cwd=directory, check=True, capture_output=True, env=environment
    )


def lay_out(top: Path) -> Path:
    """Make the workspace `top/workspace`; `.store` in it is meant to be hidden."""
    root = top / "workspace"
    files = {
        "a.txt": "a one\nb two x\n", "b.txt": "b two\n", "a file.txt": "spaces\n", "README.md": "# Readme\n", "data.csv": "n,v\na,1\n",
        "package.json": '{"name": "n", "version": "1", "scripts": {}, "dependencies": {}}\n', ".gitignore": "node_modules\n",
        "src/main.py": "import os\n\n\ndef main():\n    return 1  # x TODO\n", "src/other.py": "x = 1\n", "docs/index.md": "x\n",
        "node_modules/m/index.py": "x\n", ".store/session": "canary-hidden\n", "evil.sh": "#!/bin/sh\ntouch \"$CANARY\"\n", 
        "evil.mk": "all:\n\ttouch x\n",
        "list": f"{top}/outside/secret.txt\0", "sums": f"0  {top}/outside/secret.txt\n", "dashed/-o": "", "options/--output=x": "", "options/a": "",
        "bin/ls": "#!/bin/sh\ntouch x\n",
    }  # fmt: skip
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (root / "evil.sh").chmod(0o755)
    (root / "bin/ls").chmod(0o755)
    (top / "outside").mkdir()
    (top / "outside/secret.txt").write_text("canary-secret\n")
    _links(root)
    _repositories(root)
    return root


def add_secrets(root: Path) -> None:
    """Files with credentials, which a search at the level `none` would read."""
    (root / "keys").mkdir()
    (root / "keys/id_rsa").write_text("canary-key\n")
    (root / ".env").write_text("KEY=canary-env\n")


def _links(root: Path) -> None:
    targets = {
        "link-out": "/etc/passwd", "dir-out": "/etc", "src/link": "../../outside/secret.txt", "link": "a.txt", "link-in": "src/main.py",
        "link-sub": "src", "link-to-link": "link-out", "dangling-out": "/nowhere/x", "loop": "loop", "link-to-store": ".store/session",
    }  # fmt: skip
    for name, target in targets.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")


def _repositories(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", "a.txt", "src/main.py", ".gitignore")
    git(root, "commit", "-q", "-m", "first")
    (root / "a.txt").write_text("a one\nb two x\nc\n")
    git(root, "commit", "-q", "-a", "-m", "second")
    git(root, "remote", "add", "origin", "https://example.org/x.git")
    # A repository among the files: git takes the directory for one and obeys its configuration.
    git(root, "init", "-q", "--bare", "bare")
    for name in ("bare/config", "nested/.git/config"):
        if name.startswith("nested"):
            git(root, "init", "-q", "nested")
        with open(root / name, "a") as file:
            file.write(
                f'[core]\n\tbare = false\n\tworktree = "{root}"\n\tfsmonitor = "touch {root.parent}/outside/pwned; false"\n'
            )
