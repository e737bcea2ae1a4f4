"""What the model should always know: `CLAUDE.md` and its like, and the files they bring in.

First what the machine's manager and the user wrote, then what lies in the folders from the root
down to the project, so that what is nearest is read last. `AGENTS.md` counts in a folder without a
`CLAUDE.md`. A line may bring in another file with `@path`, five deep, but not from within code.

Nothing of a project counts before its folder is trusted.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from steno.agent.around_files import Note, inside, markdown_files, read_text
from steno.agent.frontmatter import split
from steno.store.places import config_dir, home_dir

__all__ = ["MANAGED", "Kind", "Memory", "Part", "load_memory", "mentions", "prose", "render"]

Kind: TypeAlias = Literal["managed", "user", "project", "local"]
MANAGED: Final = "/etc/claude-code"
_DEPTH: Final = 5
_MOST_FILE: Final = 256 * 1024
_MOST_ALL: Final = 1 << 20
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_MENTION: Final = re.compile(r"(?<![^\s(\[{\"'])@((?:\\ |[^\s\\])+)")
_ENDINGS: Final = ".,;:!?)]}\"'"
_SAYS: Final[Mapping[Kind, str]] = {
    "managed": "from whoever manages this machine",
    "user": "the user's own, for all projects",
    "project": "of the project, shared by all who work on it",
    "local": "the user's own, for this project",
}


class Part(msgspec.Struct, frozen=True):
    """One file's text."""

    path: str
    text: str
    kind: Kind
    importer: str = ""
    """The file that brought it in; empty for one that was found."""

    def facts(self) -> dict[str, str]:
        """Return what hooks are told of it."""
        told = {"file_path": self.path, "memory_type": self.kind.capitalize()}
        if not self.importer:
            return {**told, "load_reason": "session_start"}
        return {**told, "load_reason": "include", "parent_file_path": self.importer}


class Memory(msgspec.Struct, frozen=True):
    """All of it, in the order in which the model reads it."""

    parts: tuple[Part, ...] = ()
    text: str = ""
    notes: tuple[Note, ...] = ()


def load_memory(
    project: str,
    *,
    trusted: bool,
    outside: bool | None = None,
    env: Mapping[str, str] | None = None,
    managed: str = MANAGED,
) -> Memory:
    """Read the memory that counts in a project.

    Args:
        project: the folder that the session works in.
        trusted: whether its files count at all.
        outside: whether its files may bring in files from elsewhere; as `trusted` when not given.
        env: the environment that names the config folder.
        managed: the folder of the machine's manager.
    """
    home = Path(home_dir(env))
    reading = _Reading(home, Path(project), outside=trusted if outside is None else outside)
    above: tuple[tuple[Path, Kind], ...]
    above = ((Path(managed), "managed"), (Path(config_dir(env)), "user"))
    for folder, kind in above:
        reading.take(folder / "CLAUDE.md", kind, folder)
        reading.take_rules(folder / "rules", kind, folder)
    if trusted:
        _take_project(reading, Path(project), Path(config_dir(env)))
    return Memory(tuple(reading.parts), render(reading.parts), tuple(reading.notes))


def _take_project(reading: "_Reading", project: Path, config: Path) -> None:
    for folder in (*reversed(project.absolute().parents), project.absolute()):
        own = folder / ".claude"
        # The config folder may lie here; what is in it has been read as the user's.
        names = [folder / "CLAUDE.md", *([own / "CLAUDE.md"] if own != config else ())]
        found = [reading.take(path, "project", folder) for path in names]
        if not any(found):
            reading.take(folder / "AGENTS.md", "project", folder)
        if own != config:
            reading.take_rules(own / "rules", "project", folder)
        reading.take(folder / "CLAUDE.local.md", "local", folder)


def render(parts: "list[Part] | tuple[Part, ...]") -> str:
    """Return the words that the model reads; nothing when there is no memory."""
    if not parts:
        return ""
    blocks = [
        f"Contents of {part.path} ({_SAYS[part.kind]}"
        + (f"; brought in by {part.importer}" if part.importer else "")
        + f"):\n\n{part.text.strip()}"
        for part in parts
    ]
    head = (
        "The user and the project left these instructions. Follow them; where two of them"
        " disagree, the later one counts."
    )
    return "\n\n".join([head, *blocks])


class _Reading:
    """Reads files and what they bring in, each once."""

    def __init__(self, home: Path, project: Path, *, outside: bool) -> None:
        self.home = home
        self.project = project
        self.outside = outside
        self.parts: list[Part] = []
        self.notes: list[Note] = []
        self._seen: set[Path] = set()
        self._left = _MOST_ALL

    def take(self, path: Path, kind: Kind, folder: Path) -> bool:
        """Read a file that was found in a folder; return whether it is there."""
        if not path.is_file() or self._refused(path, kind, folder):
            return False
        return self._add(path, kind, folder, "", 0)

    def take_rules(self, rules: Path, kind: Kind, folder: Path) -> None:
        """Read the rules that always hold; one for certain paths is not for everybody."""
        for path in markdown_files(rules):
            text = read_text(path, [])
            if text is not None and split(text)[0].words("paths") is None:
                self.take(path, kind, folder)

    def _refused(self, path: Path, kind: Kind, folder: Path) -> bool:
        if kind in {"managed", "user"} or self.outside:
            return False
        if inside(path, folder) or inside(path, self.project):
            return False
        self.notes.append(Note(str(path), "left out: it lies outside the project"))
        return True

    def _add(self, path: Path, kind: Kind, folder: Path, importer: str, depth: int) -> bool:
        real = path.resolve()
        if real in self._seen:
            return True
        self._seen.add(real)
        text = read_text(path, self.notes, min(_MOST_FILE, max(self._left, 1)))
        if text is None:
            return False
        if self._left <= 0:
            self.notes.append(Note(str(path), "left out: there is more memory than fits"))
            return True
        text = _without_comments(text)
        self._left -= len(text)
        self.parts.append(Part(str(path), text, kind, importer))
        for named in self._named(text, path):
            if depth >= _DEPTH:
                self.notes.append(Note(str(named), f"left out: more than {_DEPTH} files deep"))
            elif not self._refused(named, kind, folder):
                self._add(named, kind, folder, str(path), depth + 1)
        return True

    def _named(self, text: str, path: Path) -> Iterator[Path]:
        for mention in mentions(text):
            for words in dict.fromkeys((mention, mention.rstrip(_ENDINGS))):
                named = self._resolved(words, path.parent)
                if named is not None and _is_file(named):
                    yield named
                    break

    def _resolved(self, words: str, beside: Path) -> Path | None:
        if not words:
            return None
        if words.startswith("~/"):
            return self.home / words[2:]
        return beside / words


def _without_comments(text: str) -> str:
    """Cut out what is a note among people; a comment within code is an example of one."""
    if "<!--" not in text:
        return text
    plain, out, at = prose(text), list[str](), 0
    while (start := plain.find("<!--", at)) >= 0 and (end := plain.find("-->", start)) >= 0:
        end += len("-->")
        line = plain.rfind("\n", 0, start) + 1
        # One that stands alone takes its line with it.
        alone = not plain[line:start].strip() and plain[end : end + 1] in {"\n", ""}
        out.append(text[at : max(line, at) if alone else start])
        at = end + 1 if alone else end
    return "".join([*out, text[at:]])


def mentions(text: str) -> tuple[str, ...]:
    """Return the paths that a text names with `@`, in order, each once; none from within code."""
    found = (match[1].replace("\\ ", " ") for match in _MENTION.finditer(prose(text)))
    return tuple(dict.fromkeys(found))


def prose(text: str) -> str:
    """Return a text with everything that is code blanked out; all else stays where it is."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            lines.append(" " * len(line))
        elif match and not (match[1][0] == "`" and "`" in line[match.end() :]):
            fence = match[1]
            lines.append(" " * len(line))
        else:
            lines.append(line)
    return _without_spans("\n".join(lines))


def _without_spans(text: str) -> str:
    """Blank out what stands between two runs of equally many backticks."""
    out, at = list[str](), 0
    runs = [(match.start(), match.end()) for match in re.finditer(r"`+", text)]
    closing: dict[int, int] = {}
    last: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        closing[number] = last.get(length, -1)
        last[length] = number
    number = 0
    while number < len(runs):
        end = closing[number]
        if end < 0:
            number += 1
            continue
        start, stop = runs[number][0], runs[end][1]
        out += [text[at:start], re.sub(r"[^\n]", " ", text[start:stop])]
        at, number = stop, end + 1
    return "".join([*out, text[at:]])


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
