"""Git views: the git commands that only look, each with the options that keep it so."""

import os
import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from swink.tools.coding.credentials import suspect
from swink.tools.coding.gitsecrets import GitQuestion, prints_secrets
from swink.tools.coding.options import Arguments, OptionTable, declare_options, read_arguments
from swink.tools.coding.repository import is_quiet
from swink.tools.coding.shellcontext import ShellContext

_DIFF = (
    "-abcmpqrRstuwWz -U=number -S=text -G=text -M?=text -C?=text -B?=text --patch --no-patch --stat?=text "
    "--shortstat --numstat --dirstat?=text --summary --name-only --name-status --raw --check --cached "
    "--staged --merge-base --color?=text --no-color --color-words?=text --word-diff?=text "
    "--word-diff-regex=text --color-moved?=text --unified=number --inter-hunk-context=number "
    "--function-context --minimal --patience --histogram --diff-algorithm=text --no-renames "
    "--find-renames?=text --find-copies?=text --find-copies-harder --diff-filter=text --abbrev?=number "
    "--full-index --binary --text --ignore-all-space --ignore-space-change --ignore-space-at-eol "
    "--ignore-blank-lines --ignore-cr-at-eol --exit-code --quiet --no-ext-diff --no-textconv --no-prefix "
    "--src-prefix=text --dst-prefix=text --pickaxe-all --pickaxe-regex --relative?=text --no-relative "
    "--compact-summary --patch-with-stat --no-indent-heuristic --ignore-submodules?=text --cc "
    "--stat-width=number --stat-count=number --base --ours --theirs"
)
_LOG = (
    _DIFF + " -giEFP -# -n=number -L=text --oneline --graph --all --decorate?=text --no-decorate "
    "--decorate-refs=text --pretty?=text --format=text --since=text --until=text --after=text "
    "--before=text --author=text --committer=text --grep=text --all-match --invert-grep "
    "--regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --max-count=number "
    "--skip=number --follow --reverse --merges --no-merges --first-parent --min-parents=number "
    "--max-parents=number --abbrev-commit --no-abbrev-commit --no-abbrev --date=text --relative-date "
    "--topo-order --date-order --author-date-order --branches?=text --tags?=text --remotes?=text "
    "--glob=text --exclude=text --left-right --left-only --right-only --cherry-pick --cherry-mark "
    "--cherry --walk-reflogs --simplify-by-decoration --full-history --ancestry-path --boundary --source "
    "--log-size --notes?=text --no-notes --no-mailmap --mailmap --use-mailmap --full-diff --not "
    "--no-walk?=text --parents --children --count --root --encoding=text --no-expand-tabs"
)
_REF_LIST = (
    "--contains=text --no-contains=text --merged?=text --no-merged?=text --points-at=text --sort=text "
    "--format=text --color?=text --no-color --column?=text --no-column --ignore-case"
)

_SETTINGS = frozenset({
    "user", "core", "remote", "branch", "init", "pull", "push", "diff", "merge", "color", "log", "status",
    "commit", "tag", "alias",
})  # fmt: skip
_ONE_SECTION = re.compile(r"\^[a-z]+\\?\.[\w.*\\-]*\$?", re.I)
"""A pattern for names of settings that matches those of one section alone."""
_SIGNATURE = re.compile(r"%[-+ ]?G|signature")

_PATCH = (
    "-p", "-u", "-U", "-c", "-m", "-L", "-W", "--patch", "--unified", "--cc", "--check", "--binary",
    "--word-diff", "--word-diff-regex", "--color-words", "--function-context", "--inter-hunk-context",
    "--patch-with-stat",
)  # fmt: skip
"""Options with which a command that compares prints lines of the files."""
_NO_PATCH = (
    "-s", "--no-patch", "--stat", "--shortstat", "--numstat", "--dirstat", "--summary", "--name-only",
    "--name-status", "--raw", "--quiet", "-q", "--compact-summary",
)  # fmt: skip
"""Options instead of a patch."""


def _always(arguments: Arguments) -> bool:
    return True


def _with_patch(arguments: Arguments) -> bool:
    return arguments.has(*_PATCH)


def _without_summary(arguments: Arguments) -> bool:
    return arguments.has(*_PATCH) or not arguments.has(*_NO_PATCH)


def _no_operand(arguments: Arguments) -> bool:
    return not arguments.operands


def _only_lists(arguments: Arguments) -> bool:
    """branch and tag create one with the name they are given, unless an option makes them list."""
    wanted = ("--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
    return not arguments.operands or arguments.has(*wanted)


def _reads_a_setting(arguments: Arguments) -> bool:
    """config: one value of the repository, or all of them; never a list that shows the user's own."""
    if arguments.has("--list", "-l"):
        return arguments.has("--local") and not arguments.operands
    named = "".join(arguments.operands)
    searches_all = arguments.has("--get-regexp") and not arguments.has("--local")
    if len(arguments.operands) != 1 or (searches_all and not _ONE_SECTION.fullmatch(named)):
        return False
    return re.split(r"\\?\.", named.removeprefix("^"))[0].lower() in _SETTINGS


class GitView(Struct, frozen=True):
    """A git command's options, and a condition on the rest."""

    options: OptionTable
    also: Callable[[Arguments], bool]
    paths: Callable[[Arguments], Sequence[str]]
    """The operands that may be paths."""
    shows: Callable[[Arguments], bool]
    """Whether it prints what is in files, and not only names, numbers and messages."""

    @property
    def is_free(self) -> bool:
        """Whether its options alone keep it from doing more, whatever the operands are."""
        return self.also is _always


def _after_pattern(arguments: Arguments) -> Sequence[str]:
    return arguments.operands if arguments.has("-e") else arguments.operands[1:]


def _view(
    options: str,
    also: Callable[[Arguments], bool] = _always,
    paths: Callable[[Arguments], Sequence[str]] = lambda arguments: arguments.operands,
    shows: Callable[[Arguments], bool] = lambda arguments: False,
) -> GitView:
    return GitView(declare_options(options, permutes=False), also, paths, shows)


VIEWS: Mapping[str, GitView] = {
    "status": _view("-sbvzu?=text --short --branch --show-stash --porcelain?=text --long --verbose "
        "--untracked-files?=text --ignored?=text --column?=text --no-column --ahead-behind --no-ahead-behind "
        "--renames --no-renames --find-renames?=text --ignore-submodules?=text",
        shows=lambda arguments: arguments.has("-v", "--verbose")),
    "log": _view(_LOG, shows=_with_patch),
    "show": _view(_LOG, shows=_without_summary),
    "whatchanged": _view(_LOG, shows=_with_patch),
    "diff": _view(_DIFF, shows=_without_summary),
    "shortlog": _view("-nsec --numbered --summary --email --all --no-merges --merges --since=text "
        "--until=text --after=text --before=text --author=text --group=text"),
    "blame": _view("-lwestfncpMC? -L=text --show-name --show-email --show-number --porcelain "
        "--line-porcelain --date=text --abbrev=number --since=text --root", shows=_always),
    "branch": _view("-arvqi --all --remotes --list --show-current --verbose --no-abbrev --abbrev=number "
        + _REF_LIST, _only_lists),
    "tag": _view(f"-l -n?=number --list {_REF_LIST}", _only_lists),
    "for-each-ref": _view(f"--count=number {_REF_LIST}"), "remote": _view("-v --verbose", _no_operand),
    "remote get-url": _view("--all --push"), "stash list": _view(_LOG, shows=_with_patch),
    "stash show": _view(_LOG, shows=_without_summary),
    "reflog": _view(_LOG, _no_operand, shows=_with_patch), "reflog show": _view(_LOG, shows=_with_patch),
    "worktree list": _view("-vz --porcelain --verbose", _no_operand),
    "config": _view("-lz --local --get --get-all --get-regexp --list --show-origin --show-scope --null "
        "--name-only --type=text --bool --int", _reads_a_setting),
    "rev-parse": _view("-q --abbrev-ref?=text --show-toplevel --show-prefix --show-cdup --git-dir "
        "--absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository "
        "--is-shallow-repository --short?=number --verify --quiet --symbolic --symbolic-full-name --all "
        "--branches?=text --tags?=text --remotes?=text --revs-only --no-revs --flags --no-flags "
        "--show-superproject-working-tree"),
    "rev-list": _view(_LOG + " --objects --disk-usage --no-object-names --use-bitmap-index"),
    "ls-files": _view("-cdmostvuz --cached --deleted --modified --others --ignored -i --stage --unmerged "
        "--killed -k --exclude-standard --directory --no-empty-directory --error-unmatch --full-name "
        "--abbrev?=number --eol --deduplicate -x=text --exclude=text"),
    "ls-tree": _view("-drtlz --long --name-only --name-status --full-name --full-tree --abbrev?=number "
        "--object-only"),
    "cat-file": _view("-pets", shows=lambda arguments: not arguments.has("-e", "-t", "-s")),
    "describe": _view("--all --tags --always --long --dirty?=text --broken?=text --abbrev=number "
        "--match=text --exclude=text --exact-match --first-parent --candidates=number --contains"),
    "merge-base": _view("-a --all --is-ancestor --octopus --independent --fork-point"),
    "show-ref": _view("-hdsq --head --heads --tags --branches --dereference --hash?=number --verify --quiet "
        "--abbrev?=number"),
    "name-rev": _view("--tags --name-only --always --refs=text --exclude=text --no-undefined"),
    "show-branch": _view("-ar --all --remotes --current --topo-order --list --no-name --sha1-name"),
    "cherry": _view("-v --abbrev?=number"),
    "diff-tree": _view(_LOG + " --always", shows=_with_patch),
    "count-objects": _view("-vH --verbose --human-readable", _no_operand),
    "check-ignore": _view("-qvn --quiet --verbose --non-matching --no-index"),
    "grep": _view("-aiIwvhHEGFPnlLcopWqz -# -e=text -A=number -B=number -C=number -m=number --cached "
        "--ignore-case --word-regexp --invert-match --full-name --extended-regexp --basic-regexp "
        "--fixed-strings --perl-regexp --line-number --column --files-with-matches --name-only "
        "--files-without-match --count --only-matching --color?=text --no-color --break --heading "
        "--show-function --function-context --context=number --after-context=number --before-context=number "
        "--max-count=number --max-depth=number --and --or --not --all-match --quiet --text --null "
        "--no-textconv", paths=_after_pattern, shows=_always),
    "version": _view("--build-options", _no_operand),
}  # fmt: skip


def view_name(words: Sequence[str]) -> str:
    """The git command that words after `git` begin with; one of two words if that is known."""
    # The second word counts only right after the first: `git stash -- list` stashes.
    return " ".join(words[:2]) if " ".join(words[:2]) in VIEWS else " ".join(words[:1])


def git_only_looks(words: Sequence[str], shell: ShellContext) -> bool:
    """Whether a git command only looks, in a repository that makes it do no more than that."""
    waiting = list(words)
    while waiting and waiting[0] in ("--no-pager", "-C", "--no-optional-locks"):
        if waiting.pop(0) == "-C":
            entered = shell.enter(waiting.pop(0)) if waiting else None
            if entered is None:
                return False
            shell = entered
    if waiting == ["--version"]:
        return True
    name = view_name(waiting)
    view = VIEWS.get(name)
    arguments = read_arguments(view.options, waiting[len(name.split()) :]) if view is not None else None
    if view is None or arguments is None or not view.also(arguments):
        return False
    if not runs_no_gpg(arguments) or not all(_is_inside(word, shell) for word in view.paths(arguments)):
        return False
    if not is_quiet(shell):
        return False
    if name == "diff" and any(  # of directories, where there is no repository
        shell.shows_secrets(path) for path in arguments.operands if shell.is_directory(path)
    ):
        return False
    return not (view.shows(arguments) and prints_secrets(_request(name, view, arguments, waiting), shell))


def _request(name: str, view: GitView, arguments: Arguments, words: Sequence[str]) -> GitQuestion:
    operands = tuple(view.paths(arguments))
    has_mark = "--" in words
    after = tuple(words[words.index("--") + 1 :])[-len(operands) :] if has_mark and operands else ()
    return GitQuestion(name, arguments, operands, has_mark, after)


def runs_no_gpg(arguments: Arguments) -> bool:
    """Whether no format asks for signatures: git checks them with gpg."""
    return not any(_SIGNATURE.search(value) for values in arguments.options.values() for value in values)


def _is_inside(operand: str, shell: ShellContext) -> bool:
    """Whether an operand, taken as a path or as `revision:path`, shows nothing outside or hidden."""
    _, colon, path = operand.partition(":")
    if colon:
        places = [os.path.normpath(os.path.join(base, path)) for base in ("", shell.directory)]
        if suspect(path) == "sure" or any(map(shell.workspace.is_hidden, places)):
            return False
    return shell.inside(operand)
