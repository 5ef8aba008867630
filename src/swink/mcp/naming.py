"""Names for the tools of many servers: `server_tool`, valid for every provider, each unique.

    files + read      →  files_read
    read + file       →  read_file_5f1c09d2     if another tool is named read_file
    git + hub_issue   →  git_hub_issue_77b0e1a4 if a server `git_hub` might name one of its tools so

Which tools other servers list at the moment has no say in it: a name stays the same from turn to turn and
from run to run, so that what was allowed by name is allowed to that tool.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable

from swink.tools import FINAL_OUTPUT

LENGTH = 64


def tool_names(
    pairs: Iterable[tuple[str, str]], servers: Iterable[str] = (), taken: Collection[str] = ()
) -> dict[tuple[str, str], str]:
    """A name per (server, tool); one that is too long, or may be another's, ends in a hash of both parts.

    `servers` names those that have tools of their own, beside those in the pairs; `taken` are the names of
    tools that are no servers'.
    """
    listed = list(dict.fromkeys(pairs))
    plain = {pair: plain_name(*pair) for pair in listed}
    shared = Counter((server, name) for (server, _), name in plain.items())
    heads = Counter(f"{_valid(server)}_" for server in {*servers, *(server for server, _ in listed)})
    used = {FINAL_OUTPUT, *taken}
    names: dict[tuple[str, str], str] = {}
    for pair, name in plain.items():
        own = f"{_valid(pair[0])}_"
        is_own = heads[own] == 1 and not any(len(head) > len(own) and name.startswith(head) for head in heads)
        if is_own and shared[pair[0], name] == 1 and len(name) <= LENGTH and name not in used:
            names[pair] = name
    used |= set(names.values())
    for pair in listed:
        if pair not in names:
            names[pair] = _hashed(plain[pair], pair, used)
            used.add(names[pair])
    return names


def plain_name(server: str, tool: str) -> str:
    """The name of a server's tool, if it is neither too long nor another's."""
    return _valid(f"{server}_{tool}")


def _valid(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _hashed(name: str, pair: tuple[str, str], used: set[str]) -> str:
    digest = hashlib.sha256("\0".join(pair).encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(8, LENGTH):
        candidate = f"{name[: LENGTH - length - 1]}_{digest[:length]}"
        if candidate not in used:
            return candidate
    return digest
