"""Measures the agent as `steno chat -p`, with the model server in a separate process.

    python bench/agent.py [--turns 5000]      at least 1,000; takes two minutes

All figures are those of the agent process alone: CPU time of all its threads, resident memory, and the bytes it
writes below its directories.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agent_server import answered, length_of, whole
from table import Row, passed, row, show

HERE = Path(__file__).resolve().parent
STENO = Path(sys.executable).with_name("steno")
PAGE = os.sysconf("SC_PAGE_SIZE")
MB = 1 << 20
TURNS = 5000
TRIES = 10


class Moment(NamedTuple):
    """Measurements of an agent up to a turn."""

    cpu: float
    memory: int
    written: int


def starting() -> list[Row]:
    """Measure the time until the first request is sent."""
    floor = min(_bare() for _ in range(TRIES))
    ours = min(_to_first_request() for _ in range(TRIES))
    detail = f"{ours * 1000:.0f} ms against {floor * 1000:.0f} ms of python -c pass"
    return [
        row("steno chat -p to the first request, CPU s", ours, 0.35, detail),
        row("steno chat -p to the first request, CPU ÷ python -c pass", ours / floor, None, ""),
    ]


def working(turns: int, settings: str = "", limit: float | None = 1.25) -> list[Row]:
    """Measure many turns in one session, each with two requests and one call that reads 3.5 KB."""
    with tempfile.TemporaryDirectory(prefix="steno-agent-") as folder:
        span = turns // 10
        marks = (100, 100 + span, turns - span, turns)
        early, later, before, last = _turns(Path(folder), marks, settings)
    first, late = (later.cpu - early.cpu) / span, (last.cpu - before.cpu) / span
    grown = (last.memory - later.memory) / MB
    written = (last.written - before.written) / span
    name = "without compaction" if settings else "in one session"
    spans = f"turns {marks[2]:,} to {turns:,} against {marks[0]} to {marks[1]}"
    return [
        row(f"{turns:,} turns {name}, CPU ms per turn, late", late * 1000, None, spans),
        row(f"{turns:,} turns {name}, CPU per turn late ÷ early", late / first, limit, f"{first * 1000:.1f} ms"),
        row(
            f"resident memory at turn {turns:,} ÷ at turn {marks[1]}",
            last.memory / later.memory,
            limit,
            f"{last.memory / MB:.0f} MB, {grown:+.1f} MB",
        ),
        row("KB written per turn", written / 1000, None, f"{last.written / MB:.1f} MB in total"),
    ]


def _turns(folder: Path, marks: tuple[int, ...], settings: str) -> list[Moment]:
    file = folder / "project" / "notes.txt"
    file.parent.mkdir()
    file.write_text("".join(f"Line {number} of what is read.\n" for number in range(120)))
    found: list[Moment] = []
    prompt = {"type": "user", "message": {"role": "user", "content": "Read it again, please."}}
    formats = [f"--{kind}-format=stream-json" for kind in ("input", "output")]
    more = ["--settings", settings] if settings else []
    with served(file) as url:
        process = subprocess.Popen(
            [str(STENO), "chat", "-p", *formats, *more],
            cwd=file.parent,
            env=_environment(folder, url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for turn in range(1, marks[-1] + 1):
            process.stdin.write(json.dumps(prompt).encode() + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                if b'"type":"result"' in line[:40]:
                    assert b'"subtype":"success"' in line, line
                    break
            if turn in marks:
                found.append(Moment(_cpu(process.pid), _memory(process.pid), _below(folder)))
        process.stdin.close()
        process.stdout.read()
        assert process.wait() == 0
    return found


@contextmanager
def served(file: Path) -> Generator[str]:
    """Run the model server; yield its URL."""
    command = [sys.executable, str(HERE / "agent_server.py"), str(file)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
    finally:
        server.kill()
        server.wait()


def _environment(folder: Path, url: str) -> dict[str, str]:
    config, home = folder / "config", folder / "steno"
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "CLAUDE_CONFIG_DIR": str(config),
        "STENO_HOME": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none-needed",
    }


def _to_first_request() -> float:
    """Return the CPU seconds of an agent until its first request arrives."""
    with (
        tempfile.TemporaryDirectory(prefix="steno-agent-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        process = subprocess.Popen(
            [str(STENO), "chat", "-p", "hello"],
            cwd=folder,
            env=_environment(Path(folder), url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        taken: list[float] = []
        thread = threading.Thread(target=_answer_once, args=(listening, process.pid, taken))
        thread.start()
        assert process.wait() == 0
        thread.join()
    return taken[0]


def _answer_once(listening: socket.socket, pid: int, taken: list[float]) -> None:
    connection, _ = listening.accept()
    with connection, connection.makefile("rb") as incoming:
        head = b"".join(iter(incoming.readline, b"\r\n"))
        incoming.read(length_of(head))
        taken.append(_cpu(pid))
        connection.sendall(whole(answered(1, 100)))


def _bare() -> float:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return used.ru_utime + used.ru_stime


def _cpu(pid: int) -> float:
    """Return the CPU seconds of all threads of a process, with nanosecond precision."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def _below(folder: Path) -> int:
    kept = [*(folder / "config").rglob("*"), *(folder / "steno").rglob("*")]
    return sum(path.stat().st_size for path in kept if path.is_file())


def measured(turns: int = TURNS) -> list[Row]:
    """Return all measurements of the agent."""
    endless = json.dumps({"autoCompactEnabled": False})
    return [*starting(), *working(turns), *working(turns // 5, endless, None)]


def main() -> None:
    """Measure the agent alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    rows = measured(parser.parse_args().turns)
    show(rows)
    sys.exit(any(map(passed, rows)))


if __name__ == "__main__":
    main()
