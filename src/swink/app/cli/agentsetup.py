"""The conversation that the arguments describe: an agent with its model, tools, limits and keys."""

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from swink.agent import Agent
from swink.agent.checkpoint import placeholders
from swink.agent.policy import Approve, Policy
from swink.agent.retry import ExponentialBackoff
from swink.app.assistant.approvalmodes import ApprovalWord
from swink.app.assistant.fallbacks import read_fallbacks
from swink.app.assistant.modelchoice import ModelChoice, choose_model, unknown_provider
from swink.app.assistant.ownproviders import register_providers
from swink.app.assistant.planning import without_plan
from swink.app.assistant.settings import load_settings
from swink.app.cli.terminal import say, say_in_passing
from swink.errors import MisuseError
from swink.memory.session import Session
from swink.models import catalog
from swink.stream import StreamFn, StreamOptions
from swink.tools import Tool
from swink.tools.named import load_tools

if TYPE_CHECKING:
    from swink.app.assistant.agentenvironment import AgentEnvironment
    from swink.app.assistant.savedconversation import SavedConversation
    from swink.app.assistant.snapshots.snapshotpolicy import Snapshots


def make_agent(
    arguments: argparse.Namespace,
    approver: Approve | None = None,
    session: Session | None = None,
    policies: Sequence[Policy] = (),
    environment: "AgentEnvironment | None" = None,
    *,
    tell: Callable[[str], None] = say,
) -> Agent:
    """The agent, in an environment if there is one; `tell` reports the model if the arguments name none.

    Every call is put to the approver: its word may change later, and denials hold in every mode. A session
    that goes on keeps its model, thinking level and system prompt unless the arguments say otherwise.
    """
    settings = load_settings()
    use_local_models()
    problems = register_providers(settings)
    before = None if session is None else session.model
    if before is None or arguments.model:
        choice = choose_model(arguments.model)
    elif catalog.has_provider(before.provider):
        choice = ModelChoice(before)
    else:
        raise unknown_provider(str(before))
    is_about_to_choose = environment is not None and environment.is_first_run
    announce(ModelChoice(choice.model) if is_about_to_choose else choice, tell)
    word = approval_word(arguments)
    thinking = arguments.thinking or (choice.model if before is None else before).thinking_level
    model = replace(choice.model, thinking_level=thinking)
    prompt = arguments.system
    if prompt is None and session is not None:
        prompt = without_plan(session.conversation.system_prompt)
    tools = load_tools(arguments.tool)
    options = StreamOptions(temperature=arguments.temperature, max_tokens=arguments.max_tokens)
    gone = () if session is None else _gone(session, tools)
    if approver is None and (tools or gone or environment is not None):
        # Here and not at the top: a plain question to a model needs none of it.
        from swink.app.cli.terminalquestions import TerminalPerson

        place = "." if environment is None else environment.directory
        owners = None if environment is None else environment.servers.owners
        approver = permissions = TerminalPerson().permissions(word, place, owners)
        if environment is not None:
            environment.attend(permissions)
    terms: Any = {"session": session, "options": options, "approve": approver, "approval_mode": "on"}
    terms["retry"] = ExponentialBackoff(max_attempts=settings.retries + 1)
    terms["fallback_models"], unknown = read_fallbacks(settings, thinking)
    for problem in (*problems, *unknown):
        tell(problem)
    limits = [*_limits(arguments), *policies]
    if environment is not None:
        return environment.make_agent(model, system=prompt or None, tools=tools, policies=limits, **terms)
    if limits:
        from swink.app.assistant.subagents import HoldBelow

        limits.insert(0, HoldBelow(limits))
    return Agent(model, system_prompt=prompt or "", tools=[*tools, *gone], policies=limits, **terms)


def make_chat_agent(
    arguments: argparse.Namespace,
    environment: "AgentEnvironment",
    permissions: Approve,
    saved: "SavedConversation | None",
    tell: Callable[[str], None] = say,
    *,
    policies: Sequence[Policy] = (),
) -> "tuple[Agent, Snapshots | None]":
    """The agent of a chat, and the snapshots of what its tools do to files if the conversation is saved."""
    if saved is None:
        return make_agent(arguments, permissions, None, policies, environment, tell=tell), None
    from swink.app.assistant.snapshots.scan import SnapshotLimits
    from swink.app.assistant.snapshots.snapshotpolicy import Snapshots

    settings = environment.settings
    limits = SnapshotLimits(new=settings.snapshot_megabytes << 20, files=settings.snapshot_files)
    snapshots = Snapshots(environment.directory, saved, limits=limits)
    approver = snapshots.approving(permissions)
    return make_agent(
        arguments, approver, saved.session, [snapshots, *policies], environment, tell=tell
    ), snapshots


def _gone(session: Session, tools: Sequence[Tool]) -> Sequence[Tool]:
    """What stands in for tools that the conversation used and that are no longer there."""
    turn = session.conversation.open
    return placeholders([*session.messages, *([] if turn is None else [turn.reply])], tools)


def approval_word(arguments: argparse.Namespace) -> ApprovalWord:
    """When to ask: as the command line says, else as the settings do."""
    return arguments.approve or load_settings().approve


def use_local_models() -> None:
    """Let agents have local models, whose loading is shown."""
    catalog.register_provider("local", _local)


_download_listeners: list[Callable[[str, str], None]] = []


def watch_downloads(listen: Callable[[str, str], None]) -> None:
    """Have `listen(model, size)` called while a local model is being fetched."""
    _download_listeners[:] = [listen]


def announce(choice: ModelChoice, tell: Callable[[str], None] = say) -> None:
    """Say which model it is and why, if the command line does not, and which settings mean nothing."""
    with suppress(MisuseError):  # reported where the settings are needed
        settings = load_settings()
        for problem in settings.problems:
            tell(problem)
    if choice.why is not None:
        tell(f"using {choice.model} ({choice.why})")


def _local() -> StreamFn:
    """The local models, with a line on stderr while one is being loaded."""
    from swink.local import Downloading, Loading, LocalStreamFn, State, megabytes, say_on_stderr

    show_download = say_on_stderr()

    def show(state: State) -> None:
        loading = isinstance(state, Loading)
        if not loading:
            say_in_passing("")
        show_download(state)
        if isinstance(state, Downloading) and state.total:
            for listen in _download_listeners:
                listen(state.model, megabytes(state.total))
        if loading:
            say_in_passing(f"swink: loading local:{state.model} …")

    return LocalStreamFn(progress=show, gpu_layers=load_settings().local.gpu_layers)


def _limits(arguments: argparse.Namespace) -> list[Policy]:
    if arguments.max_turns is None and arguments.budget is None:
        return []
    from swink.policies import Budget, MaxTurns

    class CommandBudget(Budget):
        advice = "take a model with a price (swink models list), or --max-turns instead of --budget"

    limits: list[Policy] = []
    if arguments.max_turns is not None:
        limits.append(MaxTurns(arguments.max_turns))
    if arguments.budget is not None:
        limits.append(CommandBudget(max_cost=arguments.budget, expected_output=arguments.max_tokens or 1_000))
    return limits
