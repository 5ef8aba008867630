"""Queues: messages that wait until a turn, or the end of a run, takes them."""

from collections.abc import Sequence

from swink.agent.config import QueueMode
from swink.messages import Message


class MessageQueue(list[Message]):
    """Messages that wait; calling it takes those that are due, one or all."""

    __slots__ = ("mode",)

    def __init__(self, mode: QueueMode) -> None:
        self.mode: QueueMode = mode

    def waits(self) -> bool:
        """Whether anything waits."""
        return len(self) > 0

    def drop(self, message: Message) -> bool:
        """Take out a message; False if it is not there."""
        for place, waiting in enumerate(self):
            if waiting is message:
                del self[place]
                return True
        return False

    def __call__(self) -> Sequence[Message]:
        if not self:
            return ()
        if self.mode == "one_at_a_time":
            return (self.pop(0),)
        taken = tuple(self)
        del self[: len(taken)]  # and not what another thread adds meanwhile
        return taken
