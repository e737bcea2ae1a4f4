"""Measures the console: how soon it is ready, what a token costs in bytes, whether it stays flat.

    python bench/console.py             a few hundred turns
    python bench/console.py 2000        as many as are wanted

The real program runs in a pty against the scripted server; nothing is simulated. CPU time is that
of the program alone, read from /proc, so a busy machine does not count.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.console.terminal import ENTER, Terminal

from steno.model.server.minds import Reply, Said
from steno.model.server.script import Script

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TOKENS: Final = 1000
_TURNS: Final = 300
_FOOT: Final = re.compile(rb"\d+ out")
_CLEARS: Final = (b"\x1b[2J", b"\x1b[3J", b"\x1bc", b"\x1b[?1049h")


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int) -> int:
    """Return the resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def ready() -> float:
    """Return the CPU seconds until the prompt is there and takes keys."""
    best = 9.0
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder, Terminal(Path(folder), Script()) as console:
            console.open(wait="starting")
            best = min(best, cpu(console.child.pid))
            console.send("typed")
            console.sees("typed")
    return best


def streaming() -> tuple[float, float, int]:
    """Return bytes and CPU milliseconds per streamed token, and how often the screen was cleared."""
    words = [f"word{number} " + ("" if (number + 1) % 40 else "\n\n") for number in range(_TOKENS)]
    said = Said({"type": "text", "text": "".join(words)}, tuple(words))
    script = Script().on("go", Reply(content=(said,))).otherwise("Yes.")
    with tempfile.TemporaryDirectory() as folder, Terminal(Path(folder), script) as console:
        console.open()
        console.say("first")
        console.told("Yes.")
        console.idle()
        sent, spent = len(console.raw), cpu(console.child.pid)
        console.say("go")
        console.told(f"word{_TOKENS - 1}")
        console.idle()
        taken = cpu(console.child.pid) - spent
        clears = sum(console.raw.count(each) for each in _CLEARS)
        return (len(console.raw) - sent) / _TOKENS, 1000 * taken / _TOKENS, clears


def long_talk(turns: int) -> list[tuple[int, float, float]]:
    """Return, for each tenth of a long talk: its turns, CPU milliseconds a turn, megabytes."""
    script = Script().otherwise("An answer of **some** words.\n\n- with\n- a list\n")
    marks: list[tuple[int, float, float]] = []
    with tempfile.TemporaryDirectory() as folder, Terminal(Path(folder), script) as console:
        console.open("--settings", '{"autoCompactEnabled": false}')
        pid = console.child.pid
        before = cpu(pid)
        step = max(turns // 10, 1)
        for number in range(1, turns + 1):
            at = len(console.raw)
            console.send(f"turn {number}{ENTER}")
            console.waits(lambda at=at: _FOOT.search(console.raw, at) is not None)
            console.idle()
            if number % step == 0:
                now = cpu(pid)
                marks.append((number, 1000 * (now - before) / step, memory(pid) / 1e6))
                before = now
            if len(console.raw) > 1 << 20:
                console.raw = console.raw[-8192:]
    return marks


def main(turns: int) -> None:
    """Measure and print."""
    os.environ.setdefault("NO_COLOR", "")
    print(f"first prompt ready    {ready():.2f} s CPU")
    size, taken, clears = streaming()
    print(f"a streamed token      {size:.0f} bytes, {taken:.2f} ms CPU; {clears} clears")
    began = time.monotonic()
    for number, milliseconds, megabytes in long_talk(turns):
        print(f"turn {number:>6}           {milliseconds:.0f} ms CPU a turn, {megabytes:.0f} MB")
    print(f"{turns} turns in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _TURNS)
