"""The `swink` command: `main` reads the arguments, runs one command and turns its outcome into an exit code.

0    done
1    a model or the run failed, or the output cannot be written
2    the command line cannot work as written
130  interrupted (129 by SIGHUP, 143 by SIGTERM)
141  the reader closed the pipe
"""

import importlib
import logging
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress

from swink.app.assistant.settings import load_settings
from swink.app.cli.commands import parse_arguments
from swink.app.cli.output import OutputFailed, finish_output, install_output
from swink.app.cli.terminal import say
from swink.errors import AgentError, MisuseError
from swink.messages.redact import redact_text
from swink.system.interrupts import Terminated
from swink.system.startup import begin, leave_at_signals

__all__ = ["main"]

_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Nothing but `--debug` shows a traceback."""
    if argv is None:
        begin()  # again, for a script that was not recognized as the command
    install_output()
    code = _run(sys.argv[1:] if argv is None else argv)
    if argv is None:
        leave_at_signals()  # only the interpreter's clean-up is left
    return finish_output(code)


def _run(argv: Sequence[str]) -> int:
    debug = False
    try:
        arguments = parse_arguments(argv)
        debug = arguments.debug
        _log_to_stderr(debug=debug)
        module, _, name = arguments.command.partition(":")
        command: Callable[..., int] = getattr(importlib.import_module(module), name)
        _use_own_servers()
        with _tracing(getattr(arguments, "trace", None)):
            return command(arguments)
    except SystemExit as ended:  # what argparse does after --help, or after a usage error
        return ended.code if isinstance(ended.code, int) else _FAILED
    except OutputFailed:
        return _FAILED
    except KeyboardInterrupt as interrupt:
        return 128 + interrupt.number if isinstance(interrupt, Terminated) else _INTERRUPTED
    except Exception as error:  # what was foreseen, or a bug
        if debug:
            traceback.print_exception(error)
        is_bug = not isinstance(error, AgentError)
        bug = f"this should not happen: {type(error).__name__}: {error}; --debug shows where"
        say(bug if is_bug else str(error), "error")
        return _USAGE if isinstance(error, MisuseError) else _FAILED


def _use_own_servers() -> None:
    """Let every command know the user's own servers; what is wrong with one is told where it is used."""
    with suppress(MisuseError):
        settings = load_settings()
        if settings.providers:
            importlib.import_module("swink.app.assistant.ownproviders").register_providers(settings)


def _tracing(path: str | None) -> AbstractContextManager[object]:
    """A trace of all that the command does, if one is asked for."""
    if path is None:
        return nullcontext()
    from swink.telemetry import tracing

    return tracing(path)


def _log_to_stderr(*, debug: bool) -> None:
    """Show the library's log: warnings in one line each, everything with `--debug`."""
    stderr = logging.StreamHandler()
    stderr.setFormatter(logging.Formatter("swink: %(message)s"))
    stderr.addFilter(_redacted if debug else _in_one_record)
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, handlers=[stderr], force=True)
    # asyncio logs errors that are reported elsewhere too and, at the level of debugging, its selector.
    logging.getLogger("asyncio").setLevel(logging.WARNING if debug else logging.CRITICAL)


def _redacted(record: logging.LogRecord) -> bool:
    mark = "warning: " if record.name == "swink.keys" else ""
    record.msg, record.args = f"{mark}{redact_text(record.getMessage())}", None
    return True


def _in_one_record(record: logging.LogRecord) -> bool:
    """One line of a record; that a run failed is shown by the command itself."""
    record.exc_info = record.exc_text = record.stack_info = None
    record.msg, record.args = record.getMessage().partition("\n")[0], None
    return record.name != "swink" and _redacted(record)
