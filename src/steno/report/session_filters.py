"""SQL conditions for the filters of a list of sessions that no facet of the page counts."""

from typing import TYPE_CHECKING, Any

import msgspec

from steno.report.session_status import live_sql, state_sql

if TYPE_CHECKING:
    from steno.report.listing import Choice

__all__ = ["conditions_of"]


def conditions_of(choice: "Choice") -> tuple[list[str], list[Any]]:
    """Return the conditions on a row `s` of `sessions`, and the values that they bind."""
    where: list[str] = []
    values: list[Any] = []
    if choice.projects is not None:
        where.append("s.project IN (SELECT value FROM json_each(?))")
        values.append(msgspec.json.encode(choice.projects).decode())
    if choice.until is not None:
        where.append("s.ended < ?")
        values.append(choice.until)
    if choice.state is not None:
        where.append(f"{state_sql(choice.now)} = '{choice.state}'")
    if choice.live is not None:
        live = f"({live_sql(choice.now)} AND s.gone IS NULL)"
        where.append(f"coalesce({live}, 0) = {int(choice.live)}")
    if choice.min_turns:
        where.append("s.turns >= ?")
        values.append(choice.min_turns)
    if choice.dialect is not None:
        where.append("s.dialect = ?")
        values.append(choice.dialect)
    return where, values
