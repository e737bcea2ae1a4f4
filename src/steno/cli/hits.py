"""What a search found, for people and for programs: sessions, and in them the words in place."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from steno.cli.marked import marked_lines
from steno.cli.names import Names, argument, encodable, text_of
from steno.cli.screen import Screen
from steno.cli.table import Column, layout
from steno.index.scan import path_from
from steno.index.search.excerpts import Excerpt, excerpt_of
from steno.index.search.grouping import Group, groups_of
from steno.index.search.language import FILTERS, Query
from steno.index.search.reader import Reader, Text, offset_of
from steno.index.state import SHIFT
from steno.report import clock, words
from steno.safe.terminal import Bit, Line, cut, one_line, pad, width, wrap

if TYPE_CHECKING:
    from steno.index.opened import Index
    from steno.index.search.finder import Finder, Found
    from steno.index.search.grep import Pattern

__all__ = ["Hits", "at"]

_UUID: Final = 8
_WHERE: Final = 8
_KIND: Final = 10
_ROWS: Final = 2
_WIDE: Final = 100
_TITLE: Final = 24
_NAME: Final = 30
_PATH: Final = re.compile(r"(?:/|[A-Za-z]:\\)\S{1,300}")
_LOST: Final = {
    "gone": "(the file is gone and not in the archive: the words cannot be shown)",
    "changed": "(the record is not what was indexed: `steno sync`, or the file was changed)",
}
_UNTYPED: Final = "(its path cannot be typed; --json has it)"
_Shown = tuple[Text, Excerpt | None]


class Hits:
    """What was found, and how to tell it."""

    def __init__(
        self,
        index: "Index",
        finder: "Finder",
        found: "Found",
        pattern: "Pattern | None",
        where: str,
    ) -> None:
        self.total = len(found.messages)
        self.wide = found.wide
        self._connection = index.connection
        self._finder = finder
        self._found = found
        self._pattern = pattern
        self._where = where
        self._complete = index.report is not None
        self._first: tuple[Group, Text] | None = None

    @cached_property
    def groups(self) -> list[Group]:
        """The sessions."""
        return groups_of(self._connection, self._found.messages)

    @cached_property
    def _names(self) -> Names:
        statement = "SELECT f.path FROM sessions s JOIN files f ON f.id = s.file WHERE s.agent = ''"
        return Names(path_from(path) for (path,) in self._connection.execute(statement))

    @cached_property
    def _searched(self) -> int:
        statement = "SELECT count(*) FROM sessions WHERE agent = ''"
        return int(self._connection.execute(statement).fetchone()[0])

    @cached_property
    def _unread(self) -> int:
        statement = "SELECT sum(size - done) FROM files WHERE gone IS NULL AND size > done"
        return int(self._connection.execute(statement).fetchone()[0] or 0)

    def _some(self, limit: int) -> list[Group]:
        return self.groups[:limit] if limit else self.groups

    def left_out(self, limit: int) -> str:
        """Say that the limit left sessions out; nothing when it did not."""
        if not limit or len(self.groups) <= limit:
            return ""
        return f"{limit:,} of {len(self.groups):,} sessions; --limit 0 shows all"

    # The words themselves

    def _shown(self, reader: Reader, group: Group, each: int) -> Iterator[_Shown]:
        pattern = self._pattern.spans if self._pattern else None
        messages = group.messages[:each] if each else group.messages
        for text in reader.texts(messages):
            found, cutting = self._found, self._finder.cut
            excerpt = excerpt_of(text, found.wanted, found.scope, cutting, pattern)
            if excerpt is None and not text.lost:
                text.lost = "changed"
            yield text, excerpt

    def lines(self, limit: int, each: int, columns: int) -> Iterator[Line]:
        """Yield everything: the sum, then each session with its first hits."""
        yield self._head(columns)
        with Reader(self._connection) as reader:
            for group in self._some(limit):
                yield []
                shown = list(self._shown(reader, group, each))
                archived = any(text.archived for text, _ in shown)
                yield self._title(group, columns, archived=archived)
                first = next((text for text, _ in shown if not text.lost), None)
                if self._first is None and first is not None:
                    self._first = group, first
                if first is not None and self._again(group, first) != self._short(group):
                    yield [("  " + (self._way_in(group, first) or _UNTYPED), "dim")]
                for text, excerpt in shown:
                    yield from self._hit(group, text, excerpt, columns)
                more = len(group.messages) - len(shown)
                if more > 0:
                    yield [(f"  {more:,} more in this session", "dim")]

    def _head(self, columns: int) -> Line:
        hits, found = words.count(self.total, "hit"), len(self.groups)
        said = f"{hits} in {words.count(found, 'session')}"
        rest = f"  of {self._searched:,}" if self._searched > found else ""
        if self.wide:
            rest += ", inside longer words"
        if self._unread:
            rest += f", {words.size(self._unread)} not read yet (--audit)"
        return [(said, "bold"), (cut(rest, columns - width(said)), "dim")]

    def _title(self, group: Group, columns: int, *, archived: bool) -> Line:
        short = one_line(self._short(group), columns // 2)
        state = "archived only" if archived else "gone" if group.gone else ""
        about = [one_line(words.project_name(group.project), 16), state, _day(group.ended)]
        about.append(words.count(len(group.messages), "hit"))
        while True:
            right = "  ".join(part for part in about if part)
            room = columns - width(short) - width(right) - 4
            if room >= _TITLE or len(about) == 1:
                break
            about.pop(0)
        title = one_line(group.title, max(room, 1)) or "(no title)"
        return [(short, "bold"), "  ", pad(title, max(room, 1)), ("  " + right, "dim")]

    def _hit(
        self, group: Group, text: Text, excerpt: Excerpt | None, columns: int
    ) -> Iterator[Line]:
        agent = group.agents.get(text.message >> SHIFT, "")
        where = agent[: _WHERE - 1] if agent else _when(group, text)
        kind, style = _kind(excerpt)
        gutter: list[Bit] = [
            "  ",
            (pad(one_line(where), _WHERE), "magenta" if agent else "dim"),
            (pad(one_line(kind), _KIND), style),
        ]
        if columns >= _WIDE:
            gutter.insert(1, (pad(one_line(text.uuid[:_UUID]), _UUID + 2), "dim"))
        indent = sum(width(bit if isinstance(bit, str) else bit[0]) for bit in gutter)
        if excerpt is None:
            yield [*gutter, (one_line(_LOST[text.lost or "changed"], columns - indent), "dim")]
            return
        lines = marked_lines(excerpt, columns - indent, _ROWS, _file_of(excerpt))
        for place, line in enumerate(lines):
            yield [*(gutter if not place else [" " * indent]), *line]

    # Sessions

    def session_lines(self, limit: int, columns: int) -> Iterator[Line]:
        """Yield one line for each session."""
        groups = self._some(limit)
        if not groups:
            return
        table = [
            Column("ID", [one_line(self._short(group)) for group in groups], "bold"),
            Column(
                "SESSION",
                [one_line(group.title, 200) or "(no title)" for group in groups],
                flexible=True,
            ),
            Column(
                "PROJECT",
                [one_line(words.project_name(group.project), 40) for group in groups],
                most=16,
                needs=16,
            ),
            Column("HITS", [f"{len(group.messages):,}" for group in groups], right=True),
            Column("LAST", [_day(group.ended) for group in groups], right=True),
        ]
        heads, rows = layout(table, columns)
        yield heads
        yield from rows

    def _short(self, group: Group) -> str:
        """Return as few letters of its file's name as tell it from the others, as `ls` does."""
        return self._names.short(group.path) if group.found else group.id[:_UUID]

    def _again(self, group: Group, text: Text | None) -> str:
        """Return what names it in another command: the short name, or its path."""
        file = text.message >> SHIFT if text is not None else 0
        # There may be copies of a session under other names, and the message in one of them only.
        own = file in group.files and file not in group.agents
        return self._names.again(group.files[file] if own else group.path)

    def _way_in(self, group: Group, text: Text | None) -> str | None:
        """Return the command that opens it, at a message if there is one."""
        name = argument(self._again(group, text))
        there = at(group, text) if text is not None else ""
        return None if None in (name, there) else f"steno show{self._where} {name}{there}"

    # Around

    def nothing(self, query: Query, columns: int) -> Iterator[Line]:
        """Yield what to say when nothing was found."""
        said = f"Nothing found in {words.count(self._searched, 'session')}"
        why = self._found.scope.empty
        told = one_line(f"{said}: {why}." if why else f"{said}.", columns * 4)
        for line in wrap(told, columns):
            yield [line]
        names = [
            word.text.partition(":")[0]
            for group in query.wanted
            for word in group
            if not word.quoted and word.text.partition(":")[2][:1] not in ("", "/", ":")
        ]
        if names:
            known = f"{one_line(names[0], 20)}: is no filter. There are {', '.join(FILTERS)}."
            yield [(one_line(known, columns), "dim")]

    def finish(self, screen: Screen, limit: int) -> None:
        """Write what was left out, and to people what they may do next."""
        left = self.left_out(limit)
        if left and not screen.tty:
            screen.lines([[], [left]])
        if not screen.tty:
            return
        group, text = self._first or (self.groups[0] if self.groups else None, None)
        step = self._way_in(group, text) if group is not None else None
        screen.next_steps([step] if step else [], f"{left}." if left else "")

    # Programs

    def as_json(self, limit: int, each: int) -> list[dict[str, Any]]:
        """Return the hits for programs."""
        with Reader(self._connection) as reader:
            return [
                _hit_json(group, text, excerpt) | {"complete": self._complete}
                for group in self._some(limit)
                for text, excerpt in self._shown(reader, group, each)
            ]

    def sums(self) -> dict[str, Any]:
        """Return the numbers for programs."""
        return {
            "hits": self.total,
            "sessions": len(self.groups),
            "wide": self.wide,
            "complete": self._complete,
        }

    def sessions_json(self, limit: int) -> list[dict[str, Any]]:
        """Return the sessions for programs."""
        return [
            {
                "session": group.id,
                "path": text_of(group.path),
                "title": group.title,
                "project": group.project,
                "branch": group.branch,
                "ended": _iso(group.ended),
                "gone": group.gone,
                "hits": len(group.messages),
                "complete": self._complete,
            }
            for group in self._some(limit)
        ]


def _hit_json(group: Group, text: Text, excerpt: Excerpt | None) -> dict[str, Any]:
    return {
        "session": group.id,
        "agent": group.agents.get(text.message >> SHIFT),
        "title": group.title,
        "project": group.project,
        "path": text_of(group.files.get(text.message >> SHIFT, "")),
        "uuid": text.uuid or None,
        "offset": offset_of(text.message),
        "length": text.length,
        "turn": text.turn,
        "time": _iso(text.time),
        "kind": excerpt.part.kind if excerpt else None,
        "tool": (excerpt.part.tool or None) if excerpt else None,
        "failed": excerpt.part.failed if excerpt else None,
        "excerpt": encodable(excerpt.text) if excerpt else None,
        "start": excerpt.start if excerpt else None,
        "highlights": [list(mark) for mark in excerpt.marks] if excerpt else [],
        "lost": text.lost or None,
        "archived": text.archived,
    }


def _when(group: Group, text: Text) -> str:
    """Return the turn; where turns were taken back, the time of day."""
    if group.rewound:
        return words.clock(text.time / 1000) if text.time else ""
    return f"turn {text.turn}" if text.turn else ""


def at(group: Group, text: Text) -> str | None:
    """Return the options that open a session at a message; None if they cannot be typed."""
    if text.uuid.replace("-", "").isalnum():
        return f" --at {text.uuid[:_UUID]}"
    byte = f" --at {offset_of(text.message)}"
    agent = group.agents.get(text.message >> SHIFT)
    if not agent:
        return byte
    # The name of its file, which no id can turn into an option.
    name = argument(f"agent-{agent}" if agent.startswith("-") else agent)
    return None if name is None else f" --agent {name}{byte}"


def _kind(excerpt: Excerpt | None) -> tuple[str, str]:
    if excerpt is None:
        return "", "dim"
    part = excerpt.part
    name = part.tool if part.kind == "input" and part.tool else part.kind
    return cut(name, _KIND - 1), "red" if part.failed else "dim"


def _file_of(excerpt: Excerpt) -> str:
    """Return the name of the file that a tool is used on, where the excerpt does not show it."""
    first = excerpt.part.text[: excerpt.start].partition("\n")[0]
    if excerpt.part.kind != "input" or not _PATH.fullmatch(first):
        return ""
    return one_line(first.replace("\\", "/").rpartition("/")[2], _NAME) + "  "


def _iso(millis: int | None) -> str | None:
    return clock.iso(millis / 1000) if millis else None


def _day(millis: int | None) -> str:
    if not millis:
        return ""
    try:
        return f"{words.day(millis / 1000, clock.now())} {words.clock(millis / 1000)}"
    except (ValueError, OverflowError, OSError):
        return ""
