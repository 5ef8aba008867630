"""RecommendedPolicies: a sensible set for production, and the proof that each of them works."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from swink.agent.policy import Policy
from swink.errors import AgentError
from swink.messages.checks import check_type
from swink.policies.audit import AuditLogger
from swink.policies.budget import Budget
from swink.policies.injection import PromptInjectionGuard
from swink.policies.limits import MaxTurns, Pattern, ToolDenyList
from swink.policies.loops import LoopDetection
from swink.policies.pathguard import PathGuard
from swink.policies.personal import Kind
from swink.policies.pii import PiiRedactor
from swink.policies.probes import Probe, probe
from swink.policies.saving import Checkpoint


class UnprovenPolicy(AgentError):
    """A policy had no effect when it was probed."""

    kind = "misuse"

    def __init__(self, probes: Sequence[Probe]) -> None:
        self.probes = tuple(probes)
        super().__init__("; ".join(f"{item.policy}: {item.problem}" for item in probes if not item.ok))


class RecommendedPolicies(Sequence[Policy]):
    """Redaction, injection guard, budget, turn limit, loop detection; the others if their options are given.

    Those are the path guard, the deny list, the audit log and checkpoints; `also` adds policies of your own.
    With a model without a known price the cost limit is not kept, which is logged once. `verify()` runs a
    scripted agent against each and raises `UnprovenPolicy` if a policy has no effect.

    Args:
        root: the directory that paths may not leave
        max_tokens: of a run, sent and written
        max_turns: of a run
        repeats: how often the same call may come
        redact: kinds of personal data that models do not see
        checkpoint: a store for `Checkpoint`

    >>> policies = RecommendedPolicies("project", max_cost=1.0, audit="audit.jsonl")
    >>> await policies.verify()
    >>> agent = Agent(model, tools=coding_tools("project"), policies=policies)
    """

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        max_cost: float | None = 5.0,
        max_tokens: int | None = None,
        max_turns: int = 100,
        repeats: int = 3,
        redact: Iterable[Kind] = ("key", "email", "card", "ssn", "phone"),
        deny: Iterable[Pattern] = (),
        audit: str | Path | AuditLogger | None = None,
        checkpoint: Any = None,
        also: Iterable[Policy] = (),
    ) -> None:
        # The redactor comes first, so that every other policy judges the arguments a tool will really get.
        policies: list[Policy] = [PiiRedactor(kinds)] if (kinds := tuple(redact)) else []
        policies.append(PromptInjectionGuard())
        if max_cost is not None or max_tokens is not None:
            policies.append(Budget(max_cost=max_cost, max_tokens=max_tokens, unknown_price="warn"))
        policies.append(MaxTurns(max_turns))
        if denied := tuple(deny):
            policies.append(ToolDenyList(denied))
        if root is not None:
            policies.append(PathGuard(root))
        policies.append(LoopDetection(repeats))
        for policy in also:
            check_type("RecommendedPolicies(also=[…])", policy, Policy)
            policies.append(policy)
        if audit is not None:
            policies.append(audit if isinstance(audit, AuditLogger) else AuditLogger(audit))
        if checkpoint is not None:
            policies.append(Checkpoint(checkpoint))
        self._policies = tuple(policies)

    @overload
    def __getitem__(self, index: int) -> Policy: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Policy, ...]: ...
    def __getitem__(self, index: int | slice) -> Policy | tuple[Policy, ...]:
        return self._policies[index]

    def __len__(self) -> int:
        return len(self._policies)

    def __iter__(self) -> Iterator[Policy]:
        return iter(self._policies)

    async def verify(self) -> tuple[Probe, ...]:
        """Probe every policy of the set; raises `UnprovenPolicy` naming each one without effect."""
        probes = tuple([await probe(policy) for policy in self._policies])
        if not all(item.ok for item in probes):
            raise UnprovenPolicy(probes)
        return probes
