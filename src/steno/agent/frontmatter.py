r"""The head of a Markdown file: the small part of YAML that commands, skills and agents use.

    ---
    description: Says hello
    allowed-tools: Read, Bash(git log:*)
    ---
    Hello $ARGUMENTS!

Strings (plain, quoted, folded `>` and literal `|`), lists (`[a, b]` and `- a`), true and false.
A mapping below a key is passed over. People write heads by hand, so a plain string may hold `: `
and anything odd becomes a note and not an error.
"""

import re
from typing import Final, TypeAlias

import msgspec

__all__ = ["Head", "Value", "split"]

Value: TypeAlias = str | bool | tuple[str, ...]

_KEY: Final = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$")
_ITEM: Final = re.compile(r"[ \t]*-(?:[ \t]+(.*))?$")
_BLOCK: Final = re.compile(r"([|>])([+-]?)\d?([+-]?)[ \t]*(?:#.*)?$")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "", '"': '"', "\\": "\\", "/": "/"}
_FENCE: Final = "---"


class Head(msgspec.Struct, frozen=True):
    """What a head says; a key that is not there reads as empty."""

    values: dict[str, Value] = {}
    notes: tuple[str, ...] = ()

    def text(self, key: str) -> str:
        """Return a string; a list is joined by commas."""
        value = self.values.get(key, "")
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else ", ".join(value)

    def flag(self, key: str, *, otherwise: bool = False) -> bool:
        """Return a boolean; `otherwise` where there is none."""
        value = self.values.get(key)
        if isinstance(value, str) and value.lower() in {"true", "false"}:
            return value.lower() == "true"
        return value if isinstance(value, bool) else otherwise

    def words(self, key: str) -> tuple[str, ...] | None:
        """Return a list, also one written as `a, b` or `a b`; None where the key is not there.

        Commas and spaces within brackets belong to the word: `Bash(git add:*, x)` is one.
        """
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return None
        given = (value,) if isinstance(value, str) else value
        return tuple(word for one in given for word in _words(one))


def split(text: str) -> tuple[Head, str]:
    """Return a file's head and the body below it."""
    if not text.startswith(_FENCE) or text[3:].split("\n", 1)[0].strip():
        return Head(), text
    lines = text.split("\n")
    for number in range(1, len(lines)):
        if lines[number].rstrip() in {_FENCE, "..."}:
            return _head(lines[1:number]), "\n".join(lines[number + 1 :]).removeprefix("\n")
    return Head(notes=("the head has no closing `---`; read as text",)), text


def _head(lines: list[str]) -> Head:
    values: dict[str, Value] = {}
    notes: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _KEY.match(line)
        if match is None:
            notes.append(f"not understood: {line.strip()[:60]!r}")
            continue
        end = _end(lines, at)
        values[match[1]] = _value((match[2] or "").strip(), lines[at:end])
        at = end
    return Head(values, tuple(notes))


def _end(lines: list[str], start: int) -> int:
    """Return where the lines end that belong to the key above `start`."""
    end = start
    for number in range(start, len(lines)):
        line = lines[number]
        if line[:1] in {" ", "\t"} or _ITEM.match(line):
            end = number + 1
        elif line.strip():
            break
    return end


def _value(first: str, below: list[str]) -> Value:
    block = _BLOCK.match(first)
    if block is not None:
        return _block(below, folded=block[1] == ">", chomp=block[2] or block[3])
    if first.startswith("["):
        return _flow(" ".join([first, *(line.strip() for line in below)]))
    if first[:1] in {'"', "'"}:
        return _quoted(" ".join([first, *(line.strip() for line in below if line.strip())]))
    first = _plain(first)
    items = [match[1] or "" for match in map(_ITEM.match, below) if match]
    if not first:
        if items:
            return tuple(_scalar(item.strip()) for item in items)
        if any(_KEY.match(line.strip()) for line in below):
            return ""
    more = [line.strip() for line in below if line.strip()]
    if more:
        return " ".join(part for part in [first, *more] if part)
    return {"true": True, "false": False}.get(first.lower(), first)


def _block(lines: list[str], *, folded: bool, chomp: str) -> str:
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    rows = [line[depth:].rstrip() for line in lines]
    text = "\n".join(rows)
    if folded:
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", text).replace("\n\n", "\n")
    text = text.strip("\n")
    return text if chomp == "-" else text + "\n"


def _flow(text: str) -> tuple[str, ...]:
    inner = text[1:].rsplit("]", 1)[0]
    return tuple(_scalar(part) for part in _parted(inner, ",") if part)


def _scalar(text: str) -> str:
    return _quoted(text) if text[:1] in {'"', "'"} else _plain(text)


def _plain(text: str) -> str:
    """Cut a comment off."""
    if text.startswith("#"):
        return ""
    return re.split(r"[ \t]#", text, maxsplit=1)[0].rstrip()


def _quoted(text: str) -> str:
    mark, out, at = text[0], list[str](), 1
    while at < len(text):
        letter = text[at]
        following = text[at + 1 : at + 2]
        if mark == '"' and letter == "\\" and following in _ESCAPES:
            out.append(_ESCAPES[following])
            at += 1
        elif mark == "'" and letter == "'" and following == "'":
            out.append("'")
            at += 1
        elif letter == mark:
            break
        else:
            out.append(letter)
        at += 1
    return "".join(out)


def _words(text: str) -> list[str]:
    parts = _parted(text, ",")
    if len(parts) == 1:
        parts = _parted(text, " ")
    return [part for part in parts if part]


def _parted(text: str, mark: str) -> list[str]:
    """Cut at every mark that is in no brackets and no quotes."""
    parts, depth, start, quote = list[str](), 0, 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and not text[start:at].strip():
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == mark and depth <= 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
