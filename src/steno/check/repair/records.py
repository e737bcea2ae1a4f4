"""What stages read from records, and what the records that a repair adds have in common."""

from typing import Any, Final

from steno.check.repair.edits import Drafts
from steno.format.values import as_list, as_object
from steno.session.nodes import Node

__all__ = ["envelope_of", "message_of", "objects_in"]

_SHARED: Final = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")


def envelope_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a new record shares with one beside it."""
    return {key: fields[key] for key in _SHARED if key in fields}


def message_of(drafts: Drafts, node: Node) -> dict[str, Any]:
    """Return a record's message as it stands in the draft; an empty one if it has none."""
    return as_object(drafts.fields(node).get("message")) or {}


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, such as the blocks of a message's content."""
    return [fields for item in as_list(value) or () if (fields := as_object(item)) is not None]
