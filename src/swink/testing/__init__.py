"""What ships for tests: a scripted model, a chaotic one, a collector of events, finders of problems, and
the conformance kit for stream functions."""

from swink.testing.chaos import ChaosModel as ChaosModel
from swink.testing.conformance import check_stream_fn as check_stream_fn
from swink.testing.problems import EventCollector as EventCollector
from swink.testing.problems import history_problems as history_problems
from swink.testing.problems import nesting_problems as nesting_problems
from swink.testing.problems import stream_problems as stream_problems
from swink.testing.samples import HISTORY as HISTORY
from swink.testing.samples import TEXT_PROMPT as TEXT_PROMPT
from swink.testing.samples import TOOL as TOOL
from swink.testing.samples import TOOL_PROMPT as TOOL_PROMPT
from swink.testing.samples import ToolOnOffer as ToolOnOffer
from swink.testing.scripted import Pause as Pause
from swink.testing.scripted import Piece as Piece
from swink.testing.scripted import ScriptedModel as ScriptedModel
from swink.testing.scripted import deltas as deltas
from swink.testing.scripted import script as script
from swink.testing.sessionstores import check_session_store as check_session_store
