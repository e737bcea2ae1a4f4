"""What is wrong with a session's file, looked for once for as long as the file stays as it is."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from steno.check.files import FileReport, check_file, with_agents
from steno.check.findings import SEVERITIES, Finding, Severity
from steno.errors import NotFound
from steno.index.scan import path_from
from steno.report import words
from steno.report.names import Names, argument
from steno.store.discover import found_at
from steno.store.found import Found, Problem
from steno.web.house import House, Place
from steno.web.links import Links

__all__ = ["Findings", "Noted", "findings_of"]

_MOST: Final = 24
_SHOWN: Final = 40
_ICONS: Final = {"error": "cross", "warning": "warn", "info": "dot"}
_CLASSES: Final = {"error": "bad", "warning": "warn", "info": "dim"}

_lock: Final = threading.Lock()
_Sign = tuple[tuple[str, int, int], ...]
_kept: Final[OrderedDict[_Sign, FileReport]] = OrderedDict()


class Noted(msgspec.Struct):
    """One finding, however often it was met."""

    severity: Severity
    id: str
    message: str
    hint: str
    times: str
    href: str = ""
    agent: str = ""
    """The sub-agent whose file it is in; nothing for the session's own."""

    @property
    def icon(self) -> str:
        """The picture for how bad it is."""
        return _ICONS[self.severity]

    @property
    def cls(self) -> str:
        """The colour for how bad it is."""
        return _CLASSES[self.severity]


class Findings:
    """What a page says of them."""

    def __init__(self, noted: Sequence[Noted], grave: int, command: str, verdict: str) -> None:
        self.noted = noted
        self.grave = grave
        self.command = command
        self.verdict = verdict


def findings_of(house: House, place: Place, links: Links, agent: str = "") -> Findings:
    """Return what is wrong with a session; whoever asks first waits for it.

    Raises:
        NotFound: its file is gone.
        Unreadable: it cannot be read.
    """
    if place.gone:
        raise NotFound(
            "the file is only in the archive",
            hint=f"`steno archive --verify {place.id}` looks at what is kept",
        )
    report = _report(found_at(place.path))
    noted = [
        each
        for file in report.files
        for each in _noted(file, links, place.key, agent if file is report else _name(file))
    ]
    noted.sort(key=lambda each: SEVERITIES.index(each.severity))
    grave = report.number("error", "warning")
    newest = report.newest
    verdict = ""
    if newest is not None and report.lost:
        lost = words.count(report.lost, "message")
        verdict = f"The newest client would leave out {lost} of {newest.there:,}."
    command = _command(house, place, "repair" if report.number("error") else "check")
    return Findings(noted[:_SHOWN], grave, command, verdict)


def _name(report: FileReport) -> str:
    return report.found.place.agent_id


def _noted(report: FileReport, links: Links, key: str, agent: str) -> Iterator[Noted]:
    """Yield what is wrong with one file, each rule once and where it is gravest."""
    seen: set[str] = set()
    for finding in sorted(report.findings, key=lambda each: SEVERITIES.index(each.severity)):
        if finding.id in seen:
            continue
        seen.add(finding.id)
        times = report.counts.get((finding.id, finding.severity), 1)
        yield Noted(
            finding.severity,
            finding.id,
            finding.message,
            finding.hint,
            f"{times:,} times" if times > 1 else "",
            _way(report, finding, links, key, agent),
            agent if report.role == "agent" else "",
        )


def _way(report: FileReport, finding: Finding, links: Links, key: str, agent: str) -> str:
    """Return where the record is shown that a finding is about."""
    place = finding.place
    if not report.is_converted or not place.uuid:
        return links.record(key, place.span.offset, agent)
    return links.inside(key, f"record/{quote(place.uuid, safe='')}", agent)


def _command(house: House, place: Place, name: str) -> str:
    """Return the command that looks at the very same file; nothing where none can be typed."""
    again = place.path
    if not place.agent:
        with house.index() as index:
            rows = index.connection.execute("SELECT path FROM files WHERE gone IS NULL")
            again = Names(path_from(path) for (path,) in rows).again(place.path)
    quoted = argument(again)
    return f"steno {name}{house.where} {quoted}" if quoted else ""


def _report(found: Found) -> FileReport:
    problems: list[Problem] = []
    whole = with_agents(found, problems)
    key = tuple((each.path, each.size, each.mtime_ns) for each in (whole, *whole.agents))
    with _lock:
        kept = _kept.get(key)
        if kept is not None:
            _kept.move_to_end(key)
            return kept
    report = check_file(whole, problems=problems, judge="troubled")
    with _lock:
        _kept[key] = report
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
    return report
