"""Wishes: the hosts that commands want to reach, and the patterns that name them in rules and settings.

pypi.org                  a name, at the ports of HTTP and HTTPS
*.example.com             every name below it
index.corp:8080           another port
index.corp@10.0.0.5       also at this private address; several stand side by side, with a comma
"""

from collections.abc import Sequence

from msgspec import Struct

from swink.errors import InvalidInput
from swink.tools.coding.addresses import is_private, parse_address
from swink.tools.coding.domains import PORTS, Domain, parse_domain


class Wish(Struct, frozen=True, order=True):
    """A host by its canonical name and port, and those of its addresses that are not public, if known."""

    name: str
    port: int
    addresses: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = f" at {' and '.join(self.addresses)}" if self.addresses else ""
        return f"{self.host}{at}"

    @property
    def host(self) -> str:
        """The name, with the port unless it is a usual one."""
        return self.name if self.port in PORTS else f"{self.name}:{self.port}"

    @property
    def pattern(self) -> str:
        """How a rule or a setting names it, and nothing more."""
        return f"{self.host}@{','.join(self.addresses)}" if self.addresses else self.host


class HostPattern(Struct, frozen=True):
    """What a rule names: hosts, and private addresses that they may have."""

    domain: Domain
    has_port: bool
    addresses: tuple[str, ...] = ()

    def allows(self, wish: Wish) -> bool:
        """Whether a host falls under it, with every private address that it has."""
        return self.domain.allows(wish.name, wish.port) and {*wish.addresses} <= {*self.addresses}

    def denies(self, wish: Wish) -> bool:
        """Whether a host falls under it wherever it is; a name without a port means every port."""
        port = wish.port if self.has_port else PORTS[0]
        return self.domain.allows(wish.name, port)


def parse_pattern(text: str) -> HostPattern:
    """A pattern as a person writes it; raises `InvalidInput`."""
    host, at, addresses = text.strip().partition("@")
    found: list[str] = []
    for part in addresses.split(",") if at else []:
        address = parse_address(part.strip())
        if address is None or not is_private(address):
            how = "write index.corp@10.0.0.5, or only the name of a public host"
            raise InvalidInput(f"{text!r}: {part!r} is no private address; {how}")
        found.append(str(address))
    domain = parse_domain(host)
    if domain.below and found:
        raise InvalidInput(f"{text!r}: an address belongs to one name, not to all below *")
    return HostPattern(domain, ":" in host, tuple(found))


def allowed_by(patterns: Sequence[str], wish: Wish) -> bool:
    """Whether one of the patterns, which are valid, allows a wish."""
    return any(parse_pattern(pattern).allows(wish) for pattern in patterns)
