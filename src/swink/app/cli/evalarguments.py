"""The arguments of `swink eval` and its commands."""

from collections.abc import Callable
from typing import Any

from swink.app.cli.parsers import TRACE, CommandParser, amount, count, group, number, seconds, share

Add = Callable[..., CommandParser]


def add_eval(commands: Any) -> None:
    """`swink eval`: try an agent on cases, and look at what it came to."""
    add = group(commands, "eval", "try agents on cases; compare, gate, report", "eval_commands:help")
    start = add("init", "write a small suite that passes without a key")
    start.take("directory", "where (default: here)", "DIR", nargs="?", default=".")
    _add_run(add)
    _add_looks(add)
    _add_improve(add)
    _add_exports(add)
    _add_simulate(add)


def _add_run(add: Add) -> None:
    run = add("run", "try an agent on the cases of a file", "evaluating:run")
    cases = "a YAML, JSON or Python file, or a directory of them (default: %(default)s)"
    run.take("cases", cases, "CASES", nargs="?", default="cases.yaml")
    agent = "a function that takes a case and gives an agent; modules of the current directory are found"
    run.take("--agent", f"{agent} (default: the suite's own agent)", "MODULE:FACTORY")
    run.take("-m --model", 'in place of the agent\'s own: "provider:model"', "MODEL")
    run.take("--repeat", "attempts a case (default: 1)", "N", type=count, default=1)
    run.take("--concurrency", "attempts at once (default: %(default)s)", "N", type=count, default=8)
    run.take("--tag", "only its cases (repeatable)", "T", action="append", default=[])
    run.take("--case", "only this case (repeatable)", "ID", action="append", default=[])
    run.take("--limit", "only the first N cases", "N", type=count)
    run.take("--output", "where results go (default: eval-results/<time>)", "DIR")
    run.flag("--resume", "go on with the run in DIR, or with the newest one")
    run.take("--engine", "where cases run", choices=("local", "ray"), default="local")
    run.take("--timeout", "end an attempt after so long", "SECONDS", type=seconds)
    run.take("--budget", "stop the run before it costs more", "DOLLARS", type=amount)
    run.take("--rate-limit", "at most so many requests a minute, of all attempts", "N", type=amount)
    run.take("--judge", "a model that judges (several: a panel)", "MODEL", action="append", default=[])
    run.flag("--cache", "take the results of equal attempts from earlier runs")
    tape = run.add_mutually_exclusive_group()
    tape.add_argument("--record", metavar="FILE", help="ask the model, and keep its answers on a cassette")
    tape.add_argument("--replay", metavar="FILE", help="take all answers from a cassette; no key, no network")
    run.take("--format", "CASES is a published benchmark: bfcl, gsm8k, …", "NAME")
    run.take("--baseline", "an earlier run to show beside this one in the report", "DIR")
    run.take("--trace", TRACE, "FILE")
    run.flag("--dry-run", "say what would run and what it may cost")


def _add_looks(add: Add) -> None:
    report = add("report", "write the reports of a run anew")
    report.add_argument("directory", metavar="DIR")
    report.take("--baseline", "an earlier run to show beside it", "DIR2")
    compare = add("compare", "what changed between two runs")
    compare.add_argument("before", metavar="DIR1")
    compare.add_argument("after", metavar="DIR2")
    compare.flag("--json", "one JSON document instead")
    gate = add("gate", "pass or fail a run, for CI")
    gate.add_argument("directory", metavar="DIR")
    gate.take("--min-pass-rate", "at least this share of cases passes", "R", type=share)
    gate.take("--max-cost", "it cost no more", "DOLLARS", type=amount)
    gate.take("--max-duration", "it took no longer", "SECONDS", type=amount)
    gate.take("--baseline", "the run to compare with", "DIR2")
    gate.take("--max-regressions", "no more cases that passed in the baseline fail", "N", type=number)
    gate.flag("--significant", "regressions count only where they are not chance")
    gate.flag("--json", "one JSON document instead")
    verify = add("verify", "find any change to results since they were written")
    verify.add_argument("directory", metavar="DIR")


def _add_improve(add: Add) -> None:
    better = add("improve", "search for a better text of an agent", "improving:improve")
    better.take("cases", "a YAML, JSON or Python file, or a directory of them", "CASES")
    better.take("--target", "which text: system_prompt, tool:NAME or skill:NAME", "TARGET", required=True)
    better.take("--agent", "a function that takes a case and gives an agent", "MODULE:FACTORY")
    better.take("-m --model", 'of the agent: "provider:model"', "MODEL")
    better.take("--reflect", "the model that writes texts (default: the agent's)", "MODEL")
    better.take("--rounds", "texts to try (default: %(default)s)", "N", type=count, default=10)
    held = "the share of cases that judge the result and are not learned from (default: %(default)s)"
    better.take("--holdout", held, "SHARE", type=share, default=0.4)
    better.take("--repeat", "attempts a case (default: 1)", "N", type=count, default=1)
    better.take("--concurrency", "attempts at once (default: %(default)s)", "N", type=count, default=8)
    better.take("--timeout", "end an attempt after so long", "SECONDS", type=seconds)
    better.take("--budget", "stop before all of it costs more", "DOLLARS", type=amount)
    better.take("--seed", "of the split and of all choices (default: 0)", "N", type=number, default=0)
    better.take("--output", "where it is kept (default: eval-results/improve-<time>)", "DIR")
    better.flag("--resume", "go on with the search in DIR, or with the newest one")
    tape = better.add_mutually_exclusive_group()
    tape.add_argument("--record", metavar="FILE", help="keep the answers of all models on a cassette")
    tape.add_argument("--replay", metavar="FILE", help="take all answers from a cassette; no key, no network")
    better.take("--trace", TRACE, "FILE")


def _add_exports(add: Add) -> None:
    export = add("export", "transcripts for training, or a log for other viewers")
    export.add_argument("directory", metavar="DIR")
    kinds = "openai, sharegpt: chat lines of the attempts that passed; inspect: a log that inspect_ai opens"
    export.take("--format", kinds, choices=("openai", "sharegpt", "inspect"), default="openai")
    export.take("-o --output", "where to write it (default: in DIR)", "FILE")
    export.flag("--force", "overwrite FILE")
    bring = add("import", "make a case file of a published benchmark")
    bring.take("format", "agentdojo, bfcl, gsm8k, humaneval, ifeval, mbpp or tau", "FORMAT")
    bring.take("path", "its file or directory, as it is published", "PATH")
    bring.take("-o --output", "default: %(default)s", "FILE", default="cases.json")
    bring.take("--limit", "only the first N cases", "N", type=count)
    bring.flag("--force", "overwrite FILE")
    add("schema", "the JSON Schema of case files, for editors")


def _add_simulate(add: Add) -> None:
    simulate = add("simulate", "let a model play the user of an agent, and watch", "simulating:simulate")
    simulate.take("--agent", "a function that gives the agent", "MODULE:FACTORY")
    simulate.take("-m --model", "of the agent", "MODEL")
    simulate.take("--goal", "what the user wants", "TEXT", required=True)
    simulate.take("--persona", "who the user is", "TEXT", default="")
    simulate.take("--max-turns", "default: %(default)s", "N", type=count, default=10)
    simulate.take("--user-model", "plays the user (default: the agent's model)", "MODEL")
    simulate.take("--repeat", "conversations (default: 1)", "N", type=count, default=1)
    simulate.take("-o --output", "keep the conversations as cases", "FILE")
