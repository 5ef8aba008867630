r"""Web addresses that a server wants a person to open, and the browser that opens them.

Browsers read addresses by other rules than Python does: `\` is `/`, line ends are dropped, `%2e` in a host is
a dot, 0x7f.1 is 127.0.0.1. So an address is taken only if there is one way to read it, and is written anew in
plain ASCII: what is shown is what is opened.
"""

import ipaddress
import os
import re
import subprocess
import sys
import threading
import unicodedata
from urllib.parse import quote

from swink.errors import InvalidInput
from swink.system.programs import NEUTRAL, environment, python_module

_MOST = 8_000
_LONGEST_HOST = 253
_PARTS = re.compile(r"(https?)://([^/?#]+)([/?#].*)?", re.I)
_PORT = re.compile(r"(.*):([0-9]{1,5})")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORTS = {"https": 443, "http": 80}
_KEPT = "!#$%&'()*+,/:;=?@[]~"
"""What stays as it is after the host, beside letters, digits and `-._`."""


def web_address(text: str) -> str:
    """The address in plain ASCII, its host as name servers get it; raises `InvalidInput` for a trick."""
    if any(unicodedata.category(char)[0] in "CZ" for char in text):
        raise InvalidInput("an address with spaces, control or invisible characters is not opened")
    if "\\" in text:
        raise InvalidInput("an address with a backslash is not opened: browsers take it for a slash")
    found = _PARTS.fullmatch(text)
    if found is None:
        raise InvalidInput("only https:// and http:// addresses are opened")
    if len(text) > _MOST:
        raise InvalidInput(f"an address of more than {_MOST:,} characters is not opened")
    scheme, place, rest = found[1].lower(), found[2], found[3] or ""
    if "@" in place:
        raise InvalidInput("an address with a user name before its host is not opened")
    split = _PORT.fullmatch(place)
    host, port = (place, None) if split is None else (split[1], int(split[2]))
    if port is not None and not 0 < port < 65_536:
        raise InvalidInput(f"an address with the port {port} is not opened")
    shown = "" if port is None or port == _PORTS[scheme] else f":{port}"
    return f"{scheme}://{_host(host)}{shown}{quote(rest, safe=_KEPT)}"


def open_browser(url: str) -> bool:
    """Begin to show a page; False where no browser has a window of its own."""
    variables = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    windowed = sys.platform in ("darwin", "win32") or any(map(os.environ.get, variables))
    if windowed:
        # A process of its own: some browsers write to the terminal, others end only with their window.
        threading.Thread(target=_show, args=(url,), name="swink-browser", daemon=True).start()
    return windowed


def _show(url: str) -> None:
    # It looks for browsers on the PATH, which has no place of the workspace here.
    python_module("webbrowser", "-t", url, cwd=NEUTRAL, env=environment()).run(stdout=subprocess.DEVNULL)


def _host(host: str) -> str:
    """A host in one spelling: lower case, punycode, no dot at its end."""
    try:
        if host.startswith("[") and host.endswith("]") and "%" not in host:
            return f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
        if len(host) > _LONGEST_HOST or not all(map(_may_be_in_a_name, host)):
            raise ValueError
        labels = host.encode("idna").decode().lower().removesuffix(".").split(".")
        if not all(map(_LABEL.fullmatch, labels)):
            raise ValueError
        for label in labels:
            label.encode().decode("idna")  # a browser refuses what is no punycode
        # The end of a host decides: browsers take every other spelling of a number for an address too.
        if _NUMBER.fullmatch(labels[-1]):
            return str(ipaddress.IPv4Address(".".join(labels)))
        return ".".join(labels)
    except ValueError:
        raise InvalidInput(f"{host[:100]!r} is no host name that is opened") from None


def _may_be_in_a_name(char: str) -> bool:
    """Whether it is ASCII, a letter, a mark, a digit, or one of the dots of other alphabets."""
    return char.isascii() or unicodedata.category(char)[0] in "LMN" or char in "\u3002\uff0e\uff61"
