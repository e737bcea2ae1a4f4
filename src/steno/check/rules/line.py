"""Lines: bytes that are not a sound line of JSON, and flaws inside lines that are."""

from typing import Final

import msgspec

from steno.check.evidence import Evidence, RecordView
from steno.check.findings import Findings, Location, Rule
from steno.format.lenient_json import MAX_DEPTH
from steno.format.records import Gap
from steno.format.salvage import find_flaws
from steno.format.source import Damage

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "line.torn",
        "error",
        "a record was cut off",
        "what it said is lost; `steno repair` takes the fragment out",
        "The writer was stopped inside a line: a crash, a full disk, a killed process. No client "
        "can read the fragment, and all pass over it. When it is the last line, clients before "
        "2.1.325 write their next record right behind it and lose that one too. Repair takes the "
        "fragment out; what was never written cannot be brought back.",
    ),
    Rule(
        "line.glued",
        "error",
        "two records stand on one line",
        "clients lose at least one of them; `steno repair` puts the newline back",
        "A newline is missing between two records. Clients up to 2.1.200 write so when they go on "
        "with a file that did not end in a newline, and so do tools that join files. The clients "
        "read line by line: 2.1.325 takes the first record of such a line, older ones neither. "
        "Repair puts the newline back, and both are read again.",
    ),
    Rule(
        "line.spliced",
        "error",
        "a whole record stands behind a cut-off one on the same line",
        "no client reads it; `steno repair` gives it a line of its own",
        "A record was cut off and the next was written right behind the fragment. The line as a "
        "whole is no JSON, so every client passes over it and the sound record is lost with the "
        "broken one. Repair takes the fragment out and keeps the record.",
    ),
    Rule(
        "line.nul-run",
        "error",
        "zero bytes stand in the file",
        "clients lose the record behind them; `steno repair` takes them out",
        "The file system lost what was written shortly before a crash and left zeros in its place. "
        "Where a record follows on the same line, no client can read that line. Repair takes the "
        "zeros out and keeps the record; what the zeros replaced is gone.",
    ),
    Rule(
        "line.not-json",
        "error",
        "a line is not JSON",
        "every client passes over it; `steno repair` takes it out",
        "The line holds something that no reader takes for a record: the end of a record whose "
        "beginning is lost, or text of another program. Clients pass over it in silence. If a "
        "record stood there once, its children name a parent that is not in the file.",
    ),
    Rule(
        "line.control",
        "error",
        "a string holds a raw control character",
        "the real client skips this line; `steno repair` escapes the character",
        "JSON wants control characters inside strings to be escaped. Python can write and read "
        "them raw, the real client cannot: it passes over the whole line, and the record is lost. "
        "Repair writes the record again with the character escaped.",
    ),
    Rule(
        "line.number",
        "error",
        "a number is one that JSON does not have",
        "the real client skips this line; `steno repair` writes null in its place",
        "`NaN` and `Infinity` are written by some libraries, but they are not JSON. The real client "
        "passes over the whole line, and the record is lost. Repair writes null, as JavaScript "
        "itself would have done.",
    ),
    Rule(
        "line.utf8",
        "warning",
        "bytes are not UTF-8",
        "readers show a replacement character or refuse the line",
        "The bytes were cut inside a character, or written in another encoding. The real client "
        "reads a replacement character instead of each; strict readers refuse the line. What stood "
        "there cannot be told from the file.",
    ),
    Rule(
        "line.surrogate",
        "warning",
        "a string holds half of a surrogate pair",
        "the real client reads it, other readers and the API may refuse it",
        "A character beyond the first 65,536 was cut in two, mostly by shortening a text by its "
        "length in JavaScript. JavaScript can hold the half, UTF-8 cannot: a request with it in it "
        "may be refused, and strict readers refuse the line.",
    ),
    Rule(
        "line.oversize",
        "warning",
        "a line is longer than 64 MiB and was not read",
        "nothing is known of what it holds, and it is kept as it is; records that hang on it seem to have no parent",
        "Reading a line takes memory in proportion to its length, so lines beyond 64 MiB are passed "
        "over. Nothing else is said about such a line; its record may be sound, and records that "
        "hang on it seem to have no parent. Clients have no such limit. Repair keeps the line, and "
        "does not bridge over it.",
    ),
    Rule(
        "line.depth",
        "warning",
        "a line nests deeper than readers can be expected to follow",
        "no client writes this; readers may fail on it",
        "Many decoders go down one call for each level and give up, or crash, beyond some depth. "
        "No client writes anything of the kind, so the line was made by hand or to do harm.",
    ),
    Rule(
        "line.duplicate-key",
        "warning",
        "a key stands twice in one object",
        "readers differ in which value they take; the real client takes the last",
        "JSON does not say what a repeated key means. JavaScript and Python take the last value, "
        "some readers the first, and some refuse the line. No client writes it.",
    ),
    Rule(
        "line.not-object",
        "warning",
        "a line is JSON, but not an object",
        "every client passes over it",
        "Every record is an object. A line that holds a list, a string or a number was not written "
        "by a client; all of them pass over it.",
    ),
    Rule(
        "line.bom",
        "info",
        "the file begins with a byte order mark",
        "harmless: the clients read past it",
        "Some editors on Windows put it there. The clients read past it; tools that decode the "
        "first line as it is may not.",
    ),
    Rule(
        "line.crlf",
        "info",
        "lines end as on Windows",
        "harmless: the clients read past it",
        "The file went through an editor or a tool that changes line endings. The clients read "
        "such lines. It is said once per file.",
    ),
    Rule(
        "line.bigint",
        "info",
        "an integer is too big for JavaScript",
        "the real client reads a number near it",
        "JavaScript holds integers exactly up to 9,007,199,254,740,992. A bigger one loses its last "
        "digits when the real client reads it, and when it writes the value back.",
    ),
    Rule(
        "line.no-newline",
        "info",
        "the file does not end in a newline",
        "clients before 2.1.325 glue their next record onto the last line; go on with a newer one",
        "The last record is whole and every client reads it. 2.1.325 writes a newline before it "
        "goes on; 2.0.76, 2.1.42 and 2.1.200 do not, so their first new record ends up on the same "
        "line, and both are lost to older clients. Nothing is damaged yet: repair leaves such a file as "
        "it is, and parts the records once they are glued.",
    ),
)
_RULES: Final = {rule.id: rule for rule in RULES}
_ONCE_PER_FILE: Final = frozenset(("line.crlf",))
# The zeros have a gap of their own, which was noted already.
_GAP_RULES: Final = frozenset(("line.nul-run",))

_encode: Final = msgspec.json.Encoder().encode
_MANY_DIGITS: Final = b"0" * 16
# One pass over the bytes for two questions: digits become 0, opening brackets become (.
_SHAPE: Final = bytes(
    ord("0") if byte in b"0123456789" else ord("(") if byte in b"[{" else ord(" ") for byte in range(256)
)


class FileChecker:
    """Looks at the bytes of every piece of one file."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def on_gap(self, gap: Gap, location: Location, findings: Findings) -> None:
        """Turn what is wrong with bytes that are no record into findings."""
        for note in gap.damage:
            self._add(note, location, findings)

    def on_irregular(self, view: RecordView, findings: Findings) -> None:
        """Turn what was noted about a record, or is odd inside its line, into findings."""
        record = view.record
        for note in record.notes:
            if note.id not in _GAP_RULES:
                self._add(note, view.location, findings)
        if not _is_sound(view):
            for note in find_flaws(record.line, record.offset):
                self._add(note, view.location, findings)

    def on_end(self, evidence: Evidence) -> None:
        """Say whether the last line was left open; a cut-off one was noted already."""
        nodes, gaps = evidence.transcript.nodes, evidence.transcript.gaps
        source = evidence.transcript.source
        if not nodes or source.read(source.size - 1, 1) == b"\n":
            return
        if gaps and gaps[-1].damage and gaps[-1].offset > nodes[-1].offset:
            return
        evidence.add_finding(_RULES["line.no-newline"], nodes[-1])

    def _add(self, note: Damage, location: Location, findings: Findings) -> None:
        rule = _RULES[note.id]
        if rule.id in _ONCE_PER_FILE:
            if rule.id in self._reported:
                return
            self._reported.add(rule.id)
        message = f"{rule.title}: {note.message}" if note.message else rule.title
        findings.add(rule, Location(location.line, note.span, location.uuid), message)


def _is_sound(view: RecordView) -> bool:
    """Whether a line certainly has no flaw; far cheaper than looking for one.

    A line that is the same when it is written again has no key twice and no odd escape.
    """
    line = view.record.line
    try:
        if _encode(view.fields) != line:
            return False
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        return False
    shape = line.translate(_SHAPE)
    return _MANY_DIGITS not in shape and shape.count(b"(") <= MAX_DEPTH
