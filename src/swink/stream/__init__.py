"""What models say: the stream protocol, the assembly of its events into a message, and the writer of them."""

from swink.stream.assembly import DEEPEST as DEEPEST
from swink.stream.assembly import Assembly as Assembly
from swink.stream.assembly import accumulate as accumulate
from swink.stream.assembly import parse_arguments as parse_arguments
from swink.stream.protocol import AssistantMessageEvent as AssistantMessageEvent
from swink.stream.protocol import Delta as Delta
from swink.stream.protocol import Done as Done
from swink.stream.protocol import Error as Error
from swink.stream.protocol import LlmContext as LlmContext
from swink.stream.protocol import Start as Start
from swink.stream.protocol import StreamFn as StreamFn
from swink.stream.protocol import StreamOptions as StreamOptions
from swink.stream.protocol import TextDelta as TextDelta
from swink.stream.protocol import TextEnd as TextEnd
from swink.stream.protocol import TextStart as TextStart
from swink.stream.protocol import ThinkingDelta as ThinkingDelta
from swink.stream.protocol import ThinkingEnd as ThinkingEnd
from swink.stream.protocol import ThinkingStart as ThinkingStart
from swink.stream.protocol import Timeout as Timeout
from swink.stream.protocol import ToolCallDelta as ToolCallDelta
from swink.stream.protocol import ToolCallEnd as ToolCallEnd
from swink.stream.protocol import ToolCallStart as ToolCallStart
from swink.stream.protocol import ToolSpec as ToolSpec
from swink.stream.protocol import decode_event as decode_event
from swink.stream.protocol import encode_event as encode_event
from swink.stream.writer import BlockWriter as BlockWriter
