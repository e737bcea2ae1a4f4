"""Write the checklist for clients, with the tests that prove each point: `docs/reference/protocol-checklist.md`.

python -m tools.make_checklist_docs            write the page
python -m tools.make_checklist_docs --check    exit 1 if it is out of date
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.published.checklist import ITEMS, SECTIONS, Item
from tools.generated_page import write_or_check

__all__ = ["PAGE", "build"]

_ROOT: Final = Path(__file__).parent.parent
PAGE: Final = _ROOT / "docs" / "reference" / "protocol-checklist.md"
_INTRO: Final = """\
# Checklist for clients

<!-- Generated from tests/published/checklist.py by tools/make_checklist_docs.py; do not edit. -->

"Claude Code Session Protocol Schema" ends with 38 points for authors of clients. This page shows what `steno chat`
does about each point, where it differs because Claude Code differs, and which tests prove it. steno writes records
like Claude Code 2.1.325; [published descriptions](published-descriptions.md) covers the parts about reading.
"""


def build() -> str:
    """Return the page."""
    return "".join((_INTRO, *map("".join, map(_section, SECTIONS))))


def _section(number: str) -> Iterator[str]:
    yield f"\n## {number} {SECTIONS[number]}\n\n"
    yield "| | requirement | steno | differs from the document | proven by |\n|---|---|---|---|---|\n"
    for item in ITEMS:
        if item.number.rpartition(".")[0] == number:
            yield _row(item)


def _row(item: Item) -> str:
    tests = ", ".join(f"`{name}`" for name in item.tests)
    return f"| {item.number} | {item.asks} | {item.does} | {item.differs} | {tests} |\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, build(), sys.argv[1:]))
