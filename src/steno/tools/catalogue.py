"""The specs of steno's own tools, with their facts from `steno.format.tool_catalogue`.

The facts themselves stand in `format`, because `session`, `report`, `guard` and `web` need them too
and may not import `tools`. A tool adds what only it knows: its description and its schema.
"""

from typing import Any

from steno.format.tool_catalogue import TOOLS, older_names
from steno.tools.base import Spec

__all__ = ["own_spec"]


def own_spec(name: str, *, description: str, schema: dict[str, Any]) -> Spec:
    """Return the spec of a tool.

    Raises:
        KeyError: the catalogue has no tool of that name.
    """
    facts = TOOLS[name]
    return Spec(
        name=facts.name,
        description=description,
        schema=schema,
        reads_only=facts.reads_only,
        aliases=older_names(name),
    )
