"""Names for the tools of many servers: `server_tool`, valid for every provider, each unique."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

LENGTH = 64


def tool_names(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A name per (server, tool); one that is too long or not unique ends in a hash of both parts."""
    listed = list(dict.fromkeys(pairs))
    plain = {pair: re.sub(r"[^A-Za-z0-9_-]", "_", "_".join(pair)) for pair in listed}
    shared = Counter(plain.values())
    names: dict[tuple[str, str], str] = {
        pair: name for pair, name in plain.items() if shared[name] == 1 and len(name) <= LENGTH
    }
    taken = set(names.values())
    for pair in listed:
        if pair not in names:
            names[pair] = _hashed(plain[pair], pair, taken)
            taken.add(names[pair])
    return names


def _hashed(name: str, pair: tuple[str, str], taken: set[str]) -> str:
    digest = hashlib.sha256("\0".join(pair).encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(8, LENGTH):
        candidate = f"{name[: LENGTH - length - 1]}_{digest[:length]}"
        if candidate not in taken:
            return candidate
    return digest
