"""git's repositories and configuration files: their settings, and which of them are harmless."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HARMLESS = {
    "core": "repositoryformatversion filemode bare logallrefupdates symlinks ignorecase precomposeunicode "
    "autocrlf eol safecrlf sparsecheckout sparsecheckoutcone longpaths worktree quotepath abbrev "
    "bigfilethreshold",
    "extensions": "objectformat refstorage compatobjectformat partialclone",
    "remote": "url pushurl fetch push tagopt promisor partialclonefilter prune mirror skipfetchall",
    "branch": "remote merge rebase pushremote description",
    "submodule": "url active branch path",
    "user": "name email",
    "author": "name email",
    "committer": "name email",
    "init": "defaultbranch",
    "pull": "rebase ff",
    "push": "default autosetupremote",
    "fetch": "prune parallel",
    "merge": "ff conflictstyle",
    "commit": "gpgsign",
    "rerere": "enabled",
    "gc": "auto",
}


def read_settings(text: str) -> "Iterator[tuple[str, str]]":
    """The settings as (section.name in small letters, value); what is not understood has an empty name."""
    section = ""
    for line in _join_lines(text):
        line = line.strip().lstrip("\ufeff")
        while line.startswith("["):
            end = _find_header_end(line)
            if end < 0:
                yield "", line
                break
            header = line[1:end].strip()
            section = header.split(None, 1)[0].partition(".")[0].casefold() if header else ""
            line = line[end + 1 :].strip()
        if not line or line[0] in "#;[":
            continue
        name, _, value = line.partition("=")
        name = name.strip().casefold()
        known = name.replace("-", "").isalnum() and name.isascii()
        yield (f"{section}.{name}" if known else ""), _unquote(value)


def is_harmless(key: str, value: str) -> bool:
    """Whether a setting makes git run nothing and contact nobody that it would not otherwise."""
    section, _, name = key.partition(".")
    return name in _HARMLESS.get(section, "").split() and not value.startswith("-") and "::" not in value


def is_repository(names: set[str]) -> bool:
    """Whether git takes a directory with these names for a repository, or for a part of one (`commondir`)."""
    return {"objects", "refs"} <= names or {"HEAD", "commondir"} <= names


def _join_lines(text: str) -> "Iterator[str]":
    """The lines, joined after a backslash that is neither escaped nor in a comment."""
    parts: list[str] = []
    quoted = False
    for line in text.split("\n"):
        line = line[:-1] if line.endswith("\r") else line
        goes_on, quoted = _ends_open(line, quoted)
        parts.append(line[:-1] if goes_on else line)
        if not goes_on:
            yield "".join(parts)
            parts, quoted = [], False
    if parts:
        yield "".join(parts)


def _ends_open(line: str, quoted: bool) -> tuple[bool, bool]:
    """Whether a line goes on with the next, and whether in quotes."""
    escaped = False
    for char in line:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            return False, False
    return escaped, quoted


def _find_header_end(line: str) -> int:
    """Where the bracket closes that opens the line; one in quotes does not count."""
    quoted = False
    at = 1
    while at < len(line):
        if line[at] == "\\":
            at += 1
        elif line[at] == '"':
            quoted = not quoted
        elif line[at] == "]" and not quoted:
            return at
        at += 1
    return -1


def _unquote(value: str) -> str:
    """The value without quotes, escapes and comment."""
    kept: list[str] = []
    quoted = False
    escaped = False
    for char in value.strip():
        if escaped:
            kept.append({"n": "\n", "t": "\t", "b": "\b"}.get(char, char))
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            kept.append(char)
    return "".join(kept).strip()
