"""Writes `docs/reference/promises.md` from the figures that are kept.

python -m tools.campaign.page            write it
python -m tools.campaign.page --check    exit 1 when it is out of date
"""

import sys
from typing import Final

from tools.campaign.items import ITEMS, Item
from tools.campaign.results import ROOT, Kept, load

PAGE: Final = ROOT / "docs" / "reference" / "promises.md"
_PARTS: Final = {"A": "Load", "B": "Faults", "C": "Bad inputs", "D": "Security"}
_INTRO: Final = """\
# Promises and their last figures

<!-- Generated from docs/reference/promises.json by tools/campaign/page.py; do not edit. -->

Each promise, the tests that try it, and what the last run measured. `make campaign` runs the items
and keeps the figures; one that was not run keeps its last figure and date. How to run it:
[run the campaign](../contributing/campaign.md). What is promised in detail, test by test:
[promises](../explanation/promises.md).
"""
_MUTATION: Final = """\
## Mutation score

The share of small changes to a package's code that make a test fail, in a random sample of them;
`make mutation PACKAGE=format SAMPLE=60` measures one. The interval is Wilson's, at 95 %.

| package | last figure | date |
|---|---|---|
"""


def build() -> str:
    """Return the page."""
    known = load()
    parts = [_INTRO]
    for letter, title in _PARTS.items():
        rows = [_row(item, known.get(item.id)) for item in ITEMS if item.id.startswith(letter)]
        head = "| id | promise | tests | last figure | date |\n|---|---|---|---|---|\n"
        parts.append(f"## {title}\n\n{head}" + "".join(rows))
    scores = {name: kept for name, kept in known.items() if name.startswith("mutation ")}
    rows = [
        f"| `{name.removeprefix('mutation ')}` | {_cell(kept['figure'])} | {kept['date']} |\n"
        for name, kept in scores.items()
    ]
    parts.append(_MUTATION + "".join(rows))
    return "\n".join(parts)


def _row(item: Item, kept: Kept | None) -> str:
    files = dict.fromkeys(name.partition("::")[0] for name in item.tests)
    tests = ", ".join(f"`{name}`" if (ROOT / name).exists() else "(to come)" for name in files)
    figure = "not run yet" if kept is None else kept["figure"]
    figure = figure if kept is None or kept["passed"] else f"**broken**: {figure}"
    return f"| {item.id} | {item.promise} | {tests} | {_cell(figure)} | {kept['date'] if kept else ''} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write_page() -> None:
    """Write the page anew."""
    PAGE.write_text(build(), encoding="utf-8")


def main() -> int:
    """Write, or only compare."""
    if "--check" not in sys.argv[1:]:
        write_page()
        return 0
    current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if current == build():
        return 0
    print(f"{PAGE.relative_to(ROOT)} is out of date: run `make docs`")
    return 1


if __name__ == "__main__":
    sys.exit(main())
