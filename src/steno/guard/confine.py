"""Gives up rights, then becomes another program: `python -m steno.guard.confine … -- argv`.

It never runs the program with more rights than were asked for: when they cannot be given up, it
says so and ends with 126, as a shell does for what it cannot run.
"""

import os
import sys
from itertools import pairwise

from steno.guard.landlock import CannotConfine, restrict

__all__ = ["main"]

_CANNOT_RUN = 126
_NOT_FOUND = 127
_USAGE = (
    "usage: confine [--network] [--write FOLDER]… [--hide PATH]… [--show PATH]…"
    " [--apart] [--pin PATH]… [--keep PATH]… [--cover PATH]… -- PROGRAM …"
)


def main(arguments: list[str]) -> int:
    """Restrict this process and run what stands behind `--`; return only when that fails."""
    if "--" not in arguments:
        return _say(_USAGE)
    at = arguments.index("--")
    options, argv = arguments[:at], arguments[at + 1 :]
    if not argv:
        return _say("there is nothing to run")
    try:
        _restrict(options)
    except CannotConfine as error:
        return _say(f"not run, because it cannot be confined: {error}")
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        _say(f"{argv[0]}: {(error.strerror or str(error)).lower()}")
        return _NOT_FOUND


def _restrict(options: list[str]) -> None:
    def given(flag: str) -> list[str]:
        return [path for name, path in pairwise(options) if name == flag]

    network = "--network" in options
    if "--apart" in options:
        from steno.guard.namespaces import shut_off

        here = os.getcwd()
        shut_off(given("--pin"), given("--keep"), given("--cover"), network=network)
        # Through the new mounts, not under them.
        _go(here)
        network = True
    restrict(given("--write"), network=network, hidden=given("--hide"), shown=given("--show"))


def _go(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise CannotConfine(f"{folder} cannot be entered") from error


def _say(words: str) -> int:
    sys.stderr.write(f"steno: {words}\n")
    return _CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
