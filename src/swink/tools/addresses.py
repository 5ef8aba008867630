"""Which network addresses a model may have fetched: those of the public internet, unless others are allowed by name."""

import ipaddress
from collections.abc import Iterable, Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Written out, because what `ipaddress` calls private or global has changed from one Python to the next.
_SPECIAL_4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
]  # fmt: skip
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_6 = [ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


def networks(names: Iterable[str]) -> tuple[Network, ...]:
    """Networks from their names, such as 127.0.0.0/8."""
    return tuple(ipaddress.ip_network(name) for name in names)


def parse(text: str) -> Address | None:
    """An address from its usual spelling; None if it is not one."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_allowed(address: Address, allowed: Sequence[Network] = ()) -> bool:
    """Whether an address is public, or in one of the networks that are allowed all the same."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return is_allowed(address.ipv4_mapped, allowed)
    if any(address.version == network.version and address in network for network in allowed):
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    return address in _PUBLIC_6 and not any(address in network for network in _SPECIAL_6)
