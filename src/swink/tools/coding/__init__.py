"""Tools that are safe to give to a model: files, search, a sandboxed shell, web pages, tasks, scripts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swink.tools import Tool
from swink.tools.coding.background import Background, Job
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.domainquestions import DomainGate
from swink.tools.coding.egress import ApproveDomain
from swink.tools.coding.linkedgit import LinkedGit
from swink.tools.coding.listing import list_tools
from swink.tools.coding.outside import AskOutside
from swink.tools.coding.process import Limits
from swink.tools.coding.reading import read_tools
from swink.tools.coding.sandbox import Level, Sandbox, SandboxUnavailable
from swink.tools.coding.scripts import BadScript, ScriptTools, script_tools
from swink.tools.coding.search import search_tools
from swink.tools.coding.todo import todo_tools
from swink.tools.coding.webpages import fetch_tools
from swink.tools.coding.wishes import Wish
from swink.tools.coding.workspace import PathRefused, Workspace
from swink.tools.coding.writing import write_tools

__all__ = [
    "Background",
    "BadScript",
    "DomainGate",
    "Job",
    "Level",
    "Limits",
    "PathRefused",
    "Sandbox",
    "SandboxUnavailable",
    "ScriptTools",
    "Wish",
    "Workspace",
    "bash_tools",
    "coding_tools",
    "fetch_tools",
    "list_tools",
    "read_tools",
    "script_tools",
    "search_tools",
    "todo_tools",
    "write_tools",
]


def coding_tools(
    root: str | Path,
    *,
    sandbox: Level = "workspace",
    limits: Limits = Limits(),
    readable: Sequence[str | Path] = (),
    hidden: Sequence[str | Path] = (),
    keep_directory: bool = False,
    fetch_from: Sequence[str] = (),
    net: Sequence[str] | None = None,
    approve_domain: ApproveDomain | DomainGate | None = None,
    background: Background | None = None,
    or_none: bool = False,
    outside: AskOutside | None = None,
    writable: Sequence[str | Path] = (),
    shown: Sequence[str | Path] = (),
    linked: LinkedGit | None = None,
    is_trusted: Callable[[], bool] | None = None,
) -> list[Tool]:
    """The tools for working in a directory, `root`; `limits` are those of a command.

    read_file, list_files, find_files, search_text, write_file, edit_file, delete_file, bash, fetch_url, todo.

    `sandbox` is the level bash runs at; where it is not available, bash refuses with the reason and the other
    tools work. `readable` are paths that commands may read besides the system's, and files with credentials
    (`.env`, private keys) that tools and commands may read. `hidden` are places that no tool may read, such
    as a session store. Relative paths are relative to the root. With `keep_directory` a `cd` holds for later
    commands. `net` names the domains that commands may reach at the level workspace+net, all by default;
    `approve_domain` is asked about others. `fetch_from` are networks that fetch_url and such commands may
    reach besides the public internet, such as 127.0.0.0/8. With a `background` commands can go on while the
    agent does something else; the caller closes it. With `or_none`, where no sandbox works on this machine,
    commands run without one, and every one of them requires approval. `outside` is asked whether a command
    that the sandbox made fail runs once more outside; while `is_trusted` says so, `git init`, `git remote
    add` and their like write the repository's configuration. `writable` are further directories that
    commands may write, and tools by absolute paths; `shown` are those that both may only read. `linked` is
    the repository of a root that is a git worktree, so that commands commit there.
    """
    workspace = Workspace(root, hidden, readable=readable, writable=writable, shown=shown)
    confined: Any = {"readable": readable, "hidden": hidden, "writable": writable, "or_none": or_none}
    confined |= {"shown": shown, "linked": linked}
    reached: Any = {"net": net, "net_from": fetch_from, "approve_domain": approve_domain}
    box = Sandbox(workspace.root, sandbox, **confined, **reached)
    return [
        *read_tools(workspace),
        *list_tools(workspace),
        *search_tools(workspace),
        *write_tools(workspace),
        *bash_tools(
            workspace,
            box,
            limits=limits,
            keep_directory=keep_directory,
            background=background,
            outside=outside,
            is_trusted=is_trusted,
        ),
        *fetch_tools(allowed=fetch_from),
        *todo_tools(),
    ]
