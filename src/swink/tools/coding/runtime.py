"""What swink itself runs from: interpreter, environment and package, wherever they lie.

Sandboxed commands may not change them, since swink starts them again outside the sandbox.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from weakref import WeakSet

from swink.system.writable import is_beneath

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PARTS = ("bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg", "Scripts", "Lib", "DLLs")
"""What belongs to a prefix that contains the workspace, or is the workspace itself."""
_MAX_LINKS = 40

REMEDY = (
    "give swink an environment of its own (pipx install swink, or uv tool install swink), "
    "or run the command once outside the sandbox (in the chat with !, or in a terminal)"
)


class TrustedPrograms:
    """Files that a person trusted as they are and that run outside the sandbox, as long as this lives."""

    __slots__ = ("__weakref__", "paths")

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)
        _trusted.add(self)


_trusted: "WeakSet[TrustedPrograms]" = WeakSet()


def list_runtime(root: str) -> tuple[str, ...]:
    """The paths inside a workspace that swink runs from, links resolved, those inside others left out."""
    found = {place for place in _list_places(root) if is_beneath(place, root)}
    inside = {place for place in found for other in found if place != other and is_beneath(place, other)}
    return tuple(sorted(found - inside))


def list_trusted(root: str) -> tuple[str, ...]:
    """The files inside a workspace that a person trusted as they are, for hooks and servers."""
    return tuple(path for programs in list(_trusted) for path in programs.paths if is_beneath(path, root))


def find_trouble(root: str) -> str:
    """Why no sandbox can protect swink's own files from commands of this workspace; empty if one can."""
    places = _list_places(root)
    for place in places:
        if is_beneath(root, place):
            return f"the workspace lies in {place}, which swink itself runs from; {REMEDY}"
    for start in (sys.executable, *_list_prefixes()):
        for link in _find_links(start):
            if is_beneath(link, root) and not any(is_beneath(link, place) for place in places):
                return f"swink runs through the link {link}, which a command could replace; {REMEDY}"
    return ""


def _list_prefixes() -> tuple[str, ...]:
    return sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, _PACKAGE


def _list_places(root: str) -> list[str]:
    """Prefixes, package and interpreter; of a prefix around the workspace its own parts alone."""
    places: list[str] = [os.path.realpath(sys.executable)]
    for prefix in {os.path.realpath(path) for path in _list_prefixes()}:
        if is_beneath(root, prefix) and prefix != os.path.realpath(_PACKAGE):
            parts = (os.path.join(prefix, part) for part in _PARTS)
            places += [os.path.realpath(part) for part in parts if os.path.exists(part)]
        else:
            places.append(prefix)
    return places


def _find_links(path: str, depth: int = _MAX_LINKS) -> Iterator[str]:
    """Every link on the way to a path, each where it really lies."""
    place = os.sep
    for part in os.path.abspath(path).split(os.sep):
        at = os.path.join(place, part)
        if depth and os.path.islink(at):
            yield at
            yield from _find_links(os.path.join(place, os.readlink(at)), depth - 1)
        place = os.path.realpath(at)
