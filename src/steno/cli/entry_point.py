"""Entry point of the process: runs a command, prints errors in one line, sets the exit code."""

import os
import sys
from io import TextIOWrapper
from typing import Final

from steno.cli.output.screen import print_error
from steno.errors import Ambiguous, BadRequest, Busy, NotFound, StenoError, Unreadable, Unwritable

COMPLETION_VARIABLE: Final = "_STENO_COMPLETE"
"""The variable by which a shell asks what could come next."""
INTERRUPTED_EXIT_CODE: Final = 130
_MAX_ERROR_LENGTH: Final = 300
_MAX_RECOVERIES: Final = 2
"""How often a command is started again after a damaged index was set aside."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    sys.exit(_run_and_report(arguments))


def _run_and_report(arguments: list[str] | None) -> int:
    if getattr(sys, "stdout", None) is None:
        print_error("cannot write: the standard output is closed")
        return 3
    for stream in (sys.stdout, sys.stderr):
        # A letter the terminal does not have is written as its number.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _call_with_recovery(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print_error(f"cannot read or write: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3
    except Exception as error:
        return _report_internal_error(error)
    return code


def _report_internal_error(error: Exception) -> int:
    """Say in one line that steno itself is at fault; where it is at fault only when asked."""
    from steno.sanitize.terminal import clean, one_line

    if os.environ.get("STENO_DEBUG"):
        from traceback import format_exception

        sys.stderr.write(clean("".join(format_exception(error)), newlines=True))
    print_error(
        f"internal error: {type(error).__name__}: {one_line(str(error), _MAX_ERROR_LENGTH)}",
        "a fault of steno's own; STENO_DEBUG=1 shows where",
    )
    return 3


def _call_with_recovery(arguments: list[str]) -> int:
    from steno.store.damaged_files import add_damage_listener

    add_damage_listener(print_error)
    try:
        for _ in range(_MAX_RECOVERIES):
            try:
                return _call_once(arguments)
            except Exception as error:
                if not _was_index_recovered(error, arguments):
                    raise
            # What was damaged has been set aside, and is made anew.
        return _call_once(arguments)
    except StenoError as error:
        print_error(str(error), error.hint)
        return _exit_code(error)


def _was_index_recovered(error: Exception, arguments: list[str]) -> bool:
    """Whether an index was damaged, and set aside; a command that does not sync leaves it."""
    if "sqlite3" not in sys.modules or "--no-sync" in arguments:
        return False
    from steno.index.recovery import recover

    return recover(error)


def _call_once(arguments: list[str]) -> int:
    from steno.cli.main import run_command

    return run_command(arguments)


def _exit_code(error: StenoError) -> int:
    match error:
        case NotFound():
            return 1
        case Ambiguous() | BadRequest():
            return 2
        case Unreadable() | Unwritable() | Busy():
            return 3
        case _:
            return 1
