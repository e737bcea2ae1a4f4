"""Touches in the order they happened → versions, with gaps where nobody knows.

What a touch records about the file before it is held against what was known: where they differ,
something changed the file that no session noted, and that is a version of its own.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from steno.format.tool_catalogue import SHELL, FileAction, facts_of
from steno.report.files.said import Said, said_by
from steno.report.files.texts import (
    Change,
    Hunk,
    Lines,
    changed_lines,
    fits,
    normal,
    patched,
    replaced,
    same,
)
from steno.report.files.values import Known, Touch, Verb, Version

__all__ = ["rebuild"]

_FOUND: Final = "No session wrote this; it was found by what came next."
_RAN: Final = "A command that names the file may have done it; this was found by what came next."
_GONE: Final = "It was not there any more: something moved it or took it away."
_RAN_BEFORE: Final = "A command that names the file ran before this, and may have changed it."
_MISFIT: Final = "The recorded patch does not lead from the file before to this."
_UNFIT: Final = "The edit does not fit what was known of the file before it."
_NOTHING_BEFORE: Final = "The file before this edit is not recorded."
_NO_RESULT: Final = "What it wrote is not recorded."
_BACKUP: Final = "Known from the client's backup alone, made before the file was changed."
_NO_FILE: Final = (
    "The client noted that there was no such file before; what was written is not known."
)
_LOST: Final = "The client backed it up here; the backup is not there any more."
_VERBS: Final[dict[FileAction, Verb]] = {"read": "read", "write": "write", "command": "command"}


def rebuild(touches: Iterable[Touch]) -> list[Version]:
    """Return the versions that touches tell of. They come in the order they happened."""
    rows = list(touches)
    machine = _Machine(alone=all(touch.tool == "kept" for touch in rows))
    for touch in rows:
        machine.take(touch)
    return machine.versions


class _Machine:
    """What is known of the file at one time, and all that it was before."""

    def __init__(self, *, alone: bool) -> None:
        self._alone = alone
        """Whether nothing but the client's own backups tells of the file."""
        self.versions: list[Version] = []
        self._text: str | None = None
        self._known: Known = "unknown"
        self._lines: Lines | None = None
        self._gone = False
        """Whether there was no such file."""
        self._names: dict[str, str] = {}
        """The last version with each text."""
        self._ran: list[int] = []
        """The commands since it was last known for sure."""

    def take(self, touch: Touch) -> None:
        """Take in the next touch."""
        if touch.tool == SHELL:
            self._add(touch, "command", "unknown", command=_command(touch))
            self._ran.append(len(self.versions) - 1)
            return
        if touch.result.get("lost") and touch.tool == "kept":
            self._lose(touch)
            return
        said = said_by(touch)
        if said.before is not None:
            self._meet(touch, said.before)
        elif said.fresh:
            self._meet_nothing(touch)
        if touch.tool in ("Read", "attached"):
            self._read(touch, said)
        elif touch.tool == "noticed":
            self._stretch(touch, said)
        elif touch.tool != "kept":
            self._change(touch, said)
        elif self._alone and not self.versions:
            known, note = ("unknown", _NO_FILE) if said.fresh else (self._known, _BACKUP)
            self._add(touch, "outside", known, note=note)

    def _lose(self, touch: Touch) -> None:
        """Take in a backup that is not there any more."""
        if self._alone:
            self._set(None, "unknown")
            self._add(touch, "outside", "unknown", note=_LOST)

    # What is found

    def _meet(self, touch: Touch, text: str) -> None:
        """Hold what was found against what was known."""
        if self._text is not None:
            expected = same(self._text, text)
        elif self._lines is not None:
            expected = self._lines.fit(text)
        else:
            expected = not self.versions or (self._known == "unknown" and not self._gone)
        if expected:
            self._settle()
            known: Known = self._known if self._text is not None else "exact"
        else:
            self._outside(touch, text)
            known = "exact"
        self._set(text, known)

    def _meet_nothing(self, touch: Touch) -> None:
        if (self._text is not None or self._lines is not None) and not self._gone:
            self._add(
                touch, "outside", "unknown", note=_GONE, removed=_count(self._text), before=True
            )
        self._ran = []
        self._set("", "exact")
        self._gone = True

    def _outside(self, touch: Touch, text: str) -> None:
        added, removed = (0, 0) if self._text is None else changed_lines(self._text, text)
        back = self._names.get(normal(text), "") if text else ""
        note = _RAN if self._ran else _FOUND
        self._add(
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
        self._ran = []

    def _settle(self) -> None:
        """Say of commands that they changed nothing."""
        for place in self._ran:
            settled = msgspec.structs.replace(
                self.versions[place],
                settled=True,
                text=self._text,
                known="unknown" if self._text is None else self._known,
            )
            self.versions[place] = settled
        self._ran = []

    def _set(self, text: str | None, known: Known, lines: Lines | None = None) -> None:
        self._text, self._known, self._lines = text, known, lines
        self._gone = False

    # Reads

    def _read(self, touch: Touch, said: Said) -> None:
        if said.after is not None:
            self._meet(touch, said.after)
            self._set(said.after, "exact")
        elif said.lines:
            self._stretch(touch, said)
        self._add(touch, "read", self._known, note=self._doubt())

    def _doubt(self) -> str:
        return _RAN_BEFORE if self._ran and self._known != "unknown" else ""

    def _stretch(self, touch: Touch, said: Said) -> None:
        """Take in some lines of the file."""
        if not said.lines:
            return
        if self._text is not None:
            known = Lines()
            known.put(1, self._text.replace("\r\n", "\n").split("\n"))
            known.total = len(known)
            # Lines behind the end, and another number of lines, are of another text.
            last = said.start + len(said.lines) - 1
            if last <= len(known) and known.agrees(said.start, said.lines, said.total):
                return
        elif self._lines is not None and self._lines.agrees(said.start, said.lines, said.total):
            self._merge(said)
            return
        fresh = Lines(said.total)
        fresh.put(said.start, said.lines)
        if self._text is not None or self._lines is not None:
            note = _RAN if self._ran else _FOUND
            self._set(None, "partial", fresh)
            self._add(touch, "outside", "partial", note=note, before=True)
            self._ran = []
        self._lines = fresh.copy()
        self._merge(said)

    def _merge(self, said: Said) -> None:
        lines = self._lines.copy() if self._lines is not None else Lines()
        lines.put(said.start, said.lines)
        lines.total = lines.total if said.total is None else said.total
        whole = lines.text
        if whole is not None:
            self._set(whole, "exact")
        else:
            self._set(None, "partial", lines)

    # Changes

    def _change(self, touch: Touch, said: Said) -> None:
        action = "read" if touch.tool == "attached" else facts_of(touch.tool).file_action
        verb = _VERBS.get(action, "edit")
        if said.after is not None:
            self._written(touch, verb, said, said.after)
            return
        if self._text is not None:
            after, note = _edited(self._text, said)
            if after is not None:
                if said.before is None:
                    note = note or self._doubt()
                added, removed = changed_lines(self._text, after)
                was = self._text
                self._set(after, "derived")
                self._add(touch, verb, "derived", added=added, removed=removed, note=note, was=was)
                return
        self._edited_in_part(touch, verb, said)

    def _written(self, touch: Touch, verb: Verb, said: Said, after: str) -> None:
        before = self._text
        note = ""
        if before is not None:
            if said.before is None and not said.fresh and said.patch:
                # No word of the file before but the patch: does it fit what was known?
                if fits(said.patch, before, after):
                    self._settle()
                else:
                    note = _UNFIT
            added, removed = changed_lines(before, after)
        else:
            added, removed = _signs(said.patch) if said.patch else (_count(after), 0)
        self._ran = []
        self._set(after, "exact")
        was = "" if said.fresh else before
        self._add(touch, verb, "exact", added=added, removed=removed, note=note, was=was)

    def _edited_in_part(self, touch: Touch, verb: Verb, said: Said) -> None:
        """Take in an edit of a file that is not known, or not as the edit has it."""
        note = _UNFIT if self._text is not None else _NOTHING_BEFORE
        lines = self._lines.copy() if self._lines is not None else Lines()
        if self._text is not None:
            lines.put(1, self._text.split("\n"))
        added, removed = _signs(said.patch) if said.patch else _told(said.changes)
        if said.patch:
            if not lines.patch(said.patch) and (self._text is not None or self._lines is not None):
                self._set(None, "unknown")
                self._add(touch, "outside", "unknown", note=_FOUND, before=True)
            self._set(None, "partial", lines)
        else:
            self._set(None, "unknown")
            note = note if said.changes else _NO_RESULT
        told = _wrote(said)
        self._add(touch, verb, self._known, added=added, removed=removed, note=note, wrote=told)

    def _add(
        self,
        touch: Touch,
        verb: Verb,
        known: Known,
        *,
        was: str | None = None,
        before: bool = False,
        **more: Any,
    ) -> None:
        """Add a version; `before` says that it was there before the touch that found it."""
        name = f"{touch.file}.{touch.offset}.{touch.place}" + ("b" if before else "")
        if verb != "command" and known != "unknown":
            more.setdefault("text", self._text)
            if self._lines is not None and more["text"] is None:
                more["pieces"] = self._lines.pieces()
                more["total"] = self._lines.total
        text: str | None = more.get("text")
        if text:
            self._names[normal(text)] = name
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


def _edited(before: str, said: Said) -> tuple[str | None, str]:
    """Return the file after an edit and what is odd about it; None where the edit does not fit."""
    first: str | None = None
    for way in said.changes:
        for after in _ways(before, way):
            if fits(said.patch, before, after):
                return after, ""
            first = after if first is None else first
    made = patched(before, said.patch) if said.patch else None
    if made is not None:
        # What a person changed before it was carried out is only in the patch.
        return made, ""
    return first, _MISFIT if first is not None else ""


def _ways(before: str, changes: Sequence[Change]) -> list[str]:
    """Return what some edits, one after the other, may have made of a text."""
    texts = [before]
    for change in changes:
        texts = [after for text in texts for after in replaced(text, change)][:4]
        if not texts and "\r" in before:
            return _ways(before.replace("\r\n", "\n"), changes)
    return texts


def _signs(patch: Sequence[Hunk]) -> tuple[int, int]:
    lines = [line[:1] for hunk in patch for line in hunk.lines]
    return lines.count("+"), lines.count("-")


def _wrote(said: Said) -> tuple[str, ...]:
    """Return the lines that an edit put in, as far as it tells."""
    if said.patch:
        lines = (line for hunk in said.patch for line in hunk.lines)
        return tuple(line[1:] for line in lines if line.startswith("+"))
    made: list[str] = []
    for change in said.changes[0] if said.changes else ():
        old = change.old.split("\n")
        made += [line for line in change.new.split("\n") if line not in old]
    return tuple(made)


def _told(ways: Sequence[Sequence[Change]]) -> tuple[int, int]:
    pairs = [changed_lines(change.old, change.new) for change in (ways[0] if ways else ())]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _count(text: str | None) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _command(touch: Touch) -> str:
    command = touch.asked.get("command")
    return command if isinstance(command, str) else ""
