"""Calibration: how far scorers and their judges agree with people, and judges with each other.

{"case_id": "oslo", "metric": "helpfulness", "passed": true}
{"case_id": "oslo", "repeat": 1, "metric": "helpfulness", "passed": false, "note": "says nothing of rain"}
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from swink.errors import InvalidInput
from swink.eval.result import CaseResult, Metric


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person said of one attempt.

    Args:
        case_id: which case
        metric: which judge it is compared with
        passed: what the person thinks
        repeat: which attempt
        note: why
    """

    case_id: str
    metric: str
    passed: bool
    repeat: int = 0
    note: str = ""


class Calibration(Struct, frozen=True):
    """How far a scorer, or one of its judges, agrees with people."""

    metric: str
    judge: str | None
    """None: the scorer as a whole."""
    labels: int
    """How many attempts were compared; those where the scorer failed are in `errors`."""
    errors: int
    accuracy: float
    kappa: float
    false_passes: int
    """Passed by the scorer, failed by people: the mistakes that let bugs through."""
    false_failures: int
    threshold: float
    best_threshold: float
    """With which the scorer would agree most often; the one nearest to its own."""


def load_labels(path: str | Path) -> list[Label]:
    """The labels of a JSONL file; every line that is none is reported at once, with its number."""
    problems: list[str] = []
    labels: list[Label] = []
    decoder = msgspec.json.Decoder(Label)
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            labels.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(f"{path}:{number}: {error}")
    if problems:
        raise InvalidInput("\n".join(problems))
    return labels


def calibrate(labels: Iterable[Label], results: Sequence[CaseResult]) -> list[Calibration]:
    """Compare the results of a run with people's labels: each labelled metric, and each judge of it.

    Raises `InvalidInput` that names every label for which there is no metric, or which contradicts another.
    """
    scored = [(result, metric) for result in results for metric in result.metrics]
    found = {(result.case_id, result.repeat, metric.name): metric for result, metric in scored}
    said: dict[tuple[str, int, str], bool] = {}
    problems: list[str] = []
    for label in labels:
        key = label.case_id, label.repeat, label.metric
        if key not in found:
            case = f"the case {label.case_id!r}, repeat {label.repeat}"
            problems.append(f"there is no {label.metric!r} of {case}")
        elif said.setdefault(key, label.passed) != label.passed:
            problems.append(f"the labels of {label.case_id!r}, {label.metric!r}, contradict each other")
    if problems:
        raise InvalidInput("\n".join(dict.fromkeys(problems)))
    if not said:
        raise InvalidInput("there are no labels; write some, one JSON object a line")
    pairs: dict[str, list[tuple[Metric, bool]]] = {}
    for key, passed in said.items():
        pairs.setdefault(key[2], []).append((found[key], passed))
    return [row for name, labelled in sorted(pairs.items()) for row in _rows(name, labelled)]


def _rows(name: str, labelled: Sequence[tuple[Metric, bool]]) -> Iterable[Calibration]:
    usable = [(metric, passed) for metric, passed in labelled if metric.error is None]
    errors = len(labelled) - len(usable)
    threshold = labelled[0][0].threshold
    whole = [(metric.value, metric.passed, passed) for metric, passed in usable]
    yield _calibration(name, None, whole, errors, threshold)
    judges = dict.fromkeys(verdict.judge for metric, _ in usable for verdict in metric.verdicts)
    for judge in judges if len(judges) > 1 else ():
        rated: list[tuple[float, bool, bool]] = []
        for metric, passed in usable:
            own = [verdict.value for verdict in metric.verdicts if verdict.judge == judge]
            rated += [(value, value >= metric.threshold, passed) for value in own]
        yield _calibration(name, judge, rated, errors, threshold)


def _calibration(
    name: str, judge: str | None, rated: Sequence[tuple[float, bool, bool]], errors: int, threshold: float
) -> Calibration:
    """Of rows with the scorer's value, whether it passed, and whether it did for people."""
    return Calibration(
        metric=name,
        judge=judge,
        labels=len(rated),
        errors=errors,
        accuracy=sum(ours == theirs for _, ours, theirs in rated) / len(rated) if rated else 0.0,
        kappa=cohen_kappa([ours for _, ours, _ in rated], [theirs for *_, theirs in rated]) if rated else 0.0,
        false_passes=sum(ours and not theirs for _, ours, theirs in rated),
        false_failures=sum(theirs and not ours for _, ours, theirs in rated),
        threshold=threshold,
        best_threshold=_best([(value, theirs) for value, _, theirs in rated], threshold),
    )


def _best(rated: Sequence[tuple[float, bool]], threshold: float) -> float:
    """The threshold with the fewest mistakes, in one pass over the values in order."""
    values = sorted(rated)
    lowest = values[0][0] if values else threshold
    mistakes = sum(not theirs for _, theirs in rated)  # at the lowest value everything passes
    best = [(mistakes, abs(threshold - lowest), lowest)]
    for index, (value, theirs) in enumerate(values):
        mistakes += 1 if theirs else -1  # from here on it does not pass
        following = values[index + 1][0] if index + 1 < len(values) else 1.0
        if following > value:
            best.append((mistakes, abs(threshold - following), following))
    own = sum((value >= threshold) != theirs for value, theirs in rated)
    return min([*best, (own, 0.0, threshold)])[2]


class Agreement(Struct, frozen=True):
    """How far the judges of a panel agree on which attempts pass."""

    judges: int
    attempts: int
    observed: float
    """The part of all pairs of verdicts on one attempt that are the same."""
    kappa: float
    """Beyond chance: 1 is full agreement, 0 what chance would give."""


def cohen_kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Agreement of two raters beyond chance; 1 if both said the same one thing throughout."""
    if len(one) != len(other) or not one:
        counts = f"{len(one)} and {len(other)} ratings"
        raise InvalidInput(f"{counts}; pass two lists of the same things, not empty")
    total = len(one)
    observed = sum(a == b for a, b in zip(one, other, strict=True)) / total
    first, second = Counter(one), Counter(other)
    expected = sum(first[category] * second[category] for category in first) / total**2
    return _beyond_chance(observed, expected)


def fleiss_kappa(ratings: Sequence[Sequence[Hashable]]) -> float:
    """Agreement of several raters beyond chance: for each thing that was rated, what each of them said."""
    return _beyond_chance(*_fleiss(ratings))


def panel_agreement(results: Sequence[CaseResult], metric: str) -> Agreement | None:
    """How far the judges of a metric agree over a run; None if no attempt has two verdicts or more.

    Only attempts with the full number of judges count.

    Args:
        results: the attempts of the run
        metric: the name of the metric
    """
    found = [found for result in results for found in result.metrics if found.name == metric]
    rated = [[verdict.value >= one.threshold for verdict in one.verdicts] for one in found]
    judges = max(map(len, rated), default=0)
    if judges < 2:
        return None
    rated = [row for row in rated if len(row) == judges]
    observed, expected = _fleiss(rated)
    return Agreement(judges, len(rated), observed, _beyond_chance(observed, expected))


def _fleiss(ratings: Sequence[Sequence[Hashable]]) -> tuple[float, float]:
    """The pairs of ratings that agree, and those that chance would have agree."""
    raters = len(ratings[0]) if ratings else 0
    if raters < 2 or any(len(row) != raters for row in ratings):
        raise InvalidInput("pass for each thing the ratings of the same number of raters, at least two")
    total: Counter[Hashable] = Counter()
    agreeing = 0.0
    for row in ratings:
        counts = Counter(row)
        total += counts
        agreeing += sum(count * (count - 1) for count in counts.values()) / (raters * (raters - 1))
    everything = raters * len(ratings)
    return agreeing / len(ratings), sum((count / everything) ** 2 for count in total.values())


def _beyond_chance(observed: float, expected: float) -> float:
    return 1.0 if expected >= 1.0 else (observed - expected) / (1.0 - expected)
