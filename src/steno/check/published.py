"""Forms that published descriptions of the format have and no client writes, outside the dialects."""

from typing import Final

__all__ = ["FORMS", "PAGE"]

PAGE: Final = "docs/reference/published-descriptions.md"
"""The page that compares the descriptions with the clients."""
FORMS: Final = {
    "queue-operation/complete": (
        "in the description of 2.1.42 (OpenContext); clients write enqueue, dequeue, remove, popAll"
    ),
    "system/error": "in the description of 2.0.76 (frago); clients write system/api_error",
}
"""Kinds of record, and what clients write instead."""
