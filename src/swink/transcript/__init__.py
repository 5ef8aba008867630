"""Transcript: a conversation for people, as blocks; terminal interface, plain output and export show these.

event ─┐                                  ┌─ terminal interface (redraws what `since` names)
       ├─ Transcript.take ─→ blocks ──────┼─ export
record ┘                                  └─ whatever else shows a conversation
"""

from swink.transcript.blocklist import Changes as Changes
from swink.transcript.blocks import AgentStopped as AgentStopped
from swink.transcript.blocks import Block as Block
from swink.transcript.blocks import Compacted as Compacted
from swink.transcript.blocks import Custom as Custom
from swink.transcript.blocks import Discarded as Discarded
from swink.transcript.blocks import Ended as Ended
from swink.transcript.blocks import Fallback as Fallback
from swink.transcript.blocks import Notice as Notice
from swink.transcript.blocks import NoticeBlock as NoticeBlock
from swink.transcript.blocks import PromptBlock as PromptBlock
from swink.transcript.blocks import ReplyBlock as ReplyBlock
from swink.transcript.blocks import Retrying as Retrying
from swink.transcript.blocks import Spent as Spent
from swink.transcript.blocks import ThinkingBlock as ThinkingBlock
from swink.transcript.blocks import ToolBlock as ToolBlock
from swink.transcript.blocks import ToolState as ToolState
from swink.transcript.blocks import lasting as lasting
from swink.transcript.diffs import Diff as Diff
from swink.transcript.diffs import Hunk as Hunk
from swink.transcript.diffs import Line as Line
from swink.transcript.diffs import diff as diff
from swink.transcript.folding import Transcript as Transcript
from swink.transcript.replies import Totals as Totals
