"""The arguments of every command, and the name of its function, whose module is imported when it is used."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any

from swink import __version__
from swink.app.assistant.approvalmodes import APPROVAL_WORDS, MEANINGS, parse_approval
from swink.app.cli.evalarguments import add_eval
from swink.app.cli.parsers import TRACE, CommandParser, amount, command, count, group, number, port, seconds
from swink.errors import MisuseError

_FIRST_OPTIONS = ("-h", "--help", "--version")
_PRINT = ("-p", "--print")
_AGE = re.compile(r"(\d{1,6})(min|[hdwy])")
_SECONDS = {"min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_NEWEST = "go on with the newest session of this directory"
_PLAN = "begin in plan mode: only tools that change nothing"
_WORKTREE = "work in a git worktree beside the repository, on the branch swink/NAME"
_THINKING = ("off", "minimal", "low", "medium", "high", "extra_high")


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of one call, a chat if it names no command; wrong ones exit with 2 and the usage."""
    words = list(argv)
    debug = False
    while words[:1] == ["--debug"]:
        debug = True
        words.pop(0)
    is_chat = words[:1] == ["chat"]
    is_guess = not words or (words[0] not in _FIRST_OPTIONS and words[0] not in _PARTS)
    if is_guess:
        words.insert(0, "chat")
    if prints := (is_chat or is_guess) and _take_print(words):
        words[0] = "run"
    arguments = make_parser(words[0]).parse_args(words)
    if is_guess and "--" not in words and arguments.prompt:
        make_parser().check_prompt(arguments.prompt)
    arguments.debug = arguments.debug or debug
    if prints:
        arguments.coding = True
    return arguments


def _take_print(words: list[str]) -> bool:
    """Remove `-p`, wherever it stands among the options; whether it was there."""
    end = words.index("--") if "--" in words else len(words)
    found = next((index for index, word in enumerate(words[:end]) if word in _PRINT), None)
    if found is not None:
        del words[found]
    return found is not None


def make_parser(only: str = "") -> CommandParser:
    """The parser of everything, or of that command alone; shell completion is made from it too."""
    parser = CommandParser(
        prog="swink",
        usage="swink [OPTION ...] [PROMPT ...]\n       swink COMMAND ...",
        description="Agents on the command line. Without a command: a chat, which PROMPT begins.",
        epilog="Exit codes: 0 done, 1 a model or the run failed, 2 usage, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"swink {__version__}")
    _add_chat_options(parser)  # for help and completion: the command chat reads them
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog="swink")
    for add in [_PARTS[only]] if only in _PARTS else _PARTS.values():
        add(commands)
    return parser


def _add_run(commands: Any) -> None:
    run = command(commands, "run", "answer one prompt and exit", "run_command:run")
    run.take("prompt", "what to ask; text on standard input is added to it", "PROMPT", nargs="*")
    _add_conversation(run)
    run.take("-w --worktree", _WORKTREE + "; what was changed stays on its branch", "NAME")
    run.flag("--coding", "with the tools that swink has for this directory: files, search, a sandboxed shell")
    run.take("--deadline", "end the run after so long", "SECONDS", type=seconds)
    run.flag("--json", "one event per line as JSON, the last one of type result")
    run.take("--output", "json: the same as --json", choices=("text", "json"), default="text")
    schema = "a JSON Schema that the answer is held to; it is printed as JSON"
    run.take("--output-schema", schema, "FILE")
    run.flag("--plan", _PLAN)
    which = run.add_mutually_exclusive_group()
    session = "go on with a saved session, or begin one; its id is told on stderr (default: nothing is saved)"
    which.add_argument("--session", "--resume", dest="session", metavar="ID|new", help=session)
    which.add_argument("--continue", dest="continue_newest", action="store_true", help=_NEWEST)


def _add_review(commands: Any) -> None:
    summary = "review the working tree, a branch or a commit with tools that only look"
    review = command(commands, "review", summary, "review_command:review")
    review.take("reference", "a branch or a commit (default: the working tree)", "BRANCH|COMMIT", nargs="?")
    _add_conversation(review)
    review.flag("--json", "one JSON document: what was reviewed, findings, files that were left out")


def _add_chat(commands: Any) -> None:
    chat = command(commands, "chat", "talk in the terminal (what swink does without a command)", "chat:chat")
    chat.take("prompt", "what to say first", "PROMPT", nargs="*")
    _add_chat_options(chat)


def _add_chat_options(chat: CommandParser) -> None:
    printing = "print the answer to PROMPT and exit; takes the options of swink run too"
    chat.add_argument(*_PRINT, action="store_true", help=printing)
    _add_conversation(chat)
    chat.take("-w --worktree", _WORKTREE + "; at the end take, keep or drop the change", "NAME")
    which = chat.add_mutually_exclusive_group()
    which.add_argument("--continue", dest="continue_newest", action="store_true", help=_NEWEST)
    resume = "go on with a session, by any unique part of its id; without an ID choose from a list"
    which.add_argument("--resume", nargs="?", const="", metavar="ID", help=resume)
    nothing = "save nothing (save = false in config.toml: never)"
    which.add_argument("--no-session", action="store_true", help=nothing)
    chat.flag("--plain", "chat line by line, without the screen")
    chat.flag("--plan", _PLAN)


def _add_acp(commands: Any) -> None:
    summary = "the coding agent for an editor that speaks the Agent Client Protocol, which starts this"
    _add_conversation(command(commands, "acp", summary, "acp_command:acp"))


def _add_rpc(commands: Any) -> None:
    summary = "an agent for a program in any language, as lines of JSON on standard input and output"
    rpc = command(commands, "rpc", summary, "rpc_command:rpc")
    about = "a function that makes the agent (default: the coding agent of this directory)"
    rpc.take("factory", about, "MODULE:FACTORY", nargs="?")
    _add_conversation(rpc)


def _add_conversation(parser: CommandParser) -> None:
    parser.take("-C", "work in this directory", "DIR", dest="directory")
    parser.take("-m --model", '"provider:model"; see swink models list', "MODEL")
    parser.take("-s --system", "the system prompt", "TEXT")
    tool = "a function, a tool or a list of tools that the model may use"
    tool += "; modules of the current directory are found (repeatable)"
    parser.take("-t --tool", tool, "MODULE:FUNCTION", action="append", default=[])
    meanings = ", ".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items())
    approve = f"tool calls: {meanings} (default: approve in config.toml, else smart)"
    parser.take("--approve", approve, "|".join(APPROVAL_WORDS), type=approval)
    levels = "where commands run: workspace (sandboxed), none (with your own rights)"
    parser.take("--sandbox", levels, "LEVEL", type=sandbox_level)
    network = "what commands reach: ask (about each domain), off, on, or domains such as pypi.org,*.corp.com"
    parser.take("--network", network, "ask|off|on|DOMAINS", type=network_reach)
    further = "a further directory that tools and commands may write (repeatable)"
    parser.take("--add-dir", further, "DIR", action="append", default=[])
    parser.take("--max-turns", "at most so many requests in a run, sub-agents included", "N", type=count)
    parser.take("--budget", "stop before a run costs more", "DOLLARS", type=amount)
    parser.take("--thinking", "how hard the model thinks", choices=_THINKING)
    parser.take("--temperature", "randomness of the reply", "T", type=amount)
    parser.take("--max-tokens", "length limit of each reply", "N", type=count)
    parser.take("--trace", TRACE, "FILE")


def age(text: str) -> float:
    """The seconds of an age such as 30d; raises `ArgumentTypeError`."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age; write e.g. 30d, 12h or 2w")
    return int(match[1]) * _SECONDS[match[2]]


def approval(text: str) -> str:
    """A word for how calls are approved."""
    try:
        return parse_approval(text)
    except MisuseError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def sandbox_level(text: str) -> str:
    """A level of the sandbox."""
    return _checked("level", text)


def network_reach(text: str) -> str:
    """What of the network commands reach."""
    return _checked("network", text)


def _checked(name: str, text: str) -> str:
    from swink.app.assistant.shellsettings import ShellSettings  # here: most commands need no tools

    try:
        ShellSettings().choose(name, text)
    except MisuseError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _add_sessions(commands: Any) -> None:
    alone = "session_commands:list"
    add = group(commands, "sessions", "saved conversations: list, search, export, delete", alone)

    def add_with_id(name: str, summary: str) -> CommandParser:
        parser = add(name, summary)
        parser.take("id", "any unique part of its id", "ID")
        return parser

    listing = add("list", "all of them, the newest first")
    show = add_with_id("show", "what was said in one")
    search = add("search", "messages with some words")
    search.take("words", "all of them, or '\"a phrase\"'", "WORDS", nargs="+")
    search.take("--limit", "default: %(default)s", "N", type=count, default=20)
    fork = add_with_id("fork", "a new session that begins like another one")
    fork.take("--at", "with the first N messages (default: all)", "N", type=number)
    tree = add("tree", "which session was forked from which")
    tree.take("id", "the family of one session only", "ID", nargs="?")
    for parser in (listing, show, search, tree):
        parser.flag("--json", "one JSON document instead")
    export = add_with_id("export", "a conversation as a document")
    formats = ("json", "md", "html")
    export.take("--format", "by default what FILE ends with, else md (Markdown)", choices=formats)
    export.take("-o --out", "where to write it (default: standard output)", "FILE")
    export.flag("--force", "overwrite FILE")
    check = add("check", "look for damage and say what was lost")
    check.take("id", "one session only", "ID", nargs="?")
    check.flag("--repair", "repair it: what can be read is kept")
    remove = add("rm", "delete sessions", "session_commands:remove")
    remove.take("ids", "any unique part of its id", "ID", nargs="*")
    remove.take("--older-than", "all not used for so long, e.g. 30d", "AGE", type=age)
    remove.flag("--yes", "do not ask")
    rename = add_with_id("rename", "give a session another title")
    rename.add_argument("title", nargs="*", metavar="TITLE")
    rename.flag("--ask", "ask a model for the title: one request, at its price")
    rename.take("-m --model", "the model to ask (default: the session's)", "MODEL")


def _add_models(commands: Any) -> None:
    add = group(commands, "models", "list, fetch and delete models", "model_commands:list")
    listing = add("list", "models with limits and prices, and what is on this machine")
    listing.take("provider", "of one provider only", "PROVIDER", nargs="?")
    add("show", "all that is known of a model").take("model", "as PROVIDER:MODEL", "MODEL")
    update = add("update", "fetch the newest prices and limits through your package index", "refresh:update")
    update.flag("--reset", "go back to the list that came with swink")
    add("pull", "fetch a local model").take("name", "e.g. smollm2-135m or hf/OWNER/REPO", "NAME")
    remove = add("rm", "delete a local model", "model_commands:remove")
    remove.take("name", "as swink models list shows it", "NAME")


def _add_providers(commands: Any) -> None:
    summary = "servers of your own that speak like OpenAI or Anthropic"
    add = group(commands, "providers", summary, "provider_commands:list")
    add("list", "which there are, and whether their keys are set")
    new = add("add", "write one into config.toml; its models are NAME:MODEL")
    new.take("name", "what you call it", "WORD")
    new.take("--kind", "whose protocol it speaks", choices=("openai", "anthropic"), required=True)
    address = "its address, for openai with /v1 at its end if the server has that"
    new.take("--base-url", address, "URL", required=True)
    new.take("--key-env", "the environment variable that holds its key; without one it gets none", "VARIABLE")
    models = "a model that it has (repeatable); without any the server is asked"
    new.take("--model", models, "ID", action="append", default=[], dest="models")
    remove = add("remove", "take one out of config.toml")
    remove.take("name", "as swink providers list shows it", "WORD")


def _add_keys(commands: Any) -> None:
    add = group(commands, "keys", "store API keys, in the keychain if there is one", "key_commands:list")
    keep = add("set", "store a key: asked for on the terminal, or read from standard input")
    keep.add_argument("provider", metavar="PROVIDER")
    # Taken only to be refused: the usage error for a word too many would show the key.
    keep.add_argument("key", nargs="*", default=[], help=argparse.SUPPRESS)
    add("list", "which keys there are, and where; never the keys themselves")
    remove = add("rm", "forget a stored key", "key_commands:remove")
    remove.add_argument("provider", metavar="PROVIDER")


def _add_mcp(commands: Any) -> None:
    about = "MCP servers: list them, log in to them, log out; serve an agent as one"
    add = group(commands, "mcp", about, "mcp_commands:list")
    add("list", "which servers there are here, and where you are logged in")
    login = add("login", "log in to a server in the browser; its tokens are kept")
    login.take("name", "as swink mcp list shows it", "NAME")
    login.flag("--no-browser", "only print the address to open, and wait for it")
    add("logout", "forget the login at a server").take("name", "as swink mcp list shows it", "NAME")
    serve = add(
        "serve", "an agent as a tool of an MCP server, on stdin and stdout", "mcp_serve_command:serve"
    )
    serve.take("factory", "a function without arguments that makes the agent", "MODULE:FACTORY")
    serve.flag("--http", "serve over streamable HTTP instead; SWINK_SERVE_TOKEN is the token of clients")
    serve.take("--host", "(default: 127.0.0.1; others need the token)", "HOST")
    serve.take("--port", "(default: a free one, which is printed)", "PORT", type=port)
    serve.take("--name", "of the tool (default: the agent's, or FACTORY)", "NAME")
    serve.take("--description", "of the tool (default: the docstring of FACTORY)", "TEXT")


def _add_skills(commands: Any) -> None:
    summary = "skills: list them, show one, check them, write a new one"
    add = group(commands, "skills", summary, "skill_commands:list")
    add("list", "which skills there are here, and why others are not used")
    add("show", "what a skill says").take("name", "as swink skills list shows it", "NAME")
    check = add("check", "all that is wrong with skills, as the published validator judges")
    check.take(
        "places", "a skill, or a folder of skills (default: those of this directory)", "PATH", nargs="*"
    )
    new = add("new", "write a skill to begin with")
    new.take("name", "lower-case letters, digits and hyphens", "NAME")
    new.take("--description", "what it does, and when to use it", "TEXT")
    new.flag("--user", "in your home, for every project (default: in this directory)")


_EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact",
    "SubagentStop", "Stop", "SessionEnd", "Notification",
)  # fmt: skip


def _add_hooks(commands: Any) -> None:
    add = group(commands, "hooks", "shell hooks: list them, try them", "hook_commands:list")
    add("list", "which hooks there are here, and where they come from")
    test = add("test", "run the hooks of an event and show their answers; exit 1 if they block")
    test.take("event", "such as PreToolUse", "EVENT", choices=_EVENTS)
    test.take("--tool", "the tool of the call, by swink's name", "NAME")
    test.take("--input", "its arguments, or the fields of the event", "JSON")


def _add_trust(commands: Any) -> None:
    summary = "show what a folder brings along, and have it used or not"
    trust = command(commands, "trust", summary, "trust_command:trust")
    trust.take("directory", "the folder (default: this one)", "DIR", nargs="?")
    how = trust.add_mutually_exclusive_group()
    how.add_argument("--yes", action="store_true", help="do not ask")
    how.add_argument("--forget", action="store_true", help="take the answer back; it is asked for again")
    how.add_argument("--list", action="store_true", help="what was decided about which folders")


def _add_worktree(commands: Any) -> None:
    summary = "what swink -w NAME left: list it, take the change, keep or drop it"
    add = group(commands, "worktree", summary, "worktree_commands:list")
    add("list", "the worktrees of this repository, and what is changed in them")
    take = add("take", "look at a change part by part, and bring what you choose into this tree")
    keep = add("keep", "commit what is not committed to its branch, and leave it")
    drop = add("drop", "delete a worktree and its branch")
    for parser in (take, keep, drop):
        parser.take("name", "as swink worktree list shows it", "NAME")
    take.flag("--yes", "take all of it, without a look")
    drop.flag("--yes", "do not ask")


def _add_adopt(commands: Any) -> None:
    summary = "take over what another program has: instructions, commands, skills, agents, hooks, servers"
    adopt = command(commands, "adopt", summary, "adopt_command:adopt")
    adopt.take("program", "of one program only", nargs="?", choices=("claude", "codex", "opencode"))
    how = adopt.add_mutually_exclusive_group()
    how.add_argument("--yes", action="store_true", help="do not ask")
    how.add_argument("--dry-run", action="store_true", help="only list what would be written")


def _add_trace(commands: Any) -> None:
    add = group(commands, "trace", "look at what --trace FILE has written", "trace_command:help")
    show = add("show", "the tree of what was done, with times, tokens and money")
    show.take("file", "as --trace FILE wrote it, also one that was cut off", "FILE")


def _add_served_assistant(add: Callable[..., CommandParser]) -> None:
    summary = "the coding agent of this folder, on this machine"
    assistant = add("assistant", summary, "assistantpage:serve_assistant")
    _add_conversation(assistant)
    assistant.flag("--plan", _PLAN)
    assistant.flag("--page", "with a page at an address that works once, for one browser")
    assistant.take("--host", "a loopback address (default: %(default)s)", default="127.0.0.1")
    assistant.take("--port", "0 takes a free one (default: %(default)s)", type=port, default=8765)


def _add_serve(commands: Any) -> None:
    protocols = "serve a local model over the OpenAI and Anthropic protocols"
    add = group(commands, "serve", "serve an agent or a model to browsers and programs", "serving:serve")
    _add_served_assistant(add)
    _add_served_agent(add)
    model = add("model", protocols, "serving:serve_model")
    model.take("name", "a local model (default: %(default)s)", "NAME", nargs="?", default="smollm2-135m")
    any_but_loopback = "address; any but loopback needs SWINK_SERVE_KEY (default: %(default)s)"
    model.take("--host", any_but_loopback, default="127.0.0.1")
    model.take("--port", "0 takes a free one (default: %(default)s)", type=port, default=8080)
    model.take("--context", "context window in tokens", "N", type=count)
    model.take("--threads", "threads that generate", "N", type=count)
    proxy = add("proxy", "share models by token without sharing API keys", "serving:serve_proxy")
    proxy.take("--host", "address to listen on (default: %(default)s)", default="127.0.0.1")
    proxy.take("--port", "0 takes a free one (default: %(default)s)", type=port, default=8181)
    tokens = "lines of a token and the models it may use, e.g. SECRET anthropic:* openai:gpt-5"
    proxy.take("--tokens", f"{tokens}; without a file SWINK_PROXY_TOKENS", "FILE")
    proxy.add_argument("--tls", nargs=2, metavar=("CERTIFICATE", "KEY"), help="serve https with these files")


def _add_served_agent(add: Callable[..., CommandParser]) -> None:
    agent = add("agent", "serve an agent of yours over HTTP", "agentserving:serve_agent")
    factory = "a function that makes an Agent for a request, or an Agent; modules here are found"
    agent.take("factory", factory, "MODULE:FACTORY")
    beyond = "address; any but loopback needs --token or --authorize (default: %(default)s)"
    agent.take("--host", beyond, default="127.0.0.1")
    agent.take("--port", "0 takes a free one (default: %(default)s)", type=port, default=8090)
    store = "sqlite:FILE, postgresql://…, jsonl:DIRECTORY or memory: (default: a SQLite file of swink's own)"
    agent.take("--store", store, "URL")
    agent.flag("--page", "with a page; where a token is needed, at an address that works once")
    agent.take("--token", "what clients send as bearer token; or set SWINK_SERVE_TOKEN", "TOKEN")
    agent.take("--authorize", "a function of a request that names its caller, or None", "MODULE:FUNCTION")
    behind = "a name under which a proxy in front is reached (repeatable)"
    agent.take("--allow-host", behind, "NAME", action="append", default=[])
    pages = "web pages of another origin that may ask (repeatable)"
    agent.take("--allow-origin", pages, "ORIGIN", action="append", default=[])


def _add_doctor(commands: Any) -> None:
    summary = "check this installation and say what to do about what is wrong"
    doctor = command(commands, "doctor", summary, "doctor:doctor")
    doctor.flag("--speed", "also measure the local models: tokens a second by number of threads")


def _add_docs(commands: Any) -> None:
    summary = "the pages about swink, without a network; without TOPIC the list of them"
    pages = command(commands, "docs", summary, "docs_command:docs")
    pages.take(
        "topic", "a page, its title or a heading, such as tools or what to back up", "TOPIC", nargs="*"
    )


def _add_completion(commands: Any) -> None:
    summary = "a script that completes swink's arguments in your shell"
    completion = command(commands, "completion", summary, "completion:completion")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


_ADDED = (
    *(_add_run, _add_review, _add_chat, _add_acp, _add_rpc, _add_sessions, _add_models, _add_providers),
    *(_add_keys, _add_mcp, _add_skills, _add_hooks, _add_worktree, _add_trust, _add_adopt, add_eval),
    *(_add_trace, _add_serve, _add_doctor, _add_docs, _add_completion),
)
_PARTS = {add.__name__.rpartition("_")[2]: add for add in _ADDED}
"""What adds each command, by the name of that; to add them all takes a third of what a short command does."""
