"""Activity: what the agent is doing, as its events tell it."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swink.events import AgentEnd, AgentEvent, AgentStart, MessageEnd, MessageStart, MessageUpdate
from swink.events.kinds import CustomEvent, ModelFallback, RetryScheduled, TurnStart
from swink.messages import AssistantMessage
from swink.stream import TextDelta, ThinkingDelta, ToolCallDelta

_CHARACTERS = 4.0  # of a token, about
_SOON = 0.5  # seconds before a rate says something
State = Literal["idle", "running", "error", "aborted"]
Clock = Callable[[], float]


class Activity(Struct, frozen=True):
    """What the agent is doing; times are on the driver's clock."""

    state: State = "idle"
    turn: int = 0
    since: float | None = None
    """When the run began."""
    retry_at: float | None = None
    """When the next attempt is made."""
    reading: tuple[int, int] | None = None
    """Tokens of the prompt that the model has read, and all of them."""
    loading: str = ""
    """What has to be there before the model can answer."""

    def after(self, event: AgentEvent, now: float) -> "Activity":
        """What it is once that has happened."""
        match event:
            case TurnStart(turn):
                return replace(self, turn=turn)
            case RetryScheduled(delay=delay):
                return replace(self, retry_at=now + delay)
            case MessageUpdate() | MessageStart() | AgentStart() | AgentEnd() | ModelFallback():
                return replace(self, retry_at=None, reading=None, loading="")
            case CustomEvent("prompt_progress", {"done": int(done), "total": int(total)}):
                return replace(self, reading=(done, total), loading="")
            case _:
                return self

    def ended(self, state: State) -> "Activity":
        """What is left when a run has ended."""
        return replace(self, state=state, retry_at=None, reading=None, loading="")


class Pace:
    """How fast replies come, in tokens a second."""

    def __init__(self, clock: Clock) -> None:
        self.last: float | None = None  # of the last reply
        self._clock = clock
        self._since: float | None = None
        self._characters = 0

    @property
    def now(self) -> float | None:
        """Of the reply that streams, as far as its length tells."""
        seconds = self._seconds()
        return self._characters / _CHARACTERS / seconds if seconds > _SOON else self.last

    def take_event(self, event: AgentEvent) -> None:
        """Take the next event of the run."""
        match event:
            case MessageUpdate(delta):
                self._since = self._clock() if self._since is None else self._since
                if isinstance(delta, TextDelta | ThinkingDelta | ToolCallDelta):
                    text = delta.json if isinstance(delta, ToolCallDelta) else delta.text
                    self._characters += len(text)
            case MessageEnd(AssistantMessage(usage=usage)):
                seconds = self._seconds()
                self.last = usage.output / seconds if seconds > _SOON and usage.output else None
                self._since, self._characters = None, 0
            case TurnStart():
                self._since, self._characters = None, 0
            case _:
                pass

    def _seconds(self) -> float:
        return 0.0 if self._since is None else self._clock() - self._since
