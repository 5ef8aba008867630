"""The log of the tools: what a person should know although the tools go on."""

import logging

log = logging.getLogger("swink.tools")

_warned: set[str] = set()


def warn_once(text: str) -> None:
    """Log a warning, unless this program has logged the same one before."""
    if text not in _warned:
        _warned.add(text)
        log.warning("%s", text)
