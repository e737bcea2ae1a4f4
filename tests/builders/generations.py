"""What each version of the real client writes: the habits a reader has to know.

Each `Generation` was observed in the version it is named after; a version in between writes like
the newest generation not younger than it.
"""

from typing import Final, Literal

import msgspec

__all__ = ["GENERATIONS", "Generation", "generation"]


class Generation(msgspec.Struct, frozen=True):
    """The habits of one version."""

    version: str
    model: str
    small_model: str
    # The envelope (cwd, sessionId, …) stands behind the body instead of before it.
    tail: bool = False
    # Which lines of a response carry its true stop_reason and usage.
    final: Literal["last", "never", "all"] = "last"
    # A result hangs on its own tool_use line instead of on the record before.
    tree: bool = False
    # Hooks and running commands leave `progress` records.
    progress: bool = False
    # Reminders are written as `attachment` records, from 2.1.325 on with their rendered text.
    attachments: bool = False
    rendered: bool = False
    # Where sub-agents are recorded, and the tool that starts them.
    layout: Literal["inline", "beside", "folder"] = "folder"
    agent_tool: str = "Task"
    agent_digits: int = 7
    # A plan name on every record, from the first tool result on.
    early_slug: bool = False
    # The terminal client writes `file-history-snapshot`.
    snapshots: bool = True
    # `message` starts with the model's name instead of the id.
    model_first: bool = True
    # Read numbers its lines `1⇥text` instead of `     1→text`.
    tabbed: bool = False

    @property
    def latest(self) -> bool:
        """Whether this is the newest generation, the one that writes requests and costs."""
        return self.rendered

    @property
    def order(self) -> tuple[int, ...]:
        """The version as numbers, to compare by."""
        return _numbers(self.version)


_SONNET: Final = "claude-sonnet-4-5-20250929"
_HAIKU: Final = "claude-haiku-4-5-20251001"

GENERATIONS: Final = (
    Generation(
        version="1.0.128",
        model="claude-sonnet-4-20250514",
        small_model="claude-3-5-haiku-20241022",
        layout="inline",
        snapshots=False,
        model_first=False,
    ),
    Generation(version="2.0.76", model=_SONNET, small_model=_HAIKU, layout="beside", early_slug=True),
    Generation(
        version="2.1.29", model=_SONNET, small_model=_HAIKU, final="never", tree=True, progress=True, early_slug=True
    ),
    Generation(
        version="2.1.42", model=_SONNET, small_model=_HAIKU, final="never", tree=True, progress=True, early_slug=True
    ),
    Generation(
        version="2.1.200",
        model="claude-opus-4-8",
        small_model=_HAIKU,
        tail=True,
        final="all",
        tree=True,
        attachments=True,
        agent_tool="Agent",
        agent_digits=17,
        tabbed=True,
    ),
    Generation(
        version="2.1.325",
        model="claude-opus-5-5",
        small_model=_HAIKU,
        tail=True,
        final="all",
        tree=True,
        attachments=True,
        rendered=True,
        agent_tool="Agent",
        agent_digits=17,
        tabbed=True,
    ),
)


def generation(version: str) -> Generation:
    """Return the habits of a version.

    >>> generation("2.1.237").version
    '2.1.200'
    """
    wanted = _numbers(version)
    fitting = [g for g in GENERATIONS if g.order <= wanted]
    return fitting[-1] if fitting else GENERATIONS[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
