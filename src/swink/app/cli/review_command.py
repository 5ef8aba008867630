"""`swink review`: the findings of a review, as lines or as JSON."""

import argparse
import asyncio
import sys

import msgspec

from swink.agent import Agent
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.codereview import CodeReview, review
from swink.app.assistant.reviewdiff import read_diff
from swink.app.assistant.settings import load_settings
from swink.app.cli.agentsetup import make_agent
from swink.app.cli.directory import change_directory, open_environment
from swink.app.cli.output import check_output
from swink.app.cli.terminal import add_style, say, say_in_passing
from swink.events import AgentEvent, ToolExecutionStart
from swink.events.transcript.blockkinds import counted
from swink.messages.redact import redact_text
from swink.system.interrupts import interruptible
from swink.system.oneline import strip_controls
from swink.system.threads import run_to_end
from swink.tools import FINAL_OUTPUT


def review_command(arguments: argparse.Namespace) -> int:
    """`swink review`: have a change reviewed."""
    change_directory(arguments)
    check_output()
    environment = open_environment(arguments, load_settings())
    agent = make_agent(arguments, environment=environment)
    return run_to_end(_review(arguments, environment, agent))


async def _review(arguments: argparse.Namespace, environment: AgentEnvironment, agent: Agent) -> int:
    try:
        await environment.open()
        await environment.servers.settle()
        working = asyncio.create_task(_find(arguments.reference or "", environment, agent))
        with interruptible(working.cancel) as interruption:
            try:
                found = await working
            except asyncio.CancelledError:
                if interruption.signal is None:
                    raise
                say("interrupted")
                return interruption.exit_code
    finally:
        say_in_passing("")
        for notice in environment.take_notices():
            say(notice)
        await environment.aclose()
    _print(found, is_json=arguments.json)
    return 0


async def _find(reference: str, environment: AgentEnvironment, agent: Agent) -> CodeReview:
    here, box = environment.directory, environment.review_sandbox()
    diff = await read_diff(reference, here, box, environment.access.hidden())
    say(f"reviewing {diff.what}, {counted(len(diff.files), 'file')}")
    return await review(agent, agent.system_prompt, diff, _show, environment.shared_policies)


def _show(event: AgentEvent) -> None:
    if isinstance(event, ToolExecutionStart) and event.name != FINAL_OUTPUT:
        say_in_passing(f"swink: {event.name} …")


def _print(found: CodeReview, *, is_json: bool) -> None:
    if is_json:
        sys.stdout.write(redact_text(msgspec.json.encode(found).decode()) + "\n")
        return
    for one in found.findings:
        place = add_style(strip_controls(one.place), "bold", sys.stdout)
        print(f"{one.severity:<8}  {place}  {' '.join(redact_text(one.text).split())}")
    if not found.findings:
        say(f"nothing found in {found.what}")
    if found.left_out:
        say(strip_controls(f"not shown to the reviewer: {', '.join(found.left_out[:50])}"))
