"""The arguments of `swink eval` and its commands."""

from typing import Any

from swink.app.cli.parsers import TRACE, amount, command, count, flag, group, number, seconds, share


def add_eval(commands: Any) -> None:
    """`swink eval`: try an agent on cases, and look at what it came to."""
    actions = group(commands, "eval", "try agents on cases; compare, gate, report", "eval_commands:help")
    start = command(actions, "init", "eval_commands:init", "write a small suite that passes without a key")
    start.add_argument("directory", nargs="?", default=".", metavar="DIR", help="where (default: here)")
    _add_run(actions)
    _add_looks(actions)
    _add_exports(actions)
    _add_simulate(actions)


def _add_run(actions: Any) -> None:
    run = command(actions, "run", "eval_commands:run", "try an agent on the cases of a file")
    run.add_argument(
        "cases",
        nargs="?",
        default="cases.yaml",
        metavar="CASES",
        help="a YAML, JSON or Python file, or a directory of them (default: %(default)s)",
    )
    run.add_argument(
        "--agent",
        metavar="MODULE:FACTORY",
        help="a function that takes a case and gives an agent; modules of the current directory are found "
        "(default: the suite's own agent)",
    )
    run.add_argument("-m", "--model", metavar="MODEL", help='in place of the agent\'s own: "provider:model"')
    run.add_argument("--repeat", metavar="N", type=count, default=1, help="attempts a case (default: 1)")
    run.add_argument(
        "--concurrency", metavar="N", type=count, default=8, help="attempts at once (default: %(default)s)"
    )
    run.add_argument("--tag", metavar="T", action="append", default=[], help="only its cases (repeatable)")
    run.add_argument("--case", metavar="ID", action="append", default=[], help="only this case (repeatable)")
    run.add_argument("--limit", metavar="N", type=count, help="only the first N cases")
    run.add_argument("--output", metavar="DIR", help="where results go (default: eval-results/<time>)")
    flag(run, "--resume", "go on with the run in DIR, or with the newest one")
    run.add_argument("--engine", choices=("local", "ray"), default="local", help="where cases run")
    run.add_argument("--timeout", metavar="SECONDS", type=seconds, help="end an attempt after so long")
    run.add_argument("--budget", metavar="DOLLARS", type=amount, help="stop the run before it costs more")
    run.add_argument(
        "--rate-limit", metavar="N", type=amount, help="at most so many requests a minute, of all attempts"
    )
    run.add_argument(
        "--judge", metavar="MODEL", action="append", default=[], help="a model that judges (several: a panel)"
    )
    flag(run, "--cache", "take the results of equal attempts from earlier runs")
    tape = run.add_mutually_exclusive_group()
    tape.add_argument("--record", metavar="FILE", help="ask the model, and keep its answers on a cassette")
    tape.add_argument("--replay", metavar="FILE", help="take all answers from a cassette; no key, no network")
    run.add_argument("--format", metavar="NAME", help="CASES is a published benchmark: bfcl, gsm8k, …")
    run.add_argument("--baseline", metavar="DIR", help="an earlier run to show beside this one in the report")
    run.add_argument("--trace", metavar="FILE", help=TRACE)
    flag(run, "--dry-run", "say what would run and what it may cost")


def _add_looks(actions: Any) -> None:
    report = command(actions, "report", "eval_commands:report", "write the reports of a run anew")
    report.add_argument("directory", metavar="DIR")
    report.add_argument("--baseline", metavar="DIR2", help="an earlier run to show beside it")
    compare = command(actions, "compare", "eval_commands:compare", "what changed between two runs")
    compare.add_argument("before", metavar="DIR1")
    compare.add_argument("after", metavar="DIR2")
    flag(compare, "--json", "one JSON document instead")
    gate = command(actions, "gate", "eval_commands:gate", "pass or fail a run, for CI")
    gate.add_argument("directory", metavar="DIR")
    gate.add_argument("--min-pass-rate", metavar="R", type=share, help="at least this share of cases passes")
    gate.add_argument("--max-cost", metavar="DOLLARS", type=amount, help="it cost no more")
    gate.add_argument("--max-duration", metavar="SECONDS", type=amount, help="it took no longer")
    gate.add_argument("--baseline", metavar="DIR2", help="the run to compare with")
    gate.add_argument(
        "--max-regressions", metavar="N", type=number, help="no more cases that passed in the baseline fail"
    )
    flag(gate, "--significant", "regressions count only where they are not chance")
    flag(gate, "--json", "one JSON document instead")
    verify = command(
        actions, "verify", "eval_commands:verify", "find any change to results since they were written"
    )
    verify.add_argument("directory", metavar="DIR")


def _add_exports(actions: Any) -> None:
    export = command(
        actions, "export", "eval_commands:export", "transcripts for training, or a log for other viewers"
    )
    export.add_argument("directory", metavar="DIR")
    export.add_argument(
        "--format",
        choices=("openai", "sharegpt", "inspect"),
        default="openai",
        help="openai, sharegpt: chat lines of the attempts that passed; inspect: a log that inspect_ai opens",
    )
    export.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: in DIR)")
    flag(export, "--force", "overwrite FILE")
    bring = command(actions, "import", "eval_commands:import", "make a case file of a published benchmark")
    bring.add_argument("format", metavar="FORMAT", help="bfcl, gsm8k, humaneval, ifeval, mbpp or tau")
    bring.add_argument("path", metavar="PATH", help="its file or directory, as it is published")
    bring.add_argument("-o", "--output", metavar="FILE", default="cases.json", help="default: %(default)s")
    bring.add_argument("--limit", metavar="N", type=count, help="only the first N cases")
    flag(bring, "--force", "overwrite FILE")
    command(actions, "schema", "eval_commands:schema", "the JSON Schema of case files, for editors")


def _add_simulate(actions: Any) -> None:
    simulate = command(
        actions, "simulate", "eval_commands:simulate", "let a model play the user of an agent, and watch"
    )
    simulate.add_argument("--agent", metavar="MODULE:FACTORY", help="a function that gives the agent")
    simulate.add_argument("-m", "--model", metavar="MODEL", help="of the agent")
    simulate.add_argument("--goal", metavar="TEXT", required=True, help="what the user wants")
    simulate.add_argument("--persona", metavar="TEXT", default="", help="who the user is")
    simulate.add_argument("--max-turns", metavar="N", type=count, default=10, help="default: %(default)s")
    simulate.add_argument("--user-model", metavar="MODEL", help="plays the user (default: the agent's model)")
    simulate.add_argument("--repeat", metavar="N", type=count, default=1, help="conversations (default: 1)")
    simulate.add_argument("-o", "--output", metavar="FILE", help="keep the conversations as cases")
