"""The coding agent of a folder for a program: rules and modes decide as always, the program is asked."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from swink.agent import Agent
from swink.agent.policy import Answer, Approved, Policy, Rejected
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import ABSENT, DomainQuestion, Once, Question, Refuse, Reply
from swink.app.assistant.settings import UserSettings
from swink.app.cli.agentsetup import make_agent
from swink.serve.hosting import AgentRequest
from swink.tools.coding.workspace import Workspace

if TYPE_CHECKING:
    from swink.app.assistant.agentenvironment import AgentEnvironment


class ClientPerson:
    """The program as the one who is asked; an answer may come between the event and the question."""

    def __init__(self) -> None:
        self._expected: dict[str, asyncio.Future[Answer]] = {}
        self.is_asked = False
        """Whether questions are put to it; an agent of a program asks in its own way."""

    def expect(self, call_id: str) -> None:
        """The program has been told that this call wants an approval."""
        if self.is_asked:
            self._answer_to(call_id)

    def forget(self, call_id: str) -> None:
        """The call has been decided."""
        self._expected.pop(call_id, None)

    def answer(self, call_id: str, answer: Answer) -> bool:
        """Take an answer; False if no such call waits for one."""
        waiting = self._expected.get(call_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        return True

    async def ask(self, question: Question) -> Reply:
        """The program's word on a call."""
        call_id = question.request.call_id
        try:
            answer = await self._answer_to(call_id)
        finally:
            self.forget(call_id)
        match answer:
            case True:
                return Once(by="the program allowed it")
            case Approved(arguments):
                return Once(arguments, by="the program allowed it")
            case Rejected(reason):
                return Refuse(reason or "", by="the program said no")
            case _:
                return Refuse(by=ABSENT)

    async def ask_domain(self, question: DomainQuestion) -> Reply:
        """No: hosts are allowed with --network or in the settings."""
        return Refuse("hosts that commands may reach are named with --network", by=ABSENT)

    def _answer_to(self, call_id: str) -> "asyncio.Future[Answer]":
        found = self._expected.get(call_id)
        if found is None:
            found = self._expected[call_id] = asyncio.get_running_loop().create_future()
        return found


class CodingAgents:
    """Makes the agent of each run in one open environment; one run at a time works there."""

    def __init__(
        self, arguments: argparse.Namespace, environment: "AgentEnvironment", settings: UserSettings,
        person: ClientPerson, policies: Sequence[Policy] = (),
    ) -> None:  # fmt: skip
        self._arguments, self._environment, self._policies = arguments, environment, policies
        asking: Any = {"ask": person.ask, "ask_domain": person.ask_domain, "tell": environment.notify}
        person.is_asked = True
        self._permissions = Permissions(
            arguments.approve or settings.approve,
            workspace=Workspace(environment.directory),
            servers=environment.servers.owners,
            **asking,
        )
        environment.attend(self._permissions)
        self._told: set[str] = set()

    async def make(self, request: AgentRequest) -> Agent:
        """The agent of a run."""
        return make_agent(
            self._arguments, self._permissions, None, self._policies, self._environment, tell=self._tell
        )

    def attend(self, agent: Agent) -> None:
        """This is the agent that works now: reports of background agents are for it."""
        self._environment.agent = agent

    def _tell(self, text: str) -> None:
        """Say something once, and not before every run."""
        if text not in self._told:
            self._told.add(text)
            self._environment.notify(text)
