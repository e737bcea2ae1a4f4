"""Has bash say what it runs: nothing is found, and what is looked for is written down."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from steno.permissions.shell.command import UNKNOWN_PART, Command

# Each command ends as chance has it, and now and then the shell ends, so that no loop lasts.
# Every record goes to a file of its own: several may be written at the same time.
BASH_ENV: Final = r"""
command_not_found_handle() {
  local IFS=$'\2'
  printf '%s' "$*" > "$LOG.$BASHPID.$RANDOM$RANDOM"
  (( RANDOM % 20 == 0 )) && kill -9 $$
  return $((RANDOM % 2))
}
"""


class Ran:
    """A command that bash has looked for."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv

    @staticmethod
    def read(log: Path) -> Iterator["Ran"]:
        for path in sorted(log.parent.glob(f"{log.name}.*")):
            raw = path.read_bytes().decode("utf-8", "replace")
            path.unlink()
            if raw:
                yield Ran(raw.split("\2"))


def fits(ran: Ran, commands: Iterable[Command]) -> bool:
    """Whether one of the commands that were read may be what has run."""
    for command in commands:
        words = command.words
        if not words or words[0].text != ran.argv[0]:
            continue
        if any(word.splits for word in words):
            return True
        if len(words) == len(ran.argv) and all(
            word.tilde or re.fullmatch(_pattern(word.text), given, re.DOTALL)
            for word, given in zip(words, ran.argv, strict=True)
        ):
            return True
    return False


def _pattern(text: str) -> str:
    return ".*".join(map(re.escape, text.split(UNKNOWN_PART)))
