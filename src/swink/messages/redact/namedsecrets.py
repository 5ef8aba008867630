"""Values that are secret because of their place: after a name like `password`, a scheme, or in an address.

Source code is full of such names: an expression, a type, a placeholder or a sentence is no secret. The search
goes from one name to the next and reads a bounded way to the right, so that it is linear in the text.
"""

import base64
import re
from collections.abc import Callable, Iterator
from typing import Literal

Span = tuple[int, int]
Kind = Literal["password", "strong", "weak"]

_NAME = re.compile(
    r"(?P<password>passw(?:or)?[dt]|passphrase|pwd)|(?P<strong>secret|authorization|credentials?"
    r"|(?<=[?&;])sig(?==))"
    r"|(?P<weak>token|key)"
)
# The word directly before "token" or "key" that makes it a secret one.
_KIND = re.compile(
    r"(?:api|access|auth|id|refresh|session|bearer|bot|app|service|personal|account|private|signing"
    r"|encryption"
    r"|master|license|client|consumer|storage|shared|dd|okta|okta api)[-_ ]?\Z"
)
_VALUE = re.compile(
    r"""
    (?P<rest>[\w-]{0,40})\\?["'`\]]?
    (?: (?P<separator>[ \t]{0,8}(?::=|=>|[:=：](?!=))[ \t]{0,8}) | (?P<tag>>) | (?P<space>[ ])(?=\S{4}) )
    (?P<quote>\\?["'`])?
    (?(quote)(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\n\\])){1,256})
            |(?:(?:bearer|basic|token|digest)\s+)?(?P<bare>[^\s"'`&;<>|\\]{4,256}))
    """,
    re.I | re.X,
)
_SWITCH = re.compile(
    r"--(?:no|use|ask|show|reset|change|prompt|without|require|force|generate|rotate|skip|hide|print)-[\w-]{0,40}\Z"
)
# Programs whose `--password` takes no value: what follows is what they work on.
_PROMPTS = re.compile(
    r"(?<![\w-])(?:psql|pg_\w+|(?:create|drop|vacuum|reindex|cluster)(?:db|user)|mysql\w+|mariadb-\w+)[ \t]"
    r"[^\n;|&]*\Z"
)
_NETRC = re.compile(r"machine \S{1,100}\s{1,9}login \S{1,60}\s{1,9}\Z")
_HEADER = re.compile(r"""(?:(?:-H|--header) ?=?["']|["'](?=[Xx]-))[\w-]{0,40}\Z""")
_AUTHORIZATION = re.compile(r"""authorization["']?\s{0,4}[:=]\s{0,4}["']?\Z""", re.I)
_BEFORE_A_VALUE = re.compile(r"--[\w-]{0,40}\Z|\blogin \S{1,60} \Z|(?i:twilio|okta|api|auth|access) ?\Z")
_QUERY = re.compile(r"[?&][\w-]*\Z")
_QUOTED_REST = re.compile(r"[^\n\"'`]*")
_BARE_REST = re.compile(r"[^\s\"'`&;<>|\\]*")
_SCHEME = re.compile(r"\b(?:(?i:bearer)|(?P<basic>(?i:basic)))\s+(?P<value>[A-Za-z0-9._~+/=-]{8,})")
_ADDRESS = re.compile(r"://[^\s/:@\"'<>]{0,256}:(?P<value>[^\s/\"'<>\\]+)(?=@)")
_COOKIE = re.compile(r"(?i:cookie): ?[\w.-]{1,40}=(?P<value>[^\s;\"']{8,})")
_USER_AND_GROUP = re.compile(r"(?<![\w-])(?:docker|podman|nerdctl|kubectl|su|sudo|install)[ \t][^\n;|&]*\Z")
_LOGIN = re.compile(r"(?<=[ \t]-u )[^\s:\"'$]{1,60}:(?P<value>[^\s\"'$]{4,200})")
_PASS = re.compile(
    r"(?:(?<![\w-])[A-Z][A-Z0-9_]{0,40}_PASS="
    r"|(?<![\w-])--(?:(?:db|user|admin|root|http|proxy|smtp|mail|auth|key|store)-?)?pass[ =])"
    r"[\"']?(?P<value>(?<=[\"'])[^\n\"'$`\\]{4,256}(?=[\"'])|[^\s\"'`$;|&<>()\\-][^\s\"'`$;|&<>()\\]{3,256})"
)

# What may follow the name; anything else names another thing: `token_type`, `secret_name`, `tokenizer`.
_STILL = re.compile(
    r"(?:[-_]?(?:values?|pem|b64|base64|hex|string|data|raw|prod|production|dev|staging|live|old|new|primary"
    r"|secondary|base|access|api|key|token|secret|hash|salt|confirm|confirmation|again|\d+))*\Z",
    re.I,
)
_EXPRESSION = re.compile(
    r"[A-Za-z_$@*&!(\[{][\w.:>-]*[(\[{<]|[\[({]|\$|%[sr(]|@|\.\.\.|.*(?:\$\(|\$\{|\{\{|`|<\(|=>|->|::)"
)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::|/)[A-Za-z_]\w*)+\Z")
_LETTERS = re.compile(r"[^\W\d]*(?:[-_. ][^\W\d]+)*\Z")
_LABEL = re.compile(r"[A-ZÀ-Þ][^\W\dA-Z]*\Z|[^\W\d]+:?\s*\Z")
_STEM = re.compile(
    r"passw|passph|pwd|secret|token|key|auth|cred|example|sample|dummy|changeme|your|placeholder|redacted"
    r"|foo|bar"
    r"|test|geheim|contrase|passe|senha",
    re.I,
)
_NOT_SECRET = """
none null nil true false undefined str string strings text bytes byte bool boolean int integer number any
object optional required hidden disabled enabled default unset empty missing invalid unknown pass user
username login admin root bearer basic digest char varchar value values field input prompt int32 int64 uint8
uint64 uint256 bytes32 varchar2 utf8 utf-8 base64 sha1 sha256 sha512 md5 x509 oauth2 aes256 hs256 rs256
es256 inherit never always auto external internal public private anonymous self this geheim password
"""
_WORDS = frozenset(_NOT_SECRET.split())
_AFTER_AN_OPTION = """
option options argument arguments flag parameter switch setting instead when must should from with
"""
_OF_AN_OPTION = frozenset(_AFTER_AN_OPTION.split())
_PROSE = re.compile(
    r"(?:^|\s)(?:a|an|the|your|to|for|of|is|are|be|in|on|and|or|not|with|must|de|la|le|el|das|der|die|het|di"
    r"|do)(?:\s|$)",
    re.I,
)
_RANDOM = re.compile(r"[A-Za-z0-9+/=_.~%!@#^*-]{12,}\Z")
_HEX = re.compile(r"(?:[0-9a-f]{16,}|[0-9A-F]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}\Z")
_TURN = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[a-z])")


def find_named(text: str) -> Iterator[Span]:
    """The places of values whose name, scheme or address says that they are secret."""
    lowered = text.replace("\u0130", "I").lower()  # the one letter that grows in lower case
    for parts, pattern, is_one in _PLACES:
        if any(part in lowered for part in parts):
            yield from (match.span("value") for match in pattern.finditer(text) if is_one(match))
    end = 0
    for name in _NAME.finditer(lowered):
        if (
            name.start() >= end
            and (found := _VALUE.match(text, name.end())) is not None
            and _is_secret(text, lowered, name, found)
        ):
            start, end = found.span("quoted" if found["quote"] else "bare")
            if end - start > 250:  # a long value goes on
                rest = (_QUOTED_REST if found["quote"] else _BARE_REST).match(text, end)
                end = rest.end() if rest else end
            elif not found["quote"]:
                end = start + len(_trim(text[start:end]))
            yield start, end


def _is_secret(text: str, lowered: str, name: re.Match[str], found: re.Match[str]) -> bool:
    """Whether a name and what follows it are an assignment of a literal secret."""
    kind = _kind(text, lowered, name)
    if kind is None or not _STILL.match(found["rest"]):
        return False
    if not found["quote"] and _QUERY.search(text, max(0, name.start() - 40), name.start()):
        return not is_placeholder(found["bare"])
    if found["separator"] is None and not _stands_alone(text, name, found):
        return False
    value = found["quoted"] if found["quote"] else _trim(found["bare"])
    if not found["quote"] and ("=" in value.rstrip("=") or ":" in value):
        return False
    if len(value) < (1 if found["quote"] else 4) or value.lower() in _WORDS or _EXPRESSION.match(value):
        return False
    if is_random(value):
        return kind != "weak" or not (_UUID.match(value) or value.isdigit())
    if _DOTTED.match(value) or value[0] in " ),]+;" or is_placeholder(value):
        return False
    if kind != "weak" and _is_setting(text, name, found) and not _PROSE.search(value):
        return True
    if found["quote"]:
        return _is_quoted_secret(value, kind) or _is_quoted_setting(text, name, found, value, kind)
    return _is_bare_secret(text, name, found, value, kind)


def _is_setting(text: str, name: re.Match[str], found: re.Match[str]) -> bool:
    """Whether this is a line of a settings file: `SECRET_KEY=…`, with a value that is no name."""
    value = found["quoted"] or found["bare"]
    written = text[name.start() : name.end()] + found["rest"]
    return (found["separator"] or "").strip() == "=" and written.isupper() and not _LETTERS.match(value)


def _kind(text: str, lowered: str, name: re.Match[str]) -> Kind | None:
    """How likely a name makes its value a secret; None for a key of no special kind."""
    if name["weak"] is None:
        return "password" if name["password"] else "strong"
    if _KIND.search(lowered, max(0, name.start() - 12), name.start()):
        return "strong"
    return None if name["weak"] == "key" else "weak"


def _stands_alone(text: str, name: re.Match[str], found: re.Match[str]) -> bool:
    """Whether a value without `=` or `:` belongs to the name: an option, a line of .netrc, an element."""
    if found["tag"]:
        return text[name.start() - 1 : name.start()] == "<" and not found["rest"]
    before = text[max(0, name.start() - 80) : name.start()]
    value = found["quoted"] or found["bare"]
    if _NETRC.search(before):
        return True
    return _BEFORE_A_VALUE.search(before) is not None and (is_random(value) or "--" in before[-20:])


def _is_quoted_secret(value: str, kind: Kind) -> bool:
    if _LETTERS.match(value):
        return (kind == "strong" and _is_long_row(value)) or (
            kind == "password"
            and (" " in value or not _LABEL.match(value) or value.islower() or _turns(value) >= 4)
            and not _PROSE.search(value)
        )
    if _PROSE.search(value):
        return False
    return kind == "password" or (
        kind == "strong" and len(value) >= 6 and any(char.isdigit() for char in value)
    )


def _is_quoted_setting(text: str, name: re.Match[str], found: re.Match[str], value: str, kind: Kind) -> bool:
    """Whether a word in quotes is the value of `PASSWORD="…"` or `--password "…"`."""
    written = text[name.start() : name.end()] + found["rest"]
    is_setting = found["separator"] == "=" and written.isupper() and kind != "weak"
    is_option = found["separator"] is None and _is_given(text, name, found, value, kind)
    return (is_setting or is_option) and _LETTERS.match(value) is not None and not _PROSE.search(value)


def _is_bare_secret(text: str, name: re.Match[str], found: re.Match[str], value: str, kind: Kind) -> bool:
    follower = text[found.start("bare") + len(value) : found.end() + 1][:1]
    sure = kind == "password"
    if follower == "(":
        return False
    if _LETTERS.match(value):
        if follower in (",", ")"):
            return False
        if found["separator"] == "=" and _is_long_row(value):
            return True
        written = text[name.start() : name.end()] + found["rest"]
        is_setting = found["separator"] == "=" and (written.isupper() or (sure and value.islower()))
        is_named = is_setting or (sure and _turns(value) >= 4)
        return kind != "weak" and (is_named or _is_given(text, name, found, value, kind))
    if kind == "weak":
        return False
    if follower == ")" or value.isdigit():
        return sure and follower != ")"
    return sure or (any(char.isdigit() for char in value) and not value.isupper())


def _is_given(text: str, name: re.Match[str], found: re.Match[str], value: str, kind: Kind) -> bool:
    """Whether a word is a value because of where it stands: after an option, in a header or in .netrc."""
    before = text[max(0, name.start() - 80) : name.start()]
    if found["separator"] is None:
        is_switch = _SWITCH.search(before) or _PROMPTS.search(before) or value.lower() in _OF_AN_OPTION
        return kind == "password" and not is_switch
    if len(value) < 8 or found["separator"].strip() != ":":
        return False
    has_scheme = name.group() == "authorization" and found.end("separator") < found.start("bare")
    return has_scheme or _HEADER.search(before) is not None


def _is_long_row(value: str) -> bool:
    """Whether letters are more than hardly any word or name has, and all of one case."""
    return len(value) >= 16 and value.isascii() and value.isalpha() and (value.islower() or value.isupper())


def _is_credential(match: re.Match[str]) -> bool:
    """Whether what follows `Bearer` or `Basic` is more than the next word of a sentence."""
    value = match["value"]
    if match["basic"] is None:
        before = match.string[max(0, match.start() - 30) : match.start()]
        has_name = _AUTHORIZATION.search(before) is not None and not is_placeholder(value)
        return has_name or any(char.isdigit() for char in value)
    try:
        return is_random(value) or b":" in base64.b64decode(value, validate=True)
    except ValueError:
        return False


def _is_login(match: re.Match[str]) -> bool:
    value = match["value"]
    long = len(value) > 4 and ":" not in value
    return not is_placeholder(value) and (long or (len(value) > 3 and any(char.isdigit() for char in value)))


def _is_user_login(match: re.Match[str]) -> bool:
    """A login after `-u`, as opposed to the user and group that a container runs as."""
    before = match.string[max(0, match.start() - 200) : match.start()]
    return _is_login(match) and not _USER_AND_GROUP.search(before)


def is_random(value: str) -> bool:
    """Whether a value looks generated: letters, digits and cases alternate all the time."""
    if _HEX.match(value):
        return True
    turns = _turns(value)
    digits = sum(map(str.isdigit, value))
    return (
        bool(_RANDOM.match(value))
        and turns >= max(4, len(value) // 5)
        and (digits >= 2 or (digits == 1 and turns >= 10))
    )


def _turns(value: str) -> int:
    return len(_TURN.findall(value))


def is_placeholder(value: str) -> bool:
    """Whether a value stands for one: a common word, an expression, or `your_key_here`."""
    if value.lower() in _WORDS or _EXPRESSION.match(value) or not value.strip("*x.-_X#•:"):
        return True
    return _STEM.search(value) is not None and not is_random(value)


def _trim(value: str) -> str:
    return value.rstrip(",.)]}:")


_PLACES: tuple[tuple[tuple[str, ...], re.Pattern[str], Callable[[re.Match[str]], bool]], ...] = (
    (("pass",), _PASS, lambda match: not is_placeholder(match["value"]) and not match["value"].isdigit()),
    (("cookie",), _COOKIE, lambda match: is_random(match["value"])),
    (("bearer", "basic"), _SCHEME, _is_credential),
    (("://",), _ADDRESS, _is_login),
    (("-u ",), _LOGIN, _is_user_login),
)
