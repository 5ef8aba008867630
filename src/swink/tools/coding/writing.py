"""write_file, edit_file and delete_file: files change as a whole, atomically, or not at all."""

import os
import stat
from contextlib import suppress
from typing import Annotated

from msgspec import Meta

from swink.messages import Text
from swink.system.files import temporary_name
from swink.system.targets import note_written, version_of
from swink.tools import Tool, ToolContext, ToolError, ToolResult, tool
from swink.tools.coding.edits import Edit, apply_edits
from swink.tools.coding.openfiles import followed, with_unsaved
from swink.tools.coding.text import Encoding, describe_binary, detect, hash_content, make_printable
from swink.tools.coding.workspace import Spot, Workspace, lock_spot

MAX_CHANGED = 64 << 20
"""Bytes of the largest file that is edited or replaced; past it a stream editor is the better tool."""
MAX_SHOWN = 1 << 20
"""Characters of content kept in the details for a diff."""

ExpectedHash = Annotated[
    str | None,
    Meta(description="Refuse if the file's content has another hash than this one, from an earlier result."),
]


def write_tools(workspace: Workspace) -> list[Tool]:
    """write_file, edit_file and delete_file for a workspace."""

    @tool(requires_approval=True)
    def write_file(
        path: str, content: str, ctx: ToolContext, expected_hash: ExpectedHash = None
    ) -> ToolResult:
        """Create a file or replace all of its content. Missing parent directories are made.

        To change part of a file use edit_file.

        Args:
            path: The file, relative to the workspace.
            content: The whole new content.
        """
        judged = workspace.judged(ctx, path)
        with workspace.at(path, write=True, make_parents=True, judged=judged) as spot, lock_spot(spot):
            result, written = _write(spot, content, ctx, expected_hash), spot.path
        return followed(written, result)

    @tool(requires_approval=True)
    def edit_file(
        path: str, edits: list[Edit], ctx: ToolContext, expected_hash: ExpectedHash = None
    ) -> ToolResult:
        """Replace parts of a file.

        Every edit is matched against the file as it is now; all of them apply or none does.

        Args:
            path: The file, relative to the workspace.
            edits: What to replace with what.
        """
        judged = workspace.judged(ctx, path)
        with workspace.at(path, write=True, judged=judged) as spot, lock_spot(spot):
            result, written = _edit(spot, edits, ctx, expected_hash), spot.path
        return followed(written, result)

    @tool(requires_approval=True)
    def delete_file(path: str, ctx: ToolContext, expected_hash: ExpectedHash = None) -> ToolResult:
        """Delete one file. Directories and symbolic links are left alone.

        Args:
            path: The file, relative to the workspace.
        """
        judged = workspace.judged(ctx, path)
        with workspace.at(path, write=True, follow=False, judged=judged) as spot, lock_spot(spot):
            return _delete(spot, ctx, expected_hash)

    return [write_file, edit_file, delete_file]


def _write(spot: Spot, content: str, ctx: ToolContext, expected_hash: str | None) -> ToolResult:
    before, old = _read(spot)
    _expect(spot, old, expected_hash)
    encoding = Encoding()
    if old is not None and (kept := detect(old)) is not None and kept.bom:
        encoding = kept
    new = _encode(content, encoding, spot)
    _replace(spot, new, before, ctx)
    done = "created" if old is None else "replaced"
    return _build_result(spot, old, new, f"{done} {spot.path} ({_size(new)})")


def _edit(spot: Spot, edits: list[Edit], ctx: ToolContext, expected_hash: str | None) -> ToolResult:
    before, old = _read(spot)
    if old is None:
        raise ToolError(f"{spot.path} does not exist; use write_file to create it")
    _expect(spot, old, expected_hash)
    encoding = detect(old)
    if encoding is None:
        raise ToolError(f"{spot.path} is {describe_binary(old)}, not text")
    applied = apply_edits(encoding.decode(old), edits)
    new = _encode(applied.text, encoding, spot)
    _replace(spot, new, before, ctx)
    where = ", ".join(map(str, applied.lines[:20])) + (", …" if len(applied.lines) > 20 else "")
    count = len(applied.lines)
    done = f"{count} replacement{'s' if count > 1 else ''} at line {where}"
    return _build_result(spot, old, new, f"edited {spot.path}: {done}")


def _delete(spot: Spot, ctx: ToolContext, expected_hash: str | None) -> ToolResult:
    found = spot.stat()
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{spot.path} is a directory, and only files are deleted; use rmdir or rm -r in bash")
    before, old = _read(spot)
    if before is None or old is None:
        raise ToolError(f"{spot.path} does not exist")
    _expect(spot, old, expected_hash)
    _remove(spot, before, ctx)
    return _build_result(spot, old, None, f"deleted {spot.path} ({_size(old)})")


def _remove(spot: Spot, before: os.stat_result, ctx: ToolContext) -> None:
    """Rename the file before deleting it, so that a file put in its place meanwhile is not deleted."""
    _check_cancelled(spot, ctx, "deleted")
    temporary = temporary_name(spot.name)
    try:
        os.rename(spot.name, temporary, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)
        taken = os.stat(temporary, dir_fd=spot.directory, follow_symlinks=False)
        if _changed(before, taken):
            _put_back(spot, temporary)
            raise _changed_meanwhile(spot)
        os.unlink(temporary, dir_fd=spot.directory)
        os.fsync(spot.directory)
    except OSError as error:
        raise spot.trouble(error) from error


def _put_back(spot: Spot, temporary: str) -> None:
    try:
        os.link(
            temporary, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory, follow_symlinks=False
        )
    except OSError as error:
        raise ToolError(
            f"{spot.path} changed meanwhile and something else has its name now; it was kept as {temporary}"
        ) from error
    os.unlink(temporary, dir_fd=spot.directory)


def _read(spot: Spot) -> tuple[os.stat_result, bytes] | tuple[None, None]:
    """The file as it was when it was read, and what is in it; None if there is none."""
    if spot.stat() is None:
        return None, None
    with os.fdopen(spot.open_file(), "rb") as file:
        before = os.fstat(file.fileno())
        size = before.st_size
        if size > MAX_CHANGED:
            raise ToolError(
                f"{spot.path} has {size:,} bytes, too many to change here (at most {MAX_CHANGED:,}); "
                "use sed in bash"
            )
        return before, with_unsaved(spot.path, file.read(), changes=True)


def _expect(spot: Spot, old: bytes | None, expected: str | None) -> None:
    if expected is None:
        return
    found = None if old is None else hash_content(old)
    if found is None or not found.startswith(expected[: len(found)].lower()) or len(expected) < 8:
        state = "does not exist" if found is None else f"has the hash {found}"
        raise ToolError(
            f"nothing was changed: {spot.path} {state}, not {expected}; read it again before changing it"
        )


def _encode(text: str, encoding: Encoding, spot: Spot) -> bytes:
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        char = make_printable(text[error.start])
        raise ToolError(
            f"nothing was changed: {spot.path} is in {encoding}, "
            f"which has no {char!r} (U+{ord(text[error.start]):04X})"
        ) from error


def _replace(spot: Spot, new: bytes, before: os.stat_result | None, ctx: ToolContext) -> None:
    """Write the new content beside the file, flush it to disk and rename it over the file, mode kept.

    Unlike `system/files.py` it works in an open directory, for which no link can be swapped in, and looks
    once more at the file before the rename.
    """
    temporary = temporary_name(spot.name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        fd = os.open(temporary, flags, 0o666 if before is None else 0o600, dir_fd=spot.directory)
    except OSError as error:
        raise spot.trouble(error) from error
    with os.fdopen(fd, "wb") as file:
        try:
            file.write(new)
            file.flush()
            if before is not None:
                _keep_attributes(fd, before)
            os.fsync(fd)
            _check_cancelled(spot, ctx, "replaced")
            if _changed(before, spot.stat()):
                raise _changed_meanwhile(spot)
            os.rename(temporary, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)
        except BaseException as error:
            os.unlink(temporary, dir_fd=spot.directory)
            if isinstance(error, OSError):
                raise spot.trouble(error) from error
            raise
        note_written(version_of(os.fstat(fd)))
    os.fsync(spot.directory)


def _keep_attributes(fd: int, before: os.stat_result) -> None:
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):  # only root may give files away: the file then belongs to us
            os.fchown(fd, before.st_uid, before.st_gid)
    os.fchmod(fd, stat.S_IMODE(before.st_mode))


def _check_cancelled(spot: Spot, ctx: ToolContext, done: str) -> None:
    if ctx.cancelled:
        raise ToolError(f"nothing was changed: the call was cancelled before {spot.path} was {done}")


def _changed(before: os.stat_result | None, now: os.stat_result | None) -> bool:
    if before is None or now is None:
        return before is not now
    return (before.st_ino, before.st_mtime_ns, before.st_size) != (now.st_ino, now.st_mtime_ns, now.st_size)


def _changed_meanwhile(spot: Spot) -> ToolError:
    return ToolError(
        f"nothing was changed: somebody else changed {spot.path} at the same moment; read it again"
    )


def _build_result(spot: Spot, old: bytes | None, new: bytes | None, text: str) -> ToolResult:
    details = {
        "path": spot.path,
        "is_new_file": old is None,
        "old_content": None if old is None else _show(old),
        "new_content": None if new is None else _show(new),
        "hash": None if new is None else hash_content(new),
    }
    was = f"hash was {hash_content(old)}" if new is None and old is not None else f"hash {details['hash']}"
    return ToolResult((Text(f"{text} [{was}]"),), details)


def _size(data: bytes) -> str:
    return f"{len(data):,} byte{'' if len(data) == 1 else 's'}"


def _show(data: bytes) -> str | None:
    """The content for a diff; None where it is no text or too long to keep in a conversation."""
    encoding = detect(data) if len(data) <= MAX_SHOWN else None
    return None if encoding is None else make_printable(encoding.decode(data))
