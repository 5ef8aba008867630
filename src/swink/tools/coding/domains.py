"""Names of hosts: how they are written, and which of them a list allows."""

import re
from collections.abc import Iterable

from msgspec import Struct

from swink.errors import InvalidInput

PORTS = (80, 443)
"""What a name without a port allows."""

_NAME = re.compile(
    r"(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")


class Domain(Struct, frozen=True):
    """One entry: a name, or with `below` every name under it; and its ports."""

    name: str
    below: bool
    ports: tuple[int, ...]

    def allows(self, host: str, port: int) -> bool:
        """Whether a canonical name and a port fall under it."""
        return port in self.ports and (host.endswith("." + self.name) if self.below else host == self.name)


class Domains:
    """An allow-list such as `docs.example.org`, `*.example.com`, `localhost:8080`."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._entries = tuple(parse_domain(entry) for entry in entries)

    def allows(self, host: str, port: int) -> bool:
        """Whether some entry allows a canonical name and a port."""
        return any(entry.allows(host, port) for entry in self._entries)


def canonicalize(host: str) -> str | None:
    """A host name in lower-case ASCII without the final dot; None for an address or an invalid name."""
    try:
        name = host.encode("ascii").decode() if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return None
    name = name.lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        return None
    # Resolvers take 127.1, 0x7f000001 and 2130706433 for addresses; no top-level domain is a number.
    return None if _NUMBER.fullmatch(name.rpartition(".")[2]) else name


def parse_domain(entry: str) -> Domain:
    """An entry of a list as a person writes it; raises `InvalidInput`."""
    text, colon, port = entry.partition(":")
    below = text.startswith("*.")
    name = canonicalize(text.removeprefix("*.") if below else text)
    if name is None or (colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise InvalidInput(
            f"{entry!r} is no domain; write a name such as docs.example.org, *.example.com or localhost:8080"
        )
    return Domain(name, below, (int(port),) if colon else PORTS)
