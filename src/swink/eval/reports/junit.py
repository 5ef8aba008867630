"""JUnit XML: a test per case, as CI systems read it."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from swink.eval.reports.outcomes import CaseOutcome, dollars
from swink.eval.result import Manifest, RunSummary
from swink.messages.redact import redact_text

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 10_000


def write_junit(summary: RunSummary, outcomes: Sequence[CaseOutcome], manifest: Manifest) -> str:
    """The run as JUnit XML: one test suite with a test for each case."""
    states = [outcome.state for outcome in outcomes]
    counts = {"tests": str(len(states))}
    counts |= {"failures": str(states.count("failed")), "errors": str(states.count("error"))}
    name = _clean(manifest.name)
    root = Element("testsuites", {"name": name, **counts, "time": f"{summary.duration:.3f}"})
    suite = SubElement(root, "testsuite", {"name": name, **counts, "skipped": "0"})
    suite.set("time", f"{summary.duration:.3f}")
    if manifest.started > 0:
        suite.set("timestamp", f"{datetime.fromtimestamp(manifest.started, UTC):%Y-%m-%dT%H:%M:%S}")
    properties = SubElement(suite, "properties")
    told = {"model": manifest.model, "agent": manifest.agent, "swink": manifest.version}
    told |= {"repeat": str(manifest.repeat), "cost": dollars(summary.cost)}
    for key, value in told.items():
        if value:
            SubElement(properties, "property", {"name": key, "value": _clean(value)})
    for outcome in outcomes:
        _add_case(suite, outcome, name)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, "unicode")}\n'


def _add_case(suite: Element, outcome: CaseOutcome, suite_name: str) -> None:
    time = sum(attempt.duration for attempt in outcome.attempts)
    attributes = {"classname": suite_name, "name": _clean(outcome.id), "time": f"{time:.3f}"}
    case = SubElement(suite, "testcase", attributes)
    if (place := outcome.place) is not None:
        case.set("file", _clean(place.path))
        case.set("line", str(place.line))
    if outcome.state != "passed":
        kind = "error" if outcome.state == "error" else "failure"
        trouble = SubElement(case, kind, {"message": _clean(outcome.whys[0])[:300], "type": _type(outcome)})
        trouble.text = _clean("\n".join(outcome.whys))[:_LONGEST]
    SubElement(case, "system-out").text = _clean(_told(outcome))[:_LONGEST]


def _type(outcome: CaseOutcome) -> str:
    """Who is to blame for an error, or which metric failed first."""
    for attempt in outcome.attempts:
        if attempt.error_source is not None:
            return attempt.error_source
        for metric in attempt.metrics:
            if not metric.passed:
                return _clean(metric.name)
    return "no metric"


def _told(outcome: CaseOutcome) -> str:
    lines: list[str] = []
    for attempt in outcome.attempts:
        number = f"attempt {attempt.repeat + 1}: " if len(outcome.attempts) > 1 else ""
        scores = ", ".join(f"{metric.name} {metric.value:.2f}" for metric in attempt.metrics)
        lines.append(f"{number}{'passed' if attempt.passed else 'not passed'}; {scores or 'no metric'}")
        replies = [message.text for message in attempt.transcript if message.role == "assistant"]
        lines += [redact_text(reply[:_LONGEST]) for reply in list(filter(None, replies))[-1:]]
    return "\n".join(lines)


def _clean(text: str) -> str:
    """The text without characters that XML has no way to write."""
    return _NOT_XML.sub("\ufffd", text)
