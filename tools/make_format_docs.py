"""Write the format reference from the catalogue: `docs/reference/format.md`.

python tools/make_format_docs.py            write the page
python tools/make_format_docs.py --check    exit 1 if it is out of date
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from steno.format.catalogue import Catalogue, Field, Fields, KindEntry, ToolEntry, catalogue

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "format.md"

INTRO: Final = """\
# The session format

<!-- Generated from catalogue.json by tools/make_format_docs.py; do not edit. -->

A session is a file of lines, each one JSON object: a record. This page lists all known kinds of record and their
fields, with the JSON types and the first and last Claude Code version in which each was seen. The list is open: new
kinds and fields appear every few weeks, and unknown ones are read and preserved like any other.

**Graph records** have `uuid` and `parentUuid` and form the tree of the conversation.
**Side records** hold other state; for most of them the last record applies.

A kind is the `type` of the record, followed by a slash and its sub-kind: the content of a `user` or `assistant` record,
the `subtype` of a `system` record, the `type` of an attachment or of the `data` of a progress record, the `operation`
of a queue operation.

In the tables, *always* means on every record of the kind within those versions; `a.b` is a field of an object, `a[].b`
of the objects in an array, `a{}.b` of the objects in a map with arbitrary keys. A dash means unknown.
"""

USAGE: Final = "`message.usage`: every record of a response has the same figures; count them once per `message.id`."
SECTIONS: Final = (
    ("user/", "User records", ""),
    ("assistant/", "Assistant records", "One record per content block; see `message.content`."),
    ("system", "System records", ""),
    ("attachment/", "Attachments", "Reminders, files and hook output, as part of the chain."),
    ("progress/", "Progress records", "Written by 2.1.12 to 2.1.81."),
    ("", "Side records", ""),
)


def build(facts: Catalogue) -> str:
    """Return the page."""
    parts = [INTRO, _versions(facts), _envelope(facts), *_records(facts), *_blocks(facts)]
    parts.append(f"## Usage\n\n{USAGE}\n\n{_table(facts.usage)}")
    parts += [*_tools(facts), *_dialects(facts), _enums(facts)]
    return "\n".join(parts)


_USAGE: Final = "Every record of a response has the same figures; count them once per message ID."


def _versions(facts: Catalogue) -> str:
    known = facts.client_versions
    return (
        "## Claude Code versions\n\n"
        f"- Run in scripted scenarios: {', '.join(known.driven)}.\n"
        f"- Seen in published sessions: {' to '.join(known.surveyed)}.\n"
        f"- Described by others, not verified (*claimed*): {' to '.join(known.claimed)}.\n"
    )


def _envelope(facts: Catalogue) -> str:
    table = _table(facts.envelopes["claude"])
    return f"## The envelope\n\nFields of every graph record, in addition to those of its kind.\n\n{table}"


def _records(facts: Catalogue) -> Iterator[str]:
    left = list(facts.kinds("claude"))
    for prefix, title, about in SECTIONS:
        mine = [entry for entry in left if entry.name.startswith(prefix)]
        left = [entry for entry in left if entry not in mine]
        yield f"## {title}\n" + (f"\n{about}\n" if about else "")
        told = [entry for entry in mine if entry.fields.keys() - {"type"}]
        yield from map(_kind, told)
        bare = [f"`{entry.name}`" for entry in mine if entry not in told]
        if bare:
            yield f"Known by name only: {', '.join(bare)}.\n"


def _kind(entry: KindEntry) -> str:
    seen = "Claimed." if entry.claimed else f"Seen in {_range(entry.seen)}."
    return f"### `{entry.name}`\n\n{seen}\n\n{_table(entry.fields)}"


def _blocks(facts: Catalogue) -> Iterator[str]:
    yield "## Content blocks\n\nElements of `message.content`, unless it is a string.\n"
    for name, block in facts.blocks.items():
        seen = "Claimed." if block.claimed else f"Seen in {_range(block.seen)}."
        yield f"### Block `{name}`\n\n{seen}\n\n{_table(block.fields)}"


def _tools(facts: Catalogue) -> Iterator[str]:
    yield (
        "## Tools\n\nThe `input` of a `tool_use` block, and the `toolUseResult` of the record with "
        "its result: an object, a string if the call failed, or an array.\n"
    )
    yield from (_tool(name, tool) for name, tool in facts.tools.items())


def _tool(name: str, tool: ToolEntry) -> str:
    parts = [f"### Tool `{name}`\n", f"Seen in {_range(tool.seen)}.\n"]
    if tool.input:
        parts.append(f"Input:\n\n{_table(tool.input)}")
    if tool.result_types:
        parts.append(f"Result: {' or '.join(tool.result_types)}.\n")
    if tool.result:
        parts.append(_table(tool.result))
    return "\n".join(parts)


def _dialects(facts: Catalogue) -> Iterator[str]:
    yield (
        "## Published dialects\n\nTwo published descriptions of a format that Claude Code does not write. "
        "Tools were built from them, so such files exist and are read.\n"
    )
    for dialect, envelope in facts.envelopes.items():
        if dialect == "claude":
            continue
        yield f"### `{dialect}`\n\nEnvelope:\n\n{_table(envelope)}"
        same = groupby(facts.kinds(dialect), key=lambda entry: entry.fields)
        for fields, entries in same:
            names = ", ".join(f"`{entry.name}`" for entry in entries)
            yield f"{names}:\n\n{_table(fields)}" if fields else f"{names}: no other fields.\n"


def _enums(facts: Catalogue) -> str:
    rows = ((f"`{name}`", ", ".join(f"`{value}`" for value in values)) for name, values in facts.enums.items())
    return "## Known values\n\n" + _rows(("field", "values"), rows)


def _table(fields: Fields) -> str:
    found = list(_flat(fields, ""))
    rows = [(f"`{path}`", _types(field), _presence(field)) for path, field in found]
    if not any(field.versions for _, field in found):
        return _rows(("field", "type", ""), rows)
    dated = ((*row, _when(field)) for row, (_, field) in zip(rows, found, strict=True))
    return _rows(("field", "type", "", "versions"), dated)


def _presence(field: Field) -> str:
    return "" if field.optional else "always"


def _flat(fields: Fields, prefix: str) -> Iterator[tuple[str, Field]]:
    for name, field in fields.items():
        path = f"{prefix}{name}"
        yield path, field
        yield from _flat(field.sub, f"{path}.")
        yield from _flat(field.items, f"{path}[].")
        yield from _flat(field.values, f"{path}{{}}.")


def _types(field: Field) -> str:
    if not field.types:
        return "-"
    shown = [f"arr of {' or '.join(field.of)}" if t == "arr" and field.of else t for t in field.types]
    link = {"blocks": " (blocks)", "usage": " (usage)", "tools": " (by tool)"}.get(field.ref, "")
    return " or ".join(shown) + link


def _when(field: Field) -> str:
    return _range(field.versions) + (" (claimed)" if field.claimed else "")


def _range(versions: tuple[str, ...]) -> str:
    if not versions:
        return "-"
    return versions[0] if versions[0] == versions[-1] else f"{versions[0]} to {versions[-1]}"


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: list[str]) -> int:
    """Write the page, or check whether it is up to date."""
    text = build(catalogue())
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in arguments:
        print(f"{PAGE} is out of date; run tools/make_format_docs.py")
        return 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
