"""What is wrong with a session's file, looked for once for as long as the file stays as it is."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec

from steno.check.files import FileReport, check_file, with_agents
from steno.check.findings import SEVERITIES
from steno.errors import NotFound
from steno.report import words
from steno.store.discover import found_at
from steno.store.found import Found, Problem
from steno.web.house import Place
from steno.web.links import Links

__all__ = ["Findings", "Noted", "findings_of"]

_MOST: Final = 24
_SHOWN: Final = 40
_ICONS: Final = {"error": "cross", "warning": "warn", "info": "dot"}
_CLASSES: Final = {"error": "bad", "warning": "warn", "info": "dim"}

_lock: Final = threading.Lock()
_kept: Final[OrderedDict[tuple[str, int, int], FileReport]] = OrderedDict()


class Noted(msgspec.Struct):
    """One finding, however often it was met."""

    icon: str
    cls: str
    id: str
    message: str
    hint: str
    times: str
    href: str = ""


class Findings:
    """What a page says of them."""

    def __init__(self, noted: Sequence[Noted], grave: int, command: str, verdict: str) -> None:
        self.noted = noted
        self.grave = grave
        self.command = command
        self.verdict = verdict


def findings_of(place: Place, links: Links, agent: str = "") -> Findings:
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
    noted: list[Noted] = []
    seen: dict[str, int] = {}
    for finding in sorted(report.findings, key=lambda each: SEVERITIES.index(each.severity)):
        if finding.id in seen or len(noted) == _SHOWN:
            continue
        seen[finding.id] = 1
        times = report.counts.get((finding.id, finding.severity), 1)
        noted.append(
            Noted(
                _ICONS[finding.severity],
                _CLASSES[finding.severity],
                finding.id,
                finding.message,
                finding.hint,
                f"{times:,} times" if times > 1 else "",
                links.record(place.key, finding.place.span.offset, agent),
            )
        )
    grave = report.number("error", "warning")
    newest = report.newest
    verdict = ""
    if newest is not None and report.lost:
        lost = words.count(report.lost, "message")
        verdict = f"The newest client would leave out {lost} of {newest.there:,}."
    command = f"steno {'repair' if report.number('error') else 'check'} {place.id[:8]}"
    return Findings(noted, grave, command, verdict)


def _report(found: Found) -> FileReport:
    key = found.path, found.size, found.mtime_ns
    with _lock:
        kept = _kept.get(key)
        if kept is not None:
            _kept.move_to_end(key)
            return kept
    problems: list[Problem] = []
    report = check_file(with_agents(found, problems), problems=problems, judge="troubled")
    with _lock:
        _kept[key] = report
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
    return report
