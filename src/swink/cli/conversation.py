"""The conversation that the arguments describe: an agent with its model, tools, limits and keys."""

import argparse

from msgspec.structs import replace

from swink.agent import Agent
from swink.cli.asking import approver
from swink.cli.choice import Choice, choose_model
from swink.cli.keystore import key_for
from swink.cli.terminal import say
from swink.cli.toolbox import load_tools
from swink.policy import Policy
from swink.stream import StreamOptions


def make_agent(arguments: argparse.Namespace) -> Agent:
    """The agent; one line on stderr says which model it has if nobody named one."""
    choice = choose_model(arguments.model)
    announce(choice)
    model = replace(choice.model, thinking_level=arguments.thinking) if arguments.thinking else choice.model
    return Agent(
        model,
        system_prompt=arguments.system,
        tools=load_tools(arguments.tool),
        options=StreamOptions(temperature=arguments.temperature, max_tokens=arguments.max_tokens),
        policies=_limits(arguments),
        approve=approver(arguments.approve),
        get_api_key=key_for,
    )


def announce(choice: Choice) -> None:
    """Say which model it is and why, where the command line does not say it."""
    if choice.why is not None:
        say(f"using {choice.model} ({choice.why})")


def _limits(arguments: argparse.Namespace) -> list[Policy]:
    if arguments.max_turns is None and arguments.budget is None:
        return []
    from swink.policies import Budget, MaxTurns

    limits: list[Policy] = []
    if arguments.max_turns is not None:
        limits.append(MaxTurns(arguments.max_turns))
    if arguments.budget is not None:
        limits.append(Budget(max_cost=arguments.budget, expected_output=arguments.max_tokens or 1_000))
    return limits
