"""`swink` without a command: a chat in the terminal, or one sample answer where there is no terminal."""

import argparse
import asyncio
import importlib
import sys
from contextlib import suppress

from msgspec.structs import replace

from swink import __version__
from swink.agent import Agent
from swink.approvals import MEANINGS, parse_approval
from swink.cli.answering import answer
from swink.cli.asking import Approver
from swink.cli.choice import LOCAL, parse_model
from swink.cli.conversation import approval_word, make_agent
from swink.cli.interrupts import Terminated, raise_interrupts
from swink.cli.output import check_output
from swink.cli.terminal import add_style, say
from swink.cli.transcript import TextTranscript
from swink.errors import AgentError, MisuseError
from swink.threads import run_to_end, runner_to_end

_SAMPLE = "In one sentence: what is the sea?"
_SAMPLE_TOKENS = 60
_HELP = """/model [NAME]    show the model, or take another one; the conversation goes on
/approve [WORD]  show or set when tool calls are asked about: on, smart, off or deny
/clear           forget the conversation
/help            this
/quit            leave; so do Ctrl-D, and Ctrl-C twice
Ctrl-C           stop the reply"""


def chat_command(arguments: argparse.Namespace) -> int:
    """Talk until the user leaves."""
    if not sys.stdin.isatty():
        return _answer_sample(arguments)
    approver = Approver(approval_word(arguments))
    agent = make_agent(arguments, approver)
    print(f"{add_style(f'swink {__version__}', 'bold', sys.stdout)} · {agent.model} · /help")
    with suppress(ImportError):  # Windows has none
        importlib.import_module("readline")  # gives input() line editing
    raise_interrupts()
    with runner_to_end() as runner:
        return _talk(agent, approver, runner)


def _talk(agent: Agent, approver: Approver, runner: asyncio.Runner) -> int:
    """Read, answer, repeat, in one event loop: connections stay open from reply to reply."""
    interrupted = False
    while True:
        try:
            line = input(_prompt()).strip()
        except EOFError:
            print()
            return 0
        except Terminated:
            raise
        except KeyboardInterrupt:
            if interrupted:
                print()
                return 130
            interrupted = True
            print("\n(Ctrl-C again, Ctrl-D or /quit leaves)")
            continue
        interrupted = False
        if line in ("/quit", "/exit"):
            return 0
        if line.startswith("/"):
            _obey(agent, approver, line)
        elif line:
            interrupted = runner.run(answer(agent, line, TextTranscript())) > 128


def _obey(agent: Agent, approver: Approver, line: str) -> None:
    command, _, rest = line.partition(" ")
    match command, rest.strip():
        case "/help", _:
            print(_HELP)
        case "/clear", _:
            agent.clear_messages()
            print("(the conversation is forgotten)")
        case "/model", "":
            print(agent.model)
        case "/model", name:
            try:
                agent.model = replace(parse_model(name), thinking_level=agent.thinking_level)
            except AgentError as error:
                say(str(error), "error")
            else:
                print(f"switched to {agent.model}")
        case "/approve", "":
            print(f"{approver.word}: {MEANINGS[approver.word]}")
        case "/approve", text:
            try:
                approver.word = parse_approval(text)
            except MisuseError as error:
                say(str(error), "error")
            else:
                print(f"{approver.word}: {MEANINGS[approver.word]}")
        case _:
            print(f"there is no {command}; /help shows what there is")


def _prompt() -> str:
    mark = add_style("> ", "bold", sys.stdout)
    # \x01 and \x02 tell readline which characters take no room.
    return (
        mark.replace("\x1b[1m", "\x01\x1b[1m\x02").replace("\x1b[0m", "\x01\x1b[0m\x02")
        if "readline" in sys.modules
        else mark
    )


def _answer_sample(arguments: argparse.Namespace) -> int:
    """Nobody can type here: show that the model works, and how to ask it something."""
    check_output()
    arguments.model = arguments.model or LOCAL
    instead = f'{arguments.model} answers "{_SAMPLE}" instead (swink run "…" asks something else)'
    say(f"no terminal to chat in; {instead}")
    arguments.max_tokens = arguments.max_tokens or _SAMPLE_TOKENS
    return run_to_end(answer(make_agent(arguments), _SAMPLE, TextTranscript()))
