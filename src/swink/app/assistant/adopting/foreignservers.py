"""MCP servers of another program as ours; a secret is never copied, it becomes `${VARIABLE}`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from swink.app.assistant.adopting.findings import Adoptable, NewServer, Places
from swink.app.assistant.adopting.theirfiles import table, texts
from swink.errors import AgentError
from swink.messages.redact import redact_text
from swink.stream.urls import is_secret_header

_REFERENCE = re.compile(r"\$\{\w+(?::-[^}]*)?\}")
_SECRET = re.compile(r"key|token|secret|passw|pwd|auth|credential|cookie|private|session|dsn|_pat\b", re.I)
_GIVEN_SECRET = re.compile(
    r"://[^/\s]*@|[?&][^=&\s]*(?:key|token|secret)=|--?[\w-]*(?:key|token|secret|passw\w*)[\s=]+(?![-$\s])\S",
    re.I,
)
_PLAIN = re.compile(r"(?:true|false|on|off|debug|info|warn\w*|error|production|development|\d{1,6})", re.I)
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_WORDS = ("command", "args", "cwd", "url")
_TAKEN = (*_WORDS, "env", "headers", "disabled")


class _CannotBeHad(Exception):
    pass


def find_servers_of(source: Path, servers: Any, places: Places, *, is_users: bool) -> Iterator[Adoptable]:
    """What becomes of servers that are written in our form: `command`, `args`, `env`, `url`, `headers`."""
    for name, given in table(servers).items():
        try:
            if not is_users:
                raise _CannotBeHad("belongs to the project: write it into .mcp.json there")
            fields, told = _converted(name, table(given))
        except _CannotBeHad as error:
            yield Adoptable("server", source, name, "cannot", str(error))
            continue
        known = places.settings.mcp.get(name)
        if known == fields:
            yield Adoptable("server", source, name, "here", "is here already, in config.toml")
        elif known is not None:
            yield Adoptable("server", source, name, "cannot", f"[mcp.{name}] in config.toml is another one")
        else:
            becomes = f"becomes [mcp.{name}] in config.toml{told}"
            yield Adoptable("server", source, name, "new", becomes, NewServer(name, fields))


def _converted(name: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Our fields, and what is to be told about them; raises `_CannotBeHad`."""
    if not _NAME.fullmatch(name):
        raise _CannotBeHad("has a name that is none here")
    if given.get("type") == "sse" or given.get("transport") == "sse":
        raise _CannotBeHad("speaks SSE alone, which swink does not")
    fields = {key: given[key] for key in _TAKEN if given.get(key) not in (None, {}, [], False)}
    hidden: list[str] = []
    copied: list[str] = []
    for key in ("env", "headers"):
        if key in fields:
            values = {str(inner): value for inner, value in table(fields[key]).items()}
            fields[key] = {
                inner: _without_secret(name, key, inner, value, hidden, copied)
                for inner, value in values.items()
            }
    words = [*texts(fields.get("args")), *(str(fields.get(key, "")) for key in _WORDS if key != "args")]
    if any(map(_holds_secret, [*words, " ".join(words)])):
        raise _CannotBeHad("has a secret in its command line or URL: write it anew, with ${VARIABLE}")
    _check(name, fields)
    told = f"; set {', '.join(hidden)} in the environment, secrets are not copied" if hidden else ""
    return fields, told + (f"; copies the values of {', '.join(copied)}" if copied else "")


def _without_secret(
    server: str, key: str, name: str, value: Any, hidden: list[str], copied: list[str]
) -> str:
    """A value to write: as it is if it holds no secret, else a reference to a variable."""
    if not isinstance(value, str | int | float):
        raise _CannotBeHad(f"{key} of {name} is no text")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if found := _REFERENCE.findall(text):
        if _is_harmless(name, _REFERENCE.sub("", text).removeprefix("Bearer ").strip()):
            return text
        raise _CannotBeHad(f"{name} is partly a reference ({found[0]}) and partly a secret")
    is_secret = bool(_SECRET.search(name)) or (key == "headers" and is_secret_header(name))
    if not is_secret and (_PLAIN.fullmatch(text) or _is_harmless(name, text)):
        copied.append(name)
        return text
    variable = re.sub(r"\W", "_", name if key == "env" else f"{server}_{name}").upper()
    if not variable[:1].isalpha() and not variable.startswith("_"):
        raise _CannotBeHad(f"{name} is no name of a variable")
    hidden.append(variable)
    return f"${{{variable}}}"


def _is_harmless(name: str, text: str) -> bool:
    """Whether a value looks like a path, a word or an address rather than like a secret."""
    if redact_text(f"{name}={text}") != f"{name}={text}" or "@" in text or "$" in text:
        return False
    return all(len(word) < 20 or not re.search(r"\d", word) for word in re.split(r"[\s/\\:,.=-]", text))


def _holds_secret(words: str) -> bool:
    """Whether a part of a command line or an address looks like a secret, or follows an option for one."""
    return redact_text(words) != words or _GIVEN_SECRET.search(words) is not None


def _check(name: str, fields: dict[str, Any]) -> None:
    from swink.mcp.serverconfig import servers_from  # most people have no servers

    try:
        servers_from({"mcpServers": {name: cast("Any", fields)}})
    except (AgentError, TypeError, ValueError) as error:
        raise _CannotBeHad(f"is no server here: {redact_text(str(error))}") from error
