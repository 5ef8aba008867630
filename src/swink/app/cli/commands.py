"""The arguments of every command, and the name of its function, whose module is imported when it is used."""

import argparse
from collections.abc import Sequence
from typing import Any

from swink import __version__
from swink.app.assistant.approvalmodes import APPROVAL_WORDS, MEANINGS
from swink.app.cli.evalarguments import add_eval
from swink.app.cli.parsers import (
    TRACE,
    CommandParser,
    age,
    amount,
    approval,
    command,
    count,
    flag,
    group,
    number,
    port,
    seconds,
    with_id,
)

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


def make_parser() -> CommandParser:
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
    add_eval(commands)
    _add_servers(commands)
    _add_doctor(commands)
    _add_completion(commands)
    return parser


def _add_run(commands: Any) -> None:
    run = command(commands, "run", "run_command:run", "answer one prompt and exit")
    run.add_argument(
        "prompt", nargs="*", metavar="PROMPT", help="what to ask; text on standard input is added to it"
    )
    _add_conversation(run)
    flag(
        run, "--coding", "with the tools that swink has for this directory: files, search, a sandboxed shell"
    )
    run.add_argument("--deadline", metavar="SECONDS", type=seconds, help="end the run after so long")
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
    chat = command(commands, "chat", "chat:chat", "talk in the terminal (what swink does without a command)")
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
    flag(chat, "--plain", "chat line by line, without the screen")
    flag(chat, "--plan", "begin in plan mode: only tools that change nothing")


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
        type=approval,
        metavar="|".join(APPROVAL_WORDS),
        help=f"tool calls: {', '.join(f'{word}: {meaning}' for word, meaning in MEANINGS.items())} "
        "(default: approve in config.toml, else smart)",
    )
    parser.add_argument(
        "--max-turns", metavar="N", type=count, help="at most so many requests in a run, sub-agents included"
    )
    parser.add_argument("--budget", metavar="DOLLARS", type=amount, help="stop before a run costs more")
    parser.add_argument("--thinking", choices=_THINKING, help="how hard the model thinks")
    parser.add_argument("--temperature", metavar="T", type=amount, help="randomness of the reply")
    parser.add_argument("--max-tokens", metavar="N", type=count, help="length limit of each reply")
    parser.add_argument("--trace", metavar="FILE", help=TRACE)


def _add_sessions(commands: Any) -> None:
    actions = group(
        commands, "sessions", "saved conversations: list, search, export, delete", "session_commands:list"
    )
    listing = command(actions, "list", "session_commands:list", "all of them, the newest first")
    flag(listing, "--json", "one JSON document instead")
    show = with_id(actions, "show", "session_commands:show", "what was said in one")
    flag(show, "--json", "one JSON document instead")
    search = command(actions, "search", "session_commands:search", "messages with some words")
    search.add_argument("words", nargs="+", metavar="WORDS", help="all of them, or '\"a phrase\"'")
    search.add_argument("--limit", metavar="N", type=count, default=20, help="default: %(default)s")
    flag(search, "--json", "one JSON document instead")
    fork = with_id(actions, "fork", "session_commands:fork", "a new session that begins like another one")
    fork.add_argument("--at", metavar="N", type=number, help="with the first N messages (default: all)")
    tree = command(actions, "tree", "session_commands:tree", "which session was forked from which")
    tree.add_argument("id", nargs="?", metavar="ID", help="the family of one session only")
    flag(tree, "--json", "one JSON document instead")
    export = with_id(actions, "export", "session_commands:export", "a conversation as a document")
    export.add_argument(
        "--format", choices=("json", "md", "html"), help="by default what FILE ends with, else md (Markdown)"
    )
    export.add_argument("-o", "--out", metavar="FILE", help="where to write it (default: standard output)")
    flag(export, "--force", "overwrite FILE")
    check = command(actions, "check", "session_commands:check", "look for damage and say what was lost")
    check.add_argument("id", nargs="?", metavar="ID", help="one session only")
    flag(check, "--repair", "mend it: what can be read is kept")
    remove = command(actions, "rm", "session_commands:remove", "delete sessions")
    remove.add_argument("ids", nargs="*", metavar="ID", help="any unique part of its id")
    remove.add_argument("--older-than", metavar="AGE", type=age, help="all not used for so long, e.g. 30d")
    flag(remove, "--yes", "do not ask")
    rename = with_id(actions, "rename", "session_commands:rename", "give a session another title")
    rename.add_argument("title", nargs="*", metavar="TITLE")
    flag(rename, "--ask", "ask a model for the title: one request, at its price")
    rename.add_argument("-m", "--model", metavar="MODEL", help="the model to ask (default: the session's)")


def _add_models(commands: Any) -> None:
    actions = group(commands, "models", "list, fetch and delete models", "model_commands:list")
    listing = command(
        actions, "list", "model_commands:list", "models with limits and prices, and what is on this machine"
    )
    listing.add_argument("provider", nargs="?", metavar="PROVIDER", help="of one provider only")
    show = command(actions, "show", "model_commands:show", "all that is known of a model")
    show.add_argument("model", metavar="MODEL", help="as PROVIDER:MODEL")
    update = command(
        actions, "update", "refresh:update", "fetch the newest prices and limits through your package index"
    )
    flag(update, "--reset", "go back to the list that came with swink")
    pull = command(actions, "pull", "model_commands:pull", "fetch a local model")
    pull.add_argument("name", metavar="NAME", help="e.g. smollm2-135m or hf/OWNER/REPO")
    remove = command(actions, "rm", "model_commands:remove", "delete a local model")
    remove.add_argument("name", metavar="NAME", help="as swink models list shows it")


def _add_keys(commands: Any) -> None:
    actions = group(commands, "keys", "store API keys, in the keychain if there is one", "key_commands:list")
    keep = command(
        actions,
        "set",
        "key_commands:set",
        "store a key: asked for on the terminal, or read from standard input",
    )
    keep.add_argument("provider", metavar="PROVIDER")
    # Taken only to be refused: the usage error for a word too many would show the key.
    keep.add_argument("key", nargs="*", default=[], help=argparse.SUPPRESS)
    command(
        actions, "list", "key_commands:list", "which keys there are, and where; never the keys themselves"
    )
    remove = command(actions, "rm", "key_commands:remove", "forget a stored key")
    remove.add_argument("provider", metavar="PROVIDER")


def _add_mcp(commands: Any) -> None:
    actions = group(commands, "mcp", "MCP servers: list them, log in to them, log out", "mcp_commands:list")
    command(actions, "list", "mcp_commands:list", "which servers there are here, and where you are logged in")
    login = command(
        actions, "login", "mcp_commands:login", "log in to a server in the browser; its tokens are kept"
    )
    login.add_argument("name", metavar="NAME", help="as swink mcp list shows it")
    flag(login, "--no-browser", "only print the address to open, and wait for it")
    logout = command(actions, "logout", "mcp_commands:logout", "forget the login at a server")
    logout.add_argument("name", metavar="NAME", help="as swink mcp list shows it")


def _add_servers(commands: Any) -> None:
    model = command(
        commands,
        "serve-model",
        "serving:serve_model",
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
    model.add_argument("--port", type=port, default=8080, help="0 takes a free one (default: %(default)s)")
    model.add_argument("--context", metavar="N", type=count, help="context window in tokens")
    model.add_argument("--threads", metavar="N", type=count, help="threads that generate")
    actions = group(commands, "proxy", "share models by token without sharing API keys", "serving:proxy")
    proxy = command(actions, "serve", "serving:serve_proxy", "answer clients that hold a token")
    proxy.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    proxy.add_argument("--port", type=port, default=8181, help="0 takes a free one (default: %(default)s)")
    proxy.add_argument(
        "--tokens",
        metavar="FILE",
        help="lines of a token and the models it may use, e.g. SECRET anthropic:* openai:gpt-5; "
        "without a file SWINK_PROXY_TOKENS",
    )
    proxy.add_argument("--tls", nargs=2, metavar=("CERTIFICATE", "KEY"), help="serve https with these files")


def _add_doctor(commands: Any) -> None:
    doctor = command(
        commands, "doctor", "doctor:doctor", "check this installation and say what to do about what is wrong"
    )
    flag(doctor, "--speed", "also measure the local models: tokens a second by number of threads")


def _add_completion(commands: Any) -> None:
    completion = command(
        commands,
        "completion",
        "completion:completion",
        "a script that completes swink's arguments in your shell",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
