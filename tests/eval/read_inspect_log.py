"""Read a log with inspect_ai itself and print what it found as JSON; run by its own Python."""

import json
import sys

from inspect_ai.log import list_eval_logs, read_eval_log  # pyright: ignore

log = read_eval_log(sys.argv[1])
header = read_eval_log(sys.argv[1], header_only=True)
samples = log.samples or []
print(
    json.dumps(
        {
            "listed": len(list_eval_logs(sys.argv[2])),
            "status": header.status,
            "task": log.eval.task,
            "accuracy": log.results.scores[0].metrics["accuracy"].value,
            "samples": [[sample.id, sample.epoch, sample.scores["case_passed"].value] for sample in samples],
            "roles": [[message.role for message in sample.messages] for sample in samples],
            "calls": [
                [call.function, call.arguments]
                for sample in samples
                for message in sample.messages
                for call in getattr(message, "tool_calls", None) or ()
            ],
            "completions": [sample.output.completion for sample in samples],
            "errors": [sample.error and sample.error.message for sample in samples],
            "summaries": len([sample.summary() for sample in samples]),
        }
    )
)
