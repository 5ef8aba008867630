"""Names that are looked for at every depth, however they are spelled.

File systems of macOS and Windows ignore case, compare Unicode in one normal form and drop characters, and a
workspace may lie on one of them (a mounted disk, WSL). swink uses it before a command and the supervisor
after it, so it imports nothing of swink.
"""

_NONE: frozenset[str] = frozenset()
_HEXADECIMAL = frozenset("0123456789abcdef")


class Names:
    """A list of names (`.vscode`), endings (`*.code-workspace`) and paths (`.config/autostart`).

    In the directories called `stores` only listed paths count; `pointers` are paths that count as files.
    """

    def __init__(
        self, entries: tuple[str, ...], stores: tuple[str, ...] = (), pointers: tuple[str, ...] = ()
    ) -> None:
        self.plain = (entries, stores, pointers)
        self._names = frozenset([fold(entry) for entry in entries if "/" not in entry])
        self._stores = frozenset(stores)
        self._pointers = frozenset([path.rpartition("/")[2] for path in pointers])
        inside: dict[str, set[str]] = {}
        for entry in (*entries, *pointers):
            above, slash, name = entry.rpartition("/")
            if slash:
                inside.setdefault("/".join(map(fold, above.split("/"))), set()).add(fold(name))
        self._inside = {above: frozenset(names) for above, names in inside.items()}
        self._with_names = {above: self._names | names for above, names in self._inside.items()}

    def expected_in(self, directory: str) -> frozenset[str]:
        """The names that count in a directory, for `match`; its path is relative to the workspace."""
        parts = [fold(part) for part in directory.strip("/").split("/")]
        found = self._names if self._stores.isdisjoint(parts) else _NONE
        known = self._with_names if found else self._inside
        return known.get("/".join(parts[-2:])) or known.get(parts[-1]) or found

    def match(self, name: str, expected: frozenset[str], is_directory: bool) -> bool:
        """Whether a name is one of those that count."""
        plain = name.isascii() and name[-1:] not in (".", " ") and ":" not in name
        folded = name.lower() if plain else fold(name)  # a call less for each file of a large workspace
        if folded in expected:
            return not (is_directory and folded in self._pointers)
        at = folded.rfind(".")
        if at > 0 and "*" + folded[at:] in expected:
            return True
        return "~" in folded and _is_short(folded, expected)

    def find(self, path: str) -> bool:
        """Whether a path, relative to the workspace, is listed or lies in something that is."""
        parts = path.replace("\\", "/").strip("/").split("/")
        return any(
            self.match(part, self.expected_in("/".join(parts[:at])), at + 1 < len(parts))
            for at, part in enumerate(parts)
        )


def fold(name: str) -> str:
    """A name as the least exact of all file systems compares it."""
    if name.isascii():
        name = name.lower()
    else:
        import unicodedata  # rarely needed, and every import delays every command

        kept = [char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf"]
        name = "".join(kept).casefold()
    if name[-1:] in (".", " ") or ":" in name:
        name = name.partition(":")[0].rstrip(". ") or name
    return name


def _is_short(name: str, expected: frozenset[str]) -> bool:
    """Whether it may be the short form that NTFS gives to a listed name: `GIT~1`, or `GI7EBA~1`."""
    stem, _, number = name.partition("~")
    if not stem or not number[:1].isdigit():
        return False
    shortened = [listed.replace(".", "")[:6] for listed in expected if listed[0] != "*"]
    return stem in shortened or (
        len(stem) == 6 and _HEXADECIMAL.issuperset(stem[2:]) and any(one[:2] == stem[:2] for one in shortened)
    )
