"""Transcript: a conversation for people, as blocks; terminal interface, plain output and export show these.

event ─┐                                  ┌─ terminal interface (redraws what `since` names)
       ├─ Transcript.take ─→ blocks ──────┼─ export
record ┘                                  └─ whatever else shows a conversation
"""

from swink.events.transcript.blockkinds import AgentStopped as AgentStopped
from swink.events.transcript.blockkinds import Block as Block
from swink.events.transcript.blockkinds import Compacted as Compacted
from swink.events.transcript.blockkinds import Custom as Custom
from swink.events.transcript.blockkinds import Discarded as Discarded
from swink.events.transcript.blockkinds import Ended as Ended
from swink.events.transcript.blockkinds import Fallback as Fallback
from swink.events.transcript.blockkinds import Notice as Notice
from swink.events.transcript.blockkinds import NoticeBlock as NoticeBlock
from swink.events.transcript.blockkinds import PromptBlock as PromptBlock
from swink.events.transcript.blockkinds import ReplyBlock as ReplyBlock
from swink.events.transcript.blockkinds import Retrying as Retrying
from swink.events.transcript.blockkinds import Spent as Spent
from swink.events.transcript.blockkinds import ThinkingBlock as ThinkingBlock
from swink.events.transcript.blockkinds import ToolBlock as ToolBlock
from swink.events.transcript.blockkinds import ToolState as ToolState
from swink.events.transcript.blockkinds import lasting as lasting
from swink.events.transcript.blocklist import Changes as Changes
from swink.events.transcript.diffs import Diff as Diff
from swink.events.transcript.diffs import Hunk as Hunk
from swink.events.transcript.diffs import Line as Line
from swink.events.transcript.diffs import diff as diff
from swink.events.transcript.folding import Transcript as Transcript
from swink.events.transcript.replies import Totals as Totals
