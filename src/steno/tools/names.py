"""The names of the tools that work on files, and what makes them."""

from steno.tools.base import Tool

__all__ = ["file_tools"]


def file_tools() -> list[Tool]:
    """Return the tools that read, search and write files, in the order in which a model sees them."""
    from steno.tools.edit import Edit, MultiEdit
    from steno.tools.glob import Glob
    from steno.tools.grep import Grep
    from steno.tools.notebook import NotebookEdit
    from steno.tools.read import Read
    from steno.tools.write import Write

    return [Glob(), Grep(), Read(), Edit(), MultiEdit(), Write(), NotebookEdit()]
