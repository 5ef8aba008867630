"""EventCollector: the events of a run, kept for a test to look at."""

from typing import TypeVar

from swink.events import AgentEvent
from swink.testing.problems import nesting_problems

T = TypeVar("T")


class EventCollector:
    """A subscriber that keeps every event: `agent.subscribe(collector)`."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        """The events of one type."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def names(self) -> list[str]:
        """The names of the events, in order."""
        return [type(event).__name__ for event in self.events]

    def check(self) -> None:
        """Assert that every start has exactly one end, properly nested."""
        problems = nesting_problems(self.events)
        if problems:
            raise AssertionError("\n".join(problems))
