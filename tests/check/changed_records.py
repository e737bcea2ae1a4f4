"""Sessions with their records changed by hand, and what one family of rules says about them."""

from collections.abc import Callable
from typing import Any

from tests.builders import Session

from steno.check.checkup import check
from steno.check.findings import Finding
from steno.format.encode import encode_line
from steno.format.lines import LINE_CAP
from steno.format.source import BytesSource

__all__ = ["changed", "found", "named"]


def found(made: Session | bytes, family: str, *, cap: int = LINE_CAP) -> list[Finding]:
    """Return what a family finds, in the order of the file."""
    data = made if isinstance(made, bytes) else made.bytes()
    evidence = check(BytesSource(data), name="aaaaaaaa-0000-4000-8000-000000000001", cap=cap)
    return [each for each in evidence.findings if each.id.startswith(f"{family}.")]


def named(made: Session | bytes, family: str, *, cap: int = LINE_CAP) -> list[tuple[str, str]]:
    """Return the same as (name without the family, severity)."""
    return [(each.id.removeprefix(f"{family}."), each.severity) for each in found(made, family, cap=cap)]


def changed(made: Session, change: Callable[[list[dict[str, Any]]], object]) -> bytes:
    """Return a session's file after its records were changed in place."""
    records = made.records()
    change(records)
    return b"".join(encode_line(record) for record in records)
