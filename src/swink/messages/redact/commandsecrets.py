"""Secrets on command lines that no name announces: the options with which known programs take a password.

Every search begins at the name of a program where a command begins, and reads a bounded way to the right.
"""

import re
from collections.abc import Iterator

from swink.messages.redact.namedsecrets import Span, is_placeholder

_LOGIN = r"(?:-u ?|--(?:proxy-)?user[ =])[\"']?[^\s:\"'$]{1,60}:"
_COOKIE = (
    r"(?:-b ?|--cookie[ =])[\"']?(?:[^\n\"']{0,100}; ?)?[\w.-]{0,40}"
    r"(?:sess|sid|auth|token|jwt|login|remember)[\w.-]{0,40}="
)
_OPTIONS = (
    # The programs, a part of the option that takes a password, and all that stands before the password.
    ("mysql mysqldump mysqladmin mysqlimport mariadb mariadb-dump mariadb-admin 7z 7za", " -p", "-p"),
    ("sshpass mongo mongosh mongodump mongorestore mongoimport mongoexport", " -p", "-p ?"),
    ("docker podman nerdctl buildah skopeo helm oras", "login ", r"login (?:[^\n;|&]{0,200}? )?-p ?"),
    ("redis-cli", "redis-cli", "-a "),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami", " -w", "-w ?"),
    ("zip unzip sqlcmd bcp", " -P", "-P ?"),
    ("curl wget http https xh", "-u", _LOGIN),
    ("openssl", "pass:", "-pass(?:in|out)? pass:"),
    ("openssl", " -k ", "-k "),
    ("curl", "curl", _COOKIE),
    ("htpasswd", "htpasswd ", r"-\w{0,4}b\w{0,4} [^\s\"']{1,200} [^\s\"']{1,200} "),
    ("smbclient rpcclient", " -U", "-U ?[\"']?[^\\s%\"'$]{1,60}%"),
    ("aws", "configure set ", r"configure set [\w.]{0,60}(?:secret_access_key|session_token) "),
)
_VALUE = (
    r"[\"']?(?P<value>(?<=\")[^\n\"$`\\]{1,256}(?=\")|(?<=')[^\n']{1,256}(?=')|[^\s\"'`$;|&<>()\\]{1,256})"
)
_PROGRAMS = tuple(
    (
        option,
        re.compile(rf"(?<![\w.-])(?:{programs.replace(' ', '|')})[ \t]"),
        re.compile(rf"(?:[^\n;|&]{{0,300}}?[ \t])??{before}{_VALUE}"),
    )
    for programs, option, before in _OPTIONS
)
_COMMAND_BEGINS = re.compile(
    r"(?:\A|[\n;|&(`\"']|\{[ \t]|\b(?:sudo|doas|time|nohup|command|then|do|else)[ \t]|=\S{0,64}[ \t])"
    r"[ \t]{0,8}(?:[\w.-]{0,40}/){0,6}\Z"
)


def find_options(text: str) -> Iterator[Span]:
    """The places of passwords in the options of programs that take them."""
    for option, program, pattern in _PROGRAMS:
        if option in text:
            for named in program.finditer(text):
                begins = _COMMAND_BEGINS.search(text, max(0, named.start() - 100), named.start())
                found = pattern.match(text, named.end()) if begins else None
                if found and len(found["value"]) > 3 and not is_placeholder(found["value"]):
                    yield found.span("value")
