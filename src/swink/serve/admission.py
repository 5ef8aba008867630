"""Which models a client may ask for: those the server was set up to serve, and no paths or downloads."""

import re

from swink.errors import UnknownModel
from swink.messages import ModelSpec
from swink.stream import StreamFn
from swink.system.threads import in_thread

_PROVIDER = re.compile(r"[\w.-]{1,64}")
_MODEL = re.compile(r"[\w.:/@+~,=() -]{1,256}")


def is_name(model: ModelSpec) -> bool:
    """Whether this can be the name of a model, and not a path that leads out of a provider's models."""
    segments = model.model_id.split("/")
    return bool(
        _PROVIDER.fullmatch(model.provider)
        and _MODEL.fullmatch(model.model_id)
        and not {"", ".", ".."} & set(segments)
    )


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
