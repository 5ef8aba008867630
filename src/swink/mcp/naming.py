"""Names for the tools of many servers: `server_tool`, valid for every provider, each unique.

    files + read      →  files_read
    read + file       →  read_file_5f1c09d2     if another tool is named read_file
    git + hub_issue   →  git_hub_issue_77b0e1a4 if a server `git_hub` might name one of its tools so

Which tools other servers list at the moment has no say in it: a name stays the same from turn to turn and
from run to run, so that what was allowed by name is allowed to that tool. Two tools of one server whose names
look alike both end in a hash; if one of them was there first, only the later one does.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from swink.tools import FINAL_OUTPUT

LENGTH = 64


def tool_names(
    pairs: Iterable[tuple[str, str]],
    servers: Iterable[str] = (),
    taken: Collection[str] = (),
    before: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> dict[tuple[str, str], str]:
    """A name per (server, tool); one that is too long, or may be another's, ends in a hash of both parts.

    Names that differ in capitals alone count as one. `servers` names those that have tools of their own,
    beside those in the pairs; `taken` are the names of tools that are no servers'. Whoever has a name
    `before` keeps it, as long as it is no other server's and not taken; also while it is not listed.
    """
    listed = list(dict.fromkeys(pairs))
    plain = {pair: plain_name(*pair) for pair in listed}
    shared = Counter((server, name.casefold()) for (server, _), name in plain.items())
    every = {*servers, *(server for server, _ in listed), *(server for server, _ in before)}
    heads = Counter(_head(server) for server in every)
    theirs = {FINAL_OUTPUT.casefold(), *(name.casefold() for name in taken)}
    kept = {
        pair: name
        for pair, name in before.items()
        if name.casefold() not in theirs and (name != plain_name(*pair) or _is_own(pair[0], name, heads))
    }
    used = theirs | {name.casefold() for name in kept.values()}
    names = {pair: kept[pair] for pair in listed if pair in kept}
    for pair, name in plain.items():
        is_alone = shared[pair[0], name.casefold()] == 1 and _is_own(pair[0], name, heads)
        if pair not in names and is_alone and len(name) <= LENGTH and name.casefold() not in used:
            names[pair] = name
    used |= {name.casefold() for name in names.values()}
    for pair in listed:
        if pair not in names:
            names[pair] = _hashed(plain[pair], pair, used)
            used.add(names[pair].casefold())
    return names


def _head(server: str) -> str:
    return f"{_valid(server)}_".casefold()


def _is_own(server: str, name: str, heads: Mapping[str, int]) -> bool:
    """Whether no other server can have a tool whose plain name is this one."""
    own, folded = _head(server), name.casefold()
    return heads[own] == 1 and not any(len(head) > len(own) and folded.startswith(head) for head in heads)


def plain_name(server: str, tool: str) -> str:
    """The name of a server's tool, if it is neither too long nor another's."""
    return _valid(f"{server}_{tool}")


def _valid(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _hashed(name: str, pair: tuple[str, str], used: set[str]) -> str:
    digest = hashlib.sha256("\0".join(pair).encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(8, LENGTH):
        candidate = f"{name[: LENGTH - length - 1]}_{digest[:length]}"
        if candidate.casefold() not in used:
            return candidate
    return digest
