"""A project's paths in JSON, put below another folder: only those bytes change, and no others.

    paths = Reroot([("/home/ada/work", "/srv/work")])
    paths.apply(line)        # bytes in, bytes out
    paths.back().apply(…)    # and the way back

A string is taken for a path when it is the folder itself or something below it, holds no control
character, and does not stand where words stand: in a text, a command, the output of one. What was
said stays as it was said; where it happened is where the project is now. One text is looked into:
the client's own note of where it saved a long output, which a model follows. Records of API
requests stay whole, since they bear a hash of themselves.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from steno.format.encode import encode

__all__ = ["WORDS", "Reroot"]

WORDS: Final = frozenset(
    {
        *("aiTitle", "addedLines", "answer", "answers", "body", "code", "command", "commands"),
        *(
            "content",
            "customTitle",
            "description",
            "display",
            "error",
            "html",
            "input",
            "lastPrompt",
        ),
        *("lines", "markdown", "message", "newString", "new_source", "new_string", "oldString"),
        *("old_string", "original", "originalFile", "originalFileContents", "output", "plan"),
        *("prompt", "prompts", "question", "reason", "removedLines", "rendered", "result"),
        *("stderr", "stdout", "summary", "system", "systemPrompt", "text", "thinking", "title"),
        *("toolUseResult", "workingDirectory"),
    }
)
"""The names of fields in which nothing is changed: what was said, and what the model was told.

`workingDirectory` is of the latter: the client compares it with where it is, and tells the model of
the move, which it would not if it were rewritten.
"""
_END: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_CONTROL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\(?:[nrtbf]|u00[01])")
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]', re.DOTALL)
_WHOLE: Final = re.compile(rb'(?<!\\)"type"\s*:\s*"api-request')
_API: Final = b'"api-request'
_SAVED: Final = b'"<persisted-output>\\n'
_SAVED_IN: Final = re.escape(_SAVED) + rb'[^"\\/]{0,200}'
_BEHIND: Final = re.compile(rb'(?="|/|\\[/\\])')
_NAME: Final = re.compile(rb"\s*:")
_LONGEST: Final = 8192
_BLANKS: Final = b" \t\r\n"


class Reroot:
    """Folders and what they are now, the deepest first; a folder may stay what it is."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs: tuple[tuple[str, str], ...] = tuple(
            sorted(dict(pairs).items(), key=lambda pair: -len(pair[0]))
        )
        self._new: dict[bytes, _Folder] = {}
        for old, new in self.pairs:
            turned = _is_windows(old) != _is_windows(new)
            for before, after in zip(_spellings(old), _spellings(new), strict=True):
                self._new.setdefault(before, _Folder(after, turned=turned))
        # The longest first: what a deeper folder has become wins.
        self._olds = tuple(sorted(self._new, key=len, reverse=True))
        either = b"|".join(re.escape(old) + _BEHIND.pattern for old in self._olds) or b"(?!)"
        self._saved = re.compile(_SAVED_IN + b"(" + either + b")")

    def back(self) -> "Reroot":
        """Return the way back."""
        return Reroot((new, old) for old, new in self.pairs)

    def path(self, path: str) -> str:
        """Return where a path leads now."""
        for old, new in self.pairs:
            if path == old or path.startswith(old + ("\\" if _is_windows(old) else "/")):
                rest = path[len(old) :]
                if _is_windows(old) != _is_windows(new):
                    rest = rest.translate(str.maketrans("\\/", "/\\"))
                return new + rest
        return path

    def apply(self, data: bytes) -> tuple[bytes, int]:
        """Return a piece of JSON, or a line, with the paths as they are now, and how many."""
        # To look for bytes is far cheaper than to match: most lines have none of these.
        if not any(old in data for old in self._olds) or (_API in data and _WHOLE.search(data)):
            return data, 0
        spots = sorted(self._spots(data))
        parts: list[bytes] = []
        at = changed = 0
        for start, end, new in spots:
            parts += (data[at:start], new)
            changed += data[start:end] != new
            at = end
        return b"".join((*parts, data[at:])), changed

    def _spots(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield what is to be something else: where it begins and ends, and what it will be."""
        owners: dict[int, bytes] | None = None
        for start, old in self._beginnings(data).items():
            behind = start + len(old)
            end = _END.match(data, behind)
            if end is None or end.end() - start > _LONGEST:
                continue
            if _CONTROL.search(data, behind, end.end()):
                continue
            if not _NAME.match(data, end.end()):
                owner = _owner(data, start - 1)
                if owner is None:
                    owners = _owners(data) if owners is None else owners
                    owner = owners.get(start - 1, b"")
                if owner.decode("utf-8", "replace") in WORDS:
                    continue
            folder = self._new[old]
            turned = folder.turn(data[behind : end.end() - 1]) if folder.turned else b""
            yield start, end.end() - 1 if folder.turned else behind, folder.name + turned
        yield from self._notes(data)

    def _beginnings(self, data: bytes) -> dict[int, bytes]:
        """Return where strings begin with a folder, and with which."""
        found: dict[int, bytes] = {}
        for old in self._olds:
            at = data.find(b'"' + old)
            while at >= 0:
                # A quote behind a backslash is part of a text; any other here opens a string.
                if data[at - 1 : at] != b"\\" and _BEHIND.match(data, at + 1 + len(old)):
                    found.setdefault(at + 1, old)
                at = data.find(b'"' + old, at + 1)
        return found

    def _notes(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield the same for the client's notes of where it saved something."""
        at = data.find(_SAVED)
        while at >= 0:
            found = self._saved.match(data, at)
            if found and data[at - 1 : at] != b"\\":
                yield found.start(1), found.end(1), self._new[found[1]].name
            at = data.find(_SAVED, at + 1)


class _Folder(msgspec.Struct, frozen=True):
    """A folder as it is spelled, and whether its system writes paths the other way."""

    name: bytes
    turned: bool

    def turn(self, rest: bytes) -> bytes:
        """Return the rest of a path as this folder's system writes it."""
        if _is_windows(self.name.decode("utf-8", "replace")):
            return rest.replace(b"/", b"\\\\")
        return rest.replace(b"\\\\", b"/")


def _is_windows(path: str) -> bool:
    return not path.startswith(("/", "\\/")) and "\\" in path


def _spellings(path: str) -> Sequence[bytes]:
    """Return how JSON may spell a path: as the clients do, in ASCII, with slashes escaped."""
    usual = encode(path)[1:-1]
    ascii_only = re.sub(r"[^\x00-\x7f]", _escaped, usual.decode("utf-8", "replace")).encode()
    return usual, ascii_only, usual.replace(b"/", b"\\/"), ascii_only.replace(b"/", b"\\/")


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _owner(line: bytes, start: int) -> bytes | None:
    """Return the name of the field whose value begins at a quote; None for one of a list."""
    before = line[max(0, start - 200) : start].rstrip(_BLANKS)
    if not before.endswith(b":"):
        return None if before else b""
    named = re.search(rb'"([^"\\]*)"\s*:$', before)
    return named[1] if named else b""


def _owners(line: bytes) -> dict[int, bytes]:
    """Return for each string in a list the name of the field that the list belongs to."""
    owners: dict[int, bytes] = {}
    around: list[bytes] = []
    name = b""
    for found in _TOKEN.finditer(line):
        token = found[0]
        if token in (b"{", b"["):
            around.append(name)
        elif token in (b"}", b"]"):
            name = around.pop() if around else b""
        elif token == b",":
            name = around[-1] if around else b""
        elif token != b":":
            owners[found.start()] = around[-1] if around else b""
            name = token[1:-1]
    return owners
