"""The table of settings: what each means, and what it takes as its type says, for messages and the page.

name                       a setting of its own
table.name                 one in a table, as in [sandbox]
table.NAME.name            one in a table of tables, as in [mcp.files]
"""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct

ANY = "NAME"
"""Stands for a name that the user gives."""


TEXTS: dict[str, tuple[str, str]] = {
    "default_model": ("the model of a new conversation", '"anthropic:claude-sonnet-4-6"'),
    "approve": ("which calls you are asked about; `--approve` and `#approve` win", '"smart"'),
    "save": ("whether conversations are saved", "false"),
    "title": ("titles of conversations: words of the first prompt, or asked of the model", '"words"'),
    "theme": ("the look of the terminal", '"dark"'),
    "thinking": ("how thoughts are shown", '"shown"'),
    "busy_enter": ("what Enter does while the agent works; Alt+Enter does the other", '"queue"'),
    "notifications": ("the bell or a notification while you look elsewhere", "false"),
    "editor": ("your editor; it wins over `$EDITOR`", '"code --wait"'),
    "snapshot_megabytes": ("how much a snapshot may add", "200"),
    "snapshot_files": ("how many files a snapshot may have", "20000"),
    "fallbacks": ("models that are asked when the first fails", '["openai:gpt-5.4-mini"]'),
    "retries": ("how often a failed request is sent again", "10"),
    "web_search": ("the provider's own web search, where it has one", "true"),
    "status_line": ("a status line of your own, with [fields](tui.md)", '"{model} {cost}"'),
    "status_command": ("a command that writes the status line", '"~/bin/status"'),
    "sandbox": ("where commands run and what they reach", '[sandbox] and below it network = "ask"'),
    "sandbox.level": ("where commands of the agent run: in the sandbox, or with your rights", '"none"'),
    "sandbox.network": ("what they reach; a list names the domains that are reached unasked", '"ask"'),
    "sandbox.writable": ("further directories that they may write, as `--add-dir`", '["~/other"]'),
    "sandbox.home": ("whether file tools and a shell are there in the home directory itself", "true"),
    "local": ("how local models run", '[local] and below it gpu = "off"'),
    "local.gpu": ("whether they use a GPU that works, or how many layers go there", '"off"'),
    "providers": ("servers of your own", '[providers.mine] and below it kind = "openai"'),
    "providers.NAME.kind": ("which API the server speaks", '"openai"'),
    "providers.NAME.base_url": ("its address", '"http://127.0.0.1:8000/v1"'),
    "providers.NAME.key_env": ("the environment variable with its key", '"MY_KEY"'),
    "providers.NAME.models": ("its models", '["qwen3"]'),
    "diagnostics": ("whether edits are checked", '[diagnostics.mine] and below it command = "mine"'),
    "diagnostics.NAME": ("whether a known checker is used", "false"),
    "diagnostics.NAME.command": ("a checker of your own; it is given the file", '"mine --check"'),
    "diagnostics.NAME.files": ("which files it is for", '"*.c"'),
    "keys": ("other keys", '[keys] and below it help = "f12"'),
    "keys.NAME": ("another key, by the names in [the table of keys](keys.md#keys)", '"f12"'),
    "mcp_deferred": (
        "whether tools of MCP servers are [found when they are needed](../library/tools-at-scale.md) instead "
        "of being in every request; auto: if they take more than 5 % of the model's window",
        "true",
    ),
    "mcp": ("MCP servers", '[mcp.files] and below it command = "npx"'),
    "mcp.NAME": (
        "an MCP server: `command`, `args`, `env`, `cwd`, or `url`, `headers`; it starts in a directory of "
        'its own, and `cwd = "."` is the folder, where that is trusted',
        '[mcp.files] and below it command = "npx"',
    ),
    "hooks": (
        "[shell hooks](hooks.md): `event`, `command`, `matcher`, `timeout`, `names`; a table for each",
        '[[hooks]] and below it event = "Stop"',
    ),
}
"""What each setting means, and an example of what it takes."""
_INNER = ("path", "problems")
"""Fields that are no settings."""


class SettingRow(Struct, frozen=True):
    """One setting: how it is written, what it takes, what holds without it, and what it means."""

    name: str
    takes: str
    default: str
    meaning: str


def takes(settings: type[Struct], name: str) -> str:
    """What a setting of the top level takes, for a message: its type in words, and an example."""
    kind = _kind(get_type_hints(settings, include_extras=True)[name])
    example = TEXTS[name][1]
    return f"{kind}, e.g. {example if 'and below' in example else f'{name} = {example}'}"


def setting_rows(settings: type[Struct]) -> list[SettingRow]:
    """All settings, in the order of the code."""
    return list(_rows(settings, ""))


def page_table(settings: type[Struct]) -> str:
    """The settings as a table in Markdown."""
    lines = ["| setting | takes | default | meaning |", "|---|---|---|---|"]
    for row in setting_rows(settings):
        cells = (f"`{_written(row.name)}`", row.takes, f"`{row.default}`" if row.default else "", row.meaning)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _rows(settings: type[Struct], above: str) -> Iterator[SettingRow]:
    hints = get_type_hints(settings, include_extras=True)
    for field in msgspec.structs.fields(settings):
        if above or field.name not in _INNER:
            yield from _rows_of(f"{above}{field.name}", hints[field.name], _default(field))


def _rows_of(name: str, hint: Any, default: str) -> Iterator[SettingRow]:
    """The rows of a setting: its own, and those of the table that it is."""
    parts = _parts(hint)
    is_named = name.endswith(f".{ANY}")
    plain = [part for part in parts if not _is_table(part)]
    if plain or (is_named and any(get_origin(part) is dict for part in parts)):
        meaning, example = TEXTS[name]
        kind = _join([_kind(part) for part in plain]) if plain else "a table"
        needs_none = (
            "of" in kind.split()[:2] or "true" in kind or "and below" in example or example == default
        )
        yield SettingRow(name, kind if needs_none else f"{kind}, e.g. `{example}`", default, meaning)
    for part in parts:
        if isinstance(part, type) and issubclass(part, Struct):
            yield from _rows(part, f"{name}.")
        elif get_origin(part) is dict and not is_named:
            yield from _rows_of(f"{name}.{ANY}", get_args(part)[1], "")


def _kind(hint: Any) -> str:
    """A type in words."""
    parts = _parts(hint)
    if len(parts) > 1:
        return _join([_kind(part) for part in parts])
    (part,) = parts
    if part is bool:
        return "true or false, without quotes"
    if part is int:
        return "a number of at least 0, without quotes"
    if get_origin(part) is Literal:
        return f"one of {', '.join(get_args(part))}"
    if get_origin(part) is tuple:
        return "a list of texts" if get_origin(get_args(part)[0]) is not dict else "a list of tables"
    if get_origin(part) is dict:
        return "a table of texts" if get_args(part)[1] is str else "a table of tables"
    return "a text" if part is str else "a table"


def _parts(hint: Any) -> list[Any]:
    """The types that a hint stands for, without what only narrows them, and without None."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _parts(get_args(hint)[0])
    if origin in (Union, UnionType):
        return [part for each in get_args(hint) for part in _parts(each) if part is not NoneType]
    return [hint]


def _is_table(part: Any) -> bool:
    return get_origin(part) is dict or (isinstance(part, type) and issubclass(part, Struct))


def _join(words: list[str]) -> str:
    return ", or ".join(dict.fromkeys(words))


def _default(field: Any) -> str:
    """What holds without a setting, as TOML would have it; empty if nothing does."""
    default = field.default if field.default is not NODEFAULT else None
    if default is None or isinstance(default, Struct | dict):
        return ""
    return msgspec.json.encode(default).decode()


def _written(name: str) -> str:
    """A name as it is written in the file: the table in brackets before it."""
    *tables, last = name.split(".")
    if last == ANY and tables and tables[0] == "mcp":
        return f"[{name}]"
    return f"[{'.'.join(tables)}] {last}" if tables else last
