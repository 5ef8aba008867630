"""What the user can order by name: /model, /plan, … The pages and the help are made from this list."""

from swink.app.tui.commands import basic as basic  # they register their commands
from swink.app.tui.commands import environmentcommands as environmentcommands
from swink.app.tui.commands import guidecommands as guidecommands
from swink.app.tui.commands import modelcommands as modelcommands
from swink.app.tui.commands import reviewcommands as reviewcommands
from swink.app.tui.commands import servercommands as servercommands
from swink.app.tui.commands import sessioncommands as sessioncommands
from swink.app.tui.commands import skillcommands as skillcommands
from swink.app.tui.commands import talking as talking
from swink.app.tui.commands import worktreecommands as worktreecommands
from swink.app.tui.commands.commandtable import COMMANDS as COMMANDS
from swink.app.tui.commands.commandtable import CommandContext as CommandContext
from swink.app.tui.commands.commandtable import SlashCommand as SlashCommand
from swink.app.tui.commands.commandtable import command as command
from swink.app.tui.commands.commandtable import find_command as find_command
from swink.app.tui.commands.commandtable import listed as listed
