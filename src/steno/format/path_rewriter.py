"""Rewrites the paths of a project in JSON to another directory; no other bytes change.

    paths = PathRewriter([("/home/ada/work", "/srv/work")])
    paths.rewrite(line)            # bytes in, bytes and a count out
    paths.inverse().rewrite(…)     # reverse the change

A string is rewritten if it is the directory itself or a path below it, has no control character, and is not in a field
that contains text: a message, a command, or its output. Text is not changed, with one exception: Claude Code's note
with the path of a saved long output, because the model reads that path. Records of API requests are not changed, since
they contain a hash of themselves.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from steno.format.encode import encode

TEXT_FIELDS: Final = frozenset(
    {
        *("aiTitle", "addedLines", "answer", "answers", "body", "code", "command", "commands"),
        *("content", "customTitle", "description", "display", "error", "html", "input", "lastPrompt"),
        *("lines", "markdown", "message", "newString", "new_source", "new_string", "oldString"),
        *("old_string", "original", "originalFile", "originalFileContents", "output", "plan"),
        *("prompt", "prompts", "question", "reason", "removedLines", "rendered", "result"),
        *("stderr", "stdout", "summary", "system", "systemPrompt", "text", "thinking", "title"),
        *("toolUseResult", "workingDirectory"),
    }
)
"""Names of text fields, in which nothing is rewritten.

`workingDirectory` is included because Claude Code compares it with the current directory and tells the model if it has
changed.
"""
_STRING_END: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_CONTROL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\(?:[nrtbf]|u00[01])")
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]', re.DOTALL)
_API_REQUEST: Final = re.compile(rb'(?<!\\)"type"\s*:\s*"api-request')
_API: Final = b'"api-request'
_PERSISTED_OUTPUT: Final = b'"<persisted-output>\\n'
_PERSISTED_OUTPUT_PREFIX: Final = re.escape(_PERSISTED_OUTPUT) + rb'[^"\\/]{0,200}'
_FOLDER_END: Final = re.compile(rb'(?="|/|\\[/\\])')
_COLON: Final = re.compile(rb"\s*:")
_MAX_PATH_LENGTH: Final = 8192
_BLANKS: Final = b" \t\r\n"


class PathRewriter:
    """Old and new directories, deepest first; a directory may map to itself."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs: tuple[tuple[str, str], ...] = tuple(sorted(dict(pairs).items(), key=lambda pair: -len(pair[0])))
        self._new: dict[bytes, _FolderSpelling] = {}
        for old, new in self.pairs:
            turned = _is_windows(old) != _is_windows(new)
            for before, after in zip(_spellings(old), _spellings(new), strict=True):
                self._new.setdefault(before, _FolderSpelling(after, turned=turned))
        # Longest first, so that the mapping of a nested directory has precedence.
        self._olds = tuple(sorted(self._new, key=len, reverse=True))
        either = b"|".join(re.escape(old) + _FOLDER_END.pattern for old in self._olds) or b"(?!)"
        self._saved = re.compile(_PERSISTED_OUTPUT_PREFIX + b"(" + either + b")")

    def inverse(self) -> "PathRewriter":
        """Return the rewriter for the opposite direction."""
        return PathRewriter((new, old) for old, new in self.pairs)

    def rewrite_path(self, path: str) -> str:
        """Return the new path for a path."""
        for old, new in self.pairs:
            if path == old or path.startswith(old + ("\\" if _is_windows(old) else "/")):
                rest = path[len(old) :]
                if _is_windows(old) != _is_windows(new):
                    rest = rest.translate(str.maketrans("\\/", "/\\"))
                return new + rest
        return path

    def rewrite(self, data: bytes) -> tuple[bytes, int]:
        """Rewrite a JSON text or line; return it with the number of changed paths."""
        # A byte search is much faster than matching, and most lines contain no path.
        if not any(old in data for old in self._olds) or (_API in data and _API_REQUEST.search(data)):
            return data, 0
        replacements = sorted(self._replacements(data))
        parts: list[bytes] = []
        at = changed = 0
        for start, end, new in replacements:
            parts += (data[at:start], new)
            changed += data[start:end] != new
            at = end
        return b"".join((*parts, data[at:])), changed

    def _replacements(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        owners: dict[int, bytes] | None = None
        for start, old in self._folder_matches(data).items():
            folder_end = start + len(old)
            end = _STRING_END.match(data, folder_end)
            if end is None or end.end() - start > _MAX_PATH_LENGTH:
                continue
            if _CONTROL.search(data, folder_end, end.end()):
                continue
            if not _COLON.match(data, end.end()):
                owner = _field_of_value(data, start - 1)
                if owner is None:
                    owners = _fields_of_list_items(data) if owners is None else owners
                    owner = owners.get(start - 1, b"")
                if owner.decode("utf-8", "replace") in TEXT_FIELDS:
                    continue
            folder = self._new[old]
            converted_rest = folder.convert_separators(data[folder_end : end.end() - 1]) if folder.turned else b""
            yield (start, end.end() - 1 if folder.turned else folder_end, folder.name + converted_rest)
        yield from self._persisted_output_matches(data)

    def _folder_matches(self, data: bytes) -> dict[int, bytes]:
        matches: dict[int, bytes] = {}
        for old in self._olds:
            at = data.find(b'"' + old)
            while at >= 0:
                # A quote after a backslash is inside a string; any other quote here starts one.
                if data[at - 1 : at] != b"\\" and _FOLDER_END.match(data, at + 1 + len(old)):
                    matches.setdefault(at + 1, old)
                at = data.find(b'"' + old, at + 1)
        return matches

    def _persisted_output_matches(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield the replacements in notes about saved output."""
        at = data.find(_PERSISTED_OUTPUT)
        while at >= 0:
            match = self._saved.match(data, at)
            if match and data[at - 1 : at] != b"\\":
                yield match.start(1), match.end(1), self._new[match[1]].name
            at = data.find(_PERSISTED_OUTPUT, at + 1)


class _FolderSpelling(msgspec.Struct, frozen=True):
    name: bytes
    turned: bool

    def convert_separators(self, rest: bytes) -> bytes:
        """Return the rest of a path with the separators of the new directory's system."""
        if _is_windows(self.name.decode("utf-8", "replace")):
            return rest.replace(b"/", b"\\\\")
        return rest.replace(b"\\\\", b"/")


def _is_windows(path: str) -> bool:
    return not path.startswith(("/", "\\/")) and "\\" in path


def _spellings(path: str) -> Sequence[bytes]:
    """Return the JSON spellings of a path: as Claude Code writes it, in ASCII, and with escaped slashes."""
    usual = encode(path)[1:-1]
    ascii_only = re.sub(r"[^\x00-\x7f]", _escape_utf16, usual.decode("utf-8", "replace")).encode()
    return usual, ascii_only, usual.replace(b"/", b"\\/"), ascii_only.replace(b"/", b"\\/")


def _escape_utf16(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _field_of_value(line: bytes, start: int) -> bytes | None:
    """Return the name of the field whose value starts at a quote; None for an item of a list."""
    before = line[max(0, start - 200) : start].rstrip(_BLANKS)
    if not before.endswith(b":"):
        return None if before else b""
    match = re.search(rb'"([^"\\]*)"\s*:$', before)
    return match[1] if match else b""


def _fields_of_list_items(line: bytes) -> dict[int, bytes]:
    """Return, for each string in a list, the name of the field that contains the list."""
    owners: dict[int, bytes] = {}
    enclosing: list[bytes] = []
    name = b""
    for match in _TOKEN.finditer(line):
        token = match[0]
        if token in (b"{", b"["):
            enclosing.append(name)
        elif token in (b"}", b"]"):
            name = enclosing.pop() if enclosing else b""
        elif token == b",":
            name = enclosing[-1] if enclosing else b""
        elif token != b":":
            owners[match.start()] = enclosing[-1] if enclosing else b""
            name = token[1:-1]
    return owners
