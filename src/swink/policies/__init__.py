"""Bundled policies: each small, independent, and off until it is listed in `Agent(policies=[…])`."""

from typing import TYPE_CHECKING, Any

from swink.policies.audit import AuditLogger, BrokenLog
from swink.policies.budget import Budget, Spending
from swink.policies.chain import Head, Verification
from swink.policies.content import ContentFilter
from swink.policies.injection import PromptInjectionGuard
from swink.policies.limits import MaxTurns, ToolAllowList, ToolDenyList
from swink.policies.loops import LoopDetection
from swink.policies.pathguard import PathGuard
from swink.policies.pii import PiiRedactor
from swink.policies.probes import Probe, probe
from swink.policies.recommended import RecommendedPolicies, UnprovenPolicy
from swink.policies.saving import Checkpoint, CheckpointStore

if TYPE_CHECKING:
    from swink.policies.hooks.hook import Hook
    from swink.policies.shellhook import ShellHook

__all__ = [
    "AuditLogger",
    "BrokenLog",
    "Budget",
    "Checkpoint",
    "CheckpointStore",
    "ContentFilter",
    "Head",
    "Hook",
    "LoopDetection",
    "MaxTurns",
    "PathGuard",
    "PiiRedactor",
    "Probe",
    "PromptInjectionGuard",
    "RecommendedPolicies",
    "ShellHook",
    "Spending",
    "ToolAllowList",
    "ToolDenyList",
    "UnprovenPolicy",
    "Verification",
    "probe",
]


def __getattr__(name: str) -> Any:
    if name not in ("Hook", "ShellHook"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from swink.policies import shellhook  # here: what starts commands is loaded by those who have hooks

    return getattr(shellhook, name)
