"""Calls: the tool calls of a reply, from the question whether they may run to their results."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from swink.events import NestedEvent, ToolExecutionStart, ToolExecutionUpdate
from swink.events.transcript.blockkinds import ToolBlock, ToolState
from swink.events.transcript.blocklist import BlockList
from swink.messages import ToolResult, ToolResultMessage

if TYPE_CHECKING:
    from swink.events.transcript.folding import Transcript

CALLS = "calls"
"""What the calls that a call makes itself stand under, beside the agents that it runs."""
_OUTPUT = 20_000
"""Characters of a running tool's output that are kept, the last ones."""
_ENDINGS: tuple[tuple[str, ToolState], ...] = (
    ("tool call cancelled", "cancelled"),
    ("tool call rejected", "rejected"),
    ("tool call not run", "rejected"),
)
"""How the results of calls begin that never ran, or not to their end."""


class Calls:
    """The calls of the last reply among the blocks of a transcript, and the agents that they run."""

    def __init__(
        self, blocks: BlockList, clock: Callable[[], float], transcript: "Callable[[], Transcript]"
    ) -> None:
        self.places: dict[str, int] = {}
        """Where the block of each is, by the id of the call."""
        self.inside: dict[str, dict[str, Transcript]] = {}
        """For the block of each the transcripts of the agents that it runs, by their names."""
        self._blocks = blocks
        self._clock = clock
        self._transcript = transcript

    def __iter__(self) -> Iterator[ToolBlock]:
        return (block for call_id in self.places if (block := self._block(call_id)) is not None)

    def forget(self) -> None:
        """Another reply begins: the calls of the one before do not change any more."""
        self.places = {}

    def start(self, event: ToolExecutionStart) -> None:
        asked = self._block(event.call_id)
        if asked is not None:
            ran_with = None if asked.arguments == event.arguments else event.arguments
            self.change(event.call_id, state="running", ran_with=ran_with, started=self._clock())

    def report(self, event: ToolExecutionUpdate) -> None:
        """A call that runs has something to say."""
        block, update = self._block(event.call_id), event.update
        if isinstance(update, NestedEvent):
            self._enter("" if block is None else block.id, update)
            self.change(event.call_id)
        elif isinstance(update, str) and block is not None:
            self.change(event.call_id, output=(block.output + update)[-_OUTPUT:])
        else:
            self.change(event.call_id, progress=update)

    def take_made(self, outer: str, event: Any) -> None:
        """Let the transcript of the calls that a call makes itself take what happened to one of them."""
        block = self._block(outer)
        inner = self.inside.setdefault("" if block is None else block.id, {}).setdefault(
            CALLS, self._transcript()
        )
        inner.meet(ToolBlock(event.call_id, event.call_id, event.name, getattr(event, "arguments", {})))
        inner.take(replace(event, outer=UNSET))
        self.change(outer)

    def meet(self, block: ToolBlock) -> None:
        """Add the block of a call that no message has, once."""
        if block.call_id not in self.places:
            self.places[block.call_id] = len(self._blocks)
            self._blocks.append(block)

    def settle(self, call_id: str, result: ToolResult | ToolResultMessage) -> None:
        """A call has its result."""
        block = self._block(call_id)
        if block is None:
            return
        duration = None if block.started is None else self._clock() - block.started
        self.change(
            call_id,
            content=result.content,
            details=result.details,
            state=_state_of(result),
            duration=duration if block.duration is None else block.duration,
        )

    def take_result(self, message: ToolResultMessage, number: int) -> None:
        """The message of a result; where nobody knows of its call, it gets a block of its own."""
        if message.tool_call_id not in self.places:
            block = ToolBlock(str(number), message.tool_call_id, message.tool_name)
            self.places[block.call_id] = len(self._blocks)
            self._blocks.append(block)
        self.settle(message.tool_call_id, message)

    def change(self, call_id: str, **fields: Any) -> None:
        """Put another block in the place of a call's; without fields only what is inside has changed."""
        block = self._block(call_id)
        if block is not None:
            changed = replace(block, **fields)
            if not fields or changed != block:
                self._blocks.put(self.places[call_id], changed)

    def _enter(self, id: str, nested: NestedEvent) -> None:
        """Let the transcript of the agent take its event, or hand it on to the agent further in."""
        name, *further = nested.path
        agents = self.inside.setdefault(id, {})
        inner = agents.get(name) or agents.setdefault(name, self._transcript())
        if not further:
            inner.take(nested.event)
            return
        calls = nested.calls[1:]
        event = NestedEvent(tuple(further), nested.event, calls)
        inner.take(ToolExecutionUpdate(calls[0] if calls else "", further[0], event))

    def _block(self, call_id: str) -> ToolBlock | None:
        place = self.places.get(call_id)
        block = None if place is None else self._blocks.items[place]
        return block if isinstance(block, ToolBlock) else None


def _state_of(result: ToolResult | ToolResultMessage) -> ToolState:
    if not result.is_error:
        return "done"
    text = result.text
    for beginning, state in _ENDINGS:
        if text.startswith(beginning):
            return state
    return "failed"
