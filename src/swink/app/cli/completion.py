"""`swink completion`: scripts for bash, zsh and fish, made from the parser."""

import argparse
from collections.abc import Iterator, Sequence

from msgspec import Struct

from swink.app.cli.commands import make_parser
from swink.app.cli.parsers import CommandParser
from swink.models import catalog
from swink.models.keys.accounts import ACCOUNTS


class Option(Struct, frozen=True):
    """An option: its spellings, what it is for, and whether a value follows; `values` are the known ones."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    values: tuple[str, ...] = ()


class CommandWords(Struct, frozen=True):
    """What may follow a command: words with their descriptions, and options."""

    path: tuple[str, ...]
    words: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]


def completion_command(arguments: argparse.Namespace) -> int:
    """Print the script of a shell."""
    commands = list(walk(make_parser()))
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](commands))
    return 0


def walk(parser: CommandParser, path: tuple[str, ...] = ()) -> Iterator[CommandWords]:
    """Every command of a parser, the outermost first."""
    words: list[tuple[str, str]] = []
    options: list[Option] = []
    below = parser.commands
    for action in parser.actions:
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action.choices, dict):
            words += [(name, inner.summary) for name, inner in below.items()]
        elif action.option_strings:
            names = tuple(action.option_strings)
            help = (action.help or "") % {"prog": parser.prog, "default": action.default}
            options.append(Option(names, help, action.nargs != 0, _values(action)))
        else:
            words += [(value, "") for value in _values(action)]
    yield CommandWords(path, tuple(words), tuple(options))
    for name, inner in below.items():
        yield from walk(inner, (*path, name))


def _values(action: argparse.Action) -> tuple[str, ...]:
    """The known values of an argument; others may be valid too."""
    if action.choices is not None:
        return tuple(str(choice) for choice in action.choices)
    match action.metavar:
        case str(words) if "|" in words:
            return tuple(word for word in words.split("|") if not word.isupper())
        case "MODEL":
            return tuple(str(spec) for spec in catalog.models())
        case "PROVIDER":
            return tuple(name for name, account in ACCOUNTS.items() if not account.shares)
        case "NAME":
            return tuple(spec.model_id for spec in catalog.models("local"))
        case _:
            return ()


def _bash(commands: Sequence[CommandWords]) -> str:
    cases: list[str] = []
    for command in commands:
        names = [name for option in command.options for name in option.names]
        words = " ".join([*(word for word, _ in command.words), *names])
        cases.append(f"{_quoted(' '.join(command.path))}) words={_quoted(words)} ;;")
    values = [
        f"{_quoted(place)}) words={_quoted(' '.join(found))}; takes=1 ;;"
        for place, found in _option_values(commands)
    ]
    return _BASH.format(cases=_indented(cases), values=_indented(values), known=_known(commands, "|"))


def _zsh(commands: Sequence[CommandWords]) -> str:
    cases: list[str] = []
    for command in commands:
        described = list(command.words)
        described += [(name, option.help) for option in command.options for name in option.names]
        found = " ".join(_quoted(f"{word.replace(':', chr(92) + ':')}:{text}") for word, text in described)
        cases.append(f"({_quoted(' '.join(command.path))}) found=({found}) ;;")
    values = [
        f"({_quoted(place)}) found=({' '.join(map(_quoted, known))}); compadd -a found; return ;;"
        for place, known in _option_values(commands)
    ]
    return _ZSH.format(cases=_indented(cases), values=_indented(values), known=_known(commands, "|"))


def _fish(commands: Sequence[CommandWords]) -> str:
    lines: list[str] = []
    for command in commands:
        here = _quoted(" ".join(("__swink_at", *command.path)))
        for word, text in command.words:
            lines.append(f"complete -c swink -n {here} -a {_quoted(word)}{_fish_description(text)}")
        for option in command.options:
            spelled = " ".join(("-l " if "--" in name else "-s ") + name.lstrip("-") for name in option.names)
            value = " -x" if option.takes_value else ""
            value += f" -a {_quoted(' '.join(option.values))}" if option.values else ""
            lines.append(f"complete -c swink -n {here} {spelled}{value}{_fish_description(option.help)}")
    return _FISH.format(known=_known(commands, " "), lines="\n".join(lines))


def _option_values(commands: Sequence[CommandWords]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """For each option that takes a value, as "command/--option", the values."""
    for command in commands:
        for option in command.options:
            for name in option.names if option.takes_value else ():
                yield f"{' '.join(command.path)}/{name}", option.values


def _known(commands: Sequence[CommandWords], between: str) -> str:
    return between.join(_quoted(" ".join(command.path)) for command in commands if command.path)


def _indented(lines: Sequence[str]) -> str:
    return "\n".join(f"        {line}" for line in lines)


def _fish_description(text: str) -> str:
    return f" -d {_quoted(text)}" if text else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_BASH = """\
# Completion of swink: eval "$(swink completion bash)", or keep it where your shell looks for such files.
_swink() {{
    local line="${{COMP_LINE:0:COMP_POINT}}" at="" current="" words="" takes="" word next tokens=()
    # Read from the line itself: COMP_WORDS splits provider:model at its colon.
    read -ra tokens <<< "$line"
    if [[ "$line" != *[[:space:]] ]]; then
        current="${{tokens[${{#tokens[@]}}-1]}}"
        tokens=("${{tokens[@]:0:${{#tokens[@]}}-1}}")
    fi
    for word in "${{tokens[@]:1}}"; do
        next="${{at:+$at }}$word"
        case "$next" in {known}) at="$next" ;; esac
    done
    case "$at/${{tokens[${{#tokens[@]}}-1]}}" in
{values}
    esac
    [[ -n "$takes" ]] || case "$at" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    # readline replaces only what follows the last colon.
    if [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
        COMPREPLY=("${{COMPREPLY[@]#"${{current%"${{current##*:}}"}}"}}")
    fi
    return 0
}}
complete -o default -F _swink swink"""

_ZSH = """\
#compdef swink
# Completion of swink: eval "$(swink completion zsh)", or keep it as _swink in a directory of $fpath.
_swink() {{
    local at="" word next
    local -a found
    for word in ${{words[2,CURRENT-1]}}; do
        next="${{at:+$at }}$word"
        case "$next" in ({known}) at="$next" ;; esac
    done
    case "$at/${{words[CURRENT-1]}}" in
{values}
    esac
    case "$at" in
{cases}
    esac
    _describe swink found || _files
}}
if [[ "$funcstack[1]" == _swink ]]; then _swink "$@"; else compdef _swink swink; fi"""

_FISH = """\
# Completion of swink: swink completion fish | source, or keep it as ~/.config/fish/completions/swink.fish.
function __swink_at
    set -l at
    for word in (commandline -opc)[2..]
        contains -- (string join -- " " $at $word) {known}; and set at $at $word
    end
    test "$at" = "$argv"
end
complete -c swink -f
{lines}"""
