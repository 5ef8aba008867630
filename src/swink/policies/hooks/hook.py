"""One hook: the command, the event that it is for, and which tools it wants to hear of."""

import re
from functools import lru_cache
from typing import Literal, get_args

from msgspec import Struct

from swink.errors import InvalidInput

Event = Literal[
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact",
    "SubagentStop", "Stop", "SessionEnd", "Notification",
]  # fmt: skip
EVENTS: tuple[Event, ...] = get_args(Event)
GUARDS: frozenset[Event] = frozenset({"PreToolUse", "PermissionRequest"})
"""The events whose hooks fail closed."""
TIMEOUT = 60.0
MOST_SECONDS = 24 * 3600.0
_PLAIN = re.compile(r"[\w|]*")


class Hook(Struct, frozen=True):
    """A command for an event.

    `matcher` names tools, with `|` between them, or is a regular expression; empty or `*` is every tool. For
    SessionStart, PreCompact and Notification it names what began them. With `foreign_names` the matcher and
    the payload have the other program's names of tools and arguments, else ours.

    Args:
        timeout: seconds for the command
    """

    event: Event
    command: str
    matcher: str = ""
    timeout: float = TIMEOUT
    foreign_names: bool = False
    source: str = ""
    """Where it was configured, for people."""

    def __post_init__(self) -> None:
        if self.event not in EVENTS:
            raise InvalidInput(f"there is no event {self.event!r} for hooks; there are {', '.join(EVENTS)}")
        if not self.command.strip():
            raise InvalidInput(f"a hook for {self.event} needs a command")
        if not 0 < self.timeout <= MOST_SECONDS:
            raise InvalidInput(f"the timeout of a hook is in seconds, above 0; not {self.timeout!r}")

    @property
    def fails_closed(self) -> bool:
        """Whether it blocks when it cannot answer."""
        return self.event in GUARDS

    @property
    def problem(self) -> str:
        """What is wrong with its matcher; it is taken to match everything then."""
        return _compiled(self.matcher)[1]

    def matches(self, *names: str) -> bool:
        """Whether it wants to hear of any of these; one without names is for everybody."""
        pattern, _ = _compiled(self.matcher)
        return pattern is None or not names or any(pattern.search(name) for name in names)


@lru_cache(maxsize=256)
def _compiled(matcher: str) -> tuple[re.Pattern[str] | None, str]:
    if matcher in ("", "*"):
        return None, ""
    try:
        # A plain name is that tool alone: Edit does not mean NotebookEdit.
        return re.compile(rf"\A(?:{matcher})\Z" if _PLAIN.fullmatch(matcher) else matcher), ""
    except (re.error, RecursionError, OverflowError) as error:
        return None, f"the matcher {matcher!r} is no regular expression ({error}), so it matches every tool"
