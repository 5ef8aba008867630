"""The keys that this process has sent to somebody: what is kept of a conversation does not hold them."""

LONG = 12
"""Characters of a key that can be told from an ordinary word; a made-up key of a local server may be one."""
_MOST = 100

_sent: dict[str, None] = {}


def hold(key: str) -> None:
    """Remember a key; only the last ones are, where every user brings one."""
    if key not in _sent:
        _sent[key] = None
        while len(_sent) > _MOST:
            _sent.pop(next(iter(_sent)), None)


def sent_keys() -> list[str]:
    """The keys, as far as they are long enough to be found."""
    return [key for key in list(_sent) if len(key) >= LONG]
