"""Commands about reviews: have a change reviewed, look at the findings, send them to be fixed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from swink.app.assistant.codereview import ReviewFinding, mend_prompt, review, review_text
from swink.app.assistant.reviewdiff import read_diff
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.app.tui.screens.findingslist import FindingsList
from swink.app.tui.view.callpainter import one_line
from swink.errors import AgentError, MissingKey, MisuseError
from swink.events import AgentEvent, MessageEnd, ToolExecutionStart
from swink.events.transcript import ToolBlock
from swink.events.transcript.blockkinds import counted
from swink.messages import AssistantMessage, Text
from swink.tools import FINAL_OUTPUT
from swink.tools.coding.sandbox import Sandbox

_SHOWN = 4_000  # characters of what a reviewer looks at that are shown, the last ones


@command("/review", "[BRANCH | COMMIT]")
async def review_change(context: CommandContext, rest: str) -> None:
    """have the working tree, a branch or a commit reviewed, with tools that only look"""
    if context.driver.is_running:
        raise MisuseError("the agent is at work; Esc stops it, then /review")
    await context.driver.commands.run_beside(_review(context, rest))


@command("/findings", "[NUMBER … | all]", choices=lambda context: ("all",))
async def send_findings(context: CommandContext, rest: str) -> None:
    """what the last review found; sends what you choose to the agent, to be fixed"""
    found = context.driver.findings
    if not found:
        raise MisuseError("there are no findings; /review looks for some")
    chosen: Sequence[ReviewFinding] | None = found
    if not rest:
        chosen = await context.ask(FindingsList(context.look, found, _directory(context)))
    elif rest != "all":
        chosen = [found[number - 1] for number in _numbers(rest, len(found))]
    if chosen:
        context.driver.queue(mend_prompt(chosen))


async def _review(context: CommandContext, reference: str) -> None:
    """Read the diff, have it reviewed and show the findings; a block tells how far it is."""
    driver, started = context.driver, context.driver.clock()
    environment = context.environment
    hidden = () if environment is None else environment.access.hidden()
    box = Sandbox(_directory(context)) if environment is None else environment.review_sandbox()
    policies = () if environment is None else environment.shared_policies
    diff = await read_diff(reference, _directory(context), box, hidden)
    about = {"task": f"{diff.what}, {counted(len(diff.files), 'file')}"}
    block = ToolBlock(f"review {started}", "", "review", about, state="running", started=started)

    def show(**changes: object) -> None:
        nonlocal block
        block = replace(block, **changes)
        driver.show_block(block)

    def take(event: AgentEvent) -> None:
        match event:
            case MessageEnd(AssistantMessage() as message):
                driver.transcript.pay(message.usage, message.cost)
            case ToolExecutionStart(id, name, arguments) if name != FINAL_OUTPUT:
                looked = f"{name} {one_line(ToolBlock(id, '', name, arguments))}"
                show(output=f"{block.output}{looked.strip()}\n"[-_SHOWN:])
            case _:
                pass

    show()
    try:
        found = await review(driver.agent, driver.instructed, diff, take, policies)
    except asyncio.CancelledError:
        show(state="cancelled", content=(Text("stopped"),))
        raise
    except AgentError as error:
        here = f"; #key {driver.agent.model.provider} stores one" if isinstance(error, MissingKey) else ""
        show(state="failed", content=(Text(f"{error}{here}"),))
        return
    count = counted(len(found.findings), "finding")
    show(state="done", content=(Text(count),), duration=driver.clock() - started)
    driver.findings = found.findings
    send = "\n\n`/findings` shows them and sends them to be fixed" if found.findings else ""
    context.say(f"{review_text(found)}{send}", "review")


def _numbers(words: str, most: int) -> list[int]:
    numbers = [int(word) if word.isascii() and word.isdecimal() else 0 for word in words.split()]
    if not all(0 < number <= most for number in numbers):
        raise MisuseError(f"/findings takes all, or numbers from 1 to {most}, e.g. /findings 1")
    return numbers


def _directory(context: CommandContext) -> Path:
    return Path.cwd() if context.environment is None else context.environment.directory
