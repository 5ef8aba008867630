"""`swink rpc`: an agent for a program in any language, on standard input and output."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable

from swink.agent import Agent
from swink.app.acp.connection import Connection
from swink.app.assistant.awaitedreports import AwaitReports
from swink.app.assistant.settings import load_settings
from swink.app.cli.agentserving import as_factory
from swink.app.cli.directory import change_directory, open_environment, trust_without_person
from swink.app.cli.terminal import say
from swink.app.rpc import ClientPerson, CodingAgents, RpcServer
from swink.memory import JsonlStore, MemoryStore, Store
from swink.memory.jsonl import sessions_dir
from swink.serve.hosting import Caller, Host, ServeLimits
from swink.system.interrupts import interruptible
from swink.system.linepipes import LinePipes, claimed_descriptors
from swink.system.loading import load_object
from swink.system.threads import run_to_end

_EVENTS = 100_000
"""Events of a run that are kept for a program that reads slowly."""


def rpc_command(arguments: argparse.Namespace) -> int:
    """Answer the program that started this, until it leaves."""
    change_directory(arguments)
    if sys.stdin.isatty():
        say("a program starts swink rpc and talks to it in lines of JSON on standard input and output", "dim")
    with claimed_descriptors() as pipes:
        serving = _serve_coding if arguments.factory is None else _serve_factory
        return run_to_end(serving(arguments, *pipes))


async def _serve_factory(arguments: argparse.Namespace, source: int, sink: int) -> int:
    factory = as_factory(load_object(arguments.factory, "swink rpc"))
    host = Host(factory, _store(), ServeLimits(events=_EVENTS))
    caller = Caller(f"rpc {arguments.factory}")
    return await _serve(host, caller, ClientPerson(), source, sink)


async def _serve_coding(arguments: argparse.Namespace, source: int, sink: int) -> int:
    settings, person = load_settings(), ClientPerson()
    environment = open_environment(arguments, settings, trust_without_person())
    waiting = AwaitReports(environment.sub_agents, environment.directory, environment.notify, saves=True)
    loop = asyncio.get_running_loop()

    def tell() -> None:
        for notice in environment.take_notices():
            say(notice)

    def tell_soon() -> None:
        loop.call_soon_threadsafe(tell)

    try:
        await environment.open()
        await environment.servers.settle()
        tell()
        environment.changed = tell_soon
        agents = CodingAgents(arguments, environment, settings, person, [waiting])
        # What commands and sub-agents of a folder share is of one run.
        limits = ServeLimits(events=_EVENTS, runs=1)
        host = Host(agents.make, _store(), limits, directory=os.getcwd())
        return await _serve(host, Caller("rpc"), person, source, sink, agents.attend)
    finally:
        environment.changed = lambda: None
        waiting.leave()
        tell()
        await environment.aclose()


async def _serve(
    host: Host,
    caller: Caller,
    person: ClientPerson,
    source: int,
    sink: int,
    begun: Callable[[Agent], object] = lambda agent: None,
) -> int:
    connection = Connection(LinePipes(source, sink))
    try:
        with interruptible(connection.end) as interruption:
            await RpcServer(connection, host, caller, person, begun).serve()
    finally:
        await host.store.aclose()
    return 0 if interruption.signal is None else interruption.exit_code


def _store() -> Store:
    return JsonlStore(sessions_dir()) if load_settings().save else MemoryStore()
