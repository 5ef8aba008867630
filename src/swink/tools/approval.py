"""Which shell commands may run without asking: well-known ones that only look, inside the workspace.

Nothing here keeps a command from doing harm: that is the sandbox's work. It spares a person the questions whose answer is
always yes. Whatever is not understood completely asks.
"""

import re
import shlex
from collections.abc import Callable, Mapping

_PLAIN = frozenset({
    "ls", "pwd", "echo", "cat", "head", "tail", "wc", "stat", "du", "df", "basename", "dirname", "readlink", "realpath", "true",
    "false", "test", "cut", "tr", "nl", "tac", "rev", "cmp", "comm", "diff", "grep", "egrep", "fgrep", "md5sum", "sha1sum", "sha256sum",
    "sha512sum", "cksum", "seq", "printf", "whoami", "id", "uname", "which", "type", "nproc", "arch", "uptime", "expr", "fold", "paste",
    "od", "hexdump", "strings",
})  # fmt: skip

_OPTIONS: Mapping[str, re.Pattern[str]] = {
    "sort": re.compile(
        r"-[bdfghiMnRrVucsz]+|-k[\d.,a-zA-Z]*|-t.?|--(?:numeric-sort|reverse|unique|key=.*|human-numeric-sort|version-sort|ignore-case)|[^-].*"
    ),
    "uniq": re.compile(r"-[cdDiuz]+|--(?:count|repeated|unique|ignore-case)"),
    "tree": re.compile(r"-[adfisDughpC]+|-L|-I|-P|--(?:dirsfirst|noreport|prune|gitignore)|[^-].*"),
    "date": re.compile(r"-u|-I.*|-R|--(?:utc|iso-8601.*|rfc-3339=.*)|\+.*"),
    "file": re.compile(r"-[bihLz]+|--(?:brief|mime.*)|[^-].*"),
    "find": re.compile(
        r"-(?:name|iname|path|ipath|regex|iregex|type|maxdepth|mindepth|size|newer|mtime|mmin|ctime|atime|empty|not|o|or|a|and|prune|print|print0|ls|"
        r"user|group|perm|links|depth|mount|xdev|true|false|readable|writable|executable)|!|[^-].*"
    ),
    "rg": re.compile(
        r"-[ilnNcwvFUuHIoSsLxaqp]+|-[ABCegtTmj]\d*|-[ABC]\d+|--(?:files|hidden|no-ignore|type=.*|glob=.*|line-number|ignore-case|files-with-matches|count|"
        r"word-regexp|fixed-strings|multiline|json|no-heading|heading|max-count=\d+|context=\d+|sort=\w+|only-matching|stats|color=never)|[^-].*"
    ),
}

_GIT = frozenset({
    "status", "log", "diff", "show", "blame", "shortlog", "describe", "rev-parse", "ls-files", "ls-tree", "rev-list", "cat-file",
    "show-ref", "name-rev", "merge-base",
})  # fmt: skip
_GIT_OPTION = re.compile(
    r"-\d+|-[abcCefhlMnpqRrsStuvwxz]+|-sb|-U\d+|-L.*|-n\d*|--|--(?:oneline|stat|shortstat|numstat|name-only|name-status|cached|staged|short|branch|porcelain(?:=.*)?|"
    r"graph|all|decorate|patch|no-color|no-pager|pretty(?:=.*)?|format=.*|since=.*|until=.*|after=.*|before=.*|author=.*|grep=.*|max-count=\d+|follow|reverse|"
    r"merges|no-merges|first-parent|abbrev-commit|abbrev-ref|show-toplevel|show-current|verify|is-inside-work-tree|git-dir|word-diff(?:=.*)?|no-index|minimal|"
    r"ignore-all-space|ignore-space-change|summary|dirstat|tags|always|dirty|long|others|exclude-standard|modified|deleted|untracked-files(?:=.*)?|no-ext-diff|"
    r"no-textconv|count|left-right|cherry-pick|date=.*|relative-date|topo-order|date-order|no-renames|find-renames|color=never)|[^-].*"
)
_GIT_LISTS: Mapping[str, re.Pattern[str]] = {
    "branch": re.compile(r"-[avr]+|-vv|--(?:all|list|show-current|remotes|merged|no-merged|contains|no-color)"),
    "remote": re.compile(r"-v"),
    "tag": re.compile(r"-l|--list|-n\d*"),
    "stash": re.compile(r"list"),
    "config": re.compile(r"--get|--list|-l|--get-all|[\w.-]+"),
}

_STRANGE = frozenset("`$\n\r\\<>(){}!#*?[]~")
_OUTSIDE = re.compile(r"(?:^|=|^-\w)(?:/|~)|(?:^|/|=)\.\.(?:/|$)")


def only_looks(command: str, *, inside: Callable[[str], bool]) -> bool:
    """Whether every part of a shell command is known to do nothing but look, at places that `inside` says are the workspace's."""
    commands = _simple_commands(command)
    return bool(commands) and all(_is_harmless(words, inside) for words in commands)


def _simple_commands(command: str) -> list[list[str]] | None:
    """The words of each command between `&&`, `||`, `;` and `|`; None if there is anything but plain words and quotes."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    if _reads_more_than_words(command):
        return None
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    commands: list[list[str]] = [[]]
    for token in tokens:
        if token in ("&&", "||", ";", "|"):
            commands.append([])
        elif token and not set(token) - set("();<>|&"):
            return None
        else:
            commands[-1].append(token)
    return commands if all(commands) else None


def _reads_more_than_words(command: str) -> bool:
    """Whether a shell would see more in the command than words, quotes and the connectives."""
    quote = ""
    for char in command:
        if quote == "'":
            quote = "" if char == "'" else quote
        elif quote == '"':
            if char in "$`\\!":  # special in double quotes too
                return True
            quote = "" if char == '"' else quote
        elif char in "'\"":
            quote = char
        elif char in _STRANGE:
            return True
    return bool(quote)


def _is_harmless(words: list[str], inside: Callable[[str], bool]) -> bool:
    program, arguments = words[0], words[1:]
    if any(_OUTSIDE.search(word) or (not word.startswith("-") and not inside(word)) for word in arguments):
        return False
    if program == "git":
        return _is_harmless_git(arguments)
    if program in _PLAIN:
        return True
    known = _OPTIONS.get(program)
    return known is not None and all(known.fullmatch(word) for word in arguments)


def _is_harmless_git(arguments: list[str]) -> bool:
    if arguments[:1] == ["--no-pager"]:
        arguments = arguments[1:]
    if not arguments:
        return False
    subcommand, rest = arguments[0], arguments[1:]
    if subcommand in _GIT:
        return all(_GIT_OPTION.fullmatch(word) for word in rest)
    known = _GIT_LISTS.get(subcommand)
    if known is None or not all(known.fullmatch(word) for word in rest):
        return False
    # Without a word these two do something else than list.
    return rest[:1] == ["list"] if subcommand == "stash" else subcommand != "config" or "".join(rest[:1]).startswith("-")
