"""Which network addresses tools may connect to: the public internet, and networks that the user allows.

Metadata services, from which machines in a cloud get credentials, are refused even in an allowed network,
unless the user names the single address.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from swink.errors import InvalidInput

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

HOSTS = "/etc/hosts"

# Written out, because what `ipaddress` calls private or global differs between versions of Python.
_SPECIAL_4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
]  # fmt: skip
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_6 = list(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_PRIVATE = [
    ipaddress.ip_network(network)
    for network in (
        "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128",
        "fc00::/7",
    )
]  # fmt: skip
"""Where machines of one's own are; the other special networks hold nothing to connect to."""

_METADATA = [
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",  # Amazon, Azure, Google, Oracle, IBM, DigitalOcean, Hetzner, Scaleway and more
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure's wire server, among public addresses
        "192.0.0.192/32",  # Oracle
        "fe80::/10",
        "fd00:ec2::/32",  # Amazon
        "fd20:ce::/32",  # Google
        "fd00:42::/32",  # Scaleway
        "fd00:a9fe:a9fe::/48",  # Akamai
    )
]
_METADATA_HOSTS = frozenset(
    int(ipaddress.IPv4Address(host))
    for host in (
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.42.42", "100.100.100.200",
        "168.63.129.16", "192.0.0.192",
    )
)  # fmt: skip
_METADATA_NAMES = frozenset({
    "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
    "metadata.ec2.internal", "metadata.azure.internal", "metadata.azure.com", "metadata.oraclecloud.com",
    "metadata.tencentyun.com", "metadata.platformequinix.com", "api.metadata.cloud.ibm.com",
    "metadata.packet.net",
})  # fmt: skip

# IPv6 networks whose addresses contain the IPv4 address that packets finally go to, and its bit offset.
_EMBEDDING = [
    (ipaddress.IPv6Network(network), shift)
    for network, shift in (
        ("::/96", 0), ("::ffff:0:0:0/96", 0), ("64:ff9b::/96", 0), ("64:ff9b:1::/48", 0), ("2002::/16", 80),
        ("2001::/32", 64),
    )
]  # fmt: skip
_TEREDO = ipaddress.IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)


def parse_networks(names: Iterable[str]) -> tuple[Network, ...]:
    """Networks from their names, such as 127.0.0.0/8."""
    if isinstance(names, str):
        raise InvalidInput(f"networks are a list, so write [{names!r}]")
    try:
        return tuple(ipaddress.ip_network(name) for name in names)
    except ValueError as error:
        raise InvalidInput(f"{error}; write a network such as 127.0.0.0/8 or ::1/128") from error


def parse_address(text: str) -> Address | None:
    """An address from its usual spelling; None if it is not one."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


async def resolve_host(host: str, port: int) -> list[str]:
    """The addresses of a host name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_metadata_name(host: str) -> bool:
    """Whether a name is that of a cloud's metadata service, whatever it resolves to here."""
    return host.rstrip(".").lower() in _METADATA_NAMES


def is_allowed(address: Address, allowed: Sequence[Network] = ()) -> bool:
    """Whether an address is public, or in one of the networks that are allowed all the same."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return is_allowed(address.ipv4_mapped, allowed)
    naming = [network for network in allowed if address.version == network.version and address in network]
    if any(network.prefixlen == network.max_prefixlen for network in naming):
        return True
    if _is_metadata(address) or not all(is_allowed(inner, allowed) for inner in _find_embedded(address)):
        return False
    return bool(naming) or _is_public(address)


def is_private(address: Address) -> bool:
    """Whether an address is this machine or one of a private network, and no metadata service."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return is_private(address.ipv4_mapped)
    if _is_metadata(address) or any(map(_is_metadata, _find_embedded(address))):
        return False
    return any(address.version == network.version and address in network for network in _PRIVATE)


def find_in_hosts(host: str) -> list[str]:
    """The addresses that this machine's own file of hosts gives a name; no server is asked."""
    try:
        with open(HOSTS, encoding="utf-8", errors="replace") as file:
            lines = [line.partition("#")[0].split() for line in file.read(1 << 20).split("\n")]
    except OSError:
        return []
    named = [line[0] for line in lines if host in (name.lower() for name in line[1:])]
    return [address for address in dict.fromkeys(named) if parse_address(address) is not None]


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    return address in _PUBLIC_6 and not any(address in network for network in _SPECIAL_6)


def _is_metadata(address: Address) -> bool:
    if address.version == 6 and int(address) & 0xFFFFFFFF in _METADATA_HOSTS:
        return True  # a translator may have any prefix
    return any(address.version == network.version and address in network for network in _METADATA)


def _find_embedded(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """The IPv4 addresses inside an IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address) or int(address) <= 1:
        return
    number = int(address)
    for network, shift in _EMBEDDING:
        if address in network:
            yield ipaddress.IPv4Address(number >> shift & 0xFFFFFFFF)
    if address in _TEREDO:
        yield ipaddress.IPv4Address(~number & 0xFFFFFFFF)
    if number >> 32 & 0xFFFFFFFF in _ISATAP:
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
