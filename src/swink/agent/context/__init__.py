"""The context of a request: windows, summaries, and the guard of the cached prefix."""

from swink.agent.context.compaction import Summary as Summary
from swink.agent.context.windows import SlidingWindow as SlidingWindow
