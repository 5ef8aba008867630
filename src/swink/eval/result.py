"""Results: the scores of an attempt, the attempt as a line of results.jsonl, the run, and its summary."""

from typing import Any, Literal

from msgspec import Struct, field

from swink.eval.case import SourceLine
from swink.eval.statistics import Interval
from swink.eval.trajectory import TakenCall, TakenTurn
from swink.messages import Message, Usage

ErrorSource = Literal["factory", "provider", "agent", "timeout", "harness"]
"""Who is to blame: the factory raised, the provider failed after its retries, the agent's own code raised,
the case took too long, or we failed."""


class Score(Struct, frozen=True):
    """A value in [0, 1], why, and the least that passes; without a threshold the scorer's own counts."""

    value: float
    why: str = ""
    threshold: float | None = None


class JudgeVerdict(Struct, frozen=True):
    """What one judge of a panel said.

    Args:
        value: its score, from 0 to 1
        why: its reason
    """

    judge: str
    value: float
    why: str = ""


class Metric(Struct, frozen=True):
    """The score of one scorer for one attempt; a scorer that failed has an `error`, 0, and is no pass.

    Args:
        name: the scorer
        value: the score, from 0 to 1
        threshold: the least score that passes
        passed: whether it did
        why: the reason, in words
    """

    name: str
    value: float
    threshold: float
    passed: bool
    why: str = ""
    error: str | None = None
    cost: float | None = 0.0
    """What its judges cost; None: unknown."""
    verdicts: tuple[JudgeVerdict, ...] = ()
    """What each of its judges said."""


class CaseResult(Struct, frozen=True, kw_only=True):
    """What one attempt came to.

    Args:
        case_id: the case
        passed: whether every metric is at its threshold
        metrics: what each scorer said
        usage: tokens of the attempt
        turns: replies of the model
        duration: seconds
        stop_reason: how the last reply ended
        error: what went wrong, if something did
        transcript: every message
        name: the title of the case
        tags: the tags of the case
        model: the model that was asked
        system_prompt: the prompt that it got
        reason: why the run was stopped, if it was
        error_source: whose error it was
        calls: every tool call, as it ran
        timings: how long each turn took
        metadata: the data of the case
    """

    case_id: str
    repeat: int = 0
    """From 0 on."""
    passed: bool
    metrics: tuple[Metric, ...] = ()
    usage: Usage = Usage()
    cost: float | None = None
    """Of the agent, in dollars; None: unknown. What judges cost stands in the metrics."""
    turns: int = 0
    duration: float = 0.0
    stop_reason: str = "stop"
    error: str | None = None
    transcript: tuple[Message, ...] = ()
    name: str = ""
    tags: tuple[str, ...] = ()
    model: str = ""
    system_prompt: str = ""
    reason: str | None = None
    error_source: ErrorSource | None = None
    calls: tuple[TakenCall, ...] = ()
    timings: tuple[TakenTurn, ...] = ()
    started: float = 0.0
    """Seconds since 1970."""
    cached: bool = False
    """Taken from the cache of an earlier run."""
    key: str = ""
    """What the attempt is known by in the cache: a digest of case, prompt, tools, model and code version."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    tools: tuple[dict[str, Any], ...] = ()
    """What the agent was offered: name, description and parameters of each tool."""
    place: SourceLine | None = None
    """Where the case stands."""


class Manifest(Struct, frozen=True, kw_only=True):
    """What a run is about: run.json, written before its first result.

    Args:
        name: of the suite
        started: when, in seconds since 1970
        version: of swink
        agent: where its factory is
        model: the model that all agents were given, if one was chosen
        repeat: attempts at each case
        concurrency: cases at the same time
        engine: what ran the attempts
        case_ids: all cases of the run
        arguments: other options of the command that ran it
    """

    name: str
    started: float
    version: str
    agent: str = ""
    model: str | None = None
    repeat: int = 1
    concurrency: int = 8
    engine: str = "local"
    case_ids: tuple[str, ...] = ()
    digest: str = ""
    """Of the cases: a run is only resumed with the same ones."""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


class RunSummary(Struct, frozen=True, kw_only=True):
    """summary.json. With repeats, a case has passed if every attempt did.

    `pass_rate` is the mean over cases of the attempts that passed; `cases` = `passed` + `failed` + `errors`.

    Args:
        name: the suite
        pass_rate_interval: where the true pass rate lies, with 95 % confidence
        pass_at_k: the chance that one of k attempts passes
        pass_hat_k: the chance that all of k attempts pass
        usage: tokens of all attempts
        pass_at_k_intervals: the confidence intervals of those
        pass_hat_k_intervals: the confidence intervals of those
    """

    cases: int
    passed: int
    failed: int
    errors: int
    pass_rate: float
    cost: float | None
    """Agents, judges and simulated users; None: unknown for some of it."""
    duration: float
    """Seconds on the clock."""
    name: str = ""
    attempts: int = 0
    pass_rate_interval: Interval | None = None
    pass_at_k: dict[str, float] = field(default_factory=dict[str, float])
    pass_hat_k: dict[str, float] = field(default_factory=dict[str, float])
    metrics: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """By scorer: mean, deviation, low, high of its values, the attempts that it scored (`count`), those it
    passed (`passed`), and those where it failed (`errors`), which have no part in the mean."""
    usage: Usage = Usage()
    complete: bool = True
    """False while attempts are missing: interrupted, out of budget."""
    deviation: float | None = None
    """Between cases, of the share of their attempts that passed."""
    pass_at_k_intervals: dict[str, Interval] = field(default_factory=dict[str, Interval])
    pass_hat_k_intervals: dict[str, Interval] = field(default_factory=dict[str, Interval])
    unpriced: int = 0
    """Attempts of which the cost is unknown, in whole or in part."""
    cached: int = 0
    """Attempts that an earlier run paid for."""
    head: dict[str, Any] | None = None
    """Number and hash of the newest line of results.jsonl, for `verify`."""
