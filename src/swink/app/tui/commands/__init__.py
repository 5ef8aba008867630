"""What the user can order by name: /model, /plan, … The pages and the help are made from this list."""

from swink.app.tui.commands import basic as basic  # they register their commands
from swink.app.tui.commands import environmentcommands as environmentcommands
from swink.app.tui.commands import modelcommands as modelcommands
from swink.app.tui.commands import sessioncommands as sessioncommands
from swink.app.tui.commands import talking as talking
from swink.app.tui.commands.commandtable import (
    COMMANDS,
    CommandContext,
    SlashCommand,
    command,
    find_command,
    listed,
)

__all__ = ["COMMANDS", "CommandContext", "SlashCommand", "command", "find_command", "listed"]
