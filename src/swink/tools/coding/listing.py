"""list_files and find_files: what is in the workspace, without what git ignores."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from swink.messages import Text
from swink.tools import Tool, ToolContext, ToolResult, tool
from swink.tools.coding.ignore import compile_glob
from swink.tools.coding.text import make_printable
from swink.tools.coding.walk import MAX_DEPTH, TooLong, make_stop_check, walk
from swink.tools.coding.workspace import Workspace

MAX_ENTRIES = 1000


def list_tools(workspace: Workspace) -> list[Tool]:
    """list_files and find_files for a workspace."""

    @tool(idempotent=True, read_only=True)
    def list_files(
        ctx: ToolContext,
        path: str = ".",
        depth: Annotated[int, Meta(ge=1, le=MAX_DEPTH)] = 1,
        ignored: bool = False,
    ) -> ToolResult:
        """List files and directories. Directories end with a slash. What git ignores is left out.

        Args:
            path: The directory, relative to the workspace.
            depth: How many levels to go down; 1 lists the directory itself.
            ignored: List what git ignores too.
        """
        judged, check_stop = workspace.judged(ctx, path), make_stop_check(ctx)
        entries = walk(workspace, path, depth=depth, ignored=ignored, check_stop=check_stop, judged=judged)
        lines = (
            escape_path(entry.path) + ("/" if entry.is_directory else "@" if entry.is_link else "")
            for entry in entries
        )
        return _build_result(lines, "the directory is empty")

    @tool(idempotent=True, read_only=True)
    def find_files(pattern: str, ctx: ToolContext, path: str = ".", ignored: bool = False) -> ToolResult:
        """Find files by name. What git ignores is left out.

        Args:
            pattern: A glob: `*.py` matches names at any depth, `src/**/test_*.py` paths; `{a,b}` is either.
            path: The directory to look in, relative to the workspace.
            ignored: Find what git ignores too.
        """
        regex = compile_glob(pattern)
        judged, check_stop = workspace.judged(ctx, path), make_stop_check(ctx)
        base = "/".join(workspace.parts(path))
        if (top := workspace.base_of(path)) != str(workspace.root):
            base = f"{top}/{base}".rstrip("/")
        skip = len(base) + 1 if base else 0

        def matches() -> Iterator[str]:
            for entry in walk(workspace, path, ignored=ignored, check_stop=check_stop, judged=judged):
                found = entry.path
                if not entry.is_directory and (regex.fullmatch(found[skip:]) or regex.fullmatch(found)):
                    yield escape_path(found)

        return _build_result(matches(), f"no file matches {pattern}")

    return [list_files, find_files]


def escape_path(path: str) -> str:
    """A path on one line of output: control characters escaped, odd bytes replaced."""
    if path.isprintable():
        return path
    shown = make_printable(path)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)


def _build_result(lines: Iterator[str], nothing: str) -> ToolResult:
    kept: list[str] = []
    more = 0
    notes: list[str] = []
    try:
        for line in lines:
            if len(kept) < MAX_ENTRIES:
                kept.append(line)
            else:
                more += 1
    except TooLong as error:
        notes.append(f"[{error}]")
    if more:
        notes.insert(0, f"[{more:,} more are not shown; narrow the path or the pattern]")
    text = "\n".join([*kept, *notes]) or f"[{nothing}]"
    return ToolResult((Text(text),), {"count": len(kept) + more, "cut": bool(notes)})
