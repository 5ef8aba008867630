"""Runs to report on: results of cases that nobody ran, but that look as if somebody had."""

from random import Random
from typing import Any

from swink.eval import CaseResult, Metric
from swink.eval.case import SourceLine
from swink.eval.result import Manifest, RunSummary
from swink.eval.summary import summarise
from swink.eval.trajectory import TakenCall
from swink.messages import (
    AssistantMessage,
    Cost,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)

CITIES = ("Oslo", "Bergen", "Lisbon", "Tokyo", "Nairobi", "Lima", "Quebec", "Perth")
TAGS = ("smoke", "weather", "packing", "long dialogue", "refusal", "arithmetic")
LONG = "The forecast says rain from noon on, with wind from the west. "


def attempt(id: str = "oslo", *, passed: bool = True, **changes: Any) -> CaseResult:
    """One attempt; whatever is not said is ordinary."""
    value = 1.0 if passed else 0.0
    why = "" if passed else 'the response does not contain "jacket"'
    given: dict[str, Any] = {
        "case_id": id,
        "passed": passed,
        "metrics": (Metric("response", value, 1.0, passed, why),),
        "usage": Usage(100, 20),
        "cost": 0.002,
        "turns": 2,
        "duration": 1.5,
        "transcript": (UserMessage("What should I wear?"), AssistantMessage("Take a jacket.", "test", "m")),
        "model": "test:m",
    }
    return CaseResult(**{**given, **changes})


def run(
    count: int, *, repeat: int = 1, seed: int = 1, length: int = 6, better: float = 0.0
) -> list[CaseResult]:
    """Attempts at many cases, the same ones for the same seed."""
    luck = Random(seed)
    return [
        _attempt(luck, number, again, length, better) for number in range(count) for again in range(repeat)
    ]


def manifest_of(results: list[CaseResult], **changes: Any) -> Manifest:
    """What such a run is about."""
    ids = tuple(dict.fromkeys(result.case_id for result in results))
    repeat = 1 + max((result.repeat for result in results), default=0)
    given: dict[str, Any] = {
        "name": "clothes",
        "started": 1_794_870_000.0,
        "version": "0.1.0",
        "model": "test:m",
    }
    given |= {"agent": "wardrobe:make_agent", "repeat": repeat, "case_ids": ids}
    return Manifest(**{**given, **changes})


def summary_of(results: list[CaseResult]) -> RunSummary:
    """What such a run comes to."""
    return summarise(results, manifest_of(results), 312.4)


def _forecast(luck: Random, length: int) -> str:
    """Some sentences with figures in them, so that a long text does not shrink to nothing when compressed."""
    lines = [f"{luck.randint(0, 23):02}:00 {luck.uniform(-9, 30):.2f} °C, wind {luck.random():.4f}. {LONG}"]
    lines += [f"{luck.getrandbits(40)} {luck.choice(TAGS)} {LONG}" for _ in range(length - 1)]
    return "\n".join(lines)


def _attempt(luck: Random, number: int, again: int, length: int, better: float) -> CaseResult:
    city = CITIES[number % len(CITIES)]
    hardness = Random(number).random() * 0.5  # a case is as hard in one run as in another
    passed = luck.random() < 1 - hardness * 0.55 + better
    has_error = not passed and luck.random() < 0.15
    duration = 0.4 + luck.lognormvariate(0.9, 0.7)
    helpful = round(min(1.0, luck.betavariate(8, 2)), 2) if passed else round(luck.betavariate(3, 3), 2)
    metrics = (
        Metric(
            "response",
            float(passed),
            1.0,
            passed,
            "" if passed else f'no "jacket" in: You are fine in {city}.',
        ),
        Metric(
            "trajectory", 1.0 if luck.random() < 0.9 or passed else 0.5, 0.5, True, "1 of 1 expected calls"
        ),
        Metric(
            "helpfulness", helpful, 0.3, helpful >= 0.3 or passed, "Says what to wear and why.", cost=0.0004
        ),
    )
    call = ToolCall(f"c{number}", "weather", {"city": city, "days": 1})
    usage = Usage(luck.randint(400, 2400), luck.randint(40, 400))
    cost = Cost(usage.input * 3e-6, usage.output * 15e-6)
    reply = f"Take a **jacket** in {city}:\n\n- rain from noon\n- 8 °C, wind from the west\n\n```python\nwear('jacket')\n```"
    transcript: tuple[Message, ...] = (
        UserMessage(f"What should I wear in {city} today? I leave at noon and walk."),
        AssistantMessage((Text("Let me look at the weather."), call), "test", "m", "tool_use", usage, cost),
        ToolResultMessage(call.id, "weather", _forecast(luck, length), has_error),
        AssistantMessage(reply if passed else f"You are fine in {city}.", "test", "m", "stop", usage, cost),
    )
    error = "ProviderError: the server is overloaded (529), 4 attempts" if has_error else None
    return CaseResult(
        case_id=f"{city.lower()}-{number:04}",
        repeat=again,
        passed=passed,
        metrics=() if has_error else metrics,
        usage=usage + usage,
        cost=2 * cost.total,
        turns=2 if luck.random() < 0.7 else luck.randint(3, 7),
        duration=duration,
        stop_reason="error" if has_error else "stop",
        error=error,
        error_source="provider" if has_error else None,
        transcript=transcript[:3] if has_error else transcript,
        calls=(TakenCall(call.id, "weather", {"city": city}, LONG, duration=0.12),),
        name=f"What to wear in {city}" if number % 3 else "",
        tags=tuple(tag for index, tag in enumerate(TAGS) if number % (index + 2) == 0),
        model="test:m",
        system_prompt="You help people to choose their clothes. Look at the weather first.",
        place=SourceLine("evals/clothes.yaml", 5 + 7 * number),
    )
