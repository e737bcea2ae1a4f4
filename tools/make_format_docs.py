"""Write the format reference from the catalogue: `docs/reference/format.md`.

python tools/make_format_docs.py            write it
python tools/make_format_docs.py --check    exit 1 when it is out of date
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

A session is a file of lines, each one JSON object: a record. This page lists every kind of record
and every field that is known, with the JSON types it was seen with and the first and last client
version it was seen in. The list is open: new kinds and fields appear every few weeks, and one that
is not named here is read and kept like any other.

**Graph records** carry `uuid` and `parentUuid` and form the tree of the conversation.
**Side records** carry state beside it; of most of them the last one wins.

A kind is the record's `type`, and behind a slash what tells its sub-kinds apart: the content of a
`user` or `assistant` record, the `subtype` of a `system` record, the `type` of an attachment or of
a progress record's `data`, the `operation` of a queue operation.

In the tables, *always* means on every record of the kind within those versions; `a.b` is a field of
an object, `a[].b` of the objects in an array, `a{}.b` of the objects in a map with free keys.
A dash means that nobody wrote it down.
"""

USAGE: Final = (
    "`message.usage`: the same figures stand on every line of a response, to be counted once per `message.id`."
)
SECTIONS: Final = (
    ("user/", "User records", ""),
    ("assistant/", "Assistant records", "One line per content block; see `message.content`."),
    ("system", "System records", ""),
    ("attachment/", "Attachments", "Reminders, files and hook output, as links of the chain."),
    ("progress/", "Progress records", "Written by 2.1.12 to 2.1.81."),
    ("", "Side records", ""),
)


def build(facts: Catalogue) -> str:
    """Return the whole page."""
    parts = [INTRO, _versions(facts), _envelope(facts), *_records(facts), *_blocks(facts)]
    parts.append(f"## Usage\n\n{USAGE}\n\n{_table(facts.usage)}")
    parts += [*_tools(facts), *_dialects(facts), _enums(facts)]
    return "\n".join(parts)


_USAGE: Final = "The same figures stand on every line of a response: count them once per message id."


def _versions(facts: Catalogue) -> str:
    known = facts.client_versions
    return (
        "## Client versions\n\n"
        f"- Driven in scripted scenarios: {', '.join(known.driven)}.\n"
        f"- Met in published sessions: {' to '.join(known.surveyed)}.\n"
        f"- Told by others, not examined here (*claimed*): {' to '.join(known.claimed)}.\n"
    )


def _envelope(facts: Catalogue) -> str:
    table = _table(facts.envelopes["claude"])
    return f"## The envelope\n\nOn every graph record, beside the fields of its kind.\n\n{table}"


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
    yield "## Content blocks\n\nWhat `message.content` is made of when it is no plain string.\n"
    for name, block in facts.blocks.items():
        seen = "Claimed." if block.claimed else f"Seen in {_range(block.seen)}."
        yield f"### Block `{name}`\n\n{seen}\n\n{_table(block.fields)}"


def _tools(facts: Catalogue) -> Iterator[str]:
    yield (
        "## Tools\n\nThe `input` of a `tool_use` block, and the `toolUseResult` that the record of "
        "its result carries: an object, a string when the call failed, or an array.\n"
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
        "## Published dialects\n\nTwo published descriptions of the format that no client writes. "
        "Tools were built from them, so files in them exist and are read.\n"
    )
    for dialect, envelope in facts.envelopes.items():
        if dialect == "claude":
            continue
        yield f"### `{dialect}`\n\nEnvelope:\n\n{_table(envelope)}"
        same = groupby(facts.kinds(dialect), key=lambda entry: entry.fields)
        for fields, entries in same:
            names = ", ".join(f"`{entry.name}`" for entry in entries)
            yield f"{names}:\n\n{_table(fields)}" if fields else f"{names}: nothing else.\n"


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
    """Write the page, or with `--check` say whether it is out of date."""
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
