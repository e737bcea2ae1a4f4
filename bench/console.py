"""Measures the console: start-up time, bytes and CPU time per token, and growth over many turns.

    python bench/console.py [2000]      number of turns

The real program runs in a pty against the scripted server. CPU time is that of the program alone, read from /proc,
so other load on the machine has little effect.
"""

import os
import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from table import Row, passed, row, show

import agent
from steno.llm.testserver.responders import Reply, ReplyBlock
from steno.llm.testserver.scripted_responder import ScriptedResponder

if TYPE_CHECKING:
    from tests.console.terminal import Terminal

    from steno.llm.testserver.responders import Responder

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TOKENS: Final = 1000
TURNS: Final = 2000
MB: Final = 1 << 20
_FOOT: Final = re.compile(rb"\d+ out")
_CLEARS: Final = (b"\x1b[2J", b"\x1b[3J", b"\x1bc", b"\x1b[?1049h")


def terminal(folder: str, mind: "Responder", url: str = "") -> "Terminal":
    """Return the terminal of the tests, which are in the parent directory."""
    root = str(Path(__file__).resolve().parent.parent)
    if root not in sys.path:
        sys.path.append(root)
    from tests.console.terminal import Terminal

    return Terminal(Path(folder), mind, ANTHROPIC_BASE_URL=url) if url else Terminal(Path(folder), mind)


class Moment(NamedTuple):
    """CPU seconds and memory in MB of a conversation up to a turn."""

    turn: int
    cpu: float
    memory: float


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int) -> int:
    """Return the resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def ready() -> float:
    """Return the CPU seconds until the prompt accepts input."""
    best = 9.0
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder, terminal(folder, ScriptedResponder()) as console:
            console.open(wait="Starting")
            best = min(best, cpu(console.child.pid))
            console.send("typed")
            console.sees("typed")
    return best


def streaming() -> tuple[float, float, int]:
    """Return bytes and CPU milliseconds per streamed token, and the number of screen clears."""
    words = [f"word{number} " + ("" if (number + 1) % 40 else "\n\n") for number in range(_TOKENS)]
    said = ReplyBlock({"type": "text", "text": "".join(words)}, tuple(words))
    script = ScriptedResponder().on("go", Reply(content=(said,))).otherwise("Yes.")
    with tempfile.TemporaryDirectory() as folder, terminal(folder, script) as console:
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


def long_talk(turns: int) -> list[Moment]:
    """Return the measurements of a long conversation at ten moments.

    Each turn reads a file. The model answers immediately, in a separate process: waiting for a slower model would cost
    frames.
    """
    marks: list[Moment] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder, "project", "notes.txt")
        file.parent.mkdir()
        file.write_text("".join(f"Line {number} of what is read.\n" for number in range(120)))
        url = stack.enter_context(agent.served(file))
        there = terminal(folder, ScriptedResponder(), url)
        console = stack.enter_context(there)
        console.open()
        pid, step = console.child.pid, max(turns // 10, 1)
        for number in range(1, turns + 1):
            at = len(console.raw)
            console.send(f"turn {number}\r")
            console.waits(lambda at=at: _FOOT.search(console.raw, at) is not None)
            console.idle()
            if number % step == 0:
                marks.append(Moment(number, cpu(pid), memory(pid) / MB))
                print(f"     turn {number}: {marks[-1].memory:.0f} MB", file=sys.stderr)
            if len(console.raw) > MB:
                console.raw = console.raw[-8192:]
    return marks


def measured(turns: int = TURNS) -> list[Row]:
    """Return the measurements of the console."""
    rows = [row("console start to the first prompt, CPU s", ready(), 0.3, "before the engine is loaded")]
    size, taken, clears = streaming()
    rows.append(row("console output per streamed token, bytes", size, 60, f"{taken:.2f} ms CPU"))
    rows.append(row("console screen clears", clears, 0, f"{_TOKENS} tokens"))
    marks = long_talk(turns)
    first, second, before, last = marks[0], marks[1], marks[-2], marks[-1]
    early = (second.cpu - first.cpu) / (second.turn - first.turn)
    late = (last.cpu - before.cpu) / (last.turn - before.turn)
    detail = f"{early * 1000:.1f} ms per turn early, {late * 1000:.1f} ms late"
    rows.append(row(f"console, {turns} turns, CPU late ÷ early", late / early, 1.25, detail))
    sizes = f"{second.memory:.0f} MB early, {last.memory:.0f} MB late"
    rows.append(row(f"console, {turns} turns, memory late ÷ early", last.memory / second.memory, 1.25, sizes))
    return rows


def main(turns: int) -> int:
    """Measure and print; return 1 if a limit was exceeded."""
    rows = measured(turns)
    show(rows)
    return 1 if any(map(passed, rows)) else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else TURNS))
