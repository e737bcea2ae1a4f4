"""The table of the benchmarks: one row per promise."""

from typing import NotRequired, TypedDict


class Row(TypedDict):
    """One row of the table."""

    what: str
    value: float | None
    """None if it could not be measured; `detail` contains the reason."""
    limit: float | None
    """None if there is no limit."""
    detail: str
    least: NotRequired[bool]
    """Whether the limit is a minimum instead of a maximum."""


def row(what: str, value: float | None, limit: float | None, detail: str) -> Row:
    """Return a row whose value must not exceed the limit."""
    rounded = None if value is None else round(value, 2)
    return {"what": what, "value": rounded, "limit": limit, "detail": detail}


def at_least(what: str, value: float | None, limit: float, detail: str) -> Row:
    """Return a row whose value must not be below the limit."""
    made = row(what, value, limit, detail)
    made["least"] = True
    return made


def passed(each: Row) -> bool:
    """Return whether the limit is violated."""
    value, limit = each["value"], each["limit"]
    if value is None or limit is None:
        return False
    return value < limit if each.get("least") else value > limit


def show(rows: list[Row]) -> None:
    """Print the table."""
    for each in rows:
        value, limit = each["value"], each["limit"]
        mark = "--  " if value is None else "OVER" if passed(each) else "ok  "
        sign = " " if limit is None else "≥" if each.get("least") else "≤"
        number = "" if value is None else value
        print(f"{mark} {number:>8} {sign} {'' if limit is None else limit:<6} {each['what']}  ({each['detail']})")
