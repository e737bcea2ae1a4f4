"""Write the reference of what the published descriptions list: `docs/reference/published-items.md`.

python -m tools.make_published_items            write it
python -m tools.make_published_items --check    exit 1 when it is out of date
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

Five published descriptions of the session format have {len(ITEMS)} items: record types, fields,
forms of content, rules, flows, tools and commands. Each row names the test that proves how steno
treats the item. Where a description and the real client differ, steno follows the client; the last
column says how they differ. [Published descriptions](published-descriptions.md) has the differences
in context.
"""


def build() -> str:
    """Return the page."""
    return "\n".join([INTRO, *map(_section, DOCUMENTS)])


def _section(document: str) -> str:
    items = [item for item in ITEMS if item.id.startswith(f"{document}.")]
    head = [f"## {document}: {DOCUMENTS[document]}", "", f"{len(items)} items.", ""]
    return "\n".join([*head, *_table(items), ""])


def _table(items: list[Item]) -> Iterator[str]:
    yield "| id | item | test | the client |"
    yield "|---|---|---|---|"
    for item in items:
        path, _, test = item.test.partition("::")
        name = f"`{path.removeprefix('tests/')}` `{test}`"
        yield f"| {item.id} | {item.words} | {name} | {item.differs} |"


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` say whether it is out of date."""
    return write_or_check(PAGE, build(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
