"""Sessions as static HTML: one page, several pages, or a directory with an index page.

Finished steps are most of a page. While templates render, a placeholder with a NUL character replaces each
step; the steps are inserted as bytes at the end. The content security policy allows only the style and
script of the page, by hash.
"""

import gc
import re
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

import msgspec
from markupsafe import Markup

from steno.report.export.export_options import ExportLevel
from steno.report.export.session_export import ExportJob, export_name
from steno.report.export.session_masking import MaskedSession, open_masked
from steno.report.humanize import local_date, project_name
from steno.report.price_sources import load_price_table
from steno.report.pricing import PriceTable
from steno.report.session_lookup import SessionIndexRow
from steno.sanitize.html import SafeHtml, escape_markup, trusted_markup
from steno.session.transcript import Transcript
from steno.session.turns.session_facts import count_steps
from steno.session.turns.steps import one_line
from steno.store.discovery import DiscoveredFile
from steno.web.render.code import without_highlighting
from steno.web.render.markdown import markdown_markup
from steno.web.state.caches import SessionRef
from steno.web.templating import render_part, sprite, static_bytes
from steno.web.tool_views.record_images import image_bytes, images_in
from steno.web.urls import Links
from steno.web.views.session_view import SessionHeader, SessionIndexInfo, SessionView, session_header, subagent_key
from steno.web.views.step_view import CompactionBox, RenderOptions, compaction_box, step_lines
from steno.web.views.turn_view import BranchView, TurnView, branch_view, turn_view

_IMAGE_PREFIX = "image/"


class FileLinks(Links):
    """URLs for exported pages; empty for pages that are not exported."""

    live = False

    def __init__(
        self, pages: Mapping[str, str] | None = None, image_data_url: Callable[[str, str], str] | None = None
    ) -> None:
        super().__init__()
        self._pages = pages or {}
        """The page of each anchor, if the session has several pages."""
        self._image_data_url = image_data_url

    def static(self, name: str) -> str:
        """Return an empty URL: static files are embedded."""
        del name
        return ""

    def sessions(self, **query: str | int | None) -> str:
        """Return the URL of the index page, if any."""
        del query
        return self._pages.get("index", "")

    def session(self, key: str, anchor: str = "", **query: str | int | None) -> str:
        """Return the URL of a turn or compaction of the session."""
        del key, query
        return f"{self._pages.get(anchor, '')}#{anchor}" if anchor else ""

    def agent(self, key: str, agent: str, anchor: str = "", **query: str | int | None) -> str:
        """Return an empty URL: sub-agents are shown within the step that called them."""
        del key, agent, anchor, query
        return ""

    def inside(self, key: str, page: str, agent: str = "", **query: str | int | None) -> str:
        """Return the data URL of an image; empty for other parts."""
        del key, query
        if page.startswith(_IMAGE_PREFIX) and self._image_data_url is not None:
            return self._image_data_url(agent, page.removeprefix(_IMAGE_PREFIX))
        return ""

    def project(self, key: str, **query: str | int | None) -> str:
        """Return an empty URL: projects are not exported."""
        del key, query
        return ""

    def search(self, **query: str | int | None) -> str:
        """Return an empty URL: search is not exported."""
        del query
        return ""

    def files(self, **query: str | int | None) -> str:
        """Return an empty URL: files are not exported."""
        del query
        return ""

    def file(self, key: str, **query: str | int | None) -> str:
        """Return an empty URL: files are not exported."""
        del key, query
        return ""

    def usage(self, **query: str | int | None) -> str:
        """Return an empty URL: usage is not exported."""
        del query
        return ""

    def health(self, **query: str | int | None) -> str:
        """Return an empty URL: health is not exported."""
        del query
        return ""

    def compare(self, **query: str | int | None) -> str:
        """Return an empty URL: comparisons are not exported."""
        del query
        return ""


_PLACEHOLDER: Final = "\0"


class DeferredPieces:
    """Numbered page parts, as bytes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def defer_step(self, start: SafeHtml, inside: SafeHtml, end: SafeHtml) -> SafeHtml:
        """Store a step and return its placeholder."""
        piece = b"".join(self.to_bytes(inside)) if _PLACEHOLDER in inside else _encode(inside)
        self._length += len(piece)
        return self.defer(b"".join((_encode(start), piece, _encode(end))))

    def defer(self, piece: bytes) -> SafeHtml:
        """Store encoded HTML and return its placeholder."""
        self._pieces.append(piece)
        return SafeHtml(f"{_PLACEHOLDER}{len(self._pieces) - 1}{_PLACEHOLDER}")

    def take_length(self) -> int:
        """Return the bytes of step content stored since the last call."""
        length, self._length = self._length, 0
        return length

    def to_bytes(self, html: str) -> list[bytes]:
        """Return HTML as bytes, with placeholders replaced."""
        parts = html.split(_PLACEHOLDER)
        result = [b""] * len(parts)
        result[::2] = map(_encode, parts[::2])
        result[1::2] = [self._pieces[int(number)] for number in parts[1::2]]
        return result


def _encode(html: str) -> bytes:
    return html.encode("utf-8", "replace")


_STYLES: Final = ("steno.css", "bodies.css", "session.css", "export.css")
_SCRIPTS: Final = ("theme.js", "export.js", "paint.js")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_INDENT: Final = re.compile(r"\n\s*")


@lru_cache(maxsize=1)
def _frame_values() -> dict[str, bytes]:
    styles = "".join(static_bytes(name).decode() for name in _STYLES)
    styles = _INDENT.sub("\n", _COMMENT.sub("", styles)).strip()
    script = "".join(static_bytes(name).decode() for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; style-src '{_csp_hash(styles)}'; script-src '{_csp_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    icon = b64encode(static_bytes("mark.svg")).decode()
    frame = {
        "styles": styles,
        "script": script,
        "policy": policy,
        "icon": f"data:image/svg+xml;base64,{icon}",
        "sprite": sprite(),
    }
    return {name: text.encode() for name, text in frame.items()}


def _csp_hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def assemble_page(template: str, links: Links, deferred: DeferredPieces, **values: Any) -> list[bytes]:
    """Return a page in parts, with placeholders replaced."""
    frame = {name: trusted_markup(deferred.defer(piece)) for name, piece in _frame_values().items()}
    return deferred.to_bytes(render_part(template, links=links, **frame, **values))


_FAR_FUTURE: Final = 4e9
"""A current time so late that no date is shown as "today": exported pages are read on later days."""
_MAX_PAGE_LENGTH: Final = 1_500_000
"""Maximum characters per page of a split session."""
_STEP_LINE_LENGTH: Final = 400
"""Approximate characters of a step without its content."""
_MAX_OUTLINE_TEXT: Final = 120
_DETAIL_BY_LEVEL: Final[dict[ExportLevel, str]] = {
    "full": "everything",
    "high": "steps",
    "low": "steps",
    "minimal": "answers",
    "prompts": "prompts",
}


class ExportedSession(msgspec.Struct):
    """The pages of a session, and its data for the index page."""

    title: str
    project: str
    day: str
    started: float
    turns: int
    steps: int
    cost: str
    pages: list[tuple[str, list[bytes]]]
    """File names and contents of the pages."""


class _SessionPage(msgspec.Struct):
    number: int
    file: str
    label: str
    first: int
    sections: list[TurnView | CompactionBox | BranchView]


class _OutlineEntry(msgspec.Struct):
    number: str
    text: str
    href: str


class _AllSteps(frozenset[str]):
    """A set that contains every step."""

    __slots__ = ()

    def __contains__(self, _place: object) -> bool:
        return True


class ExportStyle(msgspec.Struct, frozen=True):
    """Options of the HTML export."""

    level: ExportLevel = "full"
    split: bool = False
    """Whether to split a long session into several pages."""
    index: str = ""
    """File name of the index page."""
    highlighted: bool = True
    """Whether to highlight code during the export; otherwise the page does it when a step is opened."""
    masking_note: str = ""
    """Note on masked content."""


def export_session_pages(
    masked_session: MaskedSession, name: str, prices: PriceTable, style: ExportStyle
) -> ExportedSession:
    """Export a session as pages; `name` is the base of the file names."""
    exporter = _SessionExporter(masked_session, name, prices, style)
    try:
        with without_highlighting(enabled=not style.highlighted):
            return exporter.export()
    finally:
        # The links refer back to the exporter; breaking the cycle frees the session immediately.
        vars(exporter).clear()


class _SessionExporter:
    def __init__(self, masked_session: MaskedSession, name: str, prices: PriceTable, style: ExportStyle) -> None:
        self.session = masked_session.session
        self.view = SessionView(self.session, prices)
        self._style = style
        self._size = masked_session.size
        self._name = name
        self._anchors: dict[str, str] = {"index": style.index} if style.index else {}
        self._links = FileLinks(self._anchors, self._image_data_url)
        self._deferred = DeferredPieces()
        self._includes_content = style.level in ("full", "high")
        self._options = RenderOptions(
            key="",
            links=self._links,
            detail=_DETAIL_BY_LEVEL[style.level],
            open_steps=_AllSteps() if self._includes_content else frozenset(),
            project=self.session.project,
            collapsed=True,
            full=True,
            defer_step=self._deferred.defer_step,
        )
        self._pages: list[_SessionPage] = []
        self._image_nodes: dict[str, dict[int, int]] = {}

    def export(self) -> ExportedSession:
        """Render all pages."""
        self._paginate(split=self._style.split)
        turns = self.view.turns
        head = self._header()
        outline = [
            _OutlineEntry(
                str(turn.number),
                one_line(turn.prompt.text if turn.prompt is not None else "", _MAX_OUTLINE_TEXT),
                self._links.session("", f"t{turn.number}"),
            )
            for turn in turns
        ]
        started = turns[0].started if turns else None
        return ExportedSession(
            head.title,
            self.session.project,
            local_date(started),
            started.timestamp() if started is not None else 0.0,
            self.view.figures.turns,
            self.view.figures.steps,
            head.cost,
            [(page.file, self._render_page(page, head, outline)) for page in self._pages],
        )

    def _render_page(self, page: _SessionPage, head: SessionHeader, outline: list[_OutlineEntry]) -> list[bytes]:
        last = page is self._pages[-1]
        return assemble_page(
            "export-session.html.j2",
            self._links,
            self._deferred,
            head=head,
            page={"number": page.number, "of": len(self._pages), "all": self._pages},
            outline=outline,
            pieces=page.sections,
            loose=list(self._unlinked_subagents()) if last else [],
            made="Exported by steno",
            masked=self._style.masking_note,
        )

    # Turns

    def _paginate(self, *, split: bool) -> None:
        self._start_page(0)
        length = 0
        self._add_branches(0)
        for turn in self.view.turns:
            if split and length > _MAX_PAGE_LENGTH:
                self._start_page(turn.number)
                length = 0
            page = self._pages[-1]
            self._anchors[f"t{turn.number}"] = page.file if split else ""
            before = self.view.turns[turn.number - 2] if turn.number > 1 else None
            for compaction in filter(None, (*turn.seams, turn.closing)):
                number = self.view.compaction_numbers[compaction.boundary.index]
                self._anchors[f"c{number}"] = page.file if split else ""
            if turn.opening is not None:
                self._add_section(compaction_box(turn.opening, before, self.view, self._options))
            length += self._add_section(turn_view(turn, self.view, self._options))
            length += self._add_branches(turn.number)
            if turn.closing is not None:
                self._add_section(compaction_box(turn.closing, turn, self.view, self._options))
        for page, next_page in zip(self._pages, [*self._pages[1:], None], strict=True):
            end = next_page.first - 1 if next_page is not None else len(self.view.turns)
            page.label = f"{max(1, page.first)}\N{EN DASH}{end}"

    def _start_page(self, first: int) -> None:
        number = len(self._pages) + 1
        file = f"{self._name}.html" if number == 1 else f"{self._name}-{number}.html"
        self._pages.append(_SessionPage(number, file, "", first, []))

    def _add_branches(self, after: int) -> int:
        return sum(
            self._add_section(branch_view(branch, self.view, self._options, opened=True))
            for branch in self.view.branches_by_turn.get(after, ())
        )

    def _add_section(self, section: TurnView | CompactionBox | BranchView) -> int:
        self._pages[-1].sections.append(section)
        return self._deferred.take_length() + _estimated_length(section)

    def _unlinked_subagents(self) -> Iterator[dict[str, object]]:
        for subagent in self.session.loose_agents:
            if subagent.warmup or not self._includes_content:
                continue
            subagent_view = SessionView(self.session, self.view.prices, subagent_key(subagent))
            body = render_part(
                "session-agent.html.j2",
                links=self._links,
                brief=markdown_markup(subagent.prompt),
                lines=step_lines(subagent.steps, subagent_view, self._options, depth=1),
                report=markdown_markup(subagent.report) if subagent.report else "",
                href="",
                status=subagent.status,
                steps=count_steps(subagent.steps),
            )
            yield {"name": subagent.description or subagent_key(subagent), "body": Markup(body)}

    # Header

    def _header(self) -> SessionHeader:
        session = self.session
        model = session.models[-1] if session.models else ""
        metadata = SessionIndexRow(
            title=session.title.text or session.id,
            project=session.project,
            branch=session.branch,
            model=model,
            size=self._size,
        )
        session_ref = SessionRef(0, session.id, "", "", is_deleted=False, key="")
        indexed = SessionIndexInfo(metadata, self.view.total_cost().amount, age=_FAR_FUTURE)
        head = session_header(self.view, session_ref, indexed, _FAR_FUTURE)
        for badge in head.badges:
            badge.href = ""
        return head

    # Images

    def _image_data_url(self, agent: str, image_key: str) -> str:
        transcript = self._transcript(agent)
        offset, _, number = image_key.partition("-")
        node_by_offset = self._image_nodes.setdefault(agent, {})
        if not node_by_offset:
            node_by_offset.update((node.offset, node.index) for node in transcript.nodes)
        index = node_by_offset.get(int(offset))
        if index is None:
            return ""
        for picture in images_in(transcript.record(transcript.nodes[index])):
            if str(picture.number) == number and image_bytes(picture) is not None:
                return escape_markup(f"data:{picture.media_type};base64,{picture.data}")
        return ""

    def _transcript(self, agent: str) -> Transcript:
        for subagent in self.session.all_agents:
            if agent and subagent_key(subagent) == agent:
                return subagent.transcript
        return self.session.transcript


def _estimated_length(section: TurnView | CompactionBox | BranchView) -> int:
    """Return the approximate length of a section without the content of its steps."""
    if isinstance(section, CompactionBox):
        return 0
    turns = [section] if isinstance(section, TurnView) else section.turns
    return sum(_STEP_LINE_LENGTH * (len(turn.steps) + len(turn.later_steps) + 1) for turn in turns)


_INDEX_FILE: Final = "index.html"
_GC_INTERVAL_BYTES: Final = 64_000_000
"""Bytes of sessions between garbage collections."""
_MAX_HIGHLIGHTED_SESSIONS: Final = 24
"""Maximum sessions whose code is highlighted during the export; in larger exports, pages highlight it when shown."""


class _IndexRow(msgspec.Struct):
    file: str
    title: str
    project: str
    day: str
    started: float
    turns: int
    steps: int
    cost: str


def masking_label(job: ExportJob) -> str:
    """Return a note on masked content."""
    if job.masker is None:
        return "No content is masked"
    return "Secrets, home directory paths and email addresses are masked"


def render_page_bytes(discovered: DiscoveredFile, job: ExportJob) -> bytes:
    """Return a session as a single page.

    Raises:
        Unreadable: The file cannot be read.
    """
    masked_session = open_masked(discovered, job.masker)
    style = ExportStyle(job.level, masking_note=masking_label(job))
    exported = export_session_pages(masked_session, "session", load_price_table(), style)
    return b"".join(exported.pages[0][1])


def render_pages(files: Sequence[DiscoveredFile], job: ExportJob) -> Iterator[tuple[str, list[bytes]]]:
    """Yield file names and contents of the pages of all sessions, then of the index page.

    Raises:
        StenoError: A file cannot be read.
    """
    coloured = len(files) <= _MAX_HIGHLIGHTED_SESSIONS
    style = ExportStyle(job.level, split=True, index=_INDEX_FILE, highlighted=coloured, masking_note=masking_label(job))
    prices = load_price_table()
    used_names: set[str] = set()
    rows: list[_IndexRow] = []

    def export_session(discovered: DiscoveredFile) -> Iterator[tuple[str, list[bytes]]]:
        masked_session = open_masked(discovered, job.masker)
        exported = export_session_pages(masked_session, export_name(masked_session.session, used_names), prices, style)
        rows.append(_index_row(exported))
        yield from exported.pages

    with _with_manual_gc(files) as remaining:
        for discovered in remaining:
            yield from export_session(discovered)
            job.done(discovered.size)
    yield _INDEX_FILE, _index_page(rows, style)


@contextmanager
def _with_manual_gc(files: Sequence[DiscoveredFile]) -> Generator[Iterator[DiscoveredFile]]:
    """Yield files, and collect garbage only between files, as little is freed while a file is exported.

    Existing objects are excluded from collection for speed.
    """

    def files_between_collections() -> Iterator[DiscoveredFile]:
        bytes_read = 0
        for discovered in files:
            bytes_read += discovered.size
            if bytes_read > _GC_INTERVAL_BYTES:
                gc.collect()
                bytes_read = discovered.size
            yield discovered

    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield files_between_collections()
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def _index_row(exported: ExportedSession) -> _IndexRow:
    return _IndexRow(
        exported.pages[0][0],
        exported.title,
        exported.project,
        exported.day,
        exported.started,
        exported.turns,
        exported.steps,
        exported.cost,
    )


def _index_page(rows: list[_IndexRow], style: ExportStyle) -> list[bytes]:
    groups: dict[str, list[_IndexRow]] = {}
    for row in sorted(rows, key=lambda row: -row.started):
        groups.setdefault(project_name(row.project) if row.project else "", []).append(row)
    return assemble_page(
        "export-index.html.j2",
        FileLinks(),
        DeferredPieces(),
        groups=list(groups.items()),
        total=len(rows),
        made="Exported by steno",
        masked=style.masking_note,
    )
