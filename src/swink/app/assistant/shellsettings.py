"""Shell settings: level, network and further roots of the agent's shell, as they hold now.

config.toml → the command line → /permissions in this session → narrowed by [sandbox] of a trusted project
"""

import os
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import msgspec
from msgspec.structs import replace

from swink.app.assistant.settings import SandboxSettings
from swink.errors import MisuseError
from swink.tools.coding.wishes import HostPattern, Wish, parse_pattern

PROJECT_FILE = ".swink/config.toml"
NETWORKS = ("ask", "off", "on")
LEVELS: tuple[str, ...] = get_args(get_type_hints(SandboxSettings)["level"])
_MOST_BYTES = 1 << 16
_UNKNOWN = "it is not known whether there is a sandbox"


class ShellSettings:
    """What a person chose, for good or for this session, less what a trusted project takes away."""

    def __init__(self, user: SandboxSettings = SandboxSettings()) -> None:
        self.user = user
        self._said: dict[str, Any] = {}
        self._project: Mapping[str, Any] = {}
        self.find_trouble: Callable[[], Awaitable[str]] = _nothing_known
        """Says why commands cannot be sandboxed here; empty if they can."""
        self.is_current: Callable[[object], bool] = lambda tool: False
        """Whether a tool was made with the settings as they are now; a turn keeps its tools to its end."""
        self._trouble = _UNKNOWN

    def confines(self, tool: object) -> bool:
        """Whether a tool runs its commands in a sandbox whose network is asked about, as `look` found."""
        return not self._why_open() and not self._trouble and self.is_current(tool)

    async def look(self) -> str:
        """Why commands are not confined now; empty if they are."""
        self._trouble = self._why_open() or await self.find_trouble()
        return self._trouble

    def _why_open(self) -> str:
        if self.now.level == "none":
            return 'level = "none" in [sandbox]'
        return 'network = "on" in [sandbox]' if self.now.network == "on" else ""

    @property
    def now(self) -> SandboxSettings:
        """What holds now."""
        return self._narrowed[0]

    @property
    def notices(self) -> list[str]:
        """What the project wants and does not get."""
        return self._narrowed[1]

    @property
    def chosen(self) -> SandboxSettings:
        """What the person chose, the project aside."""
        return replace(self.user, **self._said)

    @property
    def _narrowed(self) -> tuple[SandboxSettings, list[str]]:
        return narrow(self.chosen, self._project)

    def choose(self, name: str, text: str) -> None:
        """Take a value from the command line or for this session; raises `MisuseError`."""
        match name:
            case "level":
                self._said["level"] = parse_level(text)
            case "network":
                self._said["network"] = parse_network(text)
            case "writable":
                if not os.path.isdir(place := os.path.expanduser(text)):
                    raise MisuseError(f"{text} is no directory")
                self._said["writable"] = (*self.chosen.writable, os.path.realpath(place))
            case _:
                raise MisuseError(f"there is no {name!r} of the sandbox; there are level, network, writable")

    def follow(self, project: Path | None) -> list[str]:
        """Read what a trusted project takes away; returns what is wrong with it. Blocking."""
        self._project, problems = ({}, []) if project is None else read_project(project)
        return [*problems, *self.notices]

    def lines(self) -> list[tuple[str, str]]:
        """What holds now, for people: each setting and what it means."""
        now = self.now
        is_open = now.level == "none"
        level = (
            "commands have your own rights" if is_open else "commands write only here and in their temp files"
        )
        found = [(f"sandbox {now.level}", level)]
        if is_open:
            found.append(("network on", "without the sandbox nothing limits it"))
        else:
            shown = now.network if isinstance(now.network, str) else ",".join(now.network)
            found.append((f"network {shown}", describe_network(now)))
        return [*found, *((f"writable {place}", "besides this folder") for place in now.writable)]


async def _nothing_known() -> str:
    return _UNKNOWN


def parse_level(text: str) -> str:
    """A level as a person writes it."""
    if text not in LEVELS:
        raise MisuseError(f"{text!r} is no level of the sandbox; there are {', '.join(LEVELS)}")
    return text


def parse_network(text: str) -> str | tuple[str, ...]:
    """What of the network commands reach, as a person writes it: a word, or domains with commas."""
    if text in NETWORKS:
        return text
    found = tuple(part for part in (part.strip() for part in text.split(",")) if part)
    if not found or any("." not in part and ":" not in part for part in found):
        how = f"write {', '.join(NETWORKS)}, or domains such as pypi.org,files.pythonhosted.org"
        raise MisuseError(f"{text!r} says nothing about the network; {how}")
    for part in found:
        parse_pattern(part)
    return found


def describe_network(now: SandboxSettings) -> str:
    """What of the network commands reach, in a few words."""
    match now.network:
        case "ask":
            return "commands ask about each domain"
        case "off":
            return "commands reach nothing"
        case "on":
            return "commands reach everything that no rule denies"
        case _:
            return "commands reach these domains and no others"


def read_project(project: Path) -> tuple[Mapping[str, Any], list[str]]:
    """What a project's own file takes away, and what is wrong with it; a broken one takes the network."""
    path = project / PROJECT_FILE
    try:
        if not os.path.lexists(path):
            return {}, []
        if not path.is_file():  # to read a pipe would wait for a writer
            raise OSError("it is not a file")
        with open(path, "rb") as file:
            data = tomllib.loads(file.read(_MOST_BYTES).decode())
        table = data.get("sandbox", {})
        msgspec.convert(table, SandboxSettings)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        why = f"{path} cannot be used: {error}; commands have no network until it is corrected"
        return {"network": "off"}, [why]
    others = sorted(name for name in data if name != "sandbox")
    ignored = [f"{path}: only [sandbox] is read of it, not {', '.join(others)}"] if others else []
    return cast(Mapping[str, Any], table), ignored


def narrow(wide: SandboxSettings, project: Mapping[str, Any]) -> tuple[SandboxSettings, list[str]]:
    """What is left of the user's settings, and what the project wants beyond them."""
    told: list[str] = []

    def refuse(name: str, value: object, allowed: object) -> None:
        has = f"yours allow {allowed!r}" if allowed else "yours do not"
        told.append(f"{PROJECT_FILE} wants {name} = {value!r} in [sandbox], {has}: it is not taken")

    level, network, writable = wide.level, wide.network, wide.writable
    if "level" in project and project["level"] != level:
        if level == "none":
            level = project["level"]
        else:
            refuse("level", project["level"], level)
    if "network" in project:
        wanted = project["network"] if isinstance(project["network"], str) else tuple(project["network"])
        network, beyond = _narrow_network(network, wanted)
        if beyond:
            refuse("network", beyond, wide.network)
    if "writable" in project:
        wanted = tuple(project["writable"])
        writable = tuple(place for place in wanted if place in writable)
        if beyond := [place for place in wanted if place not in wide.writable]:
            refuse("writable", beyond, wide.writable)
    if project.get("home") and not wide.home:
        refuse("home", True, None)
    return replace(wide, level=level, network=network, writable=writable), told


def _narrow_network(
    wide: str | tuple[str, ...], wanted: str | tuple[str, ...]
) -> tuple[Any, str | Sequence[str] | None]:
    """What of the network is left, and what is wanted beyond it."""
    match wide, wanted:
        case _ if wide == wanted:
            return wide, None
        case (_, "off") | ("on", _):
            return wanted, None
        case tuple(), tuple():
            inside = tuple(entry for entry in wanted if any(_covers(other, entry) for other in wide))
            return inside, [entry for entry in wanted if entry not in inside] or None
        case _:
            return wide, wanted


def _covers(wide: str, entry: str) -> bool:
    """Whether a pattern allows all that another one does."""
    outer, inner = parse_pattern(wide), parse_pattern(entry)
    return all(outer.allows(wish) or outer == inner for wish in _examples(inner)) and (
        not inner.domain.below or outer.domain.below
    )


def _examples(pattern: HostPattern) -> list[Wish]:
    name = f"x.{pattern.domain.name}" if pattern.domain.below else pattern.domain.name
    return [Wish(name, port, pattern.addresses) for port in pattern.domain.ports]
