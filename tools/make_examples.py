"""Run the commands in the documentation and put what they print below them.

A block that begins with ```console holds commands (`$ steno ls --demo`) and their output. All
blocks of a page run in one made-up home, from the top of the page to its end.

python -m tools.make_examples            write the outputs
python -m tools.make_examples --check    exit 1 when a page shows something else
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
    """Yield every page that shows commands."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if _BLOCK.search(page.read_text(encoding="utf-8")):
            yield page


def played(text: str) -> str:
    """Return a page with every command run again."""
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
    """Play every page; with `--check` only say which ones are out of date."""
    stale = 0
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = played(before)
        if before == after:
            continue
        stale += 1
        if "--check" in arguments:
            print(f"{page} shows what is no longer printed; run `make docs`")
        else:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {page}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
