"""Reads small configuration files: text, JSON, and Markdown with front matter.

Reads are limited in size and never raise: a file that is missing, too large or not text yields less
content, and a `ConfigNote` if the user should know.

Front matter is the part of YAML that commands, skills and agents use: strings (plain, quoted,
folded `>` and literal `|`), lists (`[a, b]` and `- a`), true and false. Nested mappings are
skipped; anything invalid is a note, not an error.
"""

import os
import re
import stat
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from steno.format.lenient_json import as_object

MAX_FILE_BYTES: Final = 1 << 20
"""Maximum number of bytes read of a file."""
_MAX_FILES: Final = 2000
_MAX_DEPTH: Final = 8


class ConfigNote(msgspec.Struct, frozen=True):
    """A one-line warning about configuration that was ignored."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def read_text(path: Path, notes: list[ConfigNote], max_bytes: int = MAX_FILE_BYTES) -> str | None:
    """Return the text of a file without a byte order mark; None if it does not exist.

    Only regular files are read, since a pipe or device could block.
    """
    try:
        with os.fdopen(_open_nonblocking(path), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, ValueError) as error:
        notes.append(ConfigNote(str(path), f"cannot read the file ({_error_text(error)})"))
        return None
    if len(data) > max_bytes:
        notes.append(ConfigNote(str(path), f"truncated to {max_bytes // 1024} KB"))
        data = data[:max_bytes]
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if "\0" in text:
        notes.append(ConfigNote(str(path), "ignored: not a text file"))
        return None
    return text.replace("\r\n", "\n")


def list_markdown_files(folder: Path, pattern: str = "*.md") -> list[Path]:
    """Return the matching files in a directory and its subdirectories, sorted by path.

    Links to directories are not followed, since they can form cycles.
    """
    paths: list[Path] = []
    pending = [(folder, 0)]
    while pending and len(paths) < _MAX_FILES:
        current, depth = pending.pop()
        try:
            entries = sorted(current.iterdir())
        except (OSError, ValueError):
            continue
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink() and depth < _MAX_DEPTH:
                pending.append((entry, depth + 1))
            elif entry.match(pattern):
                paths.append(entry)
    return sorted(paths)


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path is inside a directory, with all links resolved."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def parse_json(text: str, path: str, notes: list[ConfigNote]) -> dict[str, Any]:
    """Return the JSON object in a text; add a note and return an empty one if it is invalid."""
    if not text.strip():
        return {}
    try:
        value = as_object(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        notes.append(ConfigNote(path, f"ignored: {_first_line(error)}"))
        return {}
    if value is None:
        notes.append(ConfigNote(path, "ignored: not a JSON object"))
        return {}
    return value


def truncate(text: str, max_characters: int) -> str:
    """Return a text truncated to a maximum length, with a note on the omitted characters."""
    if len(text) <= max_characters:
        return text
    return f"{text[:max_characters]}\n[… {len(text) - max_characters} more characters omitted]"


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0] or "too deeply nested"


def _open_nonblocking(path: Path) -> int:
    # Non-blocking, because opening a pipe without a writer would hang.
    return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))


def _error_text(error: Exception) -> str:
    return error.strerror or "error" if isinstance(error, OSError) else "invalid path"


# Not PyYAML: front matter in use is often not valid YAML (`description: Use this: always`, `paths: **/*.py`,
# `argument-hint: [file] [more]`); of 27 typical lines PyYAML rejects nine and reads eight as another value
# (`yes`, `1.0`, dates). Without anchors, aliases and tags, input cannot expand.
FrontMatterValue: TypeAlias = str | bool | tuple[str, ...]

_KEY: Final = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$")
_ITEM: Final = re.compile(r"[ \t]*-(?:[ \t]+(.*))?$")
_BLOCK_MARK: Final = re.compile(r"([|>])([+-]?)\d?([+-]?)[ \t]*(?:#.*)?$")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "", '"': '"', "\\": "\\", "/": "/"}
_FENCE: Final = "---"


class FrontMatter(msgspec.Struct, frozen=True):
    """The values of front matter; a missing key yields an empty value."""

    values: dict[str, FrontMatterValue] = {}
    notes: tuple[str, ...] = ()

    def text(self, key: str) -> str:
        """Return a value as text; lists are joined by commas."""
        value = self.values.get(key, "")
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else ", ".join(value)

    def boolean(self, key: str, *, default: bool = False) -> bool:
        """Return a boolean; `default` if the value is missing or not a boolean."""
        value = self.values.get(key)
        if isinstance(value, str) and value.lower() in {"true", "false"}:
            return value.lower() == "true"
        return value if isinstance(value, bool) else default

    def items(self, key: str) -> tuple[str, ...] | None:
        """Return a list, also if written as `a, b` or `a b`; None if the key is missing.

        Commas and spaces inside brackets do not separate items: `Bash(git add:*, x)` is one item.
        """
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return None
        values = (value,) if isinstance(value, str) else value
        return tuple(word for text in values for word in _split_words(text))


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Return the front matter of a file and the body after it."""
    if not text.startswith(_FENCE) or text[3:].split("\n", 1)[0].strip():
        return FrontMatter(), text
    lines = text.split("\n")
    for number in range(1, len(lines)):
        if lines[number].rstrip() in {_FENCE, "..."}:
            return _parse_head(lines[1:number]), "\n".join(lines[number + 1 :]).removeprefix("\n")
    return FrontMatter(notes=("front matter has no closing `---`; treated as text",)), text


def _parse_head(lines: list[str]) -> FrontMatter:
    values: dict[str, FrontMatterValue] = {}
    notes: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _KEY.match(line)
        if match is None:
            notes.append(f"invalid line in the front matter: {line.strip()[:60]!r}")
            continue
        end = _value_end(lines, index)
        values[match[1]] = _parse_value((match[2] or "").strip(), lines[index:end])
        index = end
    return FrontMatter(values, tuple(notes))


def _value_end(lines: list[str], start: int) -> int:
    """Return the end of the lines that belong to the key above `start`."""
    end = start
    for number in range(start, len(lines)):
        line = lines[number]
        if line[:1] in {" ", "\t"} or _ITEM.match(line):
            end = number + 1
        elif line.strip():
            break
    return end


def _parse_value(first_line: str, following_lines: list[str]) -> FrontMatterValue:
    block = _BLOCK_MARK.match(first_line)
    if block is not None:
        return _parse_block(following_lines, folded=block[1] == ">", chomp=block[2] or block[3])
    if first_line.startswith("["):
        return _parse_flow_list(" ".join([first_line, *(line.strip() for line in following_lines)]))
    if first_line[:1] in {'"', "'"}:
        return _unquote(" ".join([first_line, *(line.strip() for line in following_lines if line.strip())]))
    first_line = _strip_comment(first_line)
    items = [match[1] or "" for match in map(_ITEM.match, following_lines) if match]
    if not first_line:
        if items:
            return tuple(_parse_scalar(item.strip()) for item in items)
        if any(_KEY.match(line.strip()) for line in following_lines):
            return ""
    continuation = [line.strip() for line in following_lines if line.strip()]
    if continuation:
        return " ".join(part for part in [first_line, *continuation] if part)
    return {"true": True, "false": False}.get(first_line.lower(), first_line)


def _parse_block(lines: list[str], *, folded: bool, chomp: str) -> str:
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    dedented = [line[depth:].rstrip() for line in lines]
    text = "\n".join(dedented)
    if folded:
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", text).replace("\n\n", "\n")
    text = text.strip("\n")
    return text if chomp == "-" else text + "\n"


def _parse_flow_list(text: str) -> tuple[str, ...]:
    inner = text[1:].rsplit("]", 1)[0]
    return tuple(_parse_scalar(part) for part in _split_outside_brackets(inner, ",") if part)


def _parse_scalar(text: str) -> str:
    return _unquote(text) if text[:1] in {'"', "'"} else _strip_comment(text)


def _strip_comment(text: str) -> str:
    """Remove a comment."""
    if text.startswith("#"):
        return ""
    return re.split(r"[ \t]#", text, maxsplit=1)[0].rstrip()


def _unquote(text: str) -> str:
    quote, characters, index = text[0], list[str](), 1
    while index < len(text):
        character = text[index]
        following = text[index + 1 : index + 2]
        if quote == '"' and character == "\\" and following in _ESCAPES:
            characters.append(_ESCAPES[following])
            index += 1
        elif quote == "'" and character == "'" and following == "'":
            characters.append("'")
            index += 1
        elif character == quote:
            break
        else:
            characters.append(character)
        index += 1
    return "".join(characters)


def _split_words(text: str) -> list[str]:
    parts = _split_outside_brackets(text, ",")
    if len(parts) == 1:
        parts = _split_outside_brackets(text, " ")
    return [part for part in parts if part]


def _split_outside_brackets(text: str, separator: str) -> list[str]:
    """Split at every separator outside brackets and quotes."""
    parts, depth, start, quote = list[str](), 0, 0, ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and not text[start:index].strip():
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == separator and depth <= 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]
