"""Output styles: other ways for the agent to speak and work, in place of a part of its prompt.

Those in `output-styles/*.md` of the project and the user, and steno's own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from steno.agent.around_files import Note, markdown_files, read_text
from steno.agent.frontmatter import split
from steno.store.places import config_dir

__all__ = ["DEFAULT", "STYLES", "Style", "discover_styles", "pick_style", "read_style"]

_Origin: TypeAlias = Literal["built-in", "project", "user"]


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """A style."""

    name: str
    description: str = ""
    prompt: str = ""
    keeps_coding: bool = False
    """Whether the instructions for work on code stay beside it."""
    origin: _Origin = "user"
    path: str = ""


DEFAULT: Final = Style(
    name="default",
    description="Gets the task done, and says what was done in few words",
    keeps_coding=True,
    origin="built-in",
)
_EXPLANATORY: Final = """\
Besides doing the task, help the user understand the code base. Before or after a change that
shows something worth knowing, add two or three short points under the heading "Insight": why it is
done this way here, which pattern of this code it follows, what would have been the other choice.
Speak of this code and not of programming in general, and put the points in your answer, never in
the files.
"""
_LEARNING: Final = """\
The user wants to learn by doing. Where a part of the task needs a real decision (how an error is
treated, which structure holds the data, what a rule should be) and takes two to ten lines, prepare
everything around it, mark the place with `TODO(human)`, say what is to be decided and what speaks
for which choice, and ask the user to write it. Then wait. Have only one such place at a time, and
do routine parts yourself. When the user has written it, say one thing that is to be learned from
it.
"""
STYLES: Final = (
    DEFAULT,
    Style(
        name="Explanatory",
        description="Explains the choices it makes and the patterns it finds",
        prompt=_EXPLANATORY,
        keeps_coding=True,
        origin="built-in",
    ),
    Style(
        name="Learning",
        description="Leaves small, telling parts for you to write",
        prompt=_LEARNING,
        keeps_coding=True,
        origin="built-in",
    ),
)


def discover_styles(
    project: str, *, trusted: bool, env: Mapping[str, str] | None = None
) -> tuple[tuple[Style, ...], tuple[Note, ...]]:
    """Return all styles; the project's stands before the user's of that name, and steno's last."""
    notes: list[Note] = []
    places: list[tuple[Path, _Origin]] = [(Path(config_dir(env), "output-styles"), "user")]
    if trusted:
        places.insert(0, (Path(project, ".claude", "output-styles"), "project"))
    found: dict[str, Style] = {}
    for folder, origin in places:
        for path in markdown_files(folder):
            text = read_text(path, notes)
            if text is not None:
                style = read_style(text, path.stem, origin, str(path), notes)
                found.setdefault(style.name, style)
    for style in STYLES:
        found.setdefault(style.name, style)
    return tuple(found.values()), tuple(notes)


def read_style(
    text: str, stem: str, origin: _Origin = "user", path: str = "", notes: list[Note] | None = None
) -> Style:
    """Read a style's file; without a name in its head it goes by that of the file."""
    head, body = split(text)
    if notes is not None:
        notes.extend(Note(path, words) for words in head.notes)
    return Style(
        name=head.text("name").strip() or stem,
        description=head.text("description").strip(),
        prompt=body.strip(),
        keeps_coding=head.flag("keep-coding-instructions"),
        origin=origin,
        path=path,
    )


def pick_style(styles: tuple[Style, ...], name: str) -> Style | None:
    """Return the style of a name, the default for none; None when there is no such style."""
    if not name:
        return DEFAULT
    for same in (str, str.casefold):
        for style in styles:
            if same(style.name) == same(name):
                return style
    return None
