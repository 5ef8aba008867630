"""What of an agent's run goes out to a client of OpenAI's protocols: the agent's text and thinking.

Its own tool calls, their results and its sub-agents stay inside. A client cannot take back what it has read,
so the attempt after one that was shown and discarded has to begin with the same words, or the reply fails.
"""

from msgspec import Struct

from swink.events import (
    AgentEvent,
    MessageDiscarded,
    MessageEnd,
    MessageUpdate,
    TextDelta,
    ThinkingDelta,
)
from swink.messages import AssistantMessage, StopReason, ToolCall, Usage


class SpokenText(Struct, frozen=True, gc=False):
    """More text of the message that the agent is writing."""

    text: str


class SpokenThinking(Struct, frozen=True, gc=False):
    """More of what it thinks."""

    text: str


class MessageSpoken(Struct, frozen=True, gc=False):
    """The message is complete; another one may follow."""


Speech = SpokenText | SpokenThinking | MessageSpoken


class ReplyRestarted(Exception):
    """A new attempt says something else than the one whose text the client has."""

    def __str__(self) -> str:
        return "the reply broke off after part of it was sent, and a new attempt differs; ask again"


class RunOutcome(Struct, frozen=True):
    """How a run ended that did not fail."""

    calls: tuple[ToolCall, ...] = ()
    """Calls of the client's own tools, which wait for it."""
    is_cut: bool = False
    """Whether the last reply reached the limit of its length."""
    usage: Usage = Usage()
    json: str | None = None
    """The structured output that the client asked for, which goes out instead of what was said."""
    own: str | None = None
    """One that the agent has of its own and gave by a call; it goes out after what was said."""

    @property
    def reason(self) -> StopReason:
        """The stop reason of the reply as a whole."""
        return "tool_use" if self.calls else "length" if self.is_cut else "stop"


class Spoken:
    """Reads the events of one run in their order."""

    def __init__(self) -> None:
        self._sent: list[str] = []
        self._expected = ""
        self._is_repeated = False

    def take(self, event: AgentEvent) -> Speech | None:
        """What an event says to the client; raises `ReplyRestarted`."""
        match event:
            case MessageUpdate(TextDelta(_, text)):
                return self._say(text)
            case MessageUpdate(ThinkingDelta(_, text)) if not self._is_repeated:
                return SpokenThinking(text)
            case MessageDiscarded():
                self._expected, self._is_repeated = "".join(self._sent), True
                return None
            case MessageEnd(AssistantMessage() as message):
                if self._expected and not message.failed:
                    raise ReplyRestarted
                self._sent, self._expected, self._is_repeated = [], "", False
                return MessageSpoken()
            case _:
                return None

    def _say(self, text: str) -> SpokenText | None:
        if self._expected:
            size = min(len(text), len(self._expected))
            if text[:size] != self._expected[:size]:
                raise ReplyRestarted
            self._expected, text = self._expected[size:], text[size:]
            if not text:
                return None
        self._sent.append(text)
        return SpokenText(text)


class WholeSpeech:
    """All that a run says, for a client that reads it at its end: what was discarded is left out."""

    def __init__(self) -> None:
        self.pieces: list[Speech] = []
        self._spoken = Spoken()
        self._kept = 0

    def take(self, event: AgentEvent) -> None:
        """The next event of the run."""
        if isinstance(event, MessageDiscarded):
            del self.pieces[self._kept :]
            self._spoken = Spoken()
        elif (piece := self._spoken.take(event)) is not None:
            self.pieces.append(piece)
            if isinstance(piece, MessageSpoken):
                self._kept = len(self.pieces)
