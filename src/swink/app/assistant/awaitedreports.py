"""Reports that a run waits for: one without a person ends when its background agents have ended too."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from swink.agent.policy import Inject, Policy, PolicyContext
from swink.app.assistant.subagents import SubAgents
from swink.events.transcript.blockkinds import counted
from swink.messages import UserMessage


class AwaitReports(Policy):
    """Keeps a run from ending while agents work for it: their reports are its next messages.

    The limits of the run hold meanwhile, its deadline too. `tell` is told what is waited for.
    """

    fail_closed = True
    for_sub_agents = False

    def __init__(
        self, sub_agents: SubAgents, directory: Path, tell: Callable[[str], None], *, saves: bool
    ) -> None:
        self._tell = tell
        self._reports: asyncio.Queue[str] = asyncio.Queue()
        self._agents = sub_agents.work_in_background(directory, self._reports.put_nowait, tell, saves=saves)
        self._agents.reports_interrupted = False  # nobody is there who could resume them

    async def post_loop(self, ctx: PolicyContext) -> Inject | None:
        """The reports that are there, else the next one; nothing once no agent works any more."""
        while self._reports.empty():
            if not self._agents.running:
                return None
            count = counted(len(self._agents.running), "background agent")
            self._tell(f"waiting for {count}: {', '.join(self._agents.running)}")
            await self._agents.wait_for_end()  # not for a report: one that is cancelled gives none
        found: list[str] = []
        while not self._reports.empty():
            found.append(self._reports.get_nowait())
        for report in found:
            self._tell(report.partition(". ")[0].removeprefix("["))
        return Inject(tuple([UserMessage(report) for report in found]))

    def leave(self) -> None:
        """Say which agents end with the run, before they are ended."""
        if running := self._agents.running:
            how = "; /agents resume in the terminal goes on with them" if self._agents.saves else ""
            self._tell(f"ended with the run, before they were done: {', '.join(running)}{how}")
