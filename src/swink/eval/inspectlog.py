"""Logs for inspect_ai: a run in its log format (version 2, JSON), an attempt a sample, a repeat an epoch.

A scorer that failed has no score, but its error in the metadata; the verdict is a score named `case_passed`.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from swink.eval.evalrun import read_summary
from swink.eval.result import CaseResult, Manifest, RunSummary
from swink.eval.resultfile import open_results, read_manifest
from swink.eval.summary import summarise
from swink.messages.blocks import Audio, ContentBlock, Document, Extension, Image, Text, Thinking
from swink.messages.jsondata import encode
from swink.messages.message import AssistantMessage, CustomMessage, LlmMessage, ToolResultMessage, UserMessage
from swink.messages.modelspec import Usage
from swink.providers.convert import data_url
from swink.system.files import whole_file

VERDICT = "case_passed"
_STOP_REASONS = {"stop": "stop", "length": "max_tokens", "tool_use": "tool_calls"}
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def write_inspect_log(directory: str | Path, path: str | Path | None = None) -> Path:
    """Write the log of a run; in a directory it has a name by which the viewer finds it. Gives its path."""
    results, manifest = open_results(directory), read_manifest(directory)
    manifest = manifest or Manifest(name=Path(directory).name, started=0.0, version="")
    written = read_summary(directory)
    summary = summarise(results, manifest, written.duration if written else 0.0)
    path = Path(directory if path is None else path)
    if path.suffix != ".json":
        path /= _file_name(manifest)
    models = dict.fromkeys(result.model for result in results if result.model)
    with whole_file(path, make_parents=True) as file:
        # Transcripts are large: the samples are written one by one, after everything else.
        file.write(encode(_header(manifest, summary, list(models)))[:-1] + b',"samples":[')
        for number, result in enumerate(results):
            file.write((b"," if number else b"") + encode(inspect_sample(result)))
        file.write(b"]}\n")
    return path


def inspect_sample(result: CaseResult) -> dict[str, Any]:
    """One attempt as a sample."""
    said = [message for message in result.transcript if not isinstance(message, CustomMessage)]
    messages = [_message(message, number) for number, message in enumerate(said)]
    asked = next((message for message in said if isinstance(message, UserMessage)), None)
    replies = [number for number, message in enumerate(said) if isinstance(message, AssistantMessage)]
    reason = _STOP_REASONS.get(result.stop_reason, "unknown")
    choices = [{"message": messages[last], "stop_reason": reason} for last in replies[-1:]]
    model = result.model or "unknown"
    usage = _usage(result.usage, result.cost)
    system: list[Any] = [{"id": "system", "role": "system", "content": result.system_prompt}]
    failed = {metric.name: metric.error for metric in result.metrics if metric.error is not None}
    facts = {name: getattr(result, name) for name in ("name", "tags", "reason", "error_source")}
    facts |= {"scorer_errors": failed, "cached": result.cached}
    sample: dict[str, Any] = {
        "id": result.case_id,
        "epoch": result.repeat + 1,
        "input": asked.text if asked else "",
        "target": "",
        "messages": (system if result.system_prompt else []) + messages,
        "output": {
            "model": model,
            "choices": choices,
            "completion": said[replies[-1]].text if replies else "",
            "usage": usage,
            "time": result.duration,
        },
        "scores": _scores(result),
        "metadata": result.metadata | {key: value for key, value in facts.items() if value},
        "store": {},
        "events": [],
        "model_usage": {model: usage},
        "total_time": result.duration,
        "working_time": result.duration,
        "turn_count": result.turns,
        "attachments": {},
    }
    if result.started:
        ended = result.started + result.duration
        sample |= {"started_at": _moment(result.started), "completed_at": _moment(ended)}
    if result.error is not None:
        sample["error"] = {"message": result.error, "traceback": "", "traceback_ansi": ""}
    return sample


def _header(manifest: Manifest, summary: RunSummary, models: Sequence[str]) -> dict[str, Any]:
    started = _moment(manifest.started)
    identity = f"{manifest.name}-{manifest.started:.0f}"
    model = manifest.model or (models[0] if models else "unknown")
    low, high = summary.pass_rate_interval or (0.0, 1.0)
    verdict = {"accuracy": summary.pass_rate, "low": low, "high": high}
    scores = {VERDICT: verdict | {"count": summary.attempts, "errors": 0}} | summary.metrics
    return {
        "version": 2,
        "status": "success" if summary.complete and summary.cases else "cancelled",
        "eval": {
            "eval_id": identity,
            "run_id": identity,
            "created": started,
            "task": manifest.name,
            "task_id": identity,
            "dataset": {
                "name": manifest.name,
                "samples": len(manifest.case_ids) or summary.cases,
                "sample_ids": manifest.case_ids,
                "shuffled": False,
            },
            "solver": manifest.agent or None,
            "model": model,
            "config": {"epochs": max(1, manifest.repeat)},
            "packages": {"swink": manifest.version},
            "scorers": [{"name": name} for name in scores],
        },
        "plan": {"name": "plan", "steps": [{"solver": manifest.agent or "agent", "params": {}}]},
        "results": {
            "total_samples": max(summary.attempts, len(manifest.case_ids) * max(1, manifest.repeat)),
            "completed_samples": summary.attempts,
            "scores": [_eval_score(name, figures) for name, figures in scores.items()],
        },
        "stats": {
            "started_at": started,
            "completed_at": _moment(manifest.started + summary.duration),
            "model_usage": {model: _usage(summary.usage, summary.cost)},
        },
    }


def _eval_score(name: str, figures: dict[str, float]) -> dict[str, Any]:
    shown = [key for key in ("accuracy", "mean", "deviation", "low", "high") if key in figures]
    metrics = {key: {"name": key, "value": figures[key]} for key in shown}
    counts = {"scored_samples": int(figures["count"]), "unscored_samples": int(figures["errors"])}
    return {"name": name, "scorer": name, **counts, "params": {}, "metrics": metrics}


def _scores(result: CaseResult) -> dict[str, Any]:
    verdict = {"value": "C" if result.passed else "I", "explanation": result.error or result.reason}
    return {VERDICT: verdict} | {
        metric.name: {
            "value": metric.value,
            "explanation": metric.why,
            "metadata": {"threshold": metric.threshold, "passed": metric.passed},
        }
        for metric in result.metrics
        if metric.error is None
    }


def _message(message: LlmMessage, number: int) -> dict[str, Any]:
    content = _content(message.content)
    identity = f"message-{number}"
    match message:
        case UserMessage():
            return {"id": identity, "role": "user", "content": content, "source": "input"}
        case AssistantMessage():
            calls = [
                {"id": call.id, "function": call.name, "arguments": call.arguments, "type": "function"}
                for call in message.tool_calls
            ]
            model = "/".join([part for part in (message.provider, message.model) if part])
            turn = {"id": identity, "role": "assistant", "content": content, "source": "generate"}
            turn |= {"model": model} if model else {}
            return turn | ({"tool_calls": calls} if calls else {})
        case ToolResultMessage():
            turn = {"id": identity, "role": "tool", "content": content, "function": message.tool_name}
            turn |= {"tool_call_id": message.tool_call_id}
            failed = {"error": {"type": "unknown", "message": message.text}}
            return turn | (failed if message.is_error else {})


def _content(blocks: Iterable[ContentBlock]) -> Any:
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts or ""


def _part(block: ContentBlock) -> dict[str, Any] | None:
    """A block as content; calls have a place of their own."""
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text, signature, redacted):
            return {"type": "reasoning", "reasoning": text, "signature": signature, "redacted": redacted}
        case Image(source):
            return {"type": "image", "image": data_url(source)}
        case Document() if block.text is not None:
            return {"type": "text", "text": f"{block.title or 'document'}:\n\n{block.text}"}
        case Document(source):
            return {"type": "document", "document": data_url(source), "filename": block.title or "document"}
        case Audio(source):
            kind = _SOUNDS.get(getattr(source, "media_type", None) or "")
            sound = {"type": "audio", "audio": data_url(source), "format": kind}
            return sound if kind else {"type": "text", "text": "[sound]"}
        case Extension(name):
            return {"type": "text", "text": f"[{block.shown or name}]"}
        case _:
            return None


def _usage(usage: Usage, cost: float | None) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.total,
        "input_tokens_cache_write": usage.cache_write,
        "input_tokens_cache_read": usage.cache_read,
        "total_cost": cost,
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _file_name(manifest: Manifest) -> str:
    """As inspect_ai names its logs, by time and task; its viewer lists no others."""
    moment = datetime.fromtimestamp(manifest.started, UTC).strftime("%Y-%m-%dT%H-%M-%S-00-00")
    task = re.sub(r"[^\w.-]+", "-", manifest.name).strip("-") or "run"
    return f"{moment}_{task}_{manifest.digest[:22] or 'swink'}.json"
