"""Scores: what a scorer says of an attempt, and what becomes of it."""

from msgspec import Struct


class Score(Struct, frozen=True):
    """A value in [0, 1], why, and the least that passes; without a threshold the scorer's own counts."""

    value: float
    why: str = ""
    threshold: float | None = None


class Verdict(Struct, frozen=True):
    """What one judge of a panel said."""

    judge: str
    value: float
    why: str = ""


class Metric(Struct, frozen=True):
    """The score of one scorer for one attempt; a scorer that failed has an `error`, 0, and is no pass."""

    name: str
    value: float
    threshold: float
    passed: bool
    why: str = ""
    error: str | None = None
    cost: float | None = 0.0
    """What its judges cost; None: unknown."""
    verdicts: tuple[Verdict, ...] = ()
    """What each of its judges said."""
