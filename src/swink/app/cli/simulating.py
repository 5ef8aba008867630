"""`swink eval simulate`: a model plays the user of an agent; what is said is shown, and kept as a case."""

import argparse
import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from swink import Agent
from swink.agent.agentresult import AgentResult
from swink.app.cli.eval_commands import coded
from swink.app.cli.explain import strip_advice
from swink.app.cli.printing import TextPrinter
from swink.app.cli.terminal import say
from swink.errors import InvalidInput, MisuseError
from swink.eval.case import Case, ExpectedCall, SimulatedUser, Suite
from swink.eval.factories import load_factory, suite_factory
from swink.eval.importers import write_cases
from swink.eval.simulation import Ending, Simulation
from swink.eval.trajectory import Collector
from swink.messages.redact import redact_text, redact_value
from swink.system.aio import resolve
from swink.system.interrupts import interruptible
from swink.system.threads import in_thread, run_to_end

_ENDINGS: dict[Ending, str] = {
    "goal": "the user is done",
    "turns": "the user's turns ran out",
    "agent": "the agent failed or was stopped",
    "messages": "all was said",
}


def simulate(arguments: argparse.Namespace) -> int:
    """Have the conversations and keep them; 1 if one did not end by the user's own choice."""
    output = None if arguments.output is None else Path(arguments.output)
    if output is not None and (output.exists() or not output.absolute().parent.is_dir()):
        what = "is there already" if output.exists() else "is in no directory that exists"
        raise MisuseError(f"--output {output} {what}; name another file")
    return run_to_end(_simulate(arguments, output))


simulate_command = coded(simulate)


async def _simulate(arguments: argparse.Namespace, output: Path | None) -> int:
    kept: list[Case] = []
    work = asyncio.ensure_future(_converse(arguments, kept))
    endings: list[Ending] = []
    with interruptible(work.cancel) as interruption:
        try:
            endings = await work
        except asyncio.CancelledError:
            if interruption.signal is None:
                raise
        finally:
            if output is not None and kept:
                await in_thread(write_cases, Suite(name="simulated", cases=tuple(kept)), output)
                say(f"kept as cases: {output}")
    if interruption.signal is not None:
        return interruption.exit_code
    return 0 if all(ending == "goal" for ending in endings) else 1


async def _converse(arguments: argparse.Namespace, kept: list[Case]) -> list[Ending]:
    user = SimulatedUser(arguments.goal, arguments.persona, arguments.max_turns, arguments.user_model)
    if arguments.agent is None:
        make = suite_factory(Suite(name="simulate", cases=()), arguments.model)
    else:
        make = load_factory(arguments.agent)
    endings: list[Ending] = []
    for number in range(1, arguments.repeat + 1):
        case = Case(id=f"simulated-{number}", simulated_user=user)
        agent: object = await resolve(make(case))
        if not isinstance(agent, Agent):
            raise InvalidInput(f"--agent {arguments.agent} returns an Agent, not {type(agent).__name__}")
        if arguments.model is not None:
            agent.model = arguments.model
        async with agent:
            ending, said = await _talk(agent, case, kept)
        endings.append(ending)
        say(f"{_ENDINGS[ending]}, after {said} of its messages", "dim")
    return endings


async def _talk(agent: Agent, case: Case, kept: list[Case]) -> tuple[Ending, int]:
    """One conversation, shown as it goes on; what there is of it is kept even if it is interrupted."""
    simulation, collector = Simulation(agent, case), Collector()
    ending: Ending = "agent"
    with agent.subscribe(collector):
        try:
            ending = await simulation.converse(partial(_show, agent))
        finally:
            if simulation.said:
                kept.append(_as_case(case, simulation, collector, ending))
    return ending, len(simulation.said)


async def _show(agent: Agent, text: str) -> AgentResult[Any]:
    say(f"> {text}", "bold")
    printer = TextPrinter()
    async with agent.stream(text) as run:
        async for event in run:
            printer.print_event(event)
        result = await run.result()
    printer.print_result(result)
    if (why := result.error or result.reason) is not None:
        say(strip_advice(why), "error")
    return result


def _as_case(case: Case, simulation: Simulation, collector: Collector, ending: Ending) -> Case:
    """The conversation as a case that sends the same messages and expects the same calls."""
    made = collector.trajectory().calls
    calls = tuple(ExpectedCall(call.name, redact_value(call.arguments)) for call in made)
    assert case.simulated_user is not None
    return Case(
        id=case.id,
        user_messages=tuple(redact_text(text) for text in simulation.said),
        expected_trajectory=calls or None,
        expected_assertion=f"The user got this: {case.simulated_user.goal}" if ending == "goal" else None,
        metadata={"goal": case.simulated_user.goal, "ending": ending},
        tags=("simulated",),
    )
