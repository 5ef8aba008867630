"""Fixtures of the command line's tests."""

from command_line import place as place
from command_line import provider as provider
from command_line import weights as weights
