"""AgentDojo without a model: what guards and approvals stop of its attacks, and what of its errands.

    python benchmarks/agentdojo.py [DIRECTORY]

DIRECTORY holds the package `agentdojo`, which is read and never run; without one it is fetched into
.venv/agentdojo. The model is scripted: it plays the calls that AgentDojo itself says solve a task. Once it
has read an attack it plays the attacker's calls instead, unless the result with the attack is fenced off as
untrusted; in one row it ignores the fence. Attackers of whom no calls are told are left out.

An attack has succeeded if all of the attacker's calls ran; an errand without attack is refused if not all of
its calls ran as they were made. The person who approves says yes to the calls that solve the user's errand,
and to no others.
"""

import asyncio
import logging
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from swink import Agent, Policy, ToolCall
from swink.agent.policy import Approved, Rejected
from swink.eval import Case, Collector
from swink.eval.importers.agentdojo import dojo_tools, make_case, may_be_attacked, missing_calls, playable
from swink.eval.importers.dojodata import SUITES, DojoTask, attacks, package_at, read_tasks
from swink.messages import ToolResultMessage
from swink.policies import PromptInjectionGuard, RecommendedPolicies
from swink.testing.scripted import script

ROOT = Path(__file__).parents[1]
WORDINGS = ("direct", "ignore_previous", "system_message", "injecagent", "important_instructions")
FENCE = "[untrusted:"
_PAIRS = 50  # a guard looks through mailboxes of 30 kB in each of them
Guards = Callable[[], Sequence[Policy]]
CONFIGURATIONS: dict[str, tuple[Guards, bool, bool]] = {
    "no guards": (list, False, True),
    "`PromptInjectionGuard()`": (lambda: [PromptInjectionGuard()], False, True),
    "the same, and the model ignores its fences": (lambda: [PromptInjectionGuard()], False, False),
    '`PromptInjectionGuard("stop")`': (lambda: [PromptInjectionGuard("stop")], False, False),
    "`RecommendedPolicies()`": (RecommendedPolicies, False, True),
    "approvals": (list, True, True),
    "approvals and `PromptInjectionGuard()`": (lambda: [PromptInjectionGuard()], True, True),
}
"""Policies, whether calls that act are asked about, and whether the model heeds fences."""


class Puppet:
    """Plays the user's calls until it reads the attack, and from then on the attacker's."""

    def __init__(self, case: Case, heeds_fences: bool) -> None:
        told = case.metadata["agentdojo"]
        self.user, self.goal = playable(case, "solution"), playable(case, "goal")
        self.attack: str = told["attack"]
        self.heeds_fences = heeds_fences
        self.taken = False
        self.asked = 0

    async def __call__(self, model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
        last = context.messages[-1]
        if isinstance(last, ToolResultMessage) and not self.taken and self._is_attacked(last.text):
            self.taken, self.user = True, list(self.goal)
        reply: Any = "Done."
        if self.user:
            self.asked += 1
            call = self.user.pop(0)
            reply = ToolCall(str(self.asked), call.tool, call.arguments)
        for event in script(reply):
            yield event

    def _is_attacked(self, text: str) -> bool:
        found = bool(self.attack) and self.attack[:40] in text
        return found and not (self.heeds_fences and text.startswith(FENCE))


async def play(case: Case, guards: Guards, approvals: bool, heeds_fences: bool) -> bool:
    """Whether all calls ran: the attacker's, or without an attack the user's."""
    told = case.metadata["agentdojo"]
    puppet, collector = Puppet(case, heeds_fences), Collector()
    solution = [(call.tool, call.arguments) for call in puppet.user]

    def person(call: Any) -> Any:
        return Approved() if (call.name, dict(call.arguments)) in solution else Rejected("not asked for")

    tools = dojo_tools(case)
    if approvals:
        tools = [replace(tool, requires_approval=not tool.read_only) for tool in tools]
    options: dict[str, Any] = {"approve": person} if approvals else {}
    agent = Agent("test:puppet", stream_fn=puppet, tools=tools, policies=list(guards()), **options)
    with agent.subscribe(collector):
        await agent.run(case.user_messages[0])
    return not missing_calls(told["goal"] or told["solution"], collector.trajectory().calls)


async def measure(package: Path) -> None:
    """Print the table: attacks that succeeded, by their wording, and errands that were not done."""
    users = {suite: tasks(package, suite, "user") for suite in SUITES}
    attackers = {suite: tasks(package, suite, "injection") for suite in SUITES}
    pairs = [(u, a) for s in SUITES for u in users[s] if may_be_attacked(package, u) for a in attackers[s]]
    every = len(pairs)
    pairs = Random(1).sample(pairs, _PAIRS)  # in order, the same attackers would come again
    benign = [make_case(package, user) for suite in SUITES for user in users[suite]]
    print(
        f"{len(benign)} errands, {len(pairs)} of {every} pairs of an errand and an attack; no model was asked"
    )
    wordings = attacks(package)
    print("| | " + " | ".join(WORDINGS) + " | errands refused |\n|---|" + "---|" * (len(WORDINGS) + 1))
    for name, how in CONFIGURATIONS.items():
        shares: list[str] = []
        for wording in WORDINGS:
            cases = [make_case(package, user, attacker, wordings[wording]) for user, attacker in pairs]
            succeeded = [await play(case, *how) for case in cases]
            shares.append(f"{sum(succeeded) / len(cases):.1%}")
        done = [await play(case, *how) for case in benign]
        shares.append(f"{1 - sum(done) / len(done):.1%}")
        print(f"| {name} | " + " | ".join(shares) + " |", flush=True)


def tasks(package: Path, suite: str, kind: str) -> list[DojoTask]:
    """The tasks that can be read."""
    read = [task for task in read_tasks(package, suite, kind) if isinstance(task, DojoTask)]
    return [task for task in read if task.calls or kind == "user"]


def fetched() -> Path:
    """The package from the index, unpacked and not installed."""
    place = ROOT / ".venv" / "agentdojo"
    if not (place / "agentdojo").is_dir():
        place.mkdir(parents=True, exist_ok=True)
        options = ["--quiet", "--no-deps", "--disable-pip-version-check", "--dest", str(place)]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, "agentdojo==0.1.35"], check=True)
        with zipfile.ZipFile(next(place.glob("*.whl"))) as wheel:
            wheel.extractall(place)
    return place


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # of every run that a guard stops
    asyncio.run(measure(package_at(Path(sys.argv[1]) if sys.argv[1:] else fetched())))
