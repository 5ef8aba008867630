"""Lines for bash as a person judges them: what a rule may be made of, and what can destroy something.

Everything is judged by the parsed line. What the parser does not understand completely gets no rule and
counts as destructive.
"""

import os
import re
from collections.abc import Sequence

from swink.tools.coding.declared import find_declared
from swink.tools.coding.syntax import SimpleCommand, read_commands


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


RUNS_OTHERS = word_set(
    "sudo doas su env xargs parallel sh bash dash zsh ksh fish csh tcsh ash mksh busybox toybox eval exec"
    " source . command builtin nohup nice ionice time timeout setsid stdbuf watch strace ltrace flock chroot"
    " unshare nsenter ssh script expect trap coproc bwrap firejail systemd-run at batch crontab tmux screen"
    " find fd setpriv runuser pkexec chrt taskset prlimit unbuffer entr npx uvx bunx pipx"
    " linux32 linux64 i386 x86_64 setarch choom ssh-agent valgrind dbus-run-session dbus-launch chronic gosu"
    " proot fakeroot faketime perf rlwrap numactl catchsegv cgexec torsocks proxychains xvfb-run"
)
"""Programs that run the commands given to them."""
_INTERPRETERS = re.compile(
    r"(?:python|pypy|node|nodejs|deno|bun|perl|ruby|php|lua|luajit|tclsh|Rscript|R|osascript|pwsh|java|jshell"
    r"|[gmn]?awk|sed|ed|ex|vim?|nvim|emacs|gdb|sqlite3|psql|mysql|irb|ghci|scala|julia|octave|groovy"
    r"|dc|m4|s?ftp|lftp|telnet|mailx?|lldb|mariadb|gnuplot|guile|erl|iex|ocaml|sbcl|clisp)[\d.]*",
    re.I,
)
_DESTROYS = word_set(
    "rm rmdir unlink shred dd mkfs truncate wipefs mv cp ln chmod chown chgrp chattr setfacl kill pkill"
    " killall reboot shutdown halt poweroff systemctl service mount umount fdisk parted crontab tee install"
    " rsync iptables useradd userdel passwd"
)
_FETCHES = word_set("curl wget scp sftp nc ncat socat telnet ftp aria2c http https")
WORKS_BY_FILE = word_set("make gmake just task ninja cmake rake tox nox meson ant mvn gradle")
"""Programs that take definitions among their words: a rule for them names targets alone."""
_DESTRUCTIVE_WORDS = {
    "git": word_set(
        "push reset clean checkout restore rebase rm filter-branch filter-repo gc prune config remote"
        " update-ref reflog switch stash branch tag worktree submodule credential send-email bisect"
    ),
    "docker": word_set("rm rmi prune system volume run exec push kill stop compose container"),
    "podman": word_set("rm rmi prune system volume run exec push kill stop compose container"),
    "kubectl": word_set("delete apply exec drain replace patch scale run cp edit"),
    "npm": word_set("publish unpublish exec config login x"),
    "yarn": word_set("publish dlx exec config"),
    "pnpm": word_set("publish dlx exec config"),
    "uv": word_set("run publish tool"),
    "poetry": word_set("run publish shell config"),
    "cargo": word_set("publish yank owner run install"),
    "go": word_set("run generate install tool"),
    "gh": word_set("api repo secret release auth alias extension workflow"),
    "terraform": word_set("apply destroy import state taint"),
    "apt": word_set("remove purge autoremove"),
    "apt-get": word_set("remove purge autoremove"),
    "brew": word_set("uninstall remove"),
    "aws": word_set("s3 ec2 iam lambda"),
}
"""Of programs with commands of their own, those that destroy, publish or run others."""
_UNQUOTED = re.compile(r"[\w./,:+@%^=-]+", re.A)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_:-]*")


def suggest_patterns(line: str) -> list[str] | None:
    """A pattern for each command of the line; None where a rule would open too much.

    It is the whole command. Others may follow only where the options are declared that keep it harmless.
    """
    commands = read_commands(line) or []
    found = [_suggest(command) for command in commands if not is_move(command)]
    patterns = list(dict.fromkeys(pattern for pattern in found if pattern is not None))
    return None if None in found or not patterns else patterns


def is_destructive(line: str) -> bool:
    """Whether a line can destroy or publish something, or is not understood."""
    commands = read_commands(line)
    return not commands or any(_is_destructive(command) for command in commands)


def is_move(command: SimpleCommand) -> bool:
    """Whether a command only changes to a directory below: what a call's own `directory` may say as well."""
    match [word.text for word in command.words]:
        case ["cd", place]:
            parts = place.split("/")
            is_plain = not command.words[1].wild and not command.words[1].varies and not command.inputs
            return is_plain and bool(place) and place[0] not in "-/~" and ".." not in parts
        case _:
            return False


def runs_others(program: str) -> bool:
    """Whether a program, by whatever path, runs a command or code that is given to it."""
    name = os.path.basename(program)
    return name in RUNS_OTHERS or is_interpreter(name)


def is_interpreter(name: str) -> bool:
    """Whether a program runs code in a language of its own."""
    return _INTERPRETERS.fullmatch(name) is not None


def _suggest(command: SimpleCommand) -> str | None:
    words = [word.text for word in command.words]
    if command.inputs or any(word.wild or word.varies for word in command.words):
        return None
    name = words[0]
    if not _PLAIN.fullmatch(name) or runs_others(name) or name in _DESTROYS | _FETCHES:
        return None
    if name in WORKS_BY_FILE and not all(map(_PLAIN.fullmatch, words)):
        return None
    known, second = _DESTRUCTIVE_WORDS.get(name), words[1] if len(words) > 1 else ""
    if known is not None and (not _PLAIN.fullmatch(second) or second in known):
        return None
    declared = find_declared(words)
    if declared is not None and declared.is_free and declared.takes(words[len(declared.words) :]):
        return quote([*declared.words]) + " *"
    return quote(words)


def _is_destructive(command: SimpleCommand) -> bool:
    words = [word.text for word in command.words]
    name = os.path.basename(words[0])
    if runs_others(name) or name in _DESTROYS or command.words[0].wild:
        return True
    if name in _FETCHES and any(word.startswith("-") for word in words[1:]):
        return True
    return bool(_DESTRUCTIVE_WORDS.get(name, frozenset[str]()).intersection(words[1:4]))


def quote(words: Sequence[str]) -> str:
    """Words as bash would read them back."""
    quoted = ["'" + word.replace("'", "'\\''") + "'" for word in words]
    pairs = zip(words, quoted, strict=True)
    return " ".join([word if _UNQUOTED.fullmatch(word) else in_quotes for word, in_quotes in pairs])
