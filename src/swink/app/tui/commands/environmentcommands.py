"""Commands about what the assistant works with: hooks, sub-agents, background, context, keys, trust."""

import time
from collections.abc import Sequence

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.contextuse import ContextUse, measure
from swink.app.assistant.sessionfacts import format_age
from swink.app.assistant.settings import load_settings
from swink.app.assistant.subagents import SubAgent
from swink.app.assistant.trust import look_afresh, look_up
from swink.app.tui.commands.commandtable import CommandContext, command
from swink.app.tui.screens.whole import Whole
from swink.app.tui.screens.wizard import Wizard
from swink.errors import MisuseError
from swink.events.transcript.blockkinds import counted
from swink.messages.modelspec import format_dollars
from swink.messages.redact import redact_text
from swink.models.keys.accounts import ACCOUNTS, account_for
from swink.models.keys.store import key_places
from swink.system.shorten import clip_end
from swink.system.threads import in_thread

_BAR = 30


@command("/hooks")
def hooks(context: CommandContext, rest: str) -> None:
    """shell hooks: which run at what, and where they come from"""
    group = _environment(context).hooks.group
    if group is None or not group.hooks:
        context.say(
            "no hooks; [[hooks]] in config.toml and .claude/settings.json of a trusted project name them"
        )
        return
    for hook in group.hooks:
        tools = f" of {hook.matcher}" if hook.matcher else ""
        context.say(f"{hook.event}{tools} ({hook.source}): {redact_text(hook.command)}")


@command("/agents", "[show | stop | resume | drop NUMBER]")
async def agents(context: CommandContext, rest: str) -> None:
    """sub-agents: what they do and what they cost; show, stop or resume one"""
    sub_agents = _environment(context).sub_agents
    listed = sub_agents.listed
    match rest.split():
        case []:
            for name, file in sub_agents.files.items():
                context.say(f"@{name}  {file.path}: {clip_end(file.description, 200)}")
            if not listed:
                context.say("no sub-agents yet; the model starts them with explore and task")
            for number, one in enumerate(listed, 1):
                took = format_age((one.ended or time.time()) - one.started)
                cost = f", {format_dollars(one.cost, 4)}" if one.cost else ""
                where = " in the background" if one.is_background else ""
                context.say(f"{number}  {one.name}{where}, {one.outcome}, {took}{cost}: {one.task[:200]}")
        case [word, which]:
            await _obey_agents(context, word, _listed_id(listed, which))
        case _:
            raise MisuseError(
                "write /agents, or /agents show, stop, resume or drop with a number of its list"
            )


async def _obey_agents(context: CommandContext, word: str, id: str) -> None:
    sub_agents = _environment(context).sub_agents
    background = sub_agents.background
    if word == "stop":
        context.say("it is being stopped" if sub_agents.stop(id) else "it has ended already")
    elif background is None:
        raise MisuseError("no agents work in the background here")
    elif word == "resume":
        await background.resume(id, sub_agents.files)
        context.say("it goes on in the background")
    elif word == "drop":
        background.drop(id)
        context.say("it is forgotten; its session stays")
    elif word == "show" and (transcript := background.transcript(id)) is not None:
        await context.ask(Whole(transcript, context.look))
    elif word == "show":
        raise MisuseError("it did not run in the background here; its call or its session has what it said")
    else:
        raise MisuseError("write /agents show, stop, resume or drop with a number")


def _listed_id(listed: Sequence[SubAgent], which: str) -> str:
    """The id of a sub-agent by its number in the list, or by itself."""
    if which.isdecimal() and 0 < int(which) <= len(listed):
        return listed[int(which) - 1].call_id
    if which in [one.call_id for one in listed]:
        return which
    raise MisuseError(f"there is no sub-agent {which}; /agents lists them")


@command("/background", "[read ID | stop ID]", choices=lambda at: _job_words(at), other_names=("/bg",))
def background(context: CommandContext, rest: str) -> None:
    """send the running command to the background, or list, read and stop those that are there"""
    background = _environment(context).background
    match rest.split():
        case [] if (job := background.send()) is not None:
            context.say(f"the command goes on in the background as {job.id}: {job.command}")
        case []:
            if not background.jobs:
                context.say("no commands in the background; Ctrl+B sends the running one there")
            for job in background.jobs.values():
                took = format_age((job.ended or time.time()) - job.started)
                how = "running" if job.ended is None else job.describe().strip("[]")
                context.say(f"{job.id}  {how}, {took}: {job.command}")
        case ["read", id]:
            job = background.find(id)
            context.say(f"{job.output() or '(nothing yet)'}\n{job.describe()}")
        case ["stop", id]:
            background.stop(id)
            context.say(f"{id} is being stopped")
        case _:
            raise MisuseError("write /background, /background read ID or /background stop ID")


@command("/context")
async def context_use(context: CommandContext, rest: str) -> None:
    """how full the context is, and with what"""
    agent = context.driver.agent
    prompt = await context.driver.system_prompt()
    use = measure(agent.model, prompt, await context.driver.tools(), agent.messages)
    context.say("\n".join(_context_lines(use, str(agent.model))))


@command("/usage", other_names=("/cost",))
def usage(context: CommandContext, rest: str) -> None:
    """tokens and cost of this conversation"""
    transcript, environment = context.driver.transcript, context.environment
    inside = transcript.spent
    totals = inside if environment is None else environment.sub_agents.add_spent(inside)
    used = totals.usage
    cached = f", {used.cache_read:,} of them from the cache" if used.cache_read else ""
    sent = used.input + used.cache_read + used.cache_write
    unpriced = "" if totals.is_priced else " and what has no known price"
    lines = [
        f"{counted(totals.prompts, 'prompt')}, {totals.replies} repl{'y' if totals.replies == 1 else 'ies'}",
        f"{counted(sent, 'token')} in{cached}; {used.output:,} out",
        f"cost {format_dollars(totals.cost.total, 4)}{unpriced}",
    ]
    if (delegated := totals.cost.total - transcript.totals.cost.total) > 0:
        aside = totals.cost.total - inside.cost.total
        told = f" ({format_dollars(aside, 4)} in the background)" if aside > 0 else ""
        lines.append(f"{format_dollars(delegated, 4)} of it by sub-agents{told}")
    context.say("\n".join(lines))


@command("/reload")
async def reload(context: CommandContext, rest: str) -> None:
    """read settings, instructions, commands and servers again"""
    from swink.app.tui.firststeps import apply_settings, ask_trust, tell_unused

    environment = _environment(context)
    settings = await in_thread(load_settings)
    for problem in settings.problems:
        context.say(problem, "error")
    context.settings = settings
    apply_settings(context, settings)
    trust = await in_thread(look_up, environment.directory)
    if trust.standing == "changed":
        trust = await ask_trust(context, trust)
    await environment.open(settings=settings, trust=trust)
    tell_unused(context, environment)
    found = environment.instructions.files if environment.instructions else ()
    files = counted(len(found), "file")
    commands = counted(len(environment.commands), "command")
    servers = counted(len(environment.servers.states), "server")
    context.say(f"read again: {files} of instructions, {commands}, {servers}")


@command("/trust")
async def trust(context: CommandContext, rest: str) -> None:
    """ask again whether this folder is trusted"""
    from swink.app.tui.firststeps import ask_trust

    environment = _environment(context)
    if environment.trust.standing == "never":
        raise MisuseError(environment.trust.notice or "")
    before = environment.trust
    trust = await ask_trust(context, await in_thread(look_afresh, environment.directory), before)
    if trust is not before:
        await environment.open(trust=trust)
    still = "still " if trust is before else ""
    context.say(f"{trust.project} is {still}{'' if trust.is_trusted else 'not '}trusted")


@command("#keys", other_names=("/keys",))
async def keys(context: CommandContext, rest: str) -> None:
    """which API keys there are, and where; never the keys"""
    stored = await in_thread(key_places)
    lines = [
        f"{account.provider}: {account.variable or f'in the {stored[account.key_name]}'}"
        for account in ACCOUNTS.values()
        if not account.shares and (account.variable or account.key_name in stored)
    ]
    context.say("\n".join(lines) or "no keys; #key PROVIDER asks for one")


@command("#key", "PROVIDER", choices=lambda context: _providers(), other_names=("/key",))
async def key(context: CommandContext, rest: str) -> None:
    """store the API key of a provider; it is asked for and not shown"""
    words = rest.split()
    if len(words) != 1:
        raise MisuseError(f"write #key PROVIDER, and not the key itself; there are {', '.join(_providers())}")
    model = await context.ask(Wizard(only=account_for(words[0])))
    if model is not None:
        context.say(f"the key of {words[0]} is stored; /model {model} takes its model")


def _environment(context: CommandContext) -> AgentEnvironment:
    if context.environment is None:
        raise MisuseError("there is no environment in this conversation")
    return context.environment


def _job_words(context: CommandContext) -> list[str]:
    jobs = [] if context.environment is None else list(context.environment.background.jobs)
    return [f"{word} {id}" for id in jobs for word in ("read", "stop")]


def _providers() -> list[str]:
    return [account.provider for account in ACCOUNTS.values() if not account.shares and account.variables]


def _context_lines(use: ContextUse, model: str) -> list[str]:
    window = use.window
    whole = window or use.used or 1
    share = f" of {window:,} ({use.used / window:.0%})" if window else ""
    lines = [f"{model}: about {counted(use.used, 'token')}{share}"]
    for part in use.parts:
        filled = min(_BAR, round(part.tokens / whole * _BAR))
        lines.append(f"{part.name:<13} {'█' * filled}{'░' * (_BAR - filled)} {part.tokens:>9,}")
    if use.free is not None:
        lines.append(f"{'free':<13} {'':{_BAR}} {use.free:>9,}")
    return lines
