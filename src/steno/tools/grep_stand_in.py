"""Searches in the place of ripgrep where it is not there, and says the same in the same form.

It is run as a program: a regular expression can keep Python busy for ever, and a program can be
ended.
"""

import os
import re
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from steno.tools.grep_search import LONGEST, WRONG, Search
from steno.tools.listing import walk
from steno.tools.patterns import glob_pattern
from steno.tools.texts import MOST_WHOLE, decode

__all__ = ["main"]

_TYPES: Final = {
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h}",
    "css": "*.{css,scss}",
    "go": "*.go",
    "html": "*.{html,htm}",
    "java": "*.java",
    "js": "*.{js,jsx,mjs,cjs}",
    "json": "*.json",
    "md": "*.{md,markdown}",
    "php": "*.php",
    "py": "*.{py,pyi}",
    "ruby": "*.rb",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh}",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,mts,cts}",
    "txt": "*.txt",
    "xml": "*.xml",
    "yaml": "*.{yaml,yml}",
}


def main() -> None:
    """Search as ripgrep would, and say it in the same form."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Search)
    folder, name = sys.argv[1:3]
    flags = re.IGNORECASE * asked.ignore_case | (re.DOTALL | re.MULTILINE) * asked.multiline
    if asked.type and asked.type not in _TYPES:
        sys.exit(_complaint(f"unrecognized file type: {asked.type}"))
    if "\\n" in asked.pattern and not asked.multiline:
        sys.exit(_complaint('the literal "\\n" is not allowed without multiline'))
    try:
        pattern = re.compile(asked.pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        sys.exit(_complaint(f"regex parse error: {error}"))
    for path in [name] if name else sorted(walk(folder)):
        text = _text_in(os.path.join(folder, path)) if name or _is_wanted(path, asked) else None
        if text is not None:
            _say(os.fsencode(f"./{path}") + b"\0", text, pattern, asked)


def _complaint(words: str) -> int:
    sys.stderr.write(words)
    return WRONG


def _is_wanted(path: str, asked: Search) -> bool:
    if asked.type and not glob_pattern(_TYPES[asked.type]).fullmatch(path):
        return False
    wanted = [glob for glob in asked.globs if not glob.startswith("!")]
    unwanted = [glob[1:] for glob in asked.globs if glob.startswith("!")]
    if any(glob_pattern(glob).fullmatch(path) for glob in unwanted):
        return False
    return not wanted or any(glob_pattern(glob).fullmatch(path) for glob in wanted)


def _text_in(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_WHOLE + 1)
    except OSError:
        return None
    text = decode(data) if len(data) <= MOST_WHOLE else None
    return text.text if text is not None else None


def _say(head: bytes, text: str, pattern: re.Pattern[str], asked: Search) -> None:
    lines = text.removesuffix("\n").split("\n")
    found = list(_matches(text, lines, pattern, asked))
    if not found:
        return
    out = sys.stdout.buffer
    if asked.output_mode == "files_with_matches":
        out.write(head)
    elif asked.output_mode == "count":
        out.write(head + b"%d\n" % len({line for line, _ in found}))
    elif asked.only:
        for line, words in found:
            out.write(_row(head, line, ":", words, asked))
    else:
        matched = {line for line, _ in found}
        before, after = asked.around
        near = {n for line in matched for n in range(line - before, line + after + 1)}
        last = -1
        for line in sorted(near & set(range(len(lines)))):
            if (before or after) and line != last + 1:
                out.write(b"--\n")
            out.write(_row(head, line, ":" if line in matched else "-", lines[line], asked))
            last = line
        out.write(b"--\n" if before or after else b"")


def _row(head: bytes, line: int, sign: str, words: str, asked: Search) -> bytes:
    number = f"{line + 1}{sign}" if asked.numbers else ""
    cut = words if len(words) <= LONGEST else f"{words[:LONGEST]} [... cut]"
    return head + f"{number}{cut}\n".encode("utf-8", "replace")


def _matches(
    text: str, lines: list[str], pattern: re.Pattern[str], asked: Search
) -> Iterator[tuple[int, str]]:
    """Give the numbers of lines, from 0 on, and what matched in them."""
    if not asked.multiline:
        for number, line in enumerate(lines):
            yield from ((number, match[0]) for match in pattern.finditer(line))
        return
    for match in pattern.finditer(text):
        first = text.count("\n", 0, match.start())
        for number, words in enumerate(match[0].removesuffix("\n").split("\n"), first):
            yield number, words


if __name__ == "__main__":
    main()
