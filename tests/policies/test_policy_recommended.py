"""RecommendedPolicies: the set works, and verify() notices each policy that does not."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from scenes import Scene, call

from swink import Policy
from swink.policies import (
    AuditLogger,
    Budget,
    Checkpoint,
    ContentFilter,
    LoopDetection,
    MaxTurns,
    PiiRedactor,
    PromptInjectionGuard,
    RecommendedPolicies,
    Spending,
    ToolAllowList,
    ToolDenyList,
    UnprovenPolicy,
    probe,
)


def everything(tmp_path: Path) -> RecommendedPolicies:
    extra = [ToolAllowList("read", "act"), ContentFilter(["secret"])]
    return RecommendedPolicies(
        tmp_path,
        max_turns=20,
        deny=["bash", "db_*"],
        audit=tmp_path / "a.jsonl",
        checkpoint=lambda data: None,
        also=extra,
    )


async def test_each_policy_of_the_set_is_proven_to_work(tmp_path: Path):
    probes = await everything(tmp_path).verify()
    assert [item.policy for item in probes] == [
        "PiiRedactor",
        "PromptInjectionGuard",
        "Budget",
        "MaxTurns",
        "ToolDenyList",
        "PathGuard",
        "LoopDetection",
        "ToolAllowList",
        "ContentFilter",
        "AuditLogger",
        "Checkpoint",
    ]
    assert all(item.ok for item in probes)


SLOTS = (
    "pre_turn",
    "pre_dispatch",
    "pre_retry",
    "post_turn",
    "post_loop",
    "post_run",
    "pre_commit",
    "write",
    "append",
)


@pytest.mark.parametrize("index", range(11))
async def test_a_policy_that_does_not_bite_is_named(tmp_path: Path, index: int):
    policies = everything(tmp_path)
    policy = policies[index]
    toothless = type(type(policy).__name__, (type(policy),), {})
    for slot in SLOTS:
        if hasattr(policy, slot) and not (slot == "append" and isinstance(policy, AuditLogger)):
            setattr(toothless, slot, _nothing if slot != "write" else _nothing_async)
    policy.__class__ = toothless
    if isinstance(policy, AuditLogger):
        policy.path.write_bytes(b"not a log\n")
    with pytest.raises(UnprovenPolicy) as raised:
        await policies.verify()
    assert [item.policy for item in raised.value.probes if not item.ok] == [type(policy).__name__]


@pytest.mark.parametrize(
    ("kind", "slot", "problem"),
    [
        (MaxTurns, "pre_retry", "calls were made"),
        (AuditLogger, "post_run", "a turn that failed was not written down"),
        (Checkpoint, "post_run", "a turn that failed was not saved"),
    ],
)
async def test_a_policy_that_bites_only_half_is_named(tmp_path: Path, kind: type, slot: str, problem: str):
    policy = next(policy for policy in everything(tmp_path) if isinstance(policy, kind))
    policy.__class__ = type(kind.__name__, (kind,), {slot: _nothing})
    assert problem in ((await probe(policy)).problem or "")


async def test_a_budget_that_does_not_look_ahead_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.policies.budget._estimate", lambda *_: Spending())
    assert "may pass the limit" in ((await probe(Budget(max_tokens=10_000))).problem or "")


async def test_a_loop_detection_that_other_policies_reset_is_named(monkeypatch: pytest.MonkeyPatch):
    class Forgetful(LoopDetection):
        def post_turn(self, ctx: Any, turn: Any) -> Any:
            return super().post_turn(replace(ctx, injected=()), turn)

    assert "beside another policy" in ((await probe(Forgetful())).problem or "")


async def test_an_audit_log_that_does_not_miss_what_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.policies.chain._missing", lambda *_: [])
    assert "a deleted log was not noticed" in ((await probe(AuditLogger(tmp_path / "a.jsonl"))).problem or "")


async def test_a_required_log_with_a_key_is_probed_without_harm(tmp_path: Path):
    policy = AuditLogger(tmp_path / "a.jsonl", key="k", required=True, anchor=tmp_path / "a.head")
    assert (await probe(policy)).problem is None
    assert AuditLogger.verify(policy.path, key="k", head=tmp_path / "a.head").records == 1


def _nothing(*values: Any) -> None:
    return None


async def _nothing_async(*values: Any) -> None:
    return None


async def test_the_set_lets_ordinary_work_pass(tmp_path: Path):
    policies = RecommendedPolicies(tmp_path, audit=tmp_path / "audit.jsonl")
    await policies.verify()
    scene = Scene(list(policies), [call(1, path="a.txt"), call(2, path="b.txt"), "done"], answer="some text")
    assert (await scene.run()).text == "done"
    assert len(scene.ran) == 2
    assert AuditLogger.verify(tmp_path / "audit.jsonl").ok


async def test_a_model_without_a_price_is_reported_once_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    policies = list(RecommendedPolicies(tmp_path))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            scene = Scene(
                policies, [call(1, path="a.txt"), call(2, path="b.txt"), "done"], model="test:unpriced"
            )
            assert (await scene.run()).text == "done"
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "the cost of test:unpriced is unknown" in warnings[0].getMessage()


async def test_a_model_with_a_price_is_still_held_to_it(tmp_path: Path):
    scene = Scene(list(RecommendedPolicies(tmp_path, max_cost=0.0001)), [call(1, path="a.txt"), "done"])
    assert "budget" in (await scene.run()).reason


async def test_verifying_spends_nothing_of_a_session_budget():
    budget = Budget(max_tokens=10, scope="session", reserve=False)
    assert (await probe(budget)).ok
    assert budget.spent.usage.total == 0


@pytest.mark.parametrize(
    "policy",
    [
        Budget(max_cost=0.01),
        Budget(max_tokens=1, scope="session"),
        MaxTurns(1),
        MaxTurns(1_000_000),
        ToolDenyList("fs_[rw]*", re.compile(r"db_.+")),
        LoopDetection(2, action="stop"),
        LoopDetection(5),
        PromptInjectionGuard("stop", check_user=False),
        PiiRedactor(),
        ContentFilter(categories=["profanity"], action="mask"),
        Checkpoint(lambda data: None),
    ],
)
async def test_other_configurations_can_be_probed_too(policy: Policy):
    assert (await probe(policy)).problem is None


class Toothless(PromptInjectionGuard):
    def finds(self, text: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (ToolAllowList("*"), "an unlisted tool ran"),
        (Toothless(), "reached the model"),
        (ContentFilter(patterns=["x+"]), "patterns only"),
        (ToolDenyList(re.compile(r"\d\s")), "no tool name"),
        (Policy(), "no probe"),
    ],
)
async def test_a_configuration_without_teeth_is_reported(policy: Policy, problem: str):
    assert problem in ((await probe(policy)).problem or "")


async def test_the_redactor_comes_first_so_that_guards_judge_real_arguments(tmp_path: Path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a@b.io").symlink_to("/etc")
    scene = Scene(list(RecommendedPolicies(tmp_path / "root")), [call(1, path="a@b.io/passwd"), "done"])
    await scene.run()
    assert scene.ran == []
