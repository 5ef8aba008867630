"""What the user can order by name: /model, /plan, … The pages and the help are made from this list."""

from swink.app.tui.commands import basic as basic  # they register their commands
from swink.app.tui.commands import conversations as conversations
from swink.app.tui.commands import editing as editing
from swink.app.tui.commands import models as models
from swink.app.tui.commands import permissions as permissions
from swink.app.tui.commands import talking as talking
from swink.app.tui.commands import workshop as workshop
from swink.app.tui.commands.registry import COMMANDS, Command, Desk, command, find_command, listed

__all__ = ["COMMANDS", "Command", "Desk", "command", "find_command", "listed"]
