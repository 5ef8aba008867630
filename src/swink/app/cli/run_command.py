"""`swink run`: one prompt, one answer, an exit code."""

import argparse
import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from swink.agent import Agent
from swink.agent.agentresult import AgentResult
from swink.app.assistant.fallbacks import FallbackFollower
from swink.app.assistant.planning import plan_prompt, plan_tools
from swink.app.assistant.servermentions import fill_in_prompt, find_prompt, read_resources
from swink.app.assistant.settings import load_settings
from swink.app.cli.agentsetup import make_agent
from swink.app.cli.directory import change_directory, change_worktree, open_environment, trust_without_person
from swink.app.cli.explain import explain
from swink.app.cli.jsonlines import JsonPrinter
from swink.app.cli.output import OutputFailed, check_output, claim_stdout
from swink.app.cli.printing import OutputPrinter, Printer, TextPrinter
from swink.app.cli.resuming import saved_run
from swink.app.cli.terminal import say
from swink.errors import AgentError, InvalidTool, MissingKey, MisuseError
from swink.messages import AssistantMessage, Input
from swink.system import startup
from swink.system.interrupts import interruptible
from swink.system.threads import run_to_end
from swink.tools.schema import Shape

if TYPE_CHECKING:
    from swink.app.assistant.agentenvironment import AgentEnvironment
    from swink.app.assistant.awaitedreports import AwaitReports
    from swink.app.assistant.servers import Servers

Schema = Mapping[str, Any]

_PATIENCE = 2.0
"""Seconds of silence on standard input after which it is said what is being waited for."""


def run_command(arguments: argparse.Namespace) -> int:
    """`swink run`: print the answer to one prompt."""
    if arguments.output_schema is not None:
        arguments.output_schema = os.path.abspath(arguments.output_schema)
    change_directory(arguments)
    check_output()
    opened = change_worktree(arguments)
    if opened is None:
        return _print_answer(arguments)
    from swink.app.cli.worktree_commands import end_run

    arguments.coding = True
    try:
        return _print_answer(arguments)
    finally:
        if not isinstance(sys.exception(), KeyboardInterrupt):  # the next start takes it up as it is
            end_run(opened)


def _print_answer(arguments: argparse.Namespace) -> int:
    if arguments.output == "text" and not arguments.json:
        return _answer(arguments, TextPrinter() if arguments.output_schema is None else OutputPrinter())
    printer = JsonPrinter(claim_stdout())
    startup.last_words = printer.give_up
    try:
        return _answer(arguments, printer)
    except OutputFailed:
        raise
    except Exception as error:  # whatever it is: a reader of JSON waits for its last line
        kind = error.kind if isinstance(error, AgentError) else "other"
        said = str(error) or type(error).__name__
        printer.print_result(AgentResult((), "error", error=said, error_kind=kind))
        raise
    finally:
        printer.give_up()  # without effect where there is a result
        startup.last_words = None


def _answer(arguments: argparse.Namespace, printer: Printer) -> int:
    schema = None if arguments.output_schema is None else read_schema(arguments.output_schema)
    prompt = read_prompt(arguments.prompt)
    saved = saved_run(arguments)
    trust = trust_without_person() if arguments.coding else None
    environment = open_environment(arguments, load_settings(), trust) if arguments.coding else None
    session, waiting = None if saved is None else saved.session, None
    if environment is not None:
        from swink.app.assistant.awaitedreports import AwaitReports

        waiting = AwaitReports(
            environment.sub_agents, environment.directory, environment.notify, saves=saved is not None
        )
    policies = [] if waiting is None else [waiting]
    agent = make_agent(arguments, session=session, policies=policies, environment=environment)
    if arguments.plan:
        agent.tools, agent.system_prompt = plan_tools(agent.tools), plan_prompt(agent.system_prompt)
    answering = (
        answer(agent, prompt, printer, arguments.deadline, schema)
        if environment is None
        else _inside(
            environment,
            prompt,
            lambda given: answer(agent, given, printer, arguments.deadline, schema),
            waiting,
        )
    )
    if saved is None:
        return run_to_end(answering)
    if isinstance(printer, JsonPrinter):
        printer.session = saved.saved_id
    try:
        code = run_to_end(answering)
    finally:
        for notice in saved.take_notices():
            say(notice, "warning")
        if (id := saved.saved_id()) is not None:
            say(f"session {id}")
    return code if code or saved.is_complete else 1


async def _inside(
    environment: "AgentEnvironment",
    prompt: str,
    answering: Callable[[Input], Coroutine[Any, Any, int]],
    waiting: "AwaitReports | None",
) -> int:
    """Answer in an environment that is open meanwhile; what it has to say is said at once."""

    def tell() -> None:
        for notice in environment.take_notices():
            say(notice)

    def tell_soon() -> None:
        loop.call_soon_threadsafe(tell)

    loop = asyncio.get_running_loop()
    try:
        await environment.open()
        await environment.servers.settle()
        tell()
        environment.changed = tell_soon
        return await answering(await _with_offers(prompt, environment.servers))
    finally:
        environment.changed = lambda: None
        if waiting is not None:
            waiting.leave()
        tell()
        await environment.aclose()


async def _with_offers(prompt: str, servers: "Servers") -> Input:
    """What is sent: a prompt of a server, if a command stands for one, or the text with its resources."""
    command, _, rest = prompt.partition(" ")
    if (found := find_prompt(command, servers.prompts)) is not None:
        return await fill_in_prompt(found, rest.strip(), servers)
    attached = await read_resources(prompt, servers)
    for notice in attached.notices:
        say(notice, "warning")
    return attached.after(prompt)


async def answer(
    agent: Agent,
    prompt: Input | None,
    printer: Printer,
    deadline: float | None = None,
    schema: Schema | None = None,
) -> int:
    """Show a run from its start to its end, without a prompt the rest of one; the exit code."""
    options: dict[str, Any] = {} if schema is None else {"output": schema}
    follower = FallbackFollower()
    with interruptible(agent.abort) as interruption:
        try:
            async with agent.stream(prompt, deadline=deadline, **options) as run:
                async for event in run:
                    printer.print_event(event)
                    follower.take_event(agent, event)
                result = await run.result()
        except MissingKey as error:  # raised before the run starts
            result = AgentResult((), "error", error=str(error), error_kind=error.kind, exception=error)
        said = explain(result, agent.model)
        printer.print_result(result if result.error is None else replace(result, error=said))
    if result.stop_reason == "aborted" and interruption.signal is not None:
        say("interrupted")
        return interruption.exit_code
    if result.stop_reason in ("error", "aborted") or (result.reason is not None and not _is_expected(result)):
        say(said, "error")
        is_misuse = result.error_kind == "misuse" or isinstance(result.exception, MisuseError)
        return 2 if is_misuse else 1
    if result.reason is not None:
        say(said, "dim")
    last = result.messages[-1] if result.messages else None
    if isinstance(last, AssistantMessage) and last.stop_reason == "length":
        say("the reply was cut off at its length limit (--max-tokens)", "warning")
    return 0


def _is_expected(result: AgentResult) -> bool:
    """Whether a run that ended early ended as a policy had planned."""
    is_waiting = result.pending or result.reason == "paused" or result.stop_reason == "transfer"
    return not (result.stopped or is_waiting)


def read_schema(path: str) -> Schema:
    """The JSON Schema in a file; raises `MisuseError` with the place if it is none."""
    try:
        schema: Any = json.loads(Path(path).read_bytes())
        if not isinstance(schema, dict):
            raise ValueError('it is no JSON Schema; write an object, e.g. {"type": "object"}')
        shape = Shape.of(cast("Schema", schema))
        shape.check()
    except OSError as error:
        raise MisuseError(f"--output-schema {path}: {error.strerror}") from error
    except (ValueError, RecursionError, InvalidTool) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise MisuseError(f"--output-schema {path}: {why}") from error
    return shape.schema


def read_prompt(words: Sequence[str]) -> str:
    """The prompt of the command line, followed by the text on standard input if that is no terminal."""
    prompt = " ".join(words)
    text = "" if sys.stdin.isatty() else _read_stdin()
    if not prompt.strip() and not text.strip():
        raise MisuseError('there is no prompt; write swink run "…", or give it on standard input')
    return f"{prompt}\n\n{text}" if prompt.strip() and text.strip() else prompt if prompt.strip() else text


def _read_stdin() -> str:
    """All of it. A pipe that stays open and silent looks like a hang: say what is going on."""
    reading = "reading standard input until it ends; with </dev/null there is none"
    notice = threading.Timer(_PATIENCE, say, (reading,))
    notice.daemon = True
    notice.start()
    try:
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    finally:
        notice.cancel()
