"""Write the reference of the items in the published descriptions: `docs/reference/published-items.md`.

python -m tools.make_published_items            write the page
python -m tools.make_published_items --check    exit 1 if it is out of date
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.published.items import DOCUMENTS, ITEMS, Item
from tools.generated_page import write_or_check

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "published-items.md"
INTRO: Final = f"""\
# Items of the published descriptions

<!-- Generated from tests/published/items.py by tools/make_published_items.py; do not edit. -->

Five published descriptions of the session format contain {len(ITEMS)} items: record types, fields, forms of content,
rules, flows, tools and commands. Each row names the test that proves how steno handles the item. Where a description
and Claude Code differ, steno follows Claude Code; the last column describes the difference.
[Published descriptions](published-descriptions.md) has the differences in context.
"""


def build() -> str:
    """Return the page."""
    return "\n".join([INTRO, *map(_section, DOCUMENTS)])


def _section(document: str) -> str:
    items = [item for item in ITEMS if item.id.startswith(f"{document}.")]
    head = [f"## {document}: {DOCUMENTS[document]}", "", f"{len(items)} items.", ""]
    return "\n".join([*head, *_table(items), ""])


def _table(items: list[Item]) -> Iterator[str]:
    yield "| id | item | test | Claude Code |"
    yield "|---|---|---|---|"
    for item in items:
        path, _, test = item.test.partition("::")
        name = f"`{path.removeprefix('tests/')}` `{test}`"
        yield f"| {item.id} | {item.words} | {name} | {item.differs} |"


def main(arguments: list[str]) -> int:
    """Write the page, or check whether it is up to date."""
    return write_or_check(PAGE, build(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
