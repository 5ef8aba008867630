"""Queues: messages that wait until a turn, or the end of a run, takes them."""

from collections.abc import Sequence

from swink.agent.config import QUEUE_MODES, QueueMode
from swink.messages import Message
from swink.messages.checks import check_word


class MessageQueue(list[Message]):
    """Messages that wait; calling it takes those that are due, one or all."""

    __slots__ = ("mode",)

    def __init__(self, mode: QueueMode, name: str = "mode") -> None:
        self.mode: QueueMode = mode if mode in QUEUE_MODES else checked_mode(name, mode)

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


class Queues:
    """The two queues of an agent: steering for its next turn, follow-ups for when it would stop."""

    __slots__ = ("follow_up", "steering")

    def __init__(self, steering_mode: QueueMode, follow_up_mode: QueueMode) -> None:
        self.steering = MessageQueue(steering_mode, "steering_mode")
        self.follow_up = MessageQueue(follow_up_mode, "follow_up_mode")

    def __bool__(self) -> bool:
        return bool(self.steering or self.follow_up)

    def extend(self, steering: Sequence[Message], follow_up: Sequence[Message]) -> None:
        self.steering.extend(steering)
        self.follow_up.extend(follow_up)


def checked_mode(name: str, mode: QueueMode) -> QueueMode:
    """The mode, refused if there is none of that name."""
    if mode not in QUEUE_MODES:
        check_word(name, mode, QUEUE_MODES)
    return mode
