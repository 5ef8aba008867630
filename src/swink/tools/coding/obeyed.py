"""Files and folders that other programs obey: the one list for commands, modes, suggested rules and previews.

A name is listed if a program acts on its content without being asked to run it: when a person opens or enters
the folder, commits or checks out, starts an editor, a shell, a debugger or a coding agent in it, or logs in.
Files of a home are listed at every depth too, because repositories of dotfiles are linked into homes.

Not listed, because nothing acts on them until they are run: source, build files, tests, environments of
packages. `.gitattributes` names only filters that git's configuration defines, workflows of a forge run there
and after a push, and instructions (AGENTS.md) are text for a model whose calls have approvals of their own.
"""

import os
import unicodedata
from fnmatch import fnmatchcase
from pathlib import Path

from swink.system.writable import is_beneath
from swink.tools.coding.runtime import list_runtime, list_trusted
from swink.tools.coding.secrets import find_homes
from swink.tools.coding.supervisor.gitconfig import is_repository
from swink.tools.coding.supervisor.names import Names, fold

GROUPS: dict[str, tuple[str, ...]] = {
    "version control": (
        ".git", ".gitmodules", ".gitconfig", ".config/git", ".hg", ".hgrc", ".config/hg", ".svn",
        ".subversion", ".jj", ".jjconfig.toml", ".config/jj", ".sl", ".pijul",
    ),
    "git hooks": (
        ".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", "lefthook.yaml",
        "lefthook.toml", "lefthook.json", "lefthook-local.yml", "lefthook-local.yaml", ".lefthook",
        ".lefthook-local", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json",
        ".lefthook-local.yml", ".lefthook-local.yaml", ".overcommit.yml", ".lintstagedrc",
        ".lintstagedrc.json", ".lintstagedrc.yaml", ".lintstagedrc.yml", ".lintstagedrc.js",
        ".lintstagedrc.mjs", ".lintstagedrc.cjs", "lint-staged.config.js", "lint-staged.config.mjs",
        "lint-staged.config.cjs", ".simple-git-hooks.json", ".simple-git-hooks.js", ".simple-git-hooks.cjs",
    ),
    "coding agents": (
        ".swink", ".mcp.json", ".agents", ".claude", ".claude.json", ".codex", ".gemini", ".qwen", ".cursor",
        ".windsurf", ".roo", ".kilocode", ".kiro", ".junie", ".amazonq", ".continue", ".opencode",
        "opencode.json", "opencode.jsonc", ".crush", "crush.json", ".crush.json", ".aider.conf.yml",
    ),
    "editors": (
        ".vscode", "*.code-workspace", ".devcontainer", ".devcontainer.json", ".idea", ".fleet", ".vs",
        ".zed", ".helix", ".nova", "*.sublime-project", ".theia", ".externalToolBuilders", ".bsp", ".exrc",
        "_exrc", ".vimrc", "_vimrc", ".gvimrc", ".lvimrc", ".nvimrc", ".nvim.lua", ".vim", ".ideavimrc",
        ".config/nvim", ".config/helix", ".config/zed", ".config/Code", ".dir-locals.el", ".dir-locals-2.el",
        ".emacs", ".emacs.el", ".emacs.d", ".config/emacs", ".nanorc",
    ),
    "entering a folder": (
        ".envrc", ".direnvrc", ".config/direnv", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh",
        ".tool-versions", ".mise", ".mise.toml", ".mise.local.toml", "mise.toml", "mise.local.toml",
        ".config/mise", ".config/mise.toml", ".rtx.toml",
    ),
    "shells and terminals": (
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc",
        ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".zsh", ".oh-my-zsh", ".kshrc", ".mkshrc", ".cshrc",
        ".tcshrc", ".login", ".logout", ".inputrc", ".config/fish", ".config/zsh", ".config/nushell",
        ".config/powershell", "Microsoft.PowerShell_profile.ps1", ".tmux.conf", ".config/tmux", ".screenrc",
        ".config/kitty", ".config/alacritty", ".config/wezterm", ".wezterm.lua",
    ),
    "debuggers, interpreters and tools": (
        ".gdbinit", ".lldbinit", ".pdbrc", ".perldb", ".irbrc", ".pryrc", ".Rprofile", ".Renviron", ".ghci",
        ".ocamlinit", ".octaverc", ".psqlrc", ".sqliterc", ".ripgreprc", ".curlrc", ".wgetrc", ".tigrc",
        ".lessfilter", ".mailcap", ".muttrc",
    ),
    "logging in": (
        ".ssh", ".pam_environment", ".xprofile", ".xsession", ".xsessionrc", ".xinitrc", ".xserverrc",
        ".config/autostart", ".config/autostart-scripts", ".config/systemd", ".config/environment.d",
        ".config/plasma-workspace", ".config/sway", ".config/i3", ".config/hypr", ".config/niri",
        ".config/openbox", ".local/share/systemd", ".local/share/applications",
        ".local/share/dbus-1", "Library/LaunchAgents", "Library/LaunchDaemons",
        "Start Menu/Programs/Startup",
    ),
}  # fmt: skip
"""Who obeys what; a folder stands for everything in it."""

IN_HOME = ("bin", ".*")
"""In homes alone: projects have such files too, and no list of what is hidden in a home is complete."""

_OF_STORES = {
    ".git": (),
    ".hg": (".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath"),
    ".jj": (".jj/repo/config.toml", ".jj/workspace-config.toml"),
    ".sl": (".sl/config",),
    ".svn": (),
    ".pijul": (".pijul/config",),
}
"""Folders of version control, in which commands work: there they may not change these parts. Of `.git` the
guard knows more."""

_LISTED = tuple(entry for entries in GROUPS.values() for entry in entries)
_ALL = Names(_LISTED)
_OTHERS = [entry for entry in _LISTED if entry not in _OF_STORES]
_PARTS = [part for parts in _OF_STORES.values() for part in parts]
GUARDED = Names((*_OTHERS, *_PARTS), stores=tuple(_OF_STORES), pointers=(".jj/repo",))
"""What sandboxed commands may not change or make."""

_HEAD = "head"
_OF_GIT = ("config", "config.worktree", "hooks", "commondir", "objects", "refs")
"""What makes a directory with a file HEAD a repository, and what git runs programs by in one."""

INSTEAD = (
    "Go on without, or use write_file or edit_file, which ask the user, "
    "or tell the user to run the command outside the sandbox"
)
"""What the result of a command that was kept from it advises."""


def is_obeyed(path: str, root: str) -> bool:
    """Whether other programs obey a file, or swink itself runs from it; the path is relative to the root."""
    if _ALL.find(path) or _is_of_repository(path, root):
        return True
    full = _fold_path(os.path.normpath(os.path.join(root, path)))
    if any(is_beneath(full, _fold_path(place)) for place in (*list_runtime(root), *list_trusted(root))):
        return True
    homes = [f"{_fold_path(home)}/" for home in find_homes(root)]
    tops = [full.removeprefix(home).split("/")[0] for home in homes if full.startswith(home)]
    return any(fnmatchcase(top, entry) for top in tops for entry in IN_HOME)


def _is_of_repository(path: str, root: str) -> bool:
    """Whether a file makes a directory of any name a repository, or changes what git runs in one.

    Calls of one turn are judged before any of them is made, so HEAD, which all repositories have, counts.
    """
    parts = os.path.normpath(path).replace("\\", "/").split("/")
    if fold(parts[-1]) == _HEAD:
        return True
    for at, part in enumerate(parts):
        if (name := fold(part)) not in _OF_GIT:
            continue
        try:
            there = {fold(other) for other in os.listdir(os.path.join(root, *parts[:at]))}
        except OSError:  # it is not there, so it holds nothing yet
            continue
        if _HEAD in there or is_repository({name, *there}):
            return True
    return False


def warn_if_obeyed(path: str, root: Path) -> str:
    """What the summary of a change to a file ends with; nothing for an ordinary one."""
    real = os.path.relpath(os.path.realpath(root / path), root)
    return "; other programs obey this file" if is_obeyed(real, str(root)) else ""


def _fold_path(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()
