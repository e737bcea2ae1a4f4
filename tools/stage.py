"""A reproducible environment for the documentation: temporary home, fixed time, demo sessions.

Commands run in a shell in an empty home, with `steno` on the path and without access to the user's files, so that their
output is the same everywhere and can be inserted into pages and images.
"""

import errno
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

NOW: Final = "2026-11-15T12:00:00Z"
COLUMNS: Final = 96
ROOT: Final = Path(__file__).resolve().parent.parent
_HOME: Final = "/home/you"
_SECONDS: Final = 60
# Prints a NUL after each command and preserves `$?`.
_MARK: Final = "__status=$?; printf '\\0'; (exit $__status)\n"


class Stage:
    """A home directory in which commands run in order."""

    def __init__(self, columns: int = COLUMNS) -> None:
        self._columns = columns
        self._folder = tempfile.TemporaryDirectory(prefix="steno-")
        self.home = Path(self._folder.name).resolve() / "home"

    def __enter__(self) -> Self:
        programs = self.home.parent / "bin"
        for folder in (programs, self.home):
            folder.mkdir()
        program = programs / "steno"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m steno "$@"\n')
        program.chmod(0o755)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    @property
    def env(self) -> dict[str, str]:
        """Environment of the commands."""
        kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR") if name in os.environ}
        return kept | {
            "PATH": f"{self.home.parent / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "XDG_DATA_HOME": str(self.home / ".local" / "share"),
            "STENO_NOW": NOW,
            "COLUMNS": str(self._columns),
            "LINES": "200",
            "LANG": "C.UTF-8",
            "PAGER": "cat",
            "TZ": "UTC",
        }

    def run(self, commands: list[str]) -> list[str]:
        """Return the output of each command, with both streams and without colour, run in one shell."""
        self._script("".join(f"{command}\n{_MARK}" for command in commands))
        done = subprocess.run(
            ["/bin/sh", "../play.sh"],
            cwd=self.home,
            env=self.env | {"NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
        text = done.stdout.decode("utf-8", "replace").replace(str(self.home), _HOME)
        return text.split("\0")[: len(commands)]

    def perform(self, command: str) -> str:
        """Return the output of a command on a terminal, including colours and line ends."""
        import pty
        import termios

        here, there = pty.openpty()
        termios.tcsetwinsize(there, (200, self._columns))
        colours = {"TERM": "xterm-256color", "COLORTERM": ""}
        self._script(f"{command}\n")
        with subprocess.Popen(
            ["/bin/sh", "../play.sh"],
            cwd=self.home,
            env=self.env | colours,
            stdin=subprocess.DEVNULL,
            stdout=there,
            stderr=there,
        ):
            os.close(there)
            written = b"".join(_until_hung_up(here))
        os.close(here)
        text = written.decode("utf-8", "replace").replace("\r\n", "\n")
        return text.replace(str(self.home), _HOME)

    def _script(self, text: str) -> None:
        (self.home.parent / "play.sh").write_text(text, encoding="utf-8")


def _until_hung_up(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:  # Linux reports a closed other end as EIO
                raise
            return
        if not part:
            return
        yield part
