"""`swink` without a command: a chat in the terminal, or one sample answer where there is no terminal."""

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from swink import __version__
from swink.agent import Agent
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.approvalmodes import APPROVAL_WORDS, MEANINGS, parse_approval
from swink.app.assistant.fallbacks import obey_fallback
from swink.app.assistant.modelchoice import LOCAL, parse_model
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.planning import plan_prompt, plan_tools
from swink.app.assistant.savedconversation import SavedConversation
from swink.app.assistant.servermentions import (
    fill_in_prompt,
    find_prompt,
    mentions_of,
    read_resources,
)
from swink.app.assistant.sessionfacts import what_is_left, working_directory
from swink.app.assistant.settings import load_settings
from swink.app.assistant.shell import parse_shell, run_shell
from swink.app.assistant.snapshots.snapshotpolicy import Snapshots
from swink.app.assistant.titles import ask_title
from swink.app.cli.agentsetup import approval_word, make_agent, make_chat_agent
from swink.app.cli.directory import ask_trust, change_directory, change_worktree, open_environment
from swink.app.cli.output import check_output
from swink.app.cli.printing import TextPrinter
from swink.app.cli.resuming import saved_chat
from swink.app.cli.run_command import answer, run_command
from swink.app.cli.screen import show_screen, why_plain
from swink.app.cli.session_lines import last_lines
from swink.app.cli.terminal import add_style, ask_line, say, say_in_passing
from swink.app.cli.terminalquestions import TerminalPerson
from swink.errors import AgentError, MisuseError, NotSaved
from swink.messages import Input, Message
from swink.system import startup
from swink.system.interrupts import Terminated, raise_interrupts
from swink.system.oneline import shorten, strip_controls
from swink.system.threads import run_to_end, runner_to_end

_SAMPLE = "In one sentence: what is the sea?"
_SAMPLE_TOKENS = 60
_HELP = f"""/model [NAME]    show the model, or take another one; the conversation goes on
/model fallback  models to ask when it fails: show them, or NAME…, or none
/approve [WORD]  show or set when tool calls are asked about: {", ".join(APPROVAL_WORDS)}
/skills          which skills there are; /skill:NAME [WHAT TO DO] enters one
/clear           forget the conversation and begin a new one
/help            this
!COMMAND         run a command of your own and show the model its output; !!COMMAND keeps it from it
/quit            leave; so do Ctrl-D, and Ctrl-C twice
Ctrl-C           stop the reply"""


def chat_command(arguments: argparse.Namespace) -> int:
    """Talk until the user leaves."""
    prompt = " ".join(arguments.prompt)
    if prompt.strip() and not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _answer_prompt(arguments)
    change_directory(arguments)
    if not sys.stdin.isatty():
        return _answer_sample(arguments)
    opened = change_worktree(arguments)
    code = _talk(arguments, prompt)
    if opened is not None:
        from swink.app.cli.worktree_commands import end_session

        end_session(opened)
    return code


def _talk(arguments: argparse.Namespace, prompt: str) -> int:
    if (why := why_plain(arguments)) is None:
        return show_screen(arguments)
    if why:
        say(f"this is the plain chat: {why}", "dim")
    saved = saved_chat(arguments)
    environment = open_environment(arguments, load_settings(), ask_trust())
    terminal = TerminalPerson()
    environment.fill_in = terminal.fill_in
    word, owners = approval_word(arguments), environment.servers.owners
    approver = terminal.permissions(word, environment.directory, owners)
    environment.attend(approver)
    environment.hooks.ask_trust = lambda trust: terminal.ask_trust(trust, environment.trust)
    agent, snapshots = make_chat_agent(arguments, environment, approver, saved)
    if arguments.plan:
        agent.tools, agent.system_prompt = plan_tools(agent.tools), plan_prompt(agent.system_prompt)
        say("plan mode: tools that only look; swink without --plan has them all", "dim")
    print(f"{add_style(f'swink {__version__}', 'bold', sys.stdout)} · {agent.model} · /help")
    with suppress(ImportError):  # Windows has none
        importlib.import_module("readline")  # gives input() line editing
    raise_interrupts()
    with runner_to_end() as runner:
        return LineChat(agent, approver, saved, runner, environment, snapshots).talk(prompt)


class LineChat:
    """One chat: the agent it talks with, and the session that keeps what is said."""

    def __init__(
        self,
        agent: Agent,
        approver: Permissions,
        saved: SavedConversation | None,
        runner: asyncio.Runner,
        environment: AgentEnvironment,
        snapshots: Snapshots | None,
    ) -> None:
        self._agent = agent
        self._approver = approver
        self._saved = saved
        self._runner = runner
        self._environment = environment
        self._snapshots = snapshots
        self._has_asked = False
        self._asks_title = saved is not None and not saved.is_resumed and load_settings().title == "model"

    def talk(self, prompt: str = "") -> int:
        """Read, answer, repeat, in one event loop: connections stay open from reply to reply."""
        startup.last_words = self._leave_at_once
        try:
            self._runner.run(self._open())
            if self._snapshots is not None:
                self._runner.run(self._snapshots.recover())
            self._tell()
            interrupted = self._take_up()
            if prompt.strip() and not interrupted:
                print(f"{add_style('> ', 'bold', sys.stdout)}{strip_controls(prompt)}")
                interrupted = self._answer(prompt)
            return self._take_lines(interrupted)
        finally:
            startup.last_words = None
            self._runner.run(self._environment.aclose())
            if self._saved is not None and self._saved.saved_id() is not None:
                if self._has_asked:
                    self._runner.run(self._agent.aclose())  # saves what changed since the last reply
                say(f"to go on: swink --resume {self._saved.short_id()}")
            self._tell()

    async def _open(self) -> None:
        """Open the environment; its servers start now, since nothing goes on while a line is awaited."""
        await self._environment.open()
        if any(state.state == "starting" for state in self._environment.servers.states):
            say("starting the MCP servers", "dim")
        await self._environment.servers.settle()
        await self._environment.hooks.events.begin()

    def _take_lines(self, interrupted: bool) -> int:
        self._environment.hooks.events.reason = "prompt_input_exit"  # whatever ends it, the person is there
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
            if (command := parse_shell(line)) is not None:
                interrupted = self._run_command(*command)
            elif line.startswith("/"):
                interrupted = self._obey(line)
            elif line:
                interrupted = self._answer(self._attach(line))

    def _take_up(self) -> bool:
        """Show where a resumed conversation is, and finish what was interrupted if that is wanted."""
        saved = self._saved
        if saved is None or not saved.is_resumed:
            return False
        conversation = saved.session.conversation
        for line in last_lines(conversation.messages):
            print(line)
        if (place := saved.session.meta.directory) not in (None, working_directory()):
            say(f"this conversation was in {place}; now its tools work here", "dim")
        left = list(what_is_left(conversation))
        if not left:
            return False
        say("this conversation was interrupted:")
        for line in left:
            print(f"  {shorten(line)}")
        wanted = ask_line("finish it now? [Y/n] ")
        return wanted is not None and wanted.lower() in ("", "y", "yes") and self._answer(None)

    def _attach(self, line: str) -> Input:
        """A prompt with the resources of servers that it mentions."""
        if not mentions_of(line, self._environment.servers):
            return line
        found = self._runner.run(read_resources(line, self._environment.servers))
        for notice in found.notices:
            say(notice, "warning")
        return found.after(line)

    def _answer(self, prompt: Input | None) -> bool:
        """One run, without a prompt the rest of one; whether it was interrupted."""
        self._has_asked = True
        try:
            interrupted = self._runner.run(answer(self._agent, prompt, TextPrinter())) > 128
            if self._asks_title and not interrupted:
                self._ask_title()
            return interrupted
        except NotSaved as error:
            say(str(error), "warning")
            return False
        finally:
            self._tell()

    def _run_command(self, command: str, shown: bool) -> bool:
        """Run a command of the user's own and, if `shown`, let the model know; whether it was interrupted."""
        try:
            place, sandbox = self._environment.directory, self._environment.sandbox()
            outcome = self._runner.run(run_shell(command, place, _write, sandbox=sandbox))
        except Terminated:
            raise
        except KeyboardInterrupt:
            print("\n(stopped)")
            return True
        except AgentError as error:
            say(str(error), "error")
            return False
        if not outcome.is_ok:
            say(f"exit code {outcome.code}", "dim")
        if shown:
            self._agent.append_messages(outcome.for_model())
        return False

    def _ask_title(self) -> None:
        """Ask the model for a title, once, after the first reply."""
        saved, messages = self._saved, self._agent.messages
        if saved is None or saved.saved_id() is None or self._agent.error is not None:
            return
        self._asks_title = False
        say_in_passing("swink: asking for a title …")
        try:
            title, _ = self._runner.run(ask_title(self._agent.model, messages))
            saved.rename(title)
        except Terminated:
            raise
        except KeyboardInterrupt:
            pass
        except AgentError as error:
            say(f"no title from the model: {error}", "dim")
        finally:
            say_in_passing("")

    def _tell(self) -> None:
        for notice in self._environment.take_notices():
            say(notice, "dim")
        for source in (self._saved, self._snapshots):
            for notice in [] if source is None else source.take_notices():
                say(notice, "warning")

    def _obey(self, line: str) -> bool:
        """Carry out a command; whether a run that it began was interrupted."""
        command, _, rest = line.partition(" ")
        match command, rest.strip():
            case "/help", _:
                print(_HELP)
                for custom in self._environment.commands.values():
                    print(f"{custom.name:<16} {custom.help}")
            case "/clear", _:
                self._clear()
            case "/model", "":
                print(self._agent.model)
            case "/model", name:
                try:
                    if (told := obey_fallback(self._agent, name)) is not None:
                        print(told)
                        return False
                    self._agent.model = replace(parse_model(name), thinking_level=self._agent.thinking_level)
                    print(f"switched to {self._agent.model}")
                except AgentError as error:
                    say(str(error), "error")
            case "/approve", word:
                try:
                    self._approver.word = parse_approval(word) if word else self._approver.word
                    print(f"{self._approver.word}: {MEANINGS[self._approver.word]}")
                except MisuseError as error:
                    say(str(error), "error")
            case "/skills", _:
                from swink.app.assistant.skillplaces import list_skills

                listed = list_skills(self._environment.skills, self._agent.messages)
                print("\n".join(map(strip_controls, listed.splitlines())))
            case _ if command.startswith("/skill:"):
                return self._enter_skill(command.removeprefix("/skill:"), rest.strip())
            case _ if (custom := self._environment.commands.get(command)) is not None:
                return self._answer(custom.expand(rest.strip()))
            case _ if (prompt := find_prompt(command, self._environment.servers.prompts)) is not None:
                try:
                    filled = fill_in_prompt(prompt, rest.strip(), self._environment.servers)
                    return self._answer(self._runner.run(filled))
                except MisuseError as error:
                    say(str(error), "error")
            case _:
                print(f"there is no {command}; /help shows what there is")
        return False

    def _enter_skill(self, name: str, arguments: str) -> bool:
        from swink.app.assistant.skillplaces import make_skill_prompt

        try:
            prompt = self._runner.run(
                make_skill_prompt(self._environment, self._agent.messages, name, arguments)
            )
        except MisuseError as error:
            say(str(error), "error")
            return False
        return self._answer(prompt)

    def _clear(self) -> None:
        saved = self._saved
        if self._environment.skill_permissions is not None:
            self._environment.skill_permissions.clear()
        if saved is None or saved.saved_id() is None:
            said = self._agent.messages
            self._agent.clear_messages()
            self._runner.run(self._tell_hooks(said))
            print("(the conversation is forgotten)")
            return
        print(f"(the conversation is forgotten; swink --resume {saved.short_id()} goes on with it)")
        self._saved = saved.begin_another()
        if self._snapshots is not None:
            self._snapshots.saved = self._saved
        self._agent = self._agent.copy(session=self._saved.session, messages=(), state={})
        self._agent.clear_messages()  # and the turn that was left open
        self._agent.clear_queues()
        self._environment.agent = self._agent
        self._runner.run(self._tell_hooks(saved.session.messages))
        self._asks_title = load_settings().title == "model"

    async def _tell_hooks(self, said: Sequence[Message]) -> None:
        """Tell that a new conversation has begun; the loop runs no longer than this."""
        hooks = self._environment.hooks
        hooks.go_on_with(None if self._saved is None else self._saved.session, "clear", said)
        await hooks.events.begin()

    def _leave_at_once(self) -> None:
        """The last words of a process that is ended by a signal while it works."""
        if self._saved is not None and (id := self._saved.saved_id()) is not None:
            os.write(2, f"\nswink: to go on: swink --resume {id}\n".encode())


def _write(text: str) -> None:
    """Show the output of a command as it comes; escape sequences are left out."""
    print(strip_controls(text), end="", flush=True)


def _prompt() -> str:
    mark = add_style("> ", "bold", sys.stdout)
    if "readline" not in sys.modules:
        return mark
    # \x01 and \x02 tell readline which characters take no room.
    return mark.replace("\x1b[1m", "\x01\x1b[1m\x02").replace("\x1b[0m", "\x01\x1b[0m\x02")


def _answer_prompt(arguments: argparse.Namespace) -> int:
    """Nobody can go on talking here: answer the one prompt, as `swink -p` does."""
    arguments.session, arguments.coding = arguments.resume, True
    arguments.deadline = arguments.output_schema = None
    arguments.output, arguments.json = "text", False
    return run_command(arguments)


def _answer_sample(arguments: argparse.Namespace) -> int:
    """Nobody can type here: show that the model works, and how to ask it something."""
    if arguments.continue_newest or arguments.resume is not None:
        saved = saved_chat(arguments)
        id = "new" if saved is None or saved.saved_id() is None else saved.short_id()
        raise MisuseError(f'no terminal to chat in; swink run --session {id} "…" goes on with the session')
    if arguments.worktree is not None:
        raise MisuseError('no terminal to chat in; swink run -w NAME "…" works without one')
    check_output()
    arguments.model = arguments.model or LOCAL
    instead = f'{arguments.model} answers "{_SAMPLE}" instead (swink run "…" asks something else)'
    say(f"no terminal to chat in; {instead}")
    arguments.max_tokens = arguments.max_tokens or _SAMPLE_TOKENS
    return run_to_end(answer(make_agent(arguments), _SAMPLE, TextPrinter()))
