"""Admission: which clients may ask a server, and for which models.

A server without a key answers programs on this machine and no web page. A page anywhere can make a browser
send requests to this machine: the browser names the page in `Origin`, and a name that the page's owner points
at this machine (DNS rebinding) stands in `Host`.
"""

import re
from collections.abc import Iterable

from swink.errors import UnknownModel
from swink.messages import ModelSpec
from swink.serve.wire import Refused
from swink.stream import StreamFn
from swink.stream.urls import is_loopback
from swink.system.threads import in_thread

_PROVIDER = re.compile(r"[\w.-]{1,64}")
_MODEL = re.compile(r"[\w.:/@+~,=() -]{1,256}")

_WHY = "this server has no key, so only programs on this machine may ask"
_REMEDY = f"{_WHY}; serve with a key to let others in"


def check_visitor(headers: Iterable[tuple[bytes, bytes]], scheme: str) -> None:
    """Refuse a request that is for another host than this machine, or comes from a web page elsewhere."""
    listed = [(name.lower(), value.decode("latin-1").strip().lower()) for name, value in headers]
    hosts = [value for name, value in listed if name == b"host"]
    if len(hosts) != 1 or not is_loopback(_without_port(hosts[0])):
        raise Refused(403, f"the header Host is not 127.0.0.1, [::1] or localhost: {_REMEDY}")
    if any(name == b"origin" and value != f"{scheme}://{hosts[0]}" for name, value in listed):
        raise Refused(403, f"the header Origin names a web page: {_REMEDY}")


def check_json(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a body that is not said to be JSON: a page may send any other without being asked for leave."""
    kinds = [value for name, value in headers if name.lower() == b"content-type"]
    if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
        raise Refused(415, "send JSON, with the header Content-Type: application/json")


def is_name(model: ModelSpec) -> bool:
    """Whether this can be the name of a model, and not a path that leads out of a provider's models."""
    leads_out = {"", ".", ".."} & set(model.model_id.split("/"))
    fits = _PROVIDER.fullmatch(model.provider) and _MODEL.fullmatch(model.model_id)
    return bool(fits and not leads_out)


async def is_served(stream_fn: StreamFn, model: ModelSpec, listed: bool) -> bool:
    """Whether a client may ask for the model; `listed` if the server's configuration names it in full.

    A local model must be one that the server has or names: clients can cause no downloads and read no paths.
    """
    in_process = type(stream_fn).__module__.startswith("swink.local")
    if model.provider != "local" and not in_process:
        return True
    return await in_thread(_is_local_model, model.model_id, listed, in_process)


def _is_local_model(name: str, listed: bool, must_be_here: bool) -> bool:
    from swink.local import KNOWN, locate, models

    here = {model.name for model in models() if model.path is not None}
    if name in here:
        return True
    if not must_be_here:
        return listed or name in KNOWN
    try:
        path = locate(name) if listed else None
    except UnknownModel:
        return False
    return path is not None and path.exists()


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and not name.endswith(":") else host
