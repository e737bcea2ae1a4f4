"""Writes `docs/reference/promises.md` from the recorded figures.

python -m tools.campaign.page            write the page
python -m tools.campaign.page --check    exit 1 if it is out of date
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

Each promise, its tests, and the figure of the last run. `make campaign` runs the items and records the figures; an item
that is not run keeps its last figure and date. See [run the campaign](../contributing/campaign.md). The detailed list
of promises with their tests is in [promises](../explanation/promises.md).
"""
_MUTATION: Final = """\
## Mutation score

The share of small changes to the code of a package that make a test fail, in a random sample;
`make mutation PACKAGE=format SAMPLE=60` measures one package. The interval is the 95 % Wilson interval.

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
    tests = ", ".join(f"`{name}`" if (ROOT / name).exists() else "(missing)" for name in files)
    figure = "not run yet" if kept is None else kept["figure"]
    figure = figure if kept is None or kept["passed"] else f"**broken**: {figure}"
    return f"| {item.id} | {item.promise} | {tests} | {_cell(figure)} | {kept['date'] if kept else ''} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write_page() -> None:
    """Write the page."""
    PAGE.write_text(build(), encoding="utf-8")


def main() -> int:
    """Write the page, or check whether it is up to date."""
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
