"""Explains a usage total by its responses and their records.

Every record with usage is counted, merged, copied or skipped, with the reason.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from os.path import basename
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from steno.errors import Unreadable
from steno.format.lines import read_records
from steno.format.message import SYNTHETIC
from steno.format.records import Record
from steno.format.source import Source
from steno.index.database import ARRAY_SQL, json_array
from steno.index.line_decoder import LineUsage, line_from_record, to_millis
from steno.index.price_tiers import TIER_SQL
from steno.index.session_stats import FILE_ID_SHIFT, Row
from steno.index.sync.scan import path_from_column
from steno.index.usage_rows import LOCAL_DAY, MAX_TOKENS, response_key, usage_figures
from steno.report.pricing import PriceTable
from steno.report.session_lookup import session_keys
from steno.report.usage.usage_from_files import FilePartition, decode_usage_record, transcripts_below
from steno.report.usage.usage_from_index import (
    RESPONSE_COLUMNS,
    SUM_COLUMNS,
    copies_of,
    counted_rows,
    files_in_range,
    tool_namer,
    transcript_owners,
)
from steno.report.usage.usage_overview import subagent_types
from steno.report.usage.usage_query import (
    CLOCK_GROUPINGS,
    TranscriptOwner,
    UsageQuery,
    clock_namer,
    counts_of_row,
    day_of_slot,
    group_key,
    response_time,
    slot_of_row,
    tier_of_row,
)
from steno.report.usage.usage_report import UsageFigures, UsageReport, apportion_micros, build_report
from steno.store.archive.file_access import open_transcript
from steno.store.discovery import Problem

if TYPE_CHECKING:
    from steno.report.usage.usage_query import Buckets


_USAGE_MARK: Final = b'"usage"'
_READ_SIZE: Final = 1 << 20
_SPANS: Final = (1 << 18, 1 << 23)
"""Bytes around a record to search for other records of its response, before reading the whole file."""


class UsageLine(msgspec.Struct):
    """A record with usage."""

    key: str
    line: int
    """Line number, starting at 1."""
    offset: int
    figures: tuple[int, ...]
    synthetic: bool
    """Whether Claude Code wrote the record without an API request."""
    cut: bool
    """Whether an implausible token count was cut to the maximum."""
    row: Row
    """Values of the record, in the order of the columns of `usage`."""


def usage_lines(path: str, file: int) -> Iterator[UsageLine]:
    """Yield the records with usage in a file; nothing if the file cannot be read."""
    try:
        source = open_transcript(path)
    except Unreadable:
        return
    with source:
        counter = _LineCounter(source)
        for record in read_records(source):
            usage_line = _usage_line(record, file)
            if usage_line is not None:
                usage_line.line = counter.line_at(record.offset)
                yield usage_line


def usage_lines_near(path: str, file: int, keys: dict[str, tuple[int, int]]) -> list[UsageLine]:
    """Return the records of responses in a file, given the offset of one record and the number of records.

    Records of a response are close together, so a large file need not be read completely.
    """
    try:
        source = open_transcript(path)
    except Unreadable:
        return []
    with source:
        lines: list[UsageLine] = []
        for key, (offset, line_count) in keys.items():
            response_lines: list[UsageLine] = []
            for span in (*_SPANS, source.size + 1):
                response_lines = [
                    usage_line for usage_line in _lines_near(source, file, offset, span) if usage_line.key == key
                ]
                if len(response_lines) >= line_count:
                    break
            lines += response_lines
        lines.sort(key=lambda each: each.offset)
        counter = _LineCounter(source)
        for each in lines:
            each.line = counter.line_at(each.offset)
        return lines


def _lines_near(source: Source, file: int, offset: int, span: int) -> Iterator[UsageLine]:
    """Yield the records with usage that start within `span` bytes of an offset."""
    start = max(0, offset - span)
    if start:
        _, newline, line_start = source.read(start, offset - start).partition(b"\n")
        if not newline:
            return
        start = offset - len(line_start)
    for record in read_records(source, start):
        if record.offset > offset + span:
            return
        usage_line = _usage_line(record, file)
        if usage_line is not None and not usage_line.synthetic:
            yield usage_line


def _usage_line(record: Record, file: int) -> UsageLine | None:
    if _USAGE_MARK not in record.line:
        return None
    line = decode_usage_record(record.line) or line_from_record(record)
    body = line.message
    usage = body.usage if body is not None else None
    if line.type != "assistant" or body is None or usage is None:
        return None
    message = (file << FILE_ID_SHIFT) + record.offset
    figures = usage_figures(usage)
    key, model = response_key(line, message), body.model or ""
    time, branch = to_millis(line.timestamp), line.git_branch or ""
    agent = (line.agent_id or "") if line.is_sidechain else ""
    return UsageLine(
        key,
        0,
        record.offset,
        figures,
        model == SYNTHETIC,
        _is_cut(usage, figures),
        (file, key, message, 1, 0, time, model, branch, agent, *figures, 0, 0, 0),
    )


def _is_cut(usage: LineUsage, figures: tuple[int, ...]) -> bool:
    cache_creation, server_tools = usage.cache_creation, usage.server_tool_use
    recorded = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens if cache_creation is None else 0,
        usage.cache_read_input_tokens,
        cache_creation.ephemeral_5m_input_tokens if cache_creation is not None else 0,
        cache_creation.ephemeral_1h_input_tokens if cache_creation is not None else 0,
        server_tools.web_search_requests if server_tools is not None else 0,
    )
    # Numbers too large to decode are read as the maximum.
    return max(figures) >= MAX_TOKENS or any((figure or 0) < 0 for figure in recorded)


class _LineCounter:
    """Converts ascending offsets to line numbers."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0
        self._line = 1

    def line_at(self, offset: int) -> int:
        while self._at < offset:
            chunk = self._source.read(self._at, min(_READ_SIZE, offset - self._at))
            if not chunk:
                break
            self._line += chunk.count(b"\n")
            self._at += len(chunk)
        return self._line


Verdict: TypeAlias = Literal["counted", "merged", "copy", "skipped"]
_REASONS: Final = {
    "counted": "highest token counts of the response",
    "merged": "another record of the same response",
    "higher": "token counts in {} are higher",
    "original": "copy; counted in {}",
    "earlier": "counted in {}, whose session started earlier",
    "skipped": "written by Claude Code without an API request",
    "gone": "file deleted or changed; token counts from the index",
}
_OFFSET_MASK: Final = (1 << FILE_ID_SHIFT) - 1


class ExplainedLine(msgspec.Struct):
    """A record with usage, and whether and why it counts."""

    path: str
    line: int
    """Line number, starting at 1; 0 if the record cannot be read."""
    offset: int
    verdict: Verdict
    why: str
    figures: tuple[int, ...]
    """Input, output, 5-minute and 1-hour cache write, cache read, searches."""
    counts_in: str = ""
    """For a copy, the file in which the response is counted."""
    cut: bool = False
    """Whether an implausible token count was cut to the maximum."""


class ExplainedResponse(msgspec.Struct):
    """A counted response."""

    key: str
    names: tuple[str, ...]
    model: str
    time: int | None
    session: str
    project: str
    figures: UsageFigures
    lines: list[ExplainedLine]
    cost: int | None = None
    """Micro-dollars; None if the model has no price."""


class UsageExplanation(msgspec.Struct):
    """Responses and skipped records of a total."""

    responses: list[ExplainedResponse]
    skipped: list[ExplainedLine]
    totals: UsageFigures
    cost: int
    complete: bool = True
    """Whether all files were read."""


class _ExplanationInput(msgspec.Struct):
    """Responses to explain, before their records are read."""

    counted: list[tuple[Row, tuple[str, ...]]]
    """Selected responses, each with the group names of its report row."""
    copies: list[Row]
    origin_of: Callable[[int], TranscriptOwner]
    path_of: Callable[[int], str]
    files_with_skipped: list[int] | None = None
    """Files that may contain skipped records; None if only some rows are selected."""


_GroupNamer: TypeAlias = Callable[[Row], tuple[str, ...]]
_LinesByResponse: TypeAlias = dict[tuple[int, str], list[UsageLine]]


def explain_index(
    connection: sqlite3.Connection, query: UsageQuery, prices: PriceTable, selection: str = ""
) -> UsageExplanation:
    """Explain a total from the index. `selection` is part of a row name, or the key of a response."""
    origin_of = transcript_owners(connection).__getitem__
    paths = {file: path_from_column(path) for file, path in connection.execute("SELECT id, path FROM files")}
    name_of = tool_namer(connection) if query.by == "tool" else _group_namer(query, origin_of)
    selected = _select_responses(counted_rows(connection, query), query, name_of, selection)
    copies = list(copies_of(connection, (row[1] for row, _ in selected)))
    files_with_skipped = None if selection else files_in_range(connection, query)
    inputs = _ExplanationInput(selected, copies, origin_of, paths.__getitem__, files_with_skipped)
    return _build_explanation(inputs, prices, *_read_lines(inputs, query))


def explain_files(
    roots: Sequence[str], query: UsageQuery, prices: PriceTable, problems: list[Problem], selection: str = ""
) -> UsageExplanation:
    """Explain a total from the session files."""
    files = [path for path, _ in transcripts_below(roots, problems)]
    partition = FilePartition(list(enumerate(files)))
    partition.read()
    problems += partition.problems
    rows = (
        row
        for row in partition.rows.values()
        if query.matches_time(response_time(row)) and query.matches_project(partition.origin_of(row[0])[2])
    )
    selected = _select_responses(rows, query, _group_namer(query, partition.origin_of), selection)
    keys = {row[1] for row, _ in selected}
    copies = [row for row in partition.copies if row[1] in keys]
    files_with_skipped = None if selection else partition.files_with_skipped(query)
    inputs = _ExplanationInput(selected, copies, partition.origin_of, files.__getitem__, files_with_skipped)
    return _build_explanation(inputs, prices, *_read_lines(inputs, query))


def explain_rows(
    connection: sqlite3.Connection, rows: Sequence[Row], prices: PriceTable
) -> tuple[list[ExplainedResponse], dict[str, int]]:
    """Explain responses from the index, reading only the records near each of them.

    Also return the file numbers by path.
    """
    origin_of = transcript_owners(connection).__getitem__
    copies = list(copies_of(connection, (row[1] for row in rows)))
    paths: dict[int, str] = {}
    requested: dict[int, dict[str, tuple[int, int]]] = {}
    for row in (*rows, *copies):
        requested.setdefault(row[0], {})[row[1]] = (row[2] & _OFFSET_MASK, row[3])
    lines_by_response: _LinesByResponse = {}
    for file, keys in requested.items():
        (path,) = connection.execute("SELECT path FROM files WHERE id = ?", (file,)).fetchone()
        paths[file] = path_from_column(path)
        for line in usage_lines_near(paths[file], file, keys):
            lines_by_response.setdefault((file, line.key), []).append(line)
    inputs = _ExplanationInput([(row, ()) for row in rows], copies, origin_of, paths.__getitem__)
    files = {path: file for file, path in paths.items()}
    return _build_explanation(inputs, prices, lines_by_response, []).responses, files


def _group_namer(query: UsageQuery, origin_of: Callable[[int], TranscriptOwner]) -> _GroupNamer:
    return lambda row: group_key(query.by, row, origin_of(row[0]))


def _select_responses(
    rows: Iterable[Row], query: UsageQuery, name_of: _GroupNamer, selection: str
) -> list[tuple[Row, tuple[str, ...]]]:
    """Return the selected responses, ordered by row and time."""
    named_rows = [(row, name_of(row)) for row in rows]
    if query.by in CLOCK_GROUPINGS:
        time_label = clock_namer(query.by, {names[0] for _, names in named_rows})
        named_rows = [(row, (time_label(names[0]),)) for row, names in named_rows]
    named_rows.sort(key=lambda each: (each[1], response_time(each[0]) or 0, each[0][1]))
    if not selection:
        return named_rows
    exact_matches = [named_row for named_row in named_rows if named_row[0][1] == selection or selection in named_row[1]]
    word = selection.casefold()
    return exact_matches or [
        each for each in named_rows if any(word in name.casefold() for name in (*each[1], each[0][1]))
    ]


def _build_explanation(
    inputs: _ExplanationInput, prices: PriceTable, lines_by_response: _LinesByResponse, skipped: list[ExplainedLine]
) -> UsageExplanation:
    prices.load({row[6] for row, _ in inputs.counted})
    copies: dict[str, list[Row]] = {}
    for row in inputs.copies:
        copies.setdefault(row[1], []).append(row)
    totals = UsageFigures(unpriced={})
    responses: list[ExplainedResponse] = []
    for row, names in inputs.counted:
        figures = UsageFigures(unpriced={})
        day = day_of_slot(slot_of_row(row))
        figures.add_bucket((names, day, row[6], row[15], tier_of_row(row)), counts_of_row(row), prices)
        totals.add(figures)
        session, _, project = inputs.origin_of(row[0])
        lines = _lines_of_response(row, copies.get(row[1], []), lines_by_response, inputs)
        responses.append(ExplainedResponse(row[1], names, row[6], response_time(row), session, project, figures, lines))
    costs = apportion_micros([response.figures.exact for response in responses])
    for response, cost in zip(responses, costs, strict=True):
        response.cost = cost if response.figures.has_cost else None
    return UsageExplanation(responses, skipped, totals, sum(costs))


def _read_lines(inputs: _ExplanationInput, query: UsageQuery) -> tuple[_LinesByResponse, list[ExplainedLine]]:
    """Read the records of all files involved, and their skipped records."""
    keys_by_file: dict[int, set[str]] = {}
    for row in (*(row for row, _ in inputs.counted), *inputs.copies):
        keys_by_file.setdefault(row[0], set()).add(row[1])
    reported_files = {row[0] for row, _ in inputs.counted}
    days = {day_of_slot(slot_of_row(row)) for row, _ in inputs.counted}
    all_days = inputs.files_with_skipped is not None or query.by not in ("day", "week", "month")
    for file in inputs.files_with_skipped or ():
        keys_by_file.setdefault(file, set())
        reported_files.add(file)
    lines_by_response: _LinesByResponse = {}
    skipped: list[ExplainedLine] = []
    for file, keys in keys_by_file.items():
        path = inputs.path_of(file)
        for line in usage_lines(path, file):
            if line.key in keys and not line.synthetic:
                lines_by_response.setdefault((file, line.key), []).append(line)
            elif (
                line.synthetic
                and file in reported_files
                and query.matches_time(response_time(line.row))
                and (all_days or day_of_slot(slot_of_row(line.row)) in days)
            ):
                skipped.append(_explained_line(path, line, "skipped", _REASONS["skipped"]))
    skipped.sort(key=lambda line: (line.path, line.offset))
    return lines_by_response, skipped


def _lines_of_response(
    row: Row, copies: list[Row], lines_by_response: _LinesByResponse, inputs: _ExplanationInput
) -> list[ExplainedLine]:
    """Return the records of a response with their verdicts; the counted one comes first."""
    path, offset = inputs.path_of(row[0]), row[2] & _OFFSET_MASK
    lines: list[ExplainedLine] = []
    for line in lines_by_response.get((row[0], row[1]), ()):
        if line.offset == offset:
            lines.insert(0, _explained_line(path, line, "counted", _REASONS["counted"]))
        else:
            lines.append(_explained_line(path, line, "merged", _REASONS["merged"]))
    if not lines or lines[0].verdict != "counted":
        lines.insert(0, _unreadable_line(path, row, "counted", _REASONS["gone"]))
    for copy in copies:
        copy_path = inputs.path_of(copy[0])
        reason = _reason_for_copy(row, copy).format(basename(path))
        copy_lines = lines_by_response.get((copy[0], copy[1]), ())
        lines += [_explained_line(copy_path, line, "copy", reason, path) for line in copy_lines]
        if not copy_lines:
            lines.append(_unreadable_line(copy_path, copy, "copy", reason, path))
    return lines


def _reason_for_copy(row: Row, copy: Row) -> str:
    """Return the reason why a copy does not count; see `steno.index.usage_rows.copy_rank`."""
    if row[10] > copy[10]:
        return _REASONS["higher"]
    return _REASONS["original" if copy[17] > row[17] else "earlier"]


def _explained_line(path: str, line: UsageLine, verdict: Verdict, reason: str, counts_in: str = "") -> ExplainedLine:
    return ExplainedLine(path, line.line, line.offset, verdict, reason, line.figures, counts_in, line.cut)


def _unreadable_line(path: str, row: Row, verdict: Verdict, reason: str, counts_in: str = "") -> ExplainedLine:
    """Return an unreadable record with the values of its row."""
    figures = tuple(row[9:15])
    cut = max(figures) >= MAX_TOKENS
    return ExplainedLine(path, 0, row[2] & _OFFSET_MASK, verdict, reason, figures, counts_in, cut)


_FROM_USAGE: Final = "FROM usage u JOIN sessions s ON s.file = u.file"
_AGENT_COLUMN: Final = "coalesce(nullif(u.agent, ''), s.agent)"
_FILTER_COLUMNS: Final = {"model": "u.model", "project": "s.project", "session": "s.id", "branch": "u.branch"}


class ResponseFilter(msgspec.Struct, frozen=True):
    """Filter of responses. None does not filter."""

    since: int | None = None
    until: int | None = None
    undated: bool = False
    """Only responses without a time."""
    model: str | None = None
    project: str | None = None
    session: str | None = None
    branch: str | None = None
    kind: tuple[str, str] | None = None
    """Sub-agent type, as in the report by type."""


class TranscriptOrigin(msgspec.Struct, frozen=True):
    """Session of a transcript, its URL key, and its sub-agent if any."""

    key: str
    agent: str
    title: str
    project: str


def total_of_responses(
    connection: sqlite3.Connection, response_filter: ResponseFilter, prices: PriceTable
) -> UsageReport:
    """Return the sum of matching responses as a report with at most one row."""
    where, values = _response_condition(connection, response_filter)
    rows = connection.execute(
        f"SELECT {LOCAL_DAY}, u.model, u.fast, {TIER_SQL}, {SUM_COLUMNS} {_FROM_USAGE} WHERE {where} "
        "GROUP BY 1, 2, 3, 4",
        values,
    )
    buckets: Buckets = {(("",), day, model, fast, tier): tuple(counts) for day, model, fast, tier, *counts in rows}
    return build_report(buckets, "", prices)


def find_responses(
    connection: sqlite3.Connection, response_filter: ResponseFilter, prices: PriceTable, *, limit: int, offset: int = 0
) -> tuple[list[ExplainedResponse], dict[str, int]]:
    """Return matching responses, newest first, with their records.

    Also return the file numbers by path.
    """
    where, values = _response_condition(connection, response_filter)
    rows = connection.execute(
        f"SELECT {RESPONSE_COLUMNS} {_FROM_USAGE} WHERE {where} ORDER BY u.time DESC, u.key LIMIT ? OFFSET ?",
        [*values, limit, offset],
    ).fetchall()
    return explain_rows(connection, rows, prices)


def _response_condition(connection: sqlite3.Connection, response_filter: ResponseFilter) -> tuple[str, list[Any]]:
    where, values = ["u.counts"], list[Any]()
    if response_filter.undated:
        where.append("u.time IS NULL")
    for bound, operator in ((response_filter.since, ">="), (response_filter.until, "<")):
        if bound is not None:
            where.append(f"u.time {operator} ?")
            values.append(bound)
    for name, column in _FILTER_COLUMNS.items():
        value = getattr(response_filter, name)
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if response_filter.kind is not None:
        where.append(_subagent_type_condition(connection, response_filter.kind, values))
    return " AND ".join(where), values


def _subagent_type_condition(connection: sqlite3.Connection, kind: tuple[str, str], values: list[Any]) -> str:
    if not kind[0]:
        return f"{_AGENT_COLUMN} = ''"
    type_by_agent = subagent_types(connection)
    if kind[1]:
        agents, operator = [agent for agent, name in type_by_agent.items() if name == kind[1]], "IN"
    else:
        agents, operator = list(type_by_agent), "NOT IN"
    values.append(json_array(agents))
    return f"{_AGENT_COLUMN} != '' AND {_AGENT_COLUMN} {operator} {ARRAY_SQL}"


def transcript_origins(connection: sqlite3.Connection, files: Iterable[int]) -> dict[int, TranscriptOrigin]:
    """Return the origins of transcripts."""
    file_ids = set(files)
    keys = session_keys(connection, file_ids)
    origins: dict[int, TranscriptOrigin] = {}
    for file in file_ids:
        row = connection.execute("SELECT agent, title, project FROM sessions WHERE file = ?", (file,)).fetchone()
        if row is not None:
            origins[file] = TranscriptOrigin(keys.get(file, ""), *row)
    return origins
