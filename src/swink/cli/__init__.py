"""The `swink` command: `main` reads the arguments, runs one command and turns its outcome into an exit code.

0    done
1    a model or the run failed
2    the command line cannot work as written
130  interrupted
141  the reader closed the pipe
"""

import argparse
import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType

from swink.cli.arguments import parse_arguments
from swink.cli.terminal import prepare_streams, say
from swink.errors import AgentError, MisuseError
from swink.redact import redact_text

__all__ = ["main"]

_DONE, _FAILED, _USAGE, _INTERRUPTED, _UNREAD = 0, 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Nothing but `--debug` shows a traceback."""
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    finally:
        if argv is None:
            # Only the interpreter's clean-up is left: another Ctrl-C ends it at once, without a traceback.
            signal.signal(signal.SIGINT, lambda number, frame: os._exit(_INTERRUPTED))


def _run(arguments: argparse.Namespace) -> int:
    prepare_streams()
    _log_to_stderr(debug=arguments.debug)
    if not arguments.debug:
        sys.excepthook = _in_one_line
    try:
        module, _, name = arguments.command.partition(":")
        command: Callable[..., int] = getattr(importlib.import_module(module), name)
        code = command(arguments)
        sys.stdout.flush()
    except AgentError as error:
        if arguments.debug:
            traceback.print_exception(error)
        say(str(error), "error")
        return _USAGE if isinstance(error, MisuseError) else _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return _UNREAD
    return code


def _drop_output() -> None:
    """The reader closed the pipe: the interpreter must not raise again when it flushes what is buffered."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    say(f"this should not happen: {kind.__name__}: {error}; --debug shows where", "error")


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
