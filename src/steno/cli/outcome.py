"""How a command ends: its exit code, and one line for whatever went wrong.

What most syncs are is done here, without click: they only look, and click costs as much as that.
"""

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final, cast

from steno.cli.screen import complain
from steno.errors import Ambiguous, BadRequest, Busy, NotFound, StenoError, Unreadable, Unwritable

__all__ = ["COMPLETE", "INTERRUPTED", "run"]

COMPLETE: Final = "_STENO_COMPLETE"
"""The variable by which a shell asks what could come next."""
INTERRUPTED: Final = 130
_LONGEST: Final = 300
_RECOVERIES: Final = 2
"""How often a command is started again after a damaged index was set aside."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    if getattr(sys, "stdout", None) is None:
        complain("cannot write: the standard output is closed")
        return 3
    for stream in (sys.stdout, sys.stderr):
        # A letter the terminal does not have is written as its number.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _call(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        complain(f"cannot read or write: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3
    except Exception as error:
        return _fault(error)
    return code


def _fault(error: Exception) -> int:
    """Say in one line that steno itself is at fault; where it is at fault only when asked."""
    from steno.safe.terminal import clean, one_line

    if os.environ.get("STENO_DEBUG"):
        from traceback import format_exception

        sys.stderr.write(clean("".join(format_exception(error)), newlines=True))
    complain(
        f"internal error: {type(error).__name__}: {one_line(str(error), _LONGEST)}",
        "a fault of steno's own; STENO_DEBUG=1 shows where",
    )
    return 3


def _call(arguments: list[str]) -> int:
    from steno.store.damaged_state import on_damage

    on_damage(complain)
    try:
        for _ in range(_RECOVERIES):
            try:
                return _call_once(arguments)
            except Exception as error:
                if not _recovered(error, arguments):
                    raise
            # What was damaged has been set aside, and is made anew.
        return _call_once(arguments)
    except StenoError as error:
        complain(str(error), error.hint)
        return _exit_code(error)


def _recovered(error: Exception, arguments: list[str]) -> bool:
    """Whether an index was damaged, and set aside; a command that does not sync leaves it."""
    if "sqlite3" not in sys.modules or "--no-sync" in arguments:
        return False
    from steno.index.recovery import recover

    return recover(error)


def _call_once(arguments: list[str]) -> int:
    folders = _folders_to_sync(arguments)
    if folders is None or COMPLETE in os.environ:
        from steno.cli.main import call

        return call(arguments)
    _import_msgspec()
    from steno.cli.syncing import sync_folders

    sync_folders(folders)
    return 0


def _folders_to_sync(arguments: list[str]) -> tuple[str, ...] | None:
    """Return what `sync --root DIR …` names, if that is all there is; None for anything else."""
    options, folders = arguments[1::2], arguments[2::2]
    plain = len(options) == len(folders) and all(option == "--root" for option in options)
    if arguments[:1] != ["sync"] or not plain or any(each[:1] in {"", "-"} for each in folders):
        return None
    return tuple(folders)


def _import_msgspec() -> None:
    """Import it without `typing_extensions`, which takes `inspect` and all its company along.

    msgspec looks for it and does as well without: what it wants of it is in `typing` by now.
    """
    extensions = "typing_extensions"
    if "msgspec" in sys.modules or extensions in sys.modules:
        return
    sys.modules[extensions] = cast("Any", None)  # which means that there is no such module
    try:
        import_module("msgspec")
    finally:
        del sys.modules[extensions]


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
