"""Viewers: the programs that only look, each with the options that keep it so.

Options that write, run something, read file names from a file, follow links or never end are not declared.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from swink.tools.coding import expressions
from swink.tools.coding.options import Arguments, OptionTable, declare_options, read_arguments
from swink.tools.coding.shellcontext import PLAIN_GLOB, ShellContext

_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.\d{1,9})?")
Condition = Callable[[Arguments, ShellContext], bool]


class Viewer(Struct, frozen=True):
    """A program's options, what its operands are, and a further condition if there is one."""

    options: OptionTable
    operands: Callable[[Arguments], Sequence[str]]
    """Those that are paths."""
    most: int | None = None
    also: Condition | None = None
    keeps_links: Callable[[Arguments], bool] | None = None
    """For programs that do not read files: whether an operand that is a link stands for the link itself."""

    @property
    def is_free(self) -> bool:
        """Whether its options alone keep it from doing more and from printing files, with any operand.

        What is declared to take none may change something by one: `hostname x` sets the name.
        """
        prints_none = self.keeps_links is not None or self.operands is _none
        return self.also is None and self.most != 0 and prints_none

    def only_looks(self, words: Sequence[str], shell: ShellContext) -> bool:
        """Whether the program, with these arguments, only looks at what is inside."""
        if list(words) in (["--help"], ["--version"]):
            return True
        arguments = read_arguments(self.options, words)
        if arguments is None or (self.most is not None and len(arguments.operands) > self.most):
            return False
        is_fine = shell.inside
        if self.keeps_links is not None:
            is_fine = shell.holds if self.keeps_links(arguments) else shell.reaches
        if not all(map(is_fine, (*arguments.paths, *arguments.late, *self.operands(arguments)))):
            return False
        return self.also is None or self.also(arguments, shell)


def _all(arguments: Arguments) -> Sequence[str]:
    return arguments.operands


def _none(arguments: Arguments) -> Sequence[str]:
    return ()


def _after_pattern(arguments: Arguments) -> Sequence[str]:
    has_none = arguments.has("-e", "-f", "--regexp", "--file", "--files", "--type-list")
    return arguments.operands if has_none else arguments.operands[1:]


def _after_first(arguments: Arguments) -> Sequence[str]:
    return arguments.operands[1:]


def _paths(options: str, most: int | None = None, also: Condition | None = None) -> Viewer:
    return Viewer(declare_options(options), _all, most, also)


def _entries(options: str, keeps_links: Callable[[Arguments], bool]) -> Viewer:
    """A program that tells about files without reading them."""
    return Viewer(declare_options(options), _all, keeps_links=keeps_links)


def _lists_links(arguments: Arguments) -> bool:
    """ls: whether a link on the command line is listed itself; another format than -l may follow it."""
    is_long = arguments.has("-l") and not arguments.has("-C", "-x", "-m", "--format")
    return (is_long or arguments.has("-d", "--directory")) and not arguments.has("-H")


def _texts(options: str, most: int | None = None, also: Condition | None = None) -> Viewer:
    return Viewer(declare_options(options), _none, most, also)


def _own(options: str, most: int | None = None, also: Condition | None = None) -> Viewer:
    """A program that reads its options in a way of its own, where letters with a value stand alone."""
    return Viewer(declare_options(options, attaches=False), _all, most, also)


def _search_keeps_out(arguments: Arguments, shell: ShellContext) -> bool:
    """grep -r: links are not followed, and nothing hidden lies on the way."""
    if not arguments.has("-r", "--recursive"):
        return True
    names = arguments.options.get("--include", ())
    if arguments.has("--exclude") or not all(map(PLAIN_GLOB.fullmatch, names)):
        names = ()  # after an exclusion, grep also reads files that no inclusion names
    return not any(shell.shows_secrets(path, names=names) for path in _after_pattern(arguments) or ["."])


def _ripgrep_keeps_out(arguments: Arguments, shell: ShellContext) -> bool:
    if arguments.has("--files", "--type-list"):
        return True
    given = [glob for name in ("-g", "--glob", "--iglob") for glob in arguments.options.get(name, ())]
    globs = [glob for glob in given if not glob.startswith("!")]
    # A glob that is wanted finds names with a leading dot, too, but nothing that it does not match.
    folds = arguments.has("--iglob", "--glob-case-insensitive")
    names = globs if not folds and all(map(PLAIN_GLOB.fullmatch, globs)) else []
    skips_dots = not globs and not arguments.has("--hidden", "-.", "-u", "--unrestricted")
    paths = _after_pattern(arguments) or ["."]
    return not any(shell.shows_secrets(path, skips_dots=skips_dots, names=names) for path in paths)


def _compares_files(arguments: Arguments, shell: ShellContext) -> bool:
    """diff: what it finds in directories may be links, or hidden."""
    folders = [path for path in arguments.operands if shell.is_directory(path)]
    keeps_links = arguments.has("--no-dereference")
    return not folders or (keeps_links and not any(map(shell.shows_secrets, folders)))


def _names_no_output(arguments: Arguments, shell: ShellContext) -> bool:
    """uniq, xxd: a second operand is written to."""
    return not arguments.late


def _has_an_end(arguments: Arguments, shell: ShellContext) -> bool:
    """seq: it could also count to infinity."""
    return all(_NUMBER.fullmatch(operand) for operand in arguments.operands)


def _prints_time(arguments: Arguments, shell: ShellContext) -> bool:
    return all(operand.startswith("+") for operand in arguments.operands)


def _names_no_response_file(arguments: Arguments, shell: ShellContext) -> bool:
    """strings: `@file`, wherever it stands, means the arguments in a file."""
    values = [value for given in arguments.options.values() for value in given]
    return not any(word.startswith("@") for word in (*arguments.operands, *values))


def _sed_only_prints(arguments: Arguments, shell: ShellContext) -> bool:
    given = arguments.options.get("-e", ()) + arguments.options.get("--expression", ())
    scripts = given or arguments.operands[:1]
    return bool(scripts) and all(map(expressions.is_harmless_sed, scripts))


def _sed_paths(arguments: Arguments) -> Sequence[str]:
    return arguments.operands if arguments.has("-e", "--expression") else arguments.operands[1:]


def _awk_only_prints(arguments: Arguments, shell: ShellContext) -> bool:
    """awk: an operand with `=` in it sets a variable."""
    program, *files = arguments.operands or ("",)
    return bool(program) and expressions.is_harmless_awk(program) and not any("=" in file for file in files)


def _jq_only_reads(arguments: Arguments, shell: ShellContext) -> bool:
    return bool(arguments.operands) and expressions.is_harmless_jq(arguments.operands[0])


_SUM = _paths("-btz --binary --text --tag --zero")
_GREP = Viewer(
    declare_options(
        "-EFGPivwxcoqsnHhlLbTaIUzy -r -# -e=text -m=number -A=number -B=number -C=number -f=path "
        "--extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case --no-ignore-case "
        "--invert-match --word-regexp --line-regexp --count --only-matching --quiet --silent --no-messages "
        "--line-number --with-filename --no-filename --files-with-matches --files-without-match "
        "--byte-offset --initial-tab --text --null --null-data --recursive --line-buffered --color?=text "
        "--colour?=text --regexp=text --file=path --max-count=number --after-context=number "
        "--before-context=number --context=number --include=text --exclude=text --exclude-dir=text "
        "--binary-files=text --label=text -Z"
    ),
    _after_pattern,
    also=_search_keeps_out,
)

VIEWERS: Mapping[str, Viewer] = {
    "ls": _entries(
        "-aAbBcCdDfFgGhHiklmnNopqQrRsStuUvxXZ1 --all --almost-all --author --escape --ignore-backups "
        "--color?=text --directory --classify?=text --file-type --full-time --group-directories-first "
        "--human-readable --si --no-group --inode --kibibytes --numeric-uid-gid --literal --quote-name "
        "--reverse --recursive --size --sort=text --time=text --time-style=text --format=text --ignore=text "
        "--hide=text --block-size=text --width=number --tabsize=number --context --zero "
        "--indicator-style=text --quoting-style=text",
        _lists_links
    ),
    "cat": _paths("-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs "
        "--show-nonprinting"),
    "head": _paths("-qvz -# -n=number -c=number --lines=number --bytes=number --quiet --silent --verbose "
        "--zero-terminated"),
    "tail": _paths("-qvz -# -n=number -c=number --lines=number --bytes=number --quiet --silent --verbose "
        "--zero-terminated"),
    "wc": _paths("-clmLw --bytes --chars --lines --max-line-length --words --total=text"),
    "stat": _entries("-Lft -c=text --format=text --printf=text --dereference --file-system --terse",
        lambda arguments: not arguments.has("-L", "--dereference", "-f", "--file-system")),
    "du": _entries(
        "-abcDhHklmsSx0 -d=number -B=text -t=number --all --apparent-size --bytes --total --human-readable "
        "--si --summarize --separate-dirs --one-file-system --max-depth=number --block-size=text "
        "--threshold=number --exclude=text --time?=text --null --inodes",
        lambda arguments: not arguments.has("-D", "-H")
    ),
    "df": _paths("-ahHiklPTm -B=text -t=text -x=text --all --human-readable --si --inodes --local "
        "--portability --print-type --total --output?=text --type=text"),
    "readlink": _paths("-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline "
        "--quiet --silent --verbose --zero"),
    "realpath": _paths(
        "-emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip "
        "--no-symlinks --zero --relative-to=path --relative-base=path"
    ),
    "cut": _paths("-nsz -b=text -c=text -d=text -f=text --bytes=text --characters=text --delimiter=text "
        "--fields=text --complement --only-delimited --output-delimiter=text --zero-terminated"),
    "tr": _texts("-cCdst --complement --delete --squeeze-repeats --truncate-set1"),
    "nl": _paths("-p -b=text -d=text -f=text -h=text -i=number -l=number -n=text -s=text -v=number -w=number "
        "--body-numbering=text --number-format=text --number-separator=text --number-width=number "
        "--starting-line-number=number"),
    "tac": _paths("-br -s=text --before --regex --separator=text"),
    "rev": _paths(""),
    "cmp": _paths("-bls -n=number -i=text --print-bytes --verbose --silent --quiet --bytes=number", most=2),
    "comm": _paths("-123iz --check-order --nocheck-order --output-delimiter=text --total", most=2),
    "diff": _paths(
        "-abBcdeEinNpqrstTuwyZ -# -U=number -C=number -I=text -x=text -W=number -F=text -L=text --brief "
        "--unified?=number --context?=number --color?=text --ignore-case --ignore-all-space "
        "--ignore-space-change --ignore-blank-lines --ignore-trailing-space --ignore-tab-expansion "
        "--no-dereference --side-by-side --suppress-common-lines --left-column --recursive "
        "--report-identical-files --new-file --text --minimal --strip-trailing-cr --exclude=text "
        "--label=text --width=number --normal --show-c-function --expand-tabs --initial-tab "
        "--speed-large-files",
        most=2,
        also=_compares_files,
    ),
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum"), _SUM),
    "b2sum": _paths("-btz -l=number --binary --text --tag --zero --length=number"),
    "cksum": _paths("-z -a=text -l=number --algorithm=text --length=number --untagged --tag --zero"),
    "sum": _paths("-rs --sysv"),
    "shasum": _paths("-bt -a=number --algorithm=number --binary --text"),
    "sort": _paths(
        "-bdfghiMnRrVucCmsz -k=text -t=text --ignore-leading-blanks --dictionary-order --ignore-case "
        "--general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort --numeric-sort "
        "--reverse --sort=text --version-sort --unique --stable --zero-terminated --key=text "
        "--field-separator=text --check?=text --merge"
    ),
    "uniq": _paths(
        "-cdDiuz -f=number -s=number -w=number --count --repeated --all-repeated?=text --ignore-case "
        "--unique --skip-fields=number --skip-chars=number --check-chars=number --zero-terminated "
        "--group?=text",
        most=1,
        also=_names_no_output,
    ),
    "shuf": _paths("-ez -n=number -i=text --echo --head-count=number --zero-terminated"),
    "seq": _texts("-w -# -s=text -f=text --equal-width --separator=text --format=text", most=3,
        also=_has_an_end),
    "expr": _texts(""),
    "fold": _paths("-bcs -w=number -# --bytes --spaces --width=number"),
    "fmt": _paths("-cstu -w=number -# --width=number --split-only --uniform-spacing"),
    "paste": _paths("-sz -d=text --delimiters=text --serial --zero-terminated"),
    "join": _paths("-iz -1=number -2=number -a=number -e=text -j=number -o=text -t=text -v=number --header "
        "--ignore-case --check-order --nocheck-order", most=2),
    "expand": _paths("-i -t=text --initial --tabs=text"),
    "unexpand": _paths("-a -t=text --all --first-only --tabs=text"),
    "column": _paths("-txn -s=text -o=text -c=number -N=text --table --separator=text "
        "--output-separator=text --output-width=number"),
    "od": _paths("-abcdfiloxsv -A=text -j=text -N=text -t=text -w?=number --address-radix=text "
        "--skip-bytes=text --read-bytes=text --format=text --output-duplicates"),
    "hexdump": _paths("-bcCdovx -n=number -s=text -e=text --canonical --length=number --skip=text "
        "--no-squeezing"),
    "hd": _paths("-v -n=number -s=text"),
    "xxd": _own("-abeipuE -c=number -g=number -l=number -s=number", most=1, also=_names_no_output),
    "strings": _paths("-aw -n=number -t=text -e=text -# --all --bytes=number "
        "--radix=text --encoding=text", also=_names_no_response_file),
    "base64": _paths("-di -w=number --decode --ignore-garbage --wrap=number", most=1),
    "basename": _texts("-az -s=text --multiple --suffix=text --zero"),
    "dirname": _texts("-z --zero"),
    "date": _texts("-uR -I?=text -d=text -r=path --utc --universal --rfc-email --iso-8601?=text "
        "--rfc-3339=text --date=text --reference=path", also=_prints_time),
    "file": _paths("-bhikLNnr -e=text -F=text --brief --mime --mime-type --mime-encoding --no-dereference "
        "--dereference --keep-going --extension --no-pad --separator=text"),
    "tree": _own(
        "-adfisDughpCnFQNqtcrUvxAJ -L=number -I=text -P=text --dirsfirst --filesfirst --noreport --prune "
        "--gitignore --du --si --inodes --sort=text --matchdirs --ignore-case --filelimit=number "
        "--timefmt=text --charset=text --nolinks"
    ),
    "rg": Viewer(
        declare_options(
            "-ilnNcwvFUuHIoSsxaqp0PV. -A=number -B=number -C=number -e=text -g=text -t=text -T=text "
            "-m=number -j=number -r=text -M=number -E=text -d=number -f=path --files --hidden --no-hidden "
            "--no-ignore --no-ignore-vcs --no-ignore-parent --no-ignore-global --no-ignore-dot "
            "--unrestricted --type=text --type-not=text --type-list --glob=text --iglob=text --line-number "
            "--no-line-number --ignore-case --smart-case --case-sensitive --files-with-matches "
            "--files-without-match --count --count-matches --word-regexp --line-regexp --fixed-strings "
            "--invert-match --multiline --multiline-dotall --json --no-heading --heading --max-count=number "
            "--max-depth=number --context=number --after-context=number --before-context=number --sort=text "
            "--sortr=text --only-matching --stats --color=text --column --no-column --no-filename "
            "--with-filename --replace=text --regexp=text --pcre2 --quiet --text --vimgrep --trim --passthru "
            "--null --max-columns=number --max-columns-preview --max-filesize=number --no-messages "
            "--one-file-system --no-follow --no-config --glob-case-insensitive --encoding=text --file=path "
            "--binary --threads=number --context-separator=text --pretty --version --no-require-git"
        ),
        _after_pattern,
        also=_ripgrep_keeps_out,
    ),
    "fd": Viewer(
        declare_options("-HIusigFap01 -e=text -t=text -d=number -E=text -S=text --hidden --no-ignore "
            "--no-ignore-vcs --case-sensitive --ignore-case --glob --fixed-strings --absolute-path "
            "--full-path --extension=text --type=text --max-depth=number --min-depth=number --exclude=text "
            "--size=text --color=text --print0 --max-results=number --changed-within=text "
            "--changed-before=text"),
        _after_first,
    ),
    "sed": Viewer(declare_options("-nErsuz -e=text --quiet --silent --regexp-extended --separate "
        "--unbuffered --null-data --expression=text"
    ), _sed_paths, also=_sed_only_prints),
    "awk": Viewer(declare_options("-F=text"), _after_first, also=_awk_only_prints),
    "jq": Viewer(
        declare_options("-rcesnSMajC --raw-output --compact-output --exit-status --slurp --null-input "
            "--sort-keys --monochrome-output --ascii-output --join-output --color-output --tab "
            "--indent=number --raw-input -R", permutes=False),
        _after_first,
        also=_jq_only_reads,
    ),
    "whoami": _texts("", most=0),
    "id": _texts("-Ggnruz --group --groups --name --real --user --zero", most=1),
    "groups": _texts("", most=1),
    "uname": _texts("-amnioprsv --all --kernel-name --nodename --kernel-release --kernel-version --machine "
        "--processor --operating-system", most=0),
    "hostname": _texts("-s --short", most=0),
    "nproc": _texts("--all --ignore=number", most=0),
    "arch": _texts("", most=0),
    "uptime": _texts("-ps --pretty --since", most=0),
    "free": _texts("-bkmghltw --human --mebi --gibi --kibi --bytes --kilo --mega --giga --si --total --wide "
        "--lohi", most=0),
    "which": _texts("-as --all"),
}  # fmt: skip

BUILTINS: Mapping[str, Callable[[Sequence[str], ShellContext], bool]] = {
    **dict.fromkeys(("echo", "true", "false", ":"), lambda words, shell: True),
    "pwd": lambda words, shell: all(word in ("-P", "-L") for word in words),
    "printf": lambda words, shell: expressions.printf_only_prints(words),
    "test": expressions.test_only_looks,
    "[": lambda words, shell: words[-1:] == ["]"] and expressions.test_only_looks(words[:-1], shell),
    "type": lambda words, shell: read_arguments(_TYPE, words) is not None,
    "command": lambda words, shell: (
        words[:1] in (["-v"], ["-V"]) and not any(word.startswith("-") for word in words[1:])
    ),
}
"""Commands that bash itself runs, without searching the PATH."""

_TYPE = declare_options("-aptPf")
