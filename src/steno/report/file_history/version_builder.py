"""Builds the versions of a file from its touches, with gaps for unrecorded changes.

The prior content that a touch records is compared with the known text. If they differ, something outside the sessions
changed the file, and that change becomes a version.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from steno.format.lenient_json import as_list, as_object
from steno.format.tool_catalogue import SHELL, FileAction, tool_facts
from steno.report.file_history.file_versions import Certainty, FileTouch, Version, VersionEvent
from steno.report.file_history.text_edits import (
    PartialText,
    PatchHunk,
    TextChange,
    apply_change,
    apply_patch,
    count_changed_lines,
    equal_texts,
    normalize_newlines,
    patch_matches,
)

_NUMBERED_LINE: Final = re.compile(r"^ *(\d+)(?:→|\t)(.*)$")
_REMINDER: Final = re.compile(r"\n*<system-reminder>.*", re.DOTALL)
_READ_LIMIT: Final = 2_000
"""Maximum lines, and maximum characters per line, of a read without a range."""
_MAX_EXACT_INTEGER: Final = 1 << 53


class TouchEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the file according to one touch."""

    before: str | None = None
    """Whole file before the touch."""
    creates_file: bool = False
    """Whether the file did not exist before."""
    after: str | None = None
    """Whole file after the touch."""
    alternatives: tuple[tuple[TextChange, ...], ...] = ()
    """Alternative descriptions of the edits, most reliable first."""
    patch: tuple[PatchHunk, ...] = ()
    start: int = 0
    lines: tuple[str, ...] = ()
    """Lines of the file after the touch, starting at line `start`."""
    total: int | None = None
    """Total lines of the file after the touch."""


def evidence_of(touch: FileTouch) -> TouchEvidence:
    """Return the content that a touch records."""
    reader = _EVIDENCE_READERS.get(tool_facts(touch.tool).file_action or touch.tool)
    return reader(touch) if reader is not None else TouchEvidence()


def _evidence_of_read(touch: FileTouch) -> TouchEvidence:
    file = as_object(touch.result.get("file"))
    if touch.result and file is None:
        return TouchEvidence()
    if file is None:
        return _evidence_of_numbered_lines(touch)
    content = file.get("content")
    if not isinstance(content, str):
        return TouchEvidence()
    start = _integer_or_none(file.get("startLine")) or 1
    count, total = _integer_or_none(file.get("numLines")), _integer_or_none(file.get("totalLines"))
    lines = tuple(normalize_newlines(content).split("\n"))
    if start <= 1 and count is not None and total is not None and count >= total:
        return TouchEvidence(after=content)
    if count is not None and len(lines) > count:
        # Drop the empty line after the newline of the last requested line.
        lines = lines[:count]
    return TouchEvidence(start=max(1, start), lines=lines, total=total)


def _evidence_of_numbered_lines(touch: FileTouch) -> TouchEvidence:
    """Parse the numbered lines shown to the model: old Claude Code versions record nothing else."""
    matches = [_NUMBERED_LINE.match(line) for line in _REMINDER.sub("", touch.model_text).split("\n")]
    if not matches or None in matches:
        return TouchEvidence()
    rows = [(int(match[1]), match[2]) for match in matches if match is not None]
    start = rows[0][0]
    if [number for number, _ in rows] != list(range(start, start + len(rows))):
        return TouchEvidence()
    lines = tuple(line for _, line in rows)
    has_range = touch.tool_input.get("offset") is not None or touch.tool_input.get("limit") is not None
    may_be_cut = len(lines) >= _READ_LIMIT or any(len(line) >= _READ_LIMIT for line in lines)
    if start == 1 and not has_range and not may_be_cut:
        return TouchEvidence(after="\n".join(lines))
    return TouchEvidence(start=start, lines=lines)


def _evidence_of_attachment(touch: FileTouch) -> TouchEvidence:
    content = as_object(touch.result.get("content"))
    return _evidence_of_read(msgspec.structs.replace(touch, result=content)) if content else TouchEvidence()


def _evidence_of_notice(touch: FileTouch) -> TouchEvidence:
    evidence = _evidence_of_numbered_lines(touch)
    if evidence.after is None:
        return evidence
    return TouchEvidence(start=1, lines=tuple(evidence.after.split("\n")))


def _evidence_of_backup(touch: FileTouch) -> TouchEvidence:
    if touch.result.get("missing") is True:
        return TouchEvidence(creates_file=True)
    return TouchEvidence(before=touch.model_text)


def _evidence_of_write(touch: FileTouch) -> TouchEvidence:
    result = touch.result
    content = result.get("content", touch.tool_input.get("content"))
    return TouchEvidence(
        before=_text_or_none(result.get("originalFile")),
        creates_file=result.get("type") == "create",
        after=content if isinstance(content, str) else None,
        patch=_patch_hunks(result.get("structuredPatch")),
    )


def _evidence_of_edit(touch: FileTouch) -> TouchEvidence:
    result, tool_input = touch.result, touch.tool_input
    recorded_change = _text_change(result.get("oldString"), result.get("newString"), result.get("replaceAll"))
    requested_change = _text_change(
        tool_input.get("old_string"), tool_input.get("new_string"), tool_input.get("replace_all")
    )
    before = _text_or_none(result.get("originalFile"))
    return TouchEvidence(
        before=before,
        creates_file=requested_change is not None and not requested_change.old and not before,
        alternatives=tuple((change,) for change in (recorded_change, requested_change) if change is not None),
        patch=_patch_hunks(result.get("structuredPatch")),
    )


def _evidence_of_multi_edit(touch: FileTouch) -> TouchEvidence:
    alternatives: list[tuple[TextChange, ...]] = []
    for edits in (touch.result.get("edits"), touch.tool_input.get("edits")):
        edit_list = [as_object(item) or {} for item in as_list(edits) or ()]
        changes = [
            _text_change(each.get("old_string"), each.get("new_string"), each.get("replace_all")) for each in edit_list
        ]
        complete_changes = tuple(each for each in changes if each is not None)
        if complete_changes and len(complete_changes) == len(changes):
            alternatives.append(complete_changes)
    before = _text_or_none(touch.result.get("originalFileContents"))
    creates_file = bool(alternatives) and not alternatives[0][0].old and not before
    patch = _patch_hunks(touch.result.get("structuredPatch"))
    return TouchEvidence(before=before, creates_file=creates_file, alternatives=tuple(alternatives), patch=patch)


def _evidence_of_notebook(touch: FileTouch) -> TouchEvidence:
    result = touch.result
    return TouchEvidence(
        before=_text_or_none(result.get("original_file")), after=_text_or_none(result.get("updated_file"))
    )


_EVIDENCE_READERS: Final = {
    "read": _evidence_of_read,
    "attached": _evidence_of_attachment,
    "noticed": _evidence_of_notice,
    "kept": _evidence_of_backup,
    "write": _evidence_of_write,
    "replace": _evidence_of_edit,
    "replace_many": _evidence_of_multi_edit,
    "cell": _evidence_of_notebook,
}


# Values of unknown type


def _text_change(old: Any, new: Any, replace_all: Any) -> TextChange | None:
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    return TextChange(normalize_newlines(old), normalize_newlines(new), replace_all is True)


def _patch_hunks(value: Any) -> tuple[PatchHunk, ...]:
    """Return a recorded patch; empty if any part of it is invalid."""
    hunks: list[PatchHunk] = []
    for item in as_list(value) or ():
        fields = as_object(item) or {}
        numbers = [_integer_or_none(fields.get(name)) for name in _HUNK_POSITIONS]
        lines = as_list(fields.get("lines"))
        if lines is None or not all(isinstance(line, str) for line in lines):
            return ()
        old, olds, new, news = numbers
        if old is None or olds is None or new is None or news is None:
            return ()
        hunks.append(PatchHunk(old, olds, new, news, tuple(lines)))
    return tuple(hunks)


_HUNK_POSITIONS: Final = ("oldStart", "oldLines", "newStart", "newLines")


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _integer_or_none(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_EXACT_INTEGER:
        return None
    return int(value)


_NOTE_OUTSIDE: Final = "Not written by a session; detected by the next access."
_NOTE_COMMAND: Final = "A command that names the file may have written this; detected by the next access."
_NOTE_GONE: Final = "The file no longer existed: it was moved or deleted."
_NOTE_COMMAND_BEFORE: Final = "A command that names the file ran before this and may have changed the file."
_NOTE_PATCH_MISMATCH: Final = "The recorded patch does not produce this version."
_NOTE_EDIT_MISMATCH: Final = "The edit does not match the known previous content."
_NOTE_UNKNOWN_BEFORE: Final = "The file before this edit is not recorded."
_NOTE_NO_RESULT: Final = "The written content is not recorded."
_NOTE_BACKUP_ONLY: Final = "Known only from Claude Code's backup, made before the file was changed."
_NOTE_NO_FILE: Final = "Claude Code recorded that the file did not exist; the written content is unknown."
_NOTE_BACKUP_LOST: Final = "Claude Code made a backup here, but the backup no longer exists."
_VERBS: Final[dict[FileAction, VersionEvent]] = {"read": "read", "write": "write", "command": "command"}


def build_versions(touches: Iterable[FileTouch]) -> list[Version]:
    """Return the versions that result from touches in chronological order."""
    touch_list = list(touches)
    builder = _VersionBuilder(backups_only=all(touch.tool == "kept" for touch in touch_list))
    for touch in touch_list:
        builder.add_touch(touch)
    return builder.versions


class _VersionBuilder:
    """State of the file at one time, and the versions so far."""

    def __init__(self, *, backups_only: bool) -> None:
        self._backups_only = backups_only
        """Whether the file is known only from Claude Code's backups."""
        self.versions: list[Version] = []
        self._text: str | None = None
        self._known: Certainty = "unknown"
        self._lines: PartialText | None = None
        self._is_missing = False
        """Whether the file does not exist."""
        self._version_by_text: dict[str, str] = {}
        """Name of the last version with each text."""
        self._pending_commands: list[int] = []
        """Indexes of the command versions since the text was last certain."""

    def add_touch(self, touch: FileTouch) -> None:
        """Process the next touch."""
        if touch.tool == SHELL:
            self._add_version(touch, "command", "unknown", command=_command_of(touch))
            self._pending_commands.append(len(self.versions) - 1)
            return
        if touch.result.get("lost") and touch.tool == "kept":
            self._add_lost_backup(touch)
            return
        evidence = evidence_of(touch)
        if evidence.before is not None:
            self._compare_text(touch, evidence.before)
        elif evidence.creates_file:
            self._compare_missing(touch)
        if touch.tool in ("Read", "attached"):
            self._add_read(touch, evidence)
        elif touch.tool == "noticed":
            self._add_lines(touch, evidence)
        elif touch.tool != "kept":
            self._add_change(touch, evidence)
        elif self._backups_only and not self.versions:
            known, note = ("unknown", _NOTE_NO_FILE) if evidence.creates_file else (self._known, _NOTE_BACKUP_ONLY)
            self._add_version(touch, "outside", known, note=note)

    def _add_lost_backup(self, touch: FileTouch) -> None:
        if self._backups_only:
            self._set_state(None, "unknown")
            self._add_version(touch, "outside", "unknown", note=_NOTE_BACKUP_LOST)

    # Comparison with the known text

    def _compare_text(self, touch: FileTouch, text: str) -> None:
        """Compare the recorded text with the known text."""
        if self._text is not None:
            expected = equal_texts(self._text, text)
        elif self._lines is not None:
            expected = self._lines.matches_text(text)
        else:
            expected = not self.versions or (self._known == "unknown" and not self._is_missing)
        if expected:
            self._settle_commands()
            known: Certainty = self._known if self._text is not None else "exact"
        else:
            self._add_outside_change(touch, text)
            known = "exact"
        self._set_state(text, known)

    def _compare_missing(self, touch: FileTouch) -> None:
        if (self._text is not None or self._lines is not None) and not self._is_missing:
            self._add_version(
                touch, "outside", "unknown", note=_NOTE_GONE, removed=_line_count(self._text), before=True
            )
        self._pending_commands = []
        self._set_state("", "exact")
        self._is_missing = True

    def _add_outside_change(self, touch: FileTouch, text: str) -> None:
        added, removed = (0, 0) if self._text is None else count_changed_lines(self._text, text)
        back = self._version_by_text.get(normalize_newlines(text), "") if text else ""
        note = _NOTE_COMMAND if self._pending_commands else _NOTE_OUTSIDE
        self._add_version(
            touch,
            "outside",
            "exact",
            text=text,
            added=added,
            removed=removed,
            back=back,
            note=note,
            was=self._text,
            before=True,
        )
        self._pending_commands = []

    def _settle_commands(self) -> None:
        for place in self._pending_commands:
            settled = msgspec.structs.replace(
                self.versions[place],
                settled=True,
                text=self._text,
                known="unknown" if self._text is None else self._known,
            )
            self.versions[place] = settled
        self._pending_commands = []

    def _set_state(self, text: str | None, known: Certainty, lines: PartialText | None = None) -> None:
        self._text, self._known, self._lines = text, known, lines
        self._is_missing = False

    # Reads

    def _add_read(self, touch: FileTouch, evidence: TouchEvidence) -> None:
        if evidence.after is not None:
            self._compare_text(touch, evidence.after)
            self._set_state(evidence.after, "exact")
        elif evidence.lines:
            self._add_lines(touch, evidence)
        self._add_version(touch, "read", self._known, note=self._command_note())

    def _command_note(self) -> str:
        return _NOTE_COMMAND_BEFORE if self._pending_commands and self._known != "unknown" else ""

    def _add_lines(self, touch: FileTouch, evidence: TouchEvidence) -> None:
        if not evidence.lines:
            return
        if self._text is not None:
            known_lines = PartialText()
            known_lines.set_lines(1, self._text.replace("\r\n", "\n").split("\n"))
            known_lines.total = len(known_lines)
            # A read beyond the end, or another total, shows a different text.
            last = evidence.start + len(evidence.lines) - 1
            if last <= len(known_lines) and known_lines.agrees(evidence.start, evidence.lines, evidence.total):
                return
        elif self._lines is not None and self._lines.agrees(evidence.start, evidence.lines, evidence.total):
            self._merge_lines(evidence)
            return
        new_lines = PartialText(evidence.total)
        new_lines.set_lines(evidence.start, evidence.lines)
        if self._text is not None or self._lines is not None:
            note = _NOTE_COMMAND if self._pending_commands else _NOTE_OUTSIDE
            self._set_state(None, "partial", new_lines)
            self._add_version(touch, "outside", "partial", note=note, before=True)
            self._pending_commands = []
        self._lines = new_lines.copy()
        self._merge_lines(evidence)

    def _merge_lines(self, evidence: TouchEvidence) -> None:
        lines = self._lines.copy() if self._lines is not None else PartialText()
        lines.set_lines(evidence.start, evidence.lines)
        lines.total = lines.total if evidence.total is None else evidence.total
        complete_text = lines.text
        if complete_text is not None:
            self._set_state(complete_text, "exact")
        else:
            self._set_state(None, "partial", lines)

    # Changes

    def _add_change(self, touch: FileTouch, evidence: TouchEvidence) -> None:
        action = "read" if touch.tool == "attached" else tool_facts(touch.tool).file_action
        verb = _VERBS.get(action, "edit")
        if evidence.after is not None:
            self._add_known_result(touch, verb, evidence, evidence.after)
            return
        if self._text is not None:
            after, note = _apply_edit(self._text, evidence)
            if after is not None:
                if evidence.before is None:
                    note = note or self._command_note()
                added, removed = count_changed_lines(self._text, after)
                text_before = self._text
                self._set_state(after, "derived")
                self._add_version(touch, verb, "derived", added=added, removed=removed, note=note, was=text_before)
                return
        self._add_partial_edit(touch, verb, evidence)

    def _add_known_result(self, touch: FileTouch, verb: VersionEvent, evidence: TouchEvidence, after: str) -> None:
        known_text = self._text
        note = ""
        if known_text is not None:
            if evidence.before is None and not evidence.creates_file and evidence.patch:
                # The patch is the only record of the prior text: compare it with the known text.
                if patch_matches(evidence.patch, known_text, after):
                    self._settle_commands()
                else:
                    note = _NOTE_EDIT_MISMATCH
            added, removed = count_changed_lines(known_text, after)
        else:
            added, removed = _count_signs(evidence.patch) if evidence.patch else (_line_count(after), 0)
        self._pending_commands = []
        self._set_state(after, "exact")
        text_before = "" if evidence.creates_file else known_text
        self._add_version(touch, verb, "exact", added=added, removed=removed, note=note, was=text_before)

    def _add_partial_edit(self, touch: FileTouch, verb: VersionEvent, evidence: TouchEvidence) -> None:
        """Add an edit of a file whose text is unknown or does not match the edit."""
        note = _NOTE_EDIT_MISMATCH if self._text is not None else _NOTE_UNKNOWN_BEFORE
        lines = self._lines.copy() if self._lines is not None else PartialText()
        if self._text is not None:
            lines.set_lines(1, self._text.split("\n"))
        added, removed = _count_signs(evidence.patch) if evidence.patch else _count_changes(evidence.alternatives)
        if evidence.patch:
            if not lines.apply_patch(evidence.patch) and (self._text is not None or self._lines is not None):
                self._set_state(None, "unknown")
                self._add_version(touch, "outside", "unknown", note=_NOTE_OUTSIDE, before=True)
            self._set_state(None, "partial", lines)
        else:
            self._set_state(None, "unknown")
            note = note if evidence.alternatives else _NOTE_NO_RESULT
        written = _written_lines(evidence)
        self._add_version(touch, verb, self._known, added=added, removed=removed, note=note, wrote=written)

    def _add_version(
        self,
        touch: FileTouch,
        verb: VersionEvent,
        known: Certainty,
        *,
        was: str | None = None,
        before: bool = False,
        **more: Any,
    ) -> None:
        """Add a version; `before` marks a version that existed before the touch that detected it."""
        name = f"{touch.file}.{touch.offset}.{touch.place}" + ("b" if before else "")
        if verb != "command" and known != "unknown":
            more.setdefault("text", self._text)
            if self._lines is not None and more["text"] is None:
                more["pieces"] = self._lines.pieces()
                more["total"] = self._lines.total
        text: str | None = more.get("text")
        if text:
            self._version_by_text[normalize_newlines(text)] = name
        self.versions.append(
            Version(
                name=name,
                verb=verb,
                tool=touch.tool,
                known=known,
                before=was,
                file=touch.file,
                session=touch.session,
                agent=touch.agent,
                turn=touch.turn,
                offset=touch.offset,
                place=touch.place,
                time=touch.time,
                abandoned=touch.abandoned and not before,
                copies=touch.copies,
                **more,
            )
        )


def _apply_edit(before: str, evidence: TouchEvidence) -> tuple[str | None, str]:
    """Return the text after an edit, and a note if the patch differs; None if the edit does not match."""
    first: str | None = None
    for changes in evidence.alternatives:
        for after in _possible_results(before, changes):
            if patch_matches(evidence.patch, before, after):
                return after, ""
            first = after if first is None else first
    patched_text = apply_patch(before, evidence.patch) if evidence.patch else None
    if patched_text is not None:
        # Changes that the user made while approving the edit are only in the patch.
        return patched_text, ""
    return first, _NOTE_PATCH_MISMATCH if first is not None else ""


def _possible_results(before: str, changes: Sequence[TextChange]) -> list[str]:
    """Return the possible results of applying edits in order."""
    texts = [before]
    for change in changes:
        texts = [after for candidate in texts for after in apply_change(candidate, change)][:4]
        if not texts and "\r" in before:
            return _possible_results(before.replace("\r\n", "\n"), changes)
    return texts


def _count_signs(patch: Sequence[PatchHunk]) -> tuple[int, int]:
    lines = [line[:1] for hunk in patch for line in hunk.lines]
    return lines.count("+"), lines.count("-")


def _written_lines(evidence: TouchEvidence) -> tuple[str, ...]:
    """Return the lines that an edit added, as far as known."""
    if evidence.patch:
        lines = (line for hunk in evidence.patch for line in hunk.lines)
        return tuple(line[1:] for line in lines if line.startswith("+"))
    written: list[str] = []
    for change in evidence.alternatives[0] if evidence.alternatives else ():
        old = change.old.split("\n")
        written += [line for line in change.new.split("\n") if line not in old]
    return tuple(written)


def _count_changes(alternatives: Sequence[Sequence[TextChange]]) -> tuple[int, int]:
    pairs = [count_changed_lines(change.old, change.new) for change in (alternatives[0] if alternatives else ())]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _line_count(text: str | None) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _command_of(touch: FileTouch) -> str:
    command = touch.tool_input.get("command")
    return command if isinstance(command, str) else ""
