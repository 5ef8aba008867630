"""Subscribers: synchronous fan-out of events, in order; one that fails is dropped, and the run goes on."""

import logging
from collections.abc import Callable

from swink.engine.waiting import raise_soon
from swink.events import AgentEvent

log = logging.getLogger("swink.agent")


class Subscription:
    """A subscriber's handle: call it, or leave its `with` block, to unsubscribe."""

    __slots__ = ("_subscribers", "callback")

    def __init__(self, subscribers: "Subscribers", callback: Callable[[AgentEvent], None]) -> None:
        self._subscribers = subscribers
        self.callback = callback

    def __call__(self) -> None:
        self._subscribers.remove(self)

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *error: object) -> None:
        self()


class Subscribers:
    """Whoever listens. Joining and leaving during a dispatch take effect after it."""

    __slots__ = ("current",)

    def __init__(self) -> None:
        self.current: tuple[Subscription, ...] = ()

    def add(self, callback: Callable[[AgentEvent], None]) -> Subscription:
        """Call back with every later event."""
        subscription = Subscription(self, callback)
        self.current = (*self.current, subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Call it no more."""
        self.current = tuple(item for item in self.current if item is not subscription)

    def notify(self, event: AgentEvent) -> None:
        """Tell everyone, in the order they joined."""
        for subscription in self.current:
            try:
                subscription.callback(event)
            except (KeyboardInterrupt, SystemExit) as error:
                self.remove(subscription)
                raise_soon(error)
            except BaseException:
                # A subscriber watches; its failure is not the run's.
                log.exception("a subscriber failed and was removed")
                self.remove(subscription)
