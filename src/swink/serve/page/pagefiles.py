"""The files of the page as they stand in the package, and the headers that keep it to itself."""

from functools import cache
from importlib.resources import files

from msgspec import Struct

from swink.serve.wire import Refused

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
PAGE_HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""What the page may do: load its own files, talk to its own server, and run no text as a program."""
_KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class PageFile(Struct, frozen=True):
    """A file of the page and its content type."""

    body: bytes
    kind: str


def page_file(name: str) -> PageFile:
    """A file of the page by its name; `Refused` if there is none."""
    if (found := _all().get(name)) is None:
        raise Refused(404, "the page has no such file")
    return found


@cache
def _all() -> dict[str, PageFile]:
    """They are few and small: read once, so that no request names a path of the disk."""
    place = files("swink.serve.page") / "static"
    return {
        entry.name: PageFile(entry.read_bytes(), _KINDS[entry.name.rpartition(".")[2]])
        for entry in place.iterdir()
        if entry.name.rpartition(".")[2] in _KINDS
    }
