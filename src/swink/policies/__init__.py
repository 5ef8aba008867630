"""Bundled policies: each small, independent, and off until it is listed in `Agent(policies=[…])`."""

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

__all__ = [
    "AuditLogger",
    "BrokenLog",
    "Budget",
    "Checkpoint",
    "CheckpointStore",
    "ContentFilter",
    "Head",
    "LoopDetection",
    "MaxTurns",
    "PathGuard",
    "PiiRedactor",
    "Probe",
    "PromptInjectionGuard",
    "RecommendedPolicies",
    "Spending",
    "ToolAllowList",
    "ToolDenyList",
    "UnprovenPolicy",
    "Verification",
    "probe",
]
