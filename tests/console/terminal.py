"""A real terminal for tests: the real program in a pty, its screen as pyte sees it.

    with Terminal(tmp_path, Script().on("hello", "Good day.")) as terminal:
        terminal.open()
        terminal.say("hello")
        terminal.sees("Good day.")

Nothing sleeps: everything waits for what is on the screen. Whatever goes past the top of the screen
is kept, as a terminal keeps its scrollback.
"""

import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pexpect
import pyte

from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.testserver.responders import Responder
from steno.llm.testserver.server import Server, run_server_in_thread

KEY: Final = "canary-key-of-nobody"
ESC: Final = "\x1b"
ENTER: Final = "\r"
UP: Final = "\x1b[A"
DOWN: Final = "\x1b[B"
TAB: Final = "\t"
SHIFT_TAB: Final = "\x1b[Z"
F2: Final = "\x1bOQ"
_SECONDS: Final = 40.0
_CHUNK: Final = 1 << 16
_TRAITS: Final = ("bold", "italics", "reverse", "blink")
_READY: Final = "context "


class _Screen(pyte.HistoryScreen):
    """A screen that knows no window commands, as few terminals do."""

    def set_title(self, param: str) -> None:
        self.title = param

    def select_graphic_rendition(self, *attrs: int, **more: Any) -> None:
        # It knows no dim letters; nothing blinks here, so these stand for them.
        super().select_graphic_rendition(*(5 if each == 2 else each for each in attrs), **more)

    def erase_in_display(self, how: int = 0, *more: Any, **named: Any) -> None:
        if how == 0 and (self.cursor.x, self.cursor.y) == (0, 0):
            raise AssertionError("tmux would keep what was on the screen")
        super().erase_in_display(how, *more, **named)

    def report_device_status(self, mode: int) -> None:
        raise AssertionError(f"the console asked the terminal for {mode}")


class Terminal:
    """One terminal, with a project, a home and a server around it."""

    def __init__(self, folder: Path, mind: Responder, *, columns: int = 100, rows: int = 30, **env: str) -> None:
        self.project = folder / "project"
        self.project.mkdir(exist_ok=True)
        self.home = folder / "home"
        self.config = self.home / ".claude"
        self.size = (columns, rows)
        self.more = env
        self.raw = b""
        """Everything the program has sent."""
        self._mind = mind
        self._stack = ExitStack()
        self.server: Server
        self.child: Any = None
        self._screen = _Screen(columns, rows, history=100_000)
        self._stream = pyte.ByteStream(self._screen)

    def __enter__(self) -> Self:
        self.server = self._stack.enter_context(run_server_in_thread(self._mind, key=KEY))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.child is not None:
            self.child.close(force=True)
        self._stack.close()

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "STENO_HOME": str(self.home / "steno"),
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": KEY,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
            "PAGER": "cat",
            **self.more,
        }

    # Doing

    def open(self, *arguments: str, wait: str = _READY) -> None:
        """Start `steno chat` and wait until it is ready."""
        columns, rows = self.size
        self._screen.reset()
        self._screen.resize(rows, columns)
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "steno", "chat", *arguments],
            cwd=str(self.project),
            env=self.env,
            dimensions=(rows, columns),
            timeout=_SECONDS,
        )
        self.child.delaybeforesend = None
        if wait:
            self.sees(wait)

    def send(self, keys: str) -> None:
        """Press keys."""
        self.child.send(keys)

    def say(self, text: str) -> None:
        """Type something and send it."""
        self.send(text)
        self.waits(lambda: text[-20:].rsplit("\n", maxsplit=1)[-1] in self.text)
        self.send(ENTER)

    def paste(self, text: str) -> None:
        """Paste something, as terminals do."""
        self.send(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        self.size = (columns, rows)
        self._screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def narrow(self, columns: int) -> None:
        """Make the window narrower as many terminals do: what does not fit goes on below."""
        screen, rows = self._screen, self.size[1]
        lines = [
            [line[at : at + columns] for at in range(0, len(line) or 1, columns)] for line in self.text.split("\n")
        ]
        row, column = screen.cursor.y, screen.cursor.x
        row = sum(map(len, lines[:row])) + column // columns
        screen.erase_in_display(2)
        screen.resize(rows, columns)
        for number, piece in enumerate((each for line in lines for each in line), 1):
            screen.cursor_position(number)
            screen.draw(piece)
        screen.cursor_position(row + 1, column % columns + 1)
        self.size = (columns, rows)
        self.child.setwinsize(rows, columns)

    def kill(self, number: int) -> None:
        """End the program by a signal."""
        self.child.kill(number)
        self.ends()

    # Seeing

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def everything(self) -> str:
        """What is on the screen, and what has gone past its top."""
        columns = self._screen.columns
        above = ["".join(line[at].data for at in range(columns)).rstrip() for line in self._screen.history.top]
        return "\n".join([*above, self.text])

    def cells(self) -> list[list[tuple[str, str, tuple[str, ...]]]]:
        """Return what is on the screen, letter by letter: (letter, colour, traits)."""
        rows: list[list[tuple[str, str, tuple[str, ...]]]] = []
        for number in range(len(self.text.split("\n"))):
            row = self._screen.buffer[number]
            cells = [row[at] for at in range(self._screen.columns)]
            rows.append([(each.data, str(each.fg), tuple(n for n in _TRAITS if getattr(each, n))) for each in cells])
        return rows

    def sees(self, *words: str) -> None:
        """Wait until all of this is on the screen."""
        self.waits(lambda: all(each in self.text for each in words), ", ".join(words))

    def told(self, *words: str) -> None:
        """Wait until all of this is on the screen or was."""
        self.waits(lambda: all(each in self.everything for each in words), ", ".join(words))

    def loses(self, words: str) -> None:
        """Wait until this is no longer on the screen."""
        self.waits(lambda: words not in self.text, f"no {words}")

    def waits(self, until: Callable[[], bool], about: str = "") -> None:
        """Read what the program sends until something holds."""
        end = time.monotonic() + _SECONDS
        while not until():
            if not self._read(max(end - time.monotonic(), 0.1)) or time.monotonic() > end:
                message = f"waited for {about or until}; the screen was:\n{self.text}"
                raise AssertionError(message)

    def idle(self) -> None:
        """Wait until nothing is under way."""
        self.waits(lambda: "working" not in self.text and _READY in self.text, "idle")

    def ends(self) -> int:
        """Wait until the program has ended; return its exit code."""
        while self._read(_SECONDS):
            pass
        self.child.wait()
        return self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus

    def _read(self, seconds: float) -> bool:
        try:
            data = self.child.read_nonblocking(_CHUNK, seconds)
        except (pexpect.EOF, pexpect.TIMEOUT):
            return False
        self.raw += data
        self._stream.feed(data)
        return True

    # What must hold

    @property
    def files(self) -> list[Path]:
        """The sessions that were written, the oldest first."""
        found = (self.config / "projects").glob("*/*.jsonl")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def proves(self) -> None:
        """Whatever happened: nothing was refused, every session is sound, no key was written."""
        assert list(self.server.refused) == []
        for path in self.files:
            found = check(BytesSource(path.read_bytes()), name=path.stem).findings
            assert [each.id for each in found if each.severity != "info"] == []
        for path in self.home.rglob("*"):
            assert not path.is_file() or KEY.encode() not in path.read_bytes()
        assert b"\x1b[2J" not in self.raw
        assert b"\x1b[3J" not in self.raw
        assert b"Traceback" not in self.raw

    def prompts(self) -> list[str]:
        """Return the last message of each request that was made."""
        return [str(each.body["messages"][-1]["content"]) for each in self.server.requests]


def plain(raw: bytes) -> str:
    """Return what was sent without its control sequences."""
    text = raw.decode("utf-8", "replace")
    return re.sub(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))", "", text)
