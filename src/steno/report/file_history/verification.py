"""Verifies rebuilt files against the content that Claude Code recorded, and counts changes that cannot be rebuilt.

Claude Code records more of a change than is needed to apply it: the whole file before it, the patch, and later reads.
All of these are compared with a rebuild that does not use them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import Unreadable
from steno.format.tool_catalogue import EDITING_TOOLS
from steno.report.file_history.file_versions import FileTouch, Version
from steno.report.file_history.text_edits import equal_texts, patch_matches
from steno.report.file_history.touch_finder import touches_in
from steno.report.file_history.version_builder import TouchEvidence, build_versions, evidence_of
from steno.session.transcript import load
from steno.store.discovery import Discovery
from steno.store.file_source import FileSource

if TYPE_CHECKING:
    from steno.store.discovery import DiscoveredFile


_RECORDED_FIELDS: Final = frozenset(("originalFile", "structuredPatch", "originalFileContents", "original_file"))


class Mismatch(msgspec.Struct, frozen=True):
    """A change whose rebuilt text differs from the recorded text."""

    path: str
    session: str
    offset: int
    tool: str
    why: str


class VerificationReport(msgspec.Struct, kw_only=True):
    """Results of rebuilding files."""

    transcripts: int = 0
    unreadable: int = 0
    files: int = 0
    changes: int = 0
    rebuilt: int = 0
    """Number of changes after which the whole file is known."""
    befores: int = 0
    """Number of comparisons with the recorded prior text."""
    patches: int = 0
    """Number of comparisons with the recorded patch."""
    chained: int = 0
    """Number of changes rebuilt from the calls alone and compared with the next record."""
    gaps: int = 0
    """Number of changes by something other than a session."""
    unknown: dict[str, int] = {}
    """Number of changes that cannot be rebuilt, by tool and reason."""
    wrong: list[Mismatch] = []


def verify_folders(
    roots: Iterable[str], on_planned: Callable[[int], Callable[[int], None]] = lambda _: lambda _: None
) -> VerificationReport:
    """Verify every transcript below directories; `on_planned` takes the total size and returns a progress callback."""
    transcripts: dict[str, DiscoveredFile] = {}
    for root in roots:
        transcripts |= {session_file.path: session_file for session_file in Discovery(root).transcripts()}
    progress = on_planned(sum(each.size for each in transcripts.values()))
    report = VerificationReport()
    for each in transcripts.values():
        try:
            with FileSource(each.path) as source:
                touches_by_path = touches_in(load(source))
        except Unreadable:
            report.unreadable += 1
        else:
            report.transcripts += 1
            for path, touches in touches_by_path.items():
                verify_file(path, touches, report)
        progress(each.size)
    return report


def verify_file(path: str, touches: Sequence[FileTouch], report: VerificationReport) -> None:
    """Verify the touches of one file, given in chronological order."""
    edits = [touch for touch in touches if touch.tool in EDITING_TOOLS]
    if not edits:
        return
    versions = build_versions(touches)
    report.files += 1
    report.changes += len(edits)
    report.gaps += sum(candidate.verb == "outside" for candidate in versions)
    for touch, version in zip(edits, _changing_versions(versions), strict=True):
        evidence = evidence_of(touch)
        if version.text is None:
            reason = f"{touch.tool}: {version.note}"
            report.unknown[reason] = report.unknown.get(reason, 0) + 1
            continue
        report.rebuilt += 1
        mismatch = _compare_with_record(version, version.text, evidence, report)
        if mismatch:
            report.wrong.append(_mismatch(path, touch, mismatch))
    _compare_chain(path, touches, versions, report)


def _changing_versions(versions: Iterable[Version]) -> list[Version]:
    return [version for version in versions if version.verb in ("write", "edit")]


def _compare_with_record(version: Version, text: str, evidence: TouchEvidence, report: VerificationReport) -> str:
    """Return the difference between a version and the record of its touch; empty if there is none."""
    if evidence.before is None:
        return ""
    report.befores += 1
    if version.before is None or not equal_texts(version.before, evidence.before):
        return "the previous text differs from the record"
    if evidence.patch:
        report.patches += 1
        if not patch_matches(evidence.patch, evidence.before, text):
            return "the recorded patch does not produce this text"
    return ""


def _compare_chain(
    path: str, touches: Sequence[FileTouch], versions: Sequence[Version], report: VerificationReport
) -> None:
    """Rebuild from the calls alone, up to the first outside change, and compare."""
    end = next((at for at, candidate in enumerate(versions) if candidate.verb == "outside"), None)
    certain_changes = _changing_versions(versions[:end])
    edits = [touch for touch in touches if touch.tool in EDITING_TOOLS][: len(certain_changes)]
    bare_changes = _changing_versions(build_versions(_without_recorded(touch) for touch in touches))
    recorded_texts = [evidence_of(touch).before for touch in edits[1:]]
    for touch, version, bare_version, recorded in zip(
        edits, certain_changes, bare_changes, [*recorded_texts, None], strict=False
    ):
        if bare_version.text is None or version.text is None:
            continue
        report.chained += 1
        if not equal_texts(bare_version.text, version.text if recorded is None else recorded):
            report.wrong.append(_mismatch(path, touch, "the tool calls alone produce a different text"))


def _without_recorded(touch: FileTouch) -> FileTouch:
    """Return a touch without the fields that record the prior text."""
    remaining = {name: value for name, value in touch.result.items() if name not in _RECORDED_FIELDS}
    return msgspec.structs.replace(touch, result=remaining)


def _mismatch(path: str, touch: FileTouch, reason: str) -> Mismatch:
    return Mismatch(path, touch.session, touch.offset, touch.tool, reason)
