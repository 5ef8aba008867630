"""Messages that wait for their turn: steering and follow-ups."""

from collections.abc import Sequence
from typing import Literal

from swink.messages import Message

QueueMode = Literal["one_at_a_time", "all"]


class MessageQueue(list[Message]):
    """Waiting messages; calling it takes those that are due, one or all."""

    __slots__ = ("mode",)

    def __init__(self, mode: QueueMode) -> None:
        self.mode: QueueMode = mode

    def waits(self) -> bool:
        """Whether anything waits."""
        return len(self) > 0

    def __call__(self) -> Sequence[Message]:
        if not self:
            return ()
        if self.mode == "one_at_a_time":
            return (self.pop(0),)
        taken = tuple(self)
        del self[: len(taken)]  # and not what another thread adds meanwhile
        return taken
