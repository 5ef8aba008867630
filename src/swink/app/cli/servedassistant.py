"""The coding agents of one folder behind a page: an environment for each conversation that is worked in.

make(request)     before each run: the conversation's agent, as the arguments, the settings and the page say
choices, choose   the model and the mode of a conversation, from its next run on
aclose            servers and background commands of all conversations are ended
"""

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

from swink.agent import Agent
from swink.agent.policy import Policy, PolicyContext
from swink.app.assistant.awaitedreports import AwaitReports
from swink.app.assistant.modelchoice import choose_model, parse_model
from swink.app.assistant.pagechoices import PLAN, check_choice, offered_choices
from swink.app.assistant.pageperson import ask_domain_on_page, ask_on_page
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.planning import PlanMode
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import Trust
from swink.app.cli.agentsetup import approval_word, make_agent
from swink.app.cli.directory import open_environment
from swink.memory import Session, Store
from swink.messages import ModelSpec
from swink.serve.hosting import AgentRequest, Caller, HostedRun, current_run
from swink.serve.page import PageChoice, PageChoices
from swink.serve.wire import Refused
from swink.system.threads import in_thread
from swink.tools.coding.workspace import Workspace

MOST_OPEN = 8
"""Conversations whose environment stays open; beyond that the one that rested longest is closed."""


class ServedAssistant:
    """The factory of the agents, and what may be chosen for them."""

    def __init__(self, arguments: argparse.Namespace, store: Store, trust: Trust) -> None:
        self._arguments = arguments
        self._store = store
        self._trust = trust
        self._open: dict[str, _Workplace] = {}
        self._opening = asyncio.Lock()

    async def make(self, request: AgentRequest) -> Agent[Any, Any]:
        """The agent of a conversation, in an environment that is open."""
        if request.conversation is None:
            raise Refused(404, "the assistant works in conversations only")
        place = await self._workplace(request.conversation)
        place.is_in_use = True
        return await in_thread(place.make_agent, await self._store.open(request.conversation))

    async def choices(self, caller: Caller, conversation: str | None) -> PageChoices:
        """What holds for a conversation; an environment is not opened for it."""
        if conversation is not None and (place := self._open.get(conversation)) is not None:
            return await in_thread(
                offered_choices, place.model or await self._model(conversation), place.mode
            )
        mode = PLAN if self._arguments.plan else approval_word(self._arguments)
        return await in_thread(offered_choices, await self._model(conversation), mode)

    async def choose(self, caller: Caller, conversation: str, chosen: PageChoice) -> PageChoices:
        """Take another model or mode; a mode holds at once for what is asked from now on."""
        await in_thread(check_choice, chosen)
        place = await self._workplace(conversation)
        if chosen.model is not None:
            place.model = parse_model(chosen.model)
        if chosen.mode is not None:
            place.choose_mode(chosen.mode)
        return await self.choices(caller, conversation)

    def tell(self, text: str) -> None:
        """Tell it on the pages that wait for a run."""
        for place in self._open.values():
            if place.is_in_use:
                place.environment.notify(text)
                place.tell()

    async def aclose(self) -> None:
        """End the servers and the background commands of all conversations."""
        async with AsyncExitStack() as ends:
            for place in self._open.values():
                ends.push_async_callback(place.environment.aclose)
        self._open.clear()

    async def _model(self, conversation: str | None) -> ModelSpec:
        saved = None if conversation is None else (await self._store.open(conversation)).model
        named = self._arguments.model
        return saved if saved and not named else (await in_thread(choose_model, named)).model

    async def _workplace(self, conversation: str) -> "_Workplace":
        async with self._opening:
            place = self._open.pop(conversation, None)
            if place is None:
                await self._make_room()
                place = await in_thread(_Workplace, self._arguments, self._trust)
                try:
                    await place.open()
                except BaseException:
                    await place.environment.aclose()
                    raise
            self._open[conversation] = place  # the last one that was asked for stands last
            return place

    async def _make_room(self) -> None:
        resting = [id for id, place in self._open.items() if not place.is_in_use]
        for id in resting[: max(0, len(self._open) - MOST_OPEN + 1)]:
            await self._open.pop(id).environment.aclose()


class _Workplace:
    """The environment of one conversation, and what was chosen for it."""

    def __init__(self, arguments: argparse.Namespace, trust: Trust) -> None:
        self._arguments = argparse.Namespace(**vars(arguments))
        self.model: ModelSpec | None = None
        self.is_in_use = False
        self.is_planning: bool = arguments.plan
        self.run: HostedRun | None = None
        self.environment = environment = open_environment(arguments, load_settings(), trust)
        self.permissions = Permissions(
            approval_word(arguments),
            workspace=Workspace(environment.directory),
            servers=environment.servers.owners,
            ask=ask_on_page,
            ask_domain=ask_domain_on_page,
            tell=environment.notify,
        )
        environment.attend(self.permissions)

    @property
    def mode(self) -> str:
        return PLAN if self.is_planning else self.permissions.word

    def choose_mode(self, mode: str) -> None:
        """Plan from the next run on, or work, and ask as the word says."""
        self.is_planning = mode == PLAN
        if mode != PLAN:
            self.permissions.word = mode  # pyright: ignore[reportAttributeAccessIssue]  # it was checked

    async def open(self) -> None:
        """Read what the folder brings along and start its servers."""
        loop = asyncio.get_running_loop()
        await self.environment.open()
        await self.environment.servers.settle()

        def changed() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self.tell)

        self.environment.changed = changed

    def tell(self) -> None:
        """Tell the page what there is to know; without a run it waits for the next one."""
        if self.run is not None and not self.run.is_over:
            for notice in self.environment.take_notices():
                self.run.notify(notice)

    def make_agent(self, session: Session) -> Agent[Any, Any]:
        """The agent of the next run; blocking."""
        environment = self.environment
        if self.model is not None:
            self._arguments.model = str(self.model)
        reports = AwaitReports(environment.sub_agents, environment.directory, environment.notify, saves=True)
        policies: Sequence[Policy] = [_InUse(self), reports]
        agent = make_agent(
            self._arguments, self.permissions, session, policies, environment, tell=environment.notify
        )
        PlanMode(agent).switch(self.is_planning)
        return agent


class _InUse(Policy):
    """Knows when a run of a conversation begins and ends, and tells it the notices."""

    for_sub_agents = False

    def __init__(self, place: _Workplace) -> None:
        self._place = place

    def pre_turn(self, ctx: PolicyContext) -> None:
        self._place.run = current_run()
        self._place.tell()

    def post_run(self, ctx: PolicyContext, ending: object) -> None:
        self._place.tell()
        self._place.is_in_use = False
