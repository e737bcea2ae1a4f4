"""Search results as lines and JSON: sessions, highlighted excerpts, and the audit of searched bytes."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from steno.cli.command_arguments import program_name
from steno.cli.output.progress import ProgressBar
from steno.cli.output.screen import Screen, write_json
from steno.cli.output.table_layout import Column, layout_columns
from steno.format.paths import SHORT_ID_LENGTH
from steno.index.search.audit import AUDIT_REASONS, FileAudit, audit_index
from steno.index.search.finder import HitGroup, group_hits
from steno.index.search.hit_text import Excerpt, HitReader, HitText, best_excerpt, message_offset
from steno.index.search.query_parser import FILTERS, Query
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.scan import path_from_column
from steno.report import clock, humanize
from steno.report.session_references import SessionReferences, json_encodable, printable_path, shell_argument
from steno.sanitize.terminal import StyledLine, StyledText, clean, display_width, one_line, pad, truncate, wrap
from steno.store import environment

if TYPE_CHECKING:
    from steno.index.database import SessionIndex
    from steno.index.search.finder import Finder, SearchResult
    from steno.index.search.hit_text import RegexPattern


_WHITESPACE: Final = re.compile(r"\s+")
_HIGHLIGHT_STYLE: Final = "bold yellow"
_ELLIPSIS: Final = "…"


def highlighted_lines(excerpt: Excerpt, columns: int, rows: int, prefix: str = "") -> Iterator[StyledLine]:
    """Yield an excerpt on at most `rows` lines, with control characters made visible."""
    text, highlights = _flatten_excerpt(excerpt, prefix)
    columns = max(columns, 8)
    position = 0
    for row in range(rows):
        if position >= len(text):
            break
        last = row == rows - 1
        end = _line_end(text, position, columns - last)
        is_cut = last and (end < len(text) or not excerpt.is_at_end)
        yield _highlighted_line(text, highlights, position, end, _ELLIPSIS if is_cut else "")
        position = end
        while position < len(text) and text[position] == " ":
            position += 1


def _flatten_excerpt(excerpt: Excerpt, prefix: str) -> tuple[str, list[bool]]:
    """Return the excerpt as one safe line, and for each character whether it is highlighted."""
    text = prefix or ("" if excerpt.is_at_start else _ELLIPSIS)
    highlights = [False] * len(text)
    position = 0
    for start, end in [*excerpt.marks, (len(excerpt.text), len(excerpt.text))]:
        for piece, is_highlighted in ((excerpt.text[position:start], False), (excerpt.text[start:end], True)):
            visible = clean(_WHITESPACE.sub(" ", piece))
            if visible.startswith(" ") and (not text or text.endswith(" ")):
                visible = visible[1:]
            text += visible
            highlights += [is_highlighted] * len(visible)
        position = end
    return text, highlights


def _line_end(text: str, start: int, columns: int) -> int:
    """Return the end of a line of `columns` columns, at a word boundary if possible."""
    end = min(len(text), start + columns)
    while end > start + 1 and display_width(text[start:end]) > columns:
        end -= 1
    if end < len(text) and text[end] != " ":
        space = text.rfind(" ", start, end)
        if space > start + columns // 2:
            return space
    return end


def _highlighted_line(text: str, highlights: list[bool], first: int, end: int, suffix: str) -> StyledLine:
    line: StyledLine = []
    start = first
    for index in range(first, end + 1):
        if index == end or highlights[index] != highlights[start]:
            if index > start:
                piece = text[start:index]
                line.append((piece, _HIGHLIGHT_STYLE) if highlights[start] else piece)
            start = index
    return [*line, suffix] if suffix else line


_LOCATION_WIDTH: Final = 8
_KIND_WIDTH: Final = 10
_MAX_EXCERPT_LINES: Final = 2
_WIDE_SCREEN: Final = 100
_MIN_TITLE_WIDTH: Final = 24
_MAX_FILE_NAME_WIDTH: Final = 30
_PATH_PATTERN: Final = re.compile(r"(?:/|[A-Za-z]:\\)\S{1,300}")
_LOSS_MESSAGES: Final = {
    "gone": "(text not available: the file was deleted and not archived)",
    "changed": "(text not available: the file changed; run `steno sync`)",
}
_UNTYPABLE_PATH: Final = "(path has special characters; use --json)"
_VisibleHit = tuple[HitText, Excerpt | None]


class SearchResults:
    """Results of a search, as lines and as JSON."""

    def __init__(
        self,
        index: "SessionIndex",
        finder: "Finder",
        result: "SearchResult",
        pattern: "RegexPattern | None",
        root_arguments: str,
    ) -> None:
        self.total = len(result.messages)
        self.is_infix_match = result.is_widened
        self._connection = index.connection
        self._finder = finder
        self._result = result
        self._pattern = pattern
        self._root_arguments = root_arguments
        self._is_complete = index.report is not None
        self._first_hit: tuple[HitGroup, HitText] | None = None

    @cached_property
    def groups(self) -> list[HitGroup]:
        """Matches grouped by session."""
        return group_hits(self._connection, self._result.messages)

    @cached_property
    def _references(self) -> SessionReferences:
        statement = "SELECT f.path FROM sessions s JOIN files f ON f.id = s.file WHERE s.agent = ''"
        return SessionReferences(path_from_column(path) for (path,) in self._connection.execute(statement))

    @cached_property
    def _session_count(self) -> int:
        statement = "SELECT count(*) FROM sessions WHERE agent = ''"
        return int(self._connection.execute(statement).fetchone()[0])

    @cached_property
    def _unread_bytes(self) -> int:
        statement = "SELECT sum(size - done) FROM files WHERE gone IS NULL AND size > done"
        return int(self._connection.execute(statement).fetchone()[0] or 0)

    def _limited_groups(self, limit: int) -> list[HitGroup]:
        return self.groups[:limit] if limit else self.groups

    def limit_message(self, limit: int) -> str:
        """Return the message for a limited result; "" if nothing was omitted."""
        if not limit or len(self.groups) <= limit:
            return ""
        return f"showing {limit:,} of {len(self.groups):,} sessions; use --limit 0 to show all"

    # Matches

    def _visible_hits(self, reader: HitReader, group: HitGroup, hits_per_session: int) -> Iterator[_VisibleHit]:
        pattern = self._pattern.find_spans if self._pattern else None
        messages = group.messages[:hits_per_session] if hits_per_session else group.messages
        for text in reader.read_texts(messages):
            result, tokenizer = self._result, self._finder.tokenize
            excerpt = best_excerpt(text, result.query_forms, result.scope, tokenizer, pattern)
            if excerpt is None and not text.loss_reason:
                text.loss_reason = "changed"
            yield text, excerpt

    def lines(self, limit: int, hits_per_session: int, columns: int) -> Iterator[StyledLine]:
        """Yield a summary, then each session with its first matches."""
        yield self._summary_line(columns)
        with HitReader(self._connection) as reader:
            for group in self._limited_groups(limit):
                yield []
                visible = list(self._visible_hits(reader, group, hits_per_session))
                archived = any(text.archived for text, _ in visible)
                yield self._session_heading(group, columns, archived=archived)
                first = next((text for text, _ in visible if not text.loss_reason), None)
                if self._first_hit is None and first is not None:
                    self._first_hit = group, first
                if first is not None and self._session_reference(group, first) != self._short_id(group):
                    yield [("  " + (self._show_command(group, first) or _UNTYPABLE_PATH), "dim")]
                for text, excerpt in visible:
                    yield from self._hit_lines(group, text, excerpt, columns)
                remaining = len(group.messages) - len(visible)
                if remaining > 0:
                    yield [(f"  {remaining:,} more in this session", "dim")]

    def _summary_line(self, columns: int) -> StyledLine:
        hits_text, session_count = humanize.count(self.total, "match", "matches"), len(self.groups)
        text = f"{hits_text} in {humanize.count(session_count, 'session')}"
        details = f"  of {self._session_count:,}" if self._session_count > session_count else ""
        if self.is_infix_match:
            details += ", inside longer words"
        if self._unread_bytes:
            details += f", {humanize.size(self._unread_bytes)} not indexed yet (see --audit)"
        return [(text, "bold"), (truncate(details, columns - display_width(text)), "dim")]

    def _session_heading(self, group: HitGroup, columns: int, *, archived: bool) -> StyledLine:
        short = one_line(self._short_id(group), columns // 2)
        state = "archived only" if archived else "deleted" if group.gone else ""
        details = [one_line(humanize.project_name(group.project), 16), state, _day_and_time(group.ended)]
        details.append(humanize.count(len(group.messages), "match", "matches"))
        while True:
            right = "  ".join(part for part in details if part)
            available = columns - display_width(short) - display_width(right) - 4
            if available >= _MIN_TITLE_WIDTH or len(details) == 1:
                break
            details.pop(0)
        title = one_line(group.title, max(available, 1)) or "(no title)"
        return [(short, "bold"), "  ", pad(title, max(available, 1)), ("  " + right, "dim")]

    def _hit_lines(self, group: HitGroup, text: HitText, excerpt: Excerpt | None, columns: int) -> Iterator[StyledLine]:
        agent = group.agents.get(text.message >> FILE_ID_SHIFT, "")
        where = agent[: _LOCATION_WIDTH - 1] if agent else _turn_or_time(group, text)
        kind, style = _part_kind(excerpt)
        gutter: list[StyledText] = [
            "  ",
            (pad(one_line(where), _LOCATION_WIDTH), "magenta" if agent else "dim"),
            (pad(one_line(kind), _KIND_WIDTH), style),
        ]
        if columns >= _WIDE_SCREEN:
            gutter.insert(1, (pad(one_line(text.uuid[:SHORT_ID_LENGTH]), SHORT_ID_LENGTH + 2), "dim"))
        indent = sum(display_width(styled if isinstance(styled, str) else styled[0]) for styled in gutter)
        if excerpt is None:
            yield [*gutter, (one_line(_LOSS_MESSAGES[text.loss_reason or "changed"], columns - indent), "dim")]
            return
        lines = highlighted_lines(excerpt, columns - indent, _MAX_EXCERPT_LINES, _tool_file_name(excerpt))
        for index, line in enumerate(lines):
            yield [*(gutter if not index else [" " * indent]), *line]

    # Sessions

    def session_lines(self, limit: int, columns: int) -> Iterator[StyledLine]:
        """Yield a table of the sessions."""
        groups = self._limited_groups(limit)
        if not groups:
            return
        table = [
            Column("ID", [one_line(self._short_id(group)) for group in groups], "bold"),
            Column("SESSION", [one_line(group.title, 200) or "(no title)" for group in groups], flexible=True),
            Column(
                "PROJECT",
                [one_line(humanize.project_name(group.project), 40) for group in groups],
                max_width=16,
                min_flexible_width=16,
            ),
            Column("MATCHES", [f"{len(group.messages):,}" for group in groups], align_right=True),
            Column("LAST", [_day_and_time(group.ended) for group in groups], align_right=True),
        ]
        heads, rows = layout_columns(table, columns)
        yield heads
        yield from rows

    def _short_id(self, group: HitGroup) -> str:
        """Return the shortest unique ID of a session, as in `steno ls`."""
        return self._references.short_id(group.path) if group.has_session_file else group.id[:SHORT_ID_LENGTH]

    def _session_reference(self, group: HitGroup, text: HitText | None) -> str:
        """Return the session argument for other commands: the short ID, or the path."""
        file = text.message >> FILE_ID_SHIFT if text is not None else 0
        # A session can have copies under other names, with the message in only one of them.
        is_own_file = file in group.files and file not in group.agents
        return self._references.argument_for(group.files[file] if is_own_file else group.path)

    def _show_command(self, group: HitGroup, text: HitText | None) -> str | None:
        """Return the command that shows a session, at a message if given."""
        name = shell_argument(self._session_reference(group, text))
        location = location_arguments(group, text) if text is not None else ""
        return None if None in (name, location) else f"steno show{self._root_arguments} {name}{location}"

    # Empty results and next steps

    def no_hits_lines(self, query: Query, columns: int) -> Iterator[StyledLine]:
        """Yield the message for a search without matches."""
        if not self._session_count:
            for line in wrap(f"No sessions to search. Run `{program_name()} demo` to write demo sessions.", columns):
                yield [line]
            return
        text = f"No matches in {humanize.count(self._session_count, 'session')}"
        reason = self._result.scope.empty_reason
        message = one_line(f"{text}: {reason}." if reason else f"{text}.", columns * 4)
        for line in wrap(message, columns):
            yield [line]
        unknown_filters = [
            term.text.partition(":")[0]
            for group in query.required
            for term in group
            if not term.quoted and term.text.partition(":")[2][:1] not in ("", "/", ":")
        ]
        if unknown_filters:
            filter_hint = f"Unknown filter `{one_line(unknown_filters[0], 20)}:`. Filters: {', '.join(FILTERS)}."
            yield [(one_line(filter_hint, columns), "dim")]

    def print_next_steps(self, screen: Screen, limit: int) -> None:
        """Print the limit message, and on terminals the next command."""
        limit_note = self.limit_message(limit)
        if limit_note and not screen.is_terminal:
            screen.print_lines([[], [limit_note]])
        if not screen.is_terminal:
            return
        group, text = self._first_hit or (self.groups[0] if self.groups else None, None)
        step = self._show_command(group, text) if group is not None else None
        screen.print_next_steps([step] if step else [], f"{limit_note}." if limit_note else "")

    # JSON

    def hits_json(self, limit: int, hits_per_session: int) -> list[dict[str, Any]]:
        """Return the matches as JSON."""
        with HitReader(self._connection) as reader:
            return [
                _hit_json(group, text, excerpt) | {"complete": self._is_complete}
                for group in self._limited_groups(limit)
                for text, excerpt in self._visible_hits(reader, group, hits_per_session)
            ]

    def counts_json(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return {
            "hits": self.total,
            "sessions": len(self.groups),
            "wide": self.is_infix_match,
            "complete": self._is_complete,
        }

    def sessions_json(self, limit: int) -> list[dict[str, Any]]:
        """Return the sessions as JSON."""
        return [
            {
                "session": group.id,
                "path": printable_path(group.path),
                "title": group.title,
                "project": group.project,
                "branch": group.branch,
                "ended": _iso_time(group.ended),
                "gone": group.gone,
                "hits": len(group.messages),
                "complete": self._is_complete,
            }
            for group in self._limited_groups(limit)
        ]


def _hit_json(group: HitGroup, text: HitText, excerpt: Excerpt | None) -> dict[str, Any]:
    return {
        "session": group.id,
        "agent": group.agents.get(text.message >> FILE_ID_SHIFT),
        "title": group.title,
        "project": group.project,
        "path": printable_path(group.files.get(text.message >> FILE_ID_SHIFT, "")),
        "uuid": text.uuid or None,
        "offset": message_offset(text.message),
        "length": text.length,
        "turn": text.turn,
        "time": _iso_time(text.time),
        "kind": excerpt.part.kind if excerpt else None,
        "tool": (excerpt.part.tool or None) if excerpt else None,
        "failed": excerpt.part.failed if excerpt else None,
        "excerpt": json_encodable(excerpt.text) if excerpt else None,
        "start": excerpt.start if excerpt else None,
        "highlights": [list(mark) for mark in excerpt.marks] if excerpt else [],
        "lost": text.loss_reason or None,
        "archived": text.archived,
    }


def _turn_or_time(group: HitGroup, text: HitText) -> str:
    """Return the turn number; in rewound sessions, the time of day."""
    if group.has_rewound_turns:
        return humanize.time_of_day(text.time / 1000) if text.time else ""
    return f"turn {text.turn}" if text.turn else ""


def location_arguments(group: HitGroup, text: HitText) -> str | None:
    """Return the options that show a message; None if they cannot be typed."""
    if text.uuid.replace("-", "").isalnum():
        return f" --at {text.uuid[:SHORT_ID_LENGTH]}"
    offset_argument = f" --at {message_offset(text.message)}"
    agent = group.agents.get(text.message >> FILE_ID_SHIFT)
    if not agent:
        return offset_argument
    # A file name with a prefix cannot be parsed as an option.
    name = shell_argument(f"agent-{agent}" if agent.startswith("-") else agent)
    return None if name is None else f" --agent {name}{offset_argument}"


def _part_kind(excerpt: Excerpt | None) -> tuple[str, str]:
    if excerpt is None:
        return "", "dim"
    part = excerpt.part
    name = part.tool if part.kind == "input" and part.tool else part.kind
    return truncate(name, _KIND_WIDTH - 1), "red" if part.failed else "dim"


def _tool_file_name(excerpt: Excerpt) -> str:
    """Return the name of the file that a tool call uses, if the excerpt does not show it."""
    first = excerpt.part.text[: excerpt.start].partition("\n")[0]
    if excerpt.part.kind != "input" or not _PATH_PATTERN.fullmatch(first):
        return ""
    return one_line(first.replace("\\", "/").rpartition("/")[2], _MAX_FILE_NAME_WIDTH) + "  "


def _iso_time(millis: int | None) -> str | None:
    return clock.iso_time(millis / 1000) if millis else None


def _day_and_time(millis: int | None) -> str:
    if not millis:
        return ""
    try:
        return humanize.day_and_time(millis / 1000, environment.now())
    except (ValueError, OverflowError, OSError):
        return ""


_MAX_LISTED_FILES: Final = 20
_MEANING_COLUMN: Final = 40
_MIN_MEANING_WIDTH: Final = 24
_MEANING_INDENT: Final = 6
_PROBLEM_REASONS: Final = ("unread", "unreadable", "missing", "gone")


def print_audit(index: "SessionIndex", screen: Screen, *, as_json: bool) -> None:
    """Print which bytes of the session files are searched."""
    (total,) = index.connection.execute("SELECT sum(max(size, 0)) FROM files").fetchone()
    with ProgressBar(total or 0, "Auditing") as bar:
        accounts = list(audit_index(index.connection, index.texts, bar.advance))
    if as_json:
        write_json(_audit_json(accounts) | {"complete": index.report is not None})
    else:
        screen.print_lines(_audit_lines(accounts, screen.width))


def _total_by_reason(accounts: list[FileAudit]) -> tuple[Counter[str], Counter[str]]:
    sizes: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for account in accounts:
        sizes.update(account.bytes)
        records.update(account.records)
    return sizes, records


def _audit_lines(accounts: list[FileAudit], columns: int) -> Iterator[StyledLine]:
    sizes, records = _total_by_reason(accounts)
    total = sum(account.size for account in accounts)
    counted = sum(sizes.values())
    text = f"{humanize.count(len(accounts), 'file')}, {total:,} bytes"
    conclusion = "all bytes accounted for" if counted == total else f"{total - counted:,} bytes unknown"
    if display_width(text) + display_width(conclusion) + 2 <= columns:
        yield [(text, "bold"), f"  {conclusion}"]
    else:
        yield [(text, "bold")]
        yield [conclusion]
    yield []
    yield [(f"{'BYTES':>15}  {'RECORDS':>9}", "dim")]
    for name, meaning in AUDIT_REASONS.items():
        if sizes[name] or name == "words":
            count = f"{records[name]:,}" if records[name] else ""
            count_columns = f"{sizes[name]:>15,}  {count:>9}  "
            reason_column = (f"{name:<10}  ", "yellow" if name in _PROBLEM_REASONS else "")
            yield from _explained_row([count_columns, reason_column], meaning, columns)
    documents = sum(account.documents for account in accounts)
    indexed = sum(account.indexed for account in accounts)
    yield []
    texts = f"{humanize.count(indexed, 'text')} in the index"
    if documents == indexed and not any(account.mismatched for account in accounts):
        text, style = f"{texts}, matching the files", ""
    else:
        text, style = f"{texts}, {documents:,} in the files", "red"
    for line in wrap(text, columns):
        yield [(line, style)]
    yield from _incomplete_file_lines(accounts, columns)


def _explained_row(row: StyledLine, meaning: str, columns: int) -> Iterator[StyledLine]:
    """Yield a row with its explanation on the right, or below on narrow screens."""
    if columns - _MEANING_COLUMN < _MIN_MEANING_WIDTH:
        yield row
        yield from ([" " * _MEANING_INDENT, (line, "dim")] for line in wrap(meaning, columns - _MEANING_INDENT))
        return
    first, *continuation = wrap(meaning, columns - _MEANING_COLUMN)
    yield [*row, (first, "dim")]
    yield from ([" " * _MEANING_COLUMN, (line, "dim")] for line in continuation)


def _incomplete_file_lines(accounts: list[FileAudit], columns: int) -> Iterator[StyledLine]:
    """Yield the files that are only partly searched."""
    incomplete = [account for account in accounts if not account.is_complete]
    if incomplete:
        yield []
        yield [(f"{humanize.count(len(incomplete), 'file')} not fully searched", "bold")]
    for account in incomplete[:_MAX_LISTED_FILES]:
        problems = [f"{account.bytes[name]:,} {name}" for name in _PROBLEM_REASONS if account.bytes[name]]
        if account.documents != account.indexed:
            problems.append(f"{account.indexed:,} of {account.documents:,} texts")
        yield [("  " + one_line(", ".join(problems), columns - 2), "yellow")]
        yield ["    ", one_line(account.path, columns - 4)]
    if len(incomplete) > _MAX_LISTED_FILES:
        yield [(f"  … {len(incomplete) - _MAX_LISTED_FILES:,} more; use --json to list all", "dim")]


def _audit_json(accounts: list[FileAudit]) -> dict[str, Any]:
    sizes, records = _total_by_reason(accounts)
    return {
        "files": len(accounts),
        "size": sum(account.size for account in accounts),
        "bytes": {name: sizes[name] for name in AUDIT_REASONS},
        "records": {name: records[name] for name in AUDIT_REASONS},
        "documents": sum(account.documents for account in accounts),
        "indexed": sum(account.indexed for account in accounts),
        "reasons": AUDIT_REASONS,
        "by_file": [
            {
                "path": printable_path(account.path),
                "size": account.size,
                "gone": account.gone,
                "bytes": {name: size for name, size in account.bytes.items() if size},
                "records": {name: count for name, count in account.records.items() if count},
                "documents": account.documents,
                "indexed": account.indexed,
                "whole": account.is_complete,
            }
            for account in accounts
        ],
    }
