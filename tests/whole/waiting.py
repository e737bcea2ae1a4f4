"""Starts `steno` when it is told to, with everything imported: two of them really run together.

    python waiting.py ARGUMENTS…

Writes a line when it is ready, and begins with the first byte of its standard input.
"""

import os
import sys
from importlib import import_module

from steno.__main__ import main

NEEDED = (
    "steno.agent.headless",
    "steno.agent.writable_session",
    "steno.cli.commands.chat",
    "steno.cli.main",
    "steno.llm.client",
    "steno.store.session_lookup",
)


def wait() -> None:
    """Say that it is ready, and wait."""
    for name in NEEDED:
        import_module(name)
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    os.read(0, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)


if __name__ == "__main__":
    wait()
    main()
