"""Completion: what may be meant by what stands before the cursor."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from swink.app.tui.editor.fuzzy import best
from swink.app.tui.editor.mentions import spell
from swink.app.tui.editor.submitted import is_command

MOST = 50


class Completion(Struct, frozen=True):
    """One thing that may be meant: `text` replaces what was typed so far, `label` and `help` are shown."""

    text: str
    label: str
    help: str = ""
    goes_on: bool = False
    """Whether more is to be typed after it: Enter takes it then, but does not send."""


class Offer(Struct, frozen=True):
    """Completions for the part of the cursor's line from `start` to the cursor."""

    start: int
    query: str
    items: tuple[Completion, ...]


class CommandWord(Struct, frozen=True):
    """A command as completion knows it; `choices` are what may follow it."""

    name: str
    usage: str = ""
    help: str = ""
    choices: Callable[[], Iterable[str]] | None = None
    other_names: tuple[str, ...] = ()


class Uses(NamedTuple):
    """How often a command was given, and which of all prompts was the last with it."""

    times: int = 0
    last: int = -1


def by_use(commands: Iterable[CommandWord], uses: Mapping[str, Uses]) -> list[CommandWord]:
    """The commands that are given most often first, then those given last, then by the alphabet."""

    def rank(word: CommandWord) -> tuple[int, int, str]:
        found = [uses.get(name, Uses()) for name in (word.name, *word.other_names)]
        return -sum(each.times for each in found), -max(each.last for each in found), word.name.lstrip("/#")

    return sorted(commands, key=rank)


def complete_command(line: str, commands: Iterable[CommandWord]) -> Offer | None:
    """What a line that begins a command may become; None if it is no command."""
    name, space, rest = line.partition(" ")
    if not is_command(line):
        return None
    known = list(commands)
    if not space:
        found = [word for word in known if word.name.startswith(name)]
        found.sort(key=lambda word: word.name != name)  # what stands there already comes first
        found = found or [word for word in known if any(other.startswith(name) for other in word.other_names)]
        found = found or best(name, known, lambda word: word.name, MOST)
        return Offer(0, name, tuple(_command_completion(word) for word in found))
    command = next((word for word in known if name in (word.name, *word.other_names)), None)
    if command is None or command.choices is None or " " in rest:
        return None
    choices = best(rest, list(dict.fromkeys(command.choices())), str, MOST)
    return Offer(len(name) + 1, rest, tuple(Completion(choice, choice) for choice in choices))


def complete_mention(
    start: int, query: str, paths: Sequence[str], commands: Iterable[CommandWord] = ()
) -> Offer:
    """What a mention may become: an agent, which is a command with an @, or a path; a directory goes on."""
    agents = [word for word in commands if word.name.startswith(f"@{query}")]
    named = [Completion(f"{word.name} ", word.name, word.help) for word in agents]
    return Offer(start, query, (*named, *map(_mention_completion, paths)))


def is_complete(offer: Offer, typed: str) -> bool:
    """Whether what was typed is one of the completions already: nothing is left to take."""
    return any(item.text.rstrip() == typed for item in offer.items)


def _mention_completion(path: str) -> Completion:
    if path.endswith("/"):  # it goes on, so a quotation mark stays open
        return Completion(spell(path).removesuffix('"'), path, goes_on=True)
    return Completion(spell(path) + " ", path)


def _command_completion(word: CommandWord) -> Completion:
    takes_more = bool(word.usage) and not word.usage.startswith("[")
    label = f"{word.name} {word.usage}".rstrip()
    text = word.name + " " if word.usage or word.choices else word.name
    return Completion(text, label, word.help, goes_on=takes_more)
