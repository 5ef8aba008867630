"""Fixtures of these tests: those of the command line's."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "cli"))

from command_line import place as place
from command_line import provider as provider
