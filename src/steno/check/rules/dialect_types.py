"""The types and subtypes of records that each published description gives."""

from typing import Any, Final

from steno.check.findings import Rule
from steno.check.published import PAGE
from steno.format.catalogue import catalogue
from steno.format.dialects.names import Dialect

__all__ = ["UNKNOWN", "unknown_type"]

UNKNOWN: Final = Rule(
    "dialect.unknown-type",
    "info",
    "a record has a type or subtype that the description does not give",
    "a record of an unknown type is left as it is, and one of an unknown subtype read by its type",
    "000 has the types user, assistant, system and compact_system, subtypes of assistant (response, "
    "tool_use, thinking, command, error) and of system (tool_result, error, meta); 004 has the "
    "types human, assistant, tool_result, compact_prelude and compact_recap, and subtypes of any "
    "name. Types and subtypes of the real client are known, too. It is said once per name.",
    docs=PAGE,
)
_KINDS: Final[dict[str, dict[str, frozenset[str] | None]]] = {
    "spec-000": {
        "user": frozenset(),
        "assistant": frozenset(("response", "tool_use", "thinking", "command", "error")),
        "system": frozenset(("tool_result", "error", "meta")),
        "compact_system": frozenset(),
    },
    "spec-004": dict.fromkeys(
        ("human", "assistant", "tool_result", "compact_prelude", "compact_recap"), None
    ),
}
"""The types of each description with their subtypes; None where it gives no names of subtypes."""


def unknown_type(fields: dict[str, Any], form: Dialect) -> str:
    """Return the type or subtype of a record that neither its description nor the client has."""
    kind: Any = fields.get("type")
    subtype: Any = fields.get("subtype") or ""
    if form == "claude" or not isinstance(kind, str) or not kind:
        return ""
    types = _KINDS[form]
    name = f"type {kind!r}"
    if kind in types and isinstance(subtype, str):
        known = types[kind]
        if not subtype or known is None or subtype in known:
            return ""
        name = f"subtype {subtype!r} of {kind}"
    return "" if _is_clients(kind, subtype) else name


def _is_clients(kind: str, subtype: Any) -> bool:
    """Whether the real client writes records of a type and subtype."""
    known = catalogue().records["claude"]
    if kind in known:
        return not subtype
    if not subtype:
        return any(name.startswith(f"{kind}/") for name in known)
    return f"{kind}/{subtype}" in known
