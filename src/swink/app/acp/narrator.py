"""What happens in a conversation, as updates for an editor: live from events, or again from what was saved.

words and thoughts    as they arrive, a message id for each attempt
calls                 from the blocks of the transcript, which knows what became of each
todo list             the plan
everything else       notices, usage, what left the context
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from swink.app.acp.calls import describe, images, progress_content, result_content
from swink.app.acp.parameters import EditorAbilities
from swink.events import (
    AgentEvent,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    StateChanged,
    ToolExecutionUpdate,
    TurnEnd,
)
from swink.events.transcript import (
    Block,
    Compacted,
    Custom,
    Ended,
    NoticeBlock,
    PromptBlock,
    ReplyBlock,
    Spent,
    ThinkingBlock,
    ToolBlock,
    Transcript,
)
from swink.messages import AssistantMessage, Message, UserMessage
from swink.stream import BlockAdded, TextDelta, ThinkingDelta, ToolCallDelta
from swink.tools.coding.todo import STATE_KEY

Update = Mapping[str, Any]
_PAUSE = 0.2
"""Seconds between two looks at what a running call prints."""
_PLAN = {"pending": "pending", "in_progress": "in_progress", "done": "completed"}


class Narrator:
    """Tells an editor what becomes of one conversation; `send` gets each update."""

    def __init__(
        self,
        send: Callable[[Update], None],
        directory: Path,
        abilities: EditorAbilities,
        window: Callable[[], int | None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._directory = directory
        self._abilities = abilities
        self._window = window
        self._clock = clock
        self.transcript = Transcript(clock=clock)
        self._ids: dict[str, tuple[str, str, bool]] = {}
        """By the id of a call, which may come twice: its id here, its block, and whether it is settled."""
        self._begun: set[str] = set()
        self._last_told: dict[str, Mapping[str, Any]] = {}
        self._count = 0
        self._has_words = False
        """Whether something of the reply that is being made was sent."""
        self._printed: dict[str, float] = {}
        self._sent_output: dict[str, int] = {}
        self._compactions = 0

    # ── what the editor sees again ──

    def replay(self, transcript: Transcript, state: Mapping[str, Any]) -> None:
        """Tell all of a saved conversation, which then goes on."""
        self.transcript = transcript
        for block in transcript.blocks:
            self._replay_block(block)
        self._tell_plan(state.get(STATE_KEY))
        self.tell_usage()

    def take_up(self, transcript: Transcript) -> None:
        """Go on with a conversation that the editor knows."""
        self.transcript = transcript
        for block in transcript.blocks:
            if isinstance(block, ToolBlock):
                self._begun.add(self._id_of(block))

    def _replay_block(self, block: Block) -> None:
        match block:
            case PromptBlock():
                self._tell_words("user_message_chunk", block.text, block.images)
            case ThinkingBlock(text=text):
                self._count += 1
                self._tell_words("agent_thought_chunk", text)
            case ReplyBlock(text=text):
                self._count += 1
                self._tell_words("agent_message_chunk", text, block.images)
            case ToolBlock():
                self._tell_call(block)
            case NoticeBlock():
                self._tell_notice(block)

    # ── what happens now ──

    def take(self, event: AgentEvent, own: Sequence[Message] = ()) -> None:
        """Tell what happened; the editor knows its `own` messages."""
        version = self.transcript.version if type(event) is not MessageUpdate else 0
        self.transcript.take(event)
        match event:
            case MessageUpdate(TextDelta(text=text)):
                self._has_words = True
                self._tell_words("agent_message_chunk", text)
                return
            case MessageUpdate(ThinkingDelta(text=text)):
                self._tell_words("agent_thought_chunk", text)
                return
            case MessageUpdate(ToolCallDelta()):
                return
            case MessageUpdate(BlockAdded()):
                return
            case MessageUpdate():
                self._tell_blocks(list(self.transcript.blocks[-1:]))
                return
            case MessageStart("assistant") | MessageDiscarded():
                self._count += 1
                self._has_words = False
            case MessageEnd(UserMessage() as message) if not any(message is each for each in own):
                self._count += 1
                self._tell_words("user_message_chunk", message.text, message.content)
            case MessageEnd(AssistantMessage() as message):
                self._tell_words(
                    "agent_message_chunk", "" if self._has_words else message.text, message.content
                )
            case StateChanged(delta) if STATE_KEY in delta:
                self._tell_plan(delta[STATE_KEY])
            case TurnEnd():
                self.tell_usage()
            case ToolExecutionUpdate(call_id, update=str() as text) if self._abilities.shows_output:
                self._tell_output(call_id, text)
                return
            case _:
                pass
        changed = self.transcript.since(version)
        if isinstance(event, MessageDiscarded):
            self._withdraw_calls()
        self._tell_blocks(list(changed.blocks.values()))

    def notify(self, text: str, severity: str = "info") -> None:
        """Tell the person something of our own: as a notice, or quoted among the words."""
        if self._abilities.shows_notices:
            self._send({"sessionUpdate": "notice", "severity": severity, "title": text})
        else:
            self._count += 1
            quoted = "".join([f"> {line}\n" for line in text.splitlines()])
            self._tell_words("agent_message_chunk", f"{quoted}\n")
            self._count += 1

    def call_id(self, call_id: str) -> str:
        """The id by which the editor knows a call."""
        return self._ids[call_id][0] if call_id in self._ids else call_id

    def tell_usage(self) -> None:
        """Tell how full the context is and what the conversation has cost."""
        window, totals = self._window(), self.transcript.spent
        if window is None or not totals.replies:
            return
        update: dict[str, Any] = {"sessionUpdate": "usage_update", "used": totals.context, "size": window}
        if totals.is_priced:
            update["cost"] = {"amount": totals.cost.total, "currency": "USD"}
        self._send(update)

    # ── how ──

    def _tell_words(self, kind: str, text: str, content: Sequence[Any] = ()) -> None:
        blocks = [{"type": "text", "text": text}] if text else []
        for block in (*blocks, *images(content)):
            self._send({"sessionUpdate": kind, "content": block, "messageId": f"m{self._count}"})

    def _tell_blocks(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            match block:
                case ToolBlock():
                    self._tell_call(block)
                case NoticeBlock():
                    self._tell_notice(block)
                case _:
                    pass

    def _tell_notice(self, block: NoticeBlock) -> None:
        match block.notice:
            case Spent() | Ended(stop_reason="aborted" | "error"):
                pass  # the usage is told, and so is how the turn ended
            case Compacted() as notice if self._abilities.shows_compaction:
                self._tell_compaction(notice)
            case Custom(data=data) as notice if not notice.text and data is None:
                pass
            case notice:
                self.notify(str(notice))

    def _tell_compaction(self, notice: Compacted) -> None:
        self._compactions += 1
        about = {"compactionId": f"c{self._compactions}"}
        self._send({"sessionUpdate": "compaction_update", **about, "status": "in_progress"})
        text = {"type": "text", "text": notice.summary or str(notice)}
        self._send({"sessionUpdate": "compaction_summary_chunk", **about, "content": text})
        self._send({"sessionUpdate": "compaction_update", **about, "status": "completed"})

    def _tell_plan(self, tasks: Any) -> None:
        if not isinstance(tasks, list):
            return
        entries = [_plan_entry(task) for task in cast("list[Any]", tasks)]
        self._send({"sessionUpdate": "plan", "entries": entries})

    def _id_of(self, block: ToolBlock) -> str:
        known = self._ids.get(block.call_id)
        if known is None or (known[2] and (not block.is_settled or block.id != known[1])):
            id = block.call_id if known is None and block.call_id else f"{block.call_id}@{block.id}"
        else:
            id = known[0]
        self._ids[block.call_id] = id, block.id, block.is_settled
        return id

    def _tell_call(self, block: ToolBlock) -> None:
        if not block.call_id:
            return
        id = self._id_of(block)
        fields = {"toolCallId": id, **describe(block, self._directory)}
        shows_terminal = self._abilities.shows_output and fields["kind"] == "execute"
        if block.is_settled:
            self._printed.pop(id, None)
            fields |= {"content": result_content(block, self._directory)}
            if shows_terminal and id in self._begun:
                fields |= self._end_terminal(id, block)
        elif block.state == "running" and not shows_terminal:
            if block.output or self.transcript.inside(block):
                if self._clock() - self._printed.get(id, float("-inf")) < _PAUSE:
                    return
                self._printed[id] = self._clock()
            fields |= {"content": progress_content(block, self.transcript.inside(block))}
        if id in self._begun:
            if self._last_told.get(id) != fields:
                self._send({"sessionUpdate": "tool_call_update", **fields})
            self._remember(block, id, fields)
            return
        self._begun.add(id)
        self._remember(block, id, fields)
        if shows_terminal and not block.is_settled:
            about = {"terminal_id": id, "cwd": str(self._directory)}
            fields |= {"content": [{"type": "terminal", "terminalId": id}], "_meta": {"terminal_info": about}}
        self._send({"sessionUpdate": "tool_call", **fields})

    def _remember(self, block: ToolBlock, id: str, fields: Mapping[str, Any]) -> None:
        """What the editor knows of a call that is not settled, so that it is not told the same again."""
        if block.is_settled:
            self._last_told.pop(id, None)
        else:
            self._last_told[id] = fields

    def _tell_output(self, call_id: str, text: str) -> None:
        """What a command prints, for a terminal that only shows it: the command runs in our sandbox."""
        id = self.call_id(call_id)
        self._sent_output[id] = self._sent_output.get(id, 0) + len(text)
        output = {"terminal_id": id, "data": text}
        update = {"sessionUpdate": "tool_call_update", "toolCallId": id, "_meta": {"terminal_output": output}}
        self._send(update)

    def _end_terminal(self, id: str, block: ToolBlock) -> dict[str, Any]:
        printed = self._sent_output.pop(id, 0)
        if not printed and block.text:
            output = {"terminal_id": id, "data": block.text}
            self._send(
                {"sessionUpdate": "tool_call_update", "toolCallId": id, "_meta": {"terminal_output": output}}
            )
        match block.details:
            case {"exit_code": int() as code}:
                pass
            case _:
                code = None
        ended = {"terminal_id": id, "exit_code": code, "signal": None}
        return {"content": [{"type": "terminal", "terminalId": id}], "_meta": {"terminal_exit": ended}}

    def _withdraw_calls(self) -> None:
        """Calls of an attempt that failed will never run."""
        for call_id, (id, block_id, is_settled) in self._ids.items():
            if not is_settled:
                self._ids[call_id] = id, block_id, True
                self._send({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"})


def _plan_entry(task: Any) -> dict[str, Any]:
    match task:
        case {"text": str() as text, "status": str() as status}:
            return {"content": text, "priority": "medium", "status": _PLAN.get(status, "pending")}
        case _:
            return {"content": str(task), "priority": "medium", "status": "pending"}
