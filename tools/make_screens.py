"""Draw the terminal output of commands for the README: `docs/images/*.svg`.

The commands run on a terminal, with the demo sessions and a fixed clock.

python -m tools.make_screens            draw the images
python -m tools.make_screens --check    exit 1 if one is out of date
"""

import io
import re
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from tools.stage import ROOT, Stage

FOLDER: Final = ROOT / "docs" / "images"
SCREENS: Final = {
    "ls": "steno ls --demo --until 2026-11-12 --limit 10",
    "show": "steno show --demo 6429",
    "search": "steno search --demo median --limit 3",
    "usage": "steno usage --demo --by model",
    "check": "steno check --demo c6a6",
    "repair": "steno repair --demo c6a6 --dry-run",
}
COLUMNS: Final = 96
_FONT_FACES: Final = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_FACES: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
THEME: Final = TerminalTheme(
    (0x11, 0x14, 0x13),
    (0xE0, 0xE4, 0xE1),
    [
        (0x3B, 0x42, 0x3E),
        (0xF2, 0x84, 0x82),
        (0x77, 0xC8, 0x8E),
        (0xE5, 0xB5, 0x62),
        (0x91, 0xB2, 0xF6),
        (0xBB, 0xA2, 0xEA),
        (0x6D, 0xC5, 0xC5),
        (0xE0, 0xE4, 0xE1),
    ],
)


def draw(name: str, command: str) -> str:
    """Return the image of a command and its output."""
    with Stage(COLUMNS) as stage:
        stage.run(["steno demo"])
        written = stage.perform(command)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
    console.print()
    console.print(Text.from_ansi(written.rstrip("\n")), soft_wrap=True)
    picture = console.export_svg(title="", theme=THEME, unique_id=f"steno-{name}")
    return own_faces(picture)


def own_faces(picture: str) -> str:
    """Return an image that uses the monospaced font of the reader, so that it loads nothing."""
    return _FONT_FACES.sub("", picture).replace("Fira Code, monospace", _FACES)


def main(arguments: list[str], folder: Path = FOLDER) -> int:
    """Draw every image; with `--check` only list the images that are out of date."""
    stale = 0
    for name, command in SCREENS.items():
        path = folder / f"{name}.svg"
        picture = draw(name, command)
        if path.is_file() and path.read_text(encoding="utf-8") == picture:
            continue
        stale += 1
        if "--check" in arguments:
            print(f"{path} is out of date; run `make docs`")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(picture, encoding="utf-8")
            print(f"wrote {path}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
