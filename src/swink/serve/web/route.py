"""Routes: which function answers which method and path, and what a door is made of."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from swink.errors import InvalidInput
from swink.serve.web.exchange import Exchange
from swink.serve.wire import Refused

Answer = Callable[[Exchange], Awaitable[None]]


class Route(Struct, frozen=True):
    """A method and a path such as "/conversations/{id}/runs", what answers it, and how it is described."""

    method: str
    path: str
    answer: Answer
    summary: str = ""
    request: Any = None
    """The type of the body; None: the route takes none."""
    response: Any = None
    """The type of what is answered; None: something else than JSON."""
    status: int = 200
    statuses: tuple[int, ...] = ()
    """Further statuses that the route answers with, besides those of every route."""
    query: Mapping[str, Any] = {}
    """What may stand behind the question mark, with the type of each value."""
    headers: Mapping[str, Any] = {}
    """Headers that the route reads, with their types."""
    kind: str = "application/json"
    """The content type of the answer."""


class Door(Protocol):
    """One protocol of the application: its routes, and how it says that something is wrong."""

    def routes(self) -> Sequence[Route]:
        """What the door answers, each once."""
        ...

    def failure(self, status: int, message: str) -> Any:
        """The body of a refusal, which is sent as JSON."""
        ...


class Router:
    """Finds the route of a request among those of all doors."""

    def __init__(self, doors: Sequence[Door]) -> None:
        self._routes: dict[int, list[tuple[list[str], Route, Door]]] = {}
        self._doors = doors
        seen: set[tuple[str, str]] = set()
        for door in doors:
            for route in door.routes():
                if (route.method, route.path) in seen:
                    raise InvalidInput(f"two doors answer {route.method} {route.path}")
                seen.add((route.method, route.path))
                parts = route.path.split("/")
                self._routes.setdefault(len(parts), []).append((parts, route, door))

    def find(self, method: str, path: str) -> tuple[Route, Door, dict[str, str]]:
        """The route, its door and what its path names; `Refused` (404, or 405) if there is none."""
        parts = path.split("/")
        others: set[str] = set()
        found: list[tuple[Route, Door, dict[str, str]]] = []
        for pattern, route, door in self._routes.get(len(parts), ()):
            values = _match(pattern, parts)
            if values is None:
                continue
            if route.method == method:
                found.append((route, door, values))
            others.add(route.method)
        if found:
            return min(found, key=lambda each: len(each[2]))  # the path that is most exact
        if others:
            allowed = ", ".join(sorted(others))
            raise MethodRefused(allowed)
        raise Refused(404, "there is nothing at this path; /openapi.json lists what there is")

    def door_at(self, path: str) -> Door:
        """The door that says what is wrong with a path: the one with the longest beginning of it."""
        best, most = self._doors[0], 0
        for routes in self._routes.values():
            for pattern, _, door in routes:
                shared = 0
                for ours, theirs in zip(pattern, path.split("/"), strict=False):
                    if ours != theirs:
                        break
                    shared += 1
                if shared > most:
                    best, most = door, shared
        return best


class MethodRefused(Refused):
    """The path is there, and takes other methods."""

    def __init__(self, allowed: str) -> None:
        super().__init__(405, f"this path takes {allowed}")
        self.allowed = allowed


def _match(pattern: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    values: dict[str, str] = {}
    for ours, theirs in zip(pattern, parts, strict=True):
        if ours.startswith("{"):
            if not theirs:
                return None
            values[ours[1:-1]] = theirs
        elif ours != theirs:
            return None
    return values
