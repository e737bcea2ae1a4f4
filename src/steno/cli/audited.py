"""`steno search --audit`: every byte of every file, searched or not, and why."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from steno.cli.names import text_of
from steno.cli.progress import Progress
from steno.cli.screen import Screen, write_json
from steno.index.search.audit import REASONS, Account, audit
from steno.report import words
from steno.safe.terminal import Line, one_line, width, wrap

if TYPE_CHECKING:
    from steno.index.opened import Index

__all__ = ["audited"]

_LISTED: Final = 20
_GUTTER: Final = 40
_READABLE: Final = 24
_INDENT: Final = 6
_WORTH: Final = ("unread", "unreadable", "missing", "gone")


def audited(index: "Index", screen: Screen, *, as_json: bool) -> None:
    """Count everything, and tell it."""
    (total,) = index.connection.execute("SELECT sum(max(size, 0)) FROM files").fetchone()
    with Progress(total or 0, "Auditing") as bar:
        accounts = list(audit(index.connection, index.texts, bar.add))
    if as_json:
        write_json(_json(accounts) | {"complete": index.report is not None})
    else:
        screen.lines(_lines(accounts, screen.width))


def _sums(accounts: list[Account]) -> tuple[Counter[str], Counter[str]]:
    sizes: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for account in accounts:
        sizes.update(account.bytes)
        records.update(account.records)
    return sizes, records


def _lines(accounts: list[Account], columns: int) -> Iterator[Line]:
    sizes, records = _sums(accounts)
    total = sum(account.size for account in accounts)
    counted = sum(sizes.values())
    said = f"{words.count(len(accounts), 'file')}, {total:,} bytes"
    whole = "every byte accounted for" if counted == total else f"{total - counted:,} bytes unknown"
    if width(said) + width(whole) + 2 <= columns:
        yield [(said, "bold"), f"  {whole}"]
    else:
        yield [(said, "bold")]
        yield [whole]
    yield []
    yield [(f"{'BYTES':>15}  {'RECORDS':>9}", "dim")]
    for name, meaning in REASONS.items():
        if sizes[name] or name == "words":
            count = f"{records[name]:,}" if records[name] else ""
            shown = f"{sizes[name]:>15,}  {count:>9}  "
            named = (f"{name:<10}  ", "yellow" if name in _WORTH else "")
            yield from _explained([shown, named], meaning, columns)
    documents = sum(account.documents for account in accounts)
    indexed = sum(account.indexed for account in accounts)
    yield []
    texts = f"{words.count(indexed, 'text')} in the index"
    if documents == indexed and not any(account.odd for account in accounts):
        said, style = f"{texts}, as many as the files hold", ""
    else:
        said, style = f"{texts}, {documents:,} in the files", "red"
    for line in wrap(said, columns):
        yield [(line, style)]
    yield from _worth_a_look(accounts, columns)


def _explained(row: Line, meaning: str, columns: int) -> Iterator[Line]:
    """Yield a row with what it means beside it, or below where the screen is too narrow."""
    if columns - _GUTTER < _READABLE:
        yield row
        yield from ([" " * _INDENT, (line, "dim")] for line in wrap(meaning, columns - _INDENT))
        return
    first, *more = wrap(meaning, columns - _GUTTER)
    yield [*row, (first, "dim")]
    yield from ([" " * _GUTTER, (line, "dim")] for line in more)


def _worth_a_look(accounts: list[Account], columns: int) -> Iterator[Line]:
    """Yield the files of which not all that could be searched is."""
    lacking = [account for account in accounts if not account.is_whole]
    if lacking:
        yield []
        yield [(f"{words.count(len(lacking), 'file')} not searched in full", "bold")]
    for account in lacking[:_LISTED]:
        why = [f"{account.bytes[name]:,} {name}" for name in _WORTH if account.bytes[name]]
        if account.documents != account.indexed:
            why.append(f"{account.indexed:,} of {account.documents:,} texts")
        yield [("  " + one_line(", ".join(why), columns - 2), "yellow")]
        yield ["    ", one_line(account.path, columns - 4)]
    if len(lacking) > _LISTED:
        yield [(f"  and {len(lacking) - _LISTED:,} more; --json lists all", "dim")]


def _json(accounts: list[Account]) -> dict[str, Any]:
    sizes, records = _sums(accounts)
    return {
        "files": len(accounts),
        "size": sum(account.size for account in accounts),
        "bytes": {name: sizes[name] for name in REASONS},
        "records": {name: records[name] for name in REASONS},
        "documents": sum(account.documents for account in accounts),
        "indexed": sum(account.indexed for account in accounts),
        "reasons": REASONS,
        "by_file": [
            {
                "path": text_of(account.path),
                "size": account.size,
                "gone": account.gone,
                "bytes": {name: size for name, size in account.bytes.items() if size},
                "records": {name: count for name, count in account.records.items() if count},
                "documents": account.documents,
                "indexed": account.indexed,
                "whole": account.is_whole,
            }
            for account in accounts
        ],
    }
