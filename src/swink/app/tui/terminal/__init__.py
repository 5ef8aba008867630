"""The terminal: taken, watched and given back as it was, whatever happens.

run_app        runs an app that has the terminal to itself; its exit code
TerminalApp    such an app: what it does at its end, and what it may ask the terminal for
EnduringPart   a widget of it in which no error ends the program
Attention      tells a user who looks elsewhere that something waits
"""

from swink.app.tui.terminal.attention import Attention as Attention
from swink.app.tui.terminal.failures import EnduringPart as EnduringPart
from swink.app.tui.terminal.failures import describe_failure as describe_failure
from swink.app.tui.terminal.terminalapp import TerminalApp as TerminalApp
from swink.app.tui.terminal.terminalapp import run_app as run_app
