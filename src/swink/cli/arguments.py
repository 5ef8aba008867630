"""The arguments of every command, and the name of its function, whose module is imported when it is used."""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

from swink import __version__
from swink.approvals import APPROVAL_WORDS, MEANINGS, parse_approval
from swink.errors import MisuseError

_AGE = re.compile(r"(\d{1,6})(min|[hdwy])")
_SECONDS = {"min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_FIRST_OPTIONS = ("-h", "--help", "--version")
_THINKING = ("off", "minimal", "low", "medium", "high", "extra_high")


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of one call, a chat if it names no command; wrong ones exit with 2 and the usage."""
    words = list(argv)
    debug = False
    while words[:1] == ["--debug"]:
        debug = True
        words.pop(0)
    if not words or (words[0].startswith("-") and words[0] not in _FIRST_OPTIONS):
        words.insert(0, "chat")
    arguments = make_parser().parse_args(words)
    arguments.debug = arguments.debug or debug
    return arguments


def make_parser() -> "CommandParser":
    """The parser; shell completion is made from it too."""
    parser = CommandParser(
        prog="swink",
        description="Agents on the command line. Without a command: a chat.",
        epilog="Exit codes: 0 done, 1 a model or the run failed, 2 usage, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"swink {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_chat(commands)
    _add_sessions(commands)
    _add_models(commands)
    _add_keys(commands)
    _add_mcp(commands)
    _add_servers(commands)
    _add_doctor(commands)
    _add_completion(commands)
    return parser


class CommandParser(argparse.ArgumentParser):
    """Refuses unknown arguments with its own usage; argparse shows that of the outermost parser."""

    summary = ""

    @property
    def actions(self) -> list[argparse.Action]:
        """The options, arguments and commands of this parser."""
        return self._actions

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help or usage; argparse ignores that this fails."""
        (file or sys.stderr).write(message)

    def parse_known_args(self, *args: Any, **keywords: Any) -> Any:
        """The arguments; an unknown one is reported before one that is missing."""
        required = [action for action in self._actions if action.required]
        for action in required:
            action.required = False
        _, unknown = super().parse_known_args(*args[:1])
        for action in required:
            action.required = True
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return super().parse_known_args(*args, **keywords)


def _add_run(commands: Any) -> None:
    run = _command(commands, "run", "swink.cli.answering:run_command", "answer one prompt and exit")
    run.add_argument(
        "prompt", nargs="*", metavar="PROMPT", help="what to ask; text on standard input is added to it"
    )
    _add_conversation(run)
    run.add_argument(
        "--coding",
        action="store_true",
        help="with the tools that swink has for this directory: files, search, a sandboxed shell",
    )
    run.add_argument("--deadline", metavar="SECONDS", type=_seconds, help="end the run after so long")
    run.add_argument(
        "--output",
        choices=("text", "json"),
        default="text",
        help="text: the reply as it arrives (default); json: one event per line, the last one of type result",
    )
    run.add_argument(
        "--session",
        metavar="ID|new",
        help="go on with a saved session, or begin one; its id is told on stderr (default: nothing is saved)",
    )


def _add_chat(commands: Any) -> None:
    chat = _command(
        commands,
        "chat",
        "swink.cli.chat:chat_command",
        "talk in the terminal (what swink does without a command)",
    )
    _add_conversation(chat)
    which = chat.add_mutually_exclusive_group()
    which.add_argument(
        "--continue",
        dest="continue_newest",
        action="store_true",
        help="go on with the newest session of this directory",
    )
    which.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="go on with a session, by any unique part of its id; without an ID choose from a list",
    )
    which.add_argument(
        "--no-session", action="store_true", help="save nothing (save = false in config.toml: never)"
    )
    chat.add_argument("--plain", action="store_true", help="chat line by line, without the screen")
    chat.add_argument(
        "--plan",
        action="store_true",
        help="begin in plan mode: only tools that change nothing",
    )


def _add_conversation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-C", dest="directory", metavar="DIR", help="work in this directory")
    parser.add_argument("-m", "--model", metavar="MODEL", help='"provider:model"; see swink models list')
    parser.add_argument("-s", "--system", metavar="TEXT", help="the system prompt")
    parser.add_argument(
        "-t",
        "--tool",
        metavar="MODULE:FUNCTION",
        action="append",
        default=[],
        help="a function, a tool or a list of tools that the model may use; "
        "modules of the current directory are found (repeatable)",
    )
    parser.add_argument(
        "--approve",
        type=_approval,
        metavar="|".join(APPROVAL_WORDS),
        help=f"tool calls: {', '.join(f'{word}: {meaning}' for word, meaning in MEANINGS.items())} "
        "(default: approve in config.toml, else smart)",
    )
    parser.add_argument(
        "--max-turns", metavar="N", type=_count, help="at most so many replies of the model in a run"
    )
    parser.add_argument("--budget", metavar="DOLLARS", type=_amount, help="stop before a run costs more")
    parser.add_argument("--thinking", choices=_THINKING, help="how hard the model thinks")
    parser.add_argument("--temperature", metavar="T", type=_amount, help="randomness of the reply")
    parser.add_argument("--max-tokens", metavar="N", type=_count, help="length limit of each reply")


def _add_sessions(commands: Any) -> None:
    module = "swink.cli.sessions"
    actions = _group(
        commands, "sessions", "saved conversations: list, search, export, delete", f"{module}:list_command"
    )
    listing = _command(actions, "list", f"{module}:list_command", "all of them, the newest first")
    listing.add_argument("--json", action="store_true", help="one JSON document instead")
    show = _with_id(actions, "show", f"{module}:show_command", "what was said in one")
    show.add_argument("--json", action="store_true", help="one JSON document instead")
    search = _command(actions, "search", f"{module}:search_command", "messages with some words")
    search.add_argument("words", nargs="+", metavar="WORDS", help="all of them, or '\"a phrase\"'")
    search.add_argument("--limit", metavar="N", type=_count, default=20, help="default: %(default)s")
    search.add_argument("--json", action="store_true", help="one JSON document instead")
    fork = _with_id(actions, "fork", f"{module}:fork_command", "a new session that begins like another one")
    fork.add_argument("--at", metavar="N", type=_number, help="with the first N messages (default: all)")
    tree = _command(actions, "tree", f"{module}:tree_command", "which session was forked from which")
    tree.add_argument("id", nargs="?", metavar="ID", help="the family of one session only")
    tree.add_argument("--json", action="store_true", help="one JSON document instead")
    export = _with_id(actions, "export", "swink.cli.exporting:export_command", "a conversation as a document")
    export.add_argument(
        "--format", choices=("json", "md", "html"), help="by default what FILE ends with, else md (Markdown)"
    )
    export.add_argument("-o", "--out", metavar="FILE", help="where to write it (default: standard output)")
    export.add_argument("--force", action="store_true", help="overwrite FILE")
    check = _command(actions, "check", f"{module}:check_command", "look for damage and say what was lost")
    check.add_argument("id", nargs="?", metavar="ID", help="one session only")
    check.add_argument("--repair", action="store_true", help="mend it: what can be read is kept")
    remove = _command(actions, "rm", f"{module}:remove_command", "delete sessions")
    remove.add_argument("ids", nargs="*", metavar="ID", help="any unique part of its id")
    remove.add_argument("--older-than", metavar="AGE", type=_age, help="all not used for so long, e.g. 30d")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    rename = _with_id(actions, "rename", f"{module}:rename_command", "give a session another title")
    rename.add_argument("title", nargs="*", metavar="TITLE")
    rename.add_argument(
        "--ask", action="store_true", help="ask a model for the title: one request, at its price"
    )
    rename.add_argument("-m", "--model", metavar="MODEL", help="the model to ask (default: the session's)")


def _add_models(commands: Any) -> None:
    actions = _group(commands, "models", "list, fetch and delete models", "swink.cli.models:list_command")
    listing = _command(
        actions,
        "list",
        "swink.cli.models:list_command",
        "models with limits and prices, and what is on this machine",
    )
    listing.add_argument("provider", nargs="?", metavar="PROVIDER", help="of one provider only")
    show = _command(actions, "show", "swink.cli.models:show_command", "all that is known of a model")
    show.add_argument("model", metavar="MODEL", help="as PROVIDER:MODEL")
    update = _command(
        actions,
        "update",
        "swink.cli.refresh:update_command",
        "fetch the newest prices and limits through your package index",
    )
    update.add_argument("--reset", action="store_true", help="go back to the list that came with swink")
    pull = _command(actions, "pull", "swink.cli.models:pull_command", "fetch a local model")
    pull.add_argument("name", metavar="NAME", help="e.g. smollm2-135m or hf/OWNER/REPO")
    remove = _command(actions, "rm", "swink.cli.models:remove_command", "delete a local model")
    remove.add_argument("name", metavar="NAME", help="as swink models list shows it")


def _add_keys(commands: Any) -> None:
    actions = _group(
        commands,
        "keys",
        "store API keys, in the keychain if there is one",
        "swink.cli.key_commands:list_command",
    )
    keep = _command(
        actions,
        "set",
        "swink.cli.key_commands:set_command",
        "store a key: asked for on the terminal, or read from standard input",
    )
    keep.add_argument("provider", metavar="PROVIDER")
    # Taken only to be refused: the usage error for a word too many would show the key.
    keep.add_argument("key", nargs="*", default=[], help=argparse.SUPPRESS)
    _command(
        actions,
        "list",
        "swink.cli.key_commands:list_command",
        "which keys there are, and where; never the keys themselves",
    )
    remove = _command(actions, "rm", "swink.cli.key_commands:remove_command", "forget a stored key")
    remove.add_argument("provider", metavar="PROVIDER")


def _add_mcp(commands: Any) -> None:
    module = "swink.cli.mcp_commands"
    actions = _group(
        commands, "mcp", "MCP servers: list them, log in to them, log out", f"{module}:list_command"
    )
    _command(
        actions, "list", f"{module}:list_command", "which servers there are here, and where you are logged in"
    )
    login = _command(
        actions, "login", f"{module}:login_command", "log in to a server in the browser; its tokens are kept"
    )
    login.add_argument("name", metavar="NAME", help="as swink mcp list shows it")
    login.add_argument(
        "--no-browser", action="store_true", help="only print the address to open, and wait for it"
    )
    logout = _command(actions, "logout", f"{module}:logout_command", "forget the login at a server")
    logout.add_argument("name", metavar="NAME", help="as swink mcp list shows it")


def _add_servers(commands: Any) -> None:
    model = _command(
        commands,
        "serve-model",
        "swink.cli.serving:serve_model_command",
        "serve a local model over the OpenAI and Anthropic protocols",
    )
    model.add_argument(
        "name", nargs="?", metavar="NAME", default="smollm2-135m", help="a local model (default: %(default)s)"
    )
    model.add_argument(
        "--host",
        default="127.0.0.1",
        help="address; any but loopback needs SWINK_SERVE_KEY (default: %(default)s)",
    )
    model.add_argument("--port", type=_port, default=8080, help="0 takes a free one (default: %(default)s)")
    model.add_argument("--context", metavar="N", type=_count, help="context window in tokens")
    model.add_argument("--threads", metavar="N", type=_count, help="threads that generate")
    actions = _group(
        commands,
        "proxy",
        "share models by token without sharing API keys",
        "swink.cli.serving:proxy_command",
    )
    proxy = _command(
        actions, "serve", "swink.cli.serving:serve_proxy_command", "answer clients that hold a token"
    )
    proxy.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    proxy.add_argument("--port", type=_port, default=8181, help="0 takes a free one (default: %(default)s)")
    proxy.add_argument(
        "--tokens",
        metavar="FILE",
        help="lines of a token and the models it may use, e.g. SECRET anthropic:* openai:gpt-5; "
        "without a file SWINK_PROXY_TOKENS",
    )
    proxy.add_argument("--tls", nargs=2, metavar=("CERTIFICATE", "KEY"), help="serve https with these files")


def _add_doctor(commands: Any) -> None:
    doctor = _command(
        commands,
        "doctor",
        "swink.cli.doctor:doctor_command",
        "check this installation and say what to do about what is wrong",
    )
    doctor.add_argument(
        "--speed",
        action="store_true",
        help="also measure the local models: tokens a second by number of threads",
    )


def _add_completion(commands: Any) -> None:
    completion = _command(
        commands,
        "completion",
        "swink.cli.completion:completion_command",
        "a script that completes swink's arguments in your shell",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def _command(commands: Any, name: str, function: str, summary: str) -> argparse.ArgumentParser:
    parser = _parser(commands, name, summary)
    parser.add_argument("--debug", action="store_true", help="show tracebacks and the log")
    parser.set_defaults(command=function)
    return parser


def _group(commands: Any, name: str, summary: str, alone: str) -> Any:
    """A command with commands of its own; `alone` is the function that runs without any of them."""
    parser = _parser(commands, name, summary)
    parser.set_defaults(command=alone, provider=None, json=False, debug=False)
    return parser.add_subparsers(title="commands", metavar="COMMAND")


def _with_id(commands: Any, name: str, function: str, summary: str) -> argparse.ArgumentParser:
    parser = _command(commands, name, function, summary)
    parser.add_argument("id", metavar="ID", help="any unique part of its id")
    return parser


def _parser(commands: Any, name: str, summary: str) -> CommandParser:
    sentence = f"{summary[0].upper()}{summary[1:]}."
    parser: CommandParser = commands.add_parser(name, help=summary, description=sentence, allow_abbrev=False)
    parser.summary = summary
    return parser


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def _age(text: str) -> float:
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age; write e.g. 30d, 12h or 2w")
    return int(match[1]) * _SECONDS[match[2]]


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _seconds(text: str) -> float:
    seconds = _amount(text)
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return seconds


def _approval(text: str) -> str:
    try:
        return parse_approval(text)
    except MisuseError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number
