"""Run the commands in the documentation and insert their output.

A block that starts with ```console contains commands (`$ steno ls --demo`) and their output. All blocks of a page run
in order in one temporary home.

python -m tools.make_examples            write the output
python -m tools.make_examples --check    exit 1 if a page is out of date
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.stage import ROOT, Stage

_BLOCK: Final = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND: Final = re.compile(r"^\$ (.+)$", re.MULTILINE)


def pages() -> Iterator[Path]:
    """Yield every page with commands."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if _BLOCK.search(page.read_text(encoding="utf-8")):
            yield page


def played(text: str) -> str:
    """Return a page with the output of all commands updated."""
    with Stage() as stage:

        def play(block: re.Match[str]) -> str:
            commands = _COMMAND.findall(block[1])
            shown = zip(commands, stage.run(commands), strict=True)
            lines = "".join(f"$ {command}\n{_tidy(output)}" for command, output in shown)
            return f"```console\n{lines}```"

        return _BLOCK.sub(play, text)


def _tidy(output: str) -> str:
    lines = [line.rstrip() for line in output.strip("\n").split("\n")]
    return "\n".join(lines) + "\n" if any(lines) else ""


def main(arguments: list[str]) -> int:
    """Update every page; with `--check` only list the pages that are out of date."""
    stale = 0
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = played(before)
        if before == after:
            continue
        stale += 1
        if "--check" in arguments:
            print(f"{page} is out of date; run `make docs`")
        else:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {page}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
