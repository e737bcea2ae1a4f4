"""Commands that show the content of files they are not given by name: `grep -r`, `git log -p`.

With a rule that denies reading a file, a rule such as `Bash(grep:*)` must not show that file. What
a command may show is either everything (git shows old versions of any file) or the files below
some folders.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from steno.guard.paths import Place
from steno.guard.words import HOLE, Command, Word, literal, names
from steno.guard.wrappers import base_name

__all__ = [
    "Shown",
    "files_below",
    "formats_raw",
    "is_process_path",
    "joined_values",
    "path_pieces",
    "shown_by",
]

_MOST_FILES: Final = 2000
_MOST_PIECES: Final = 64
_MOST_LINKS: Final = 40
_MOST_LETTERS: Final = 12


class Shown(msgspec.Struct, frozen=True):
    """What a command shows besides the files that its words name."""

    folders: tuple[Word, ...] = ()
    everything: bool = False


def shown_by(command: Command) -> Shown:
    """Return what a command may show of files it is not given by name."""
    if not command.words:
        return Shown()
    reader = _READERS.get(base_name(command.program))
    return reader(command.words[1:]) if reader is not None else Shown()


# Searching and copying


def _operands(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words that may be folders; options and their values are looked at as well."""
    return tuple(word for word in words if not word.text.startswith("-"))


def _always(words: tuple[Word, ...]) -> Shown:
    return Shown(_operands(words))


# Letters of options without a value, by program; the word after any other option may be its value.
_GREP_FLAGS: Final = "EFGPiyvwxcLlqsobHhnTZzaIrRUu"
_RG_FLAGS: Final = "acFhHiIlLnNoPpqsSuUvVwxz0."
_LONG_FLAGS: Final = names(
    "--recursive --dereference-recursive --ignore-case --no-ignore-case --line-number --word-regexp"
    " --line-regexp --count --files-with-matches --files-without-match --no-messages --hidden"
    " --no-ignore --fixed-strings --extended-regexp --basic-regexp --perl-regexp --pcre2"
    " --with-filename --no-filename --only-matching --invert-match --null --null-data --text --quiet"
    " --silent --heading --no-heading --smart-case --case-sensitive --multiline --follow --stats"
    " --trim --json --column --vimgrep --no-config --no-line-number --color --colour"
)
_PATTERN_OPTION: Final = re.compile(r"-[^-]*[ef]|--(?:regexp|file)(?:=|$)")


def _search(words: tuple[Word, ...], flags: str) -> Shown:
    """`rg x`: the folder it runs in, unless it is given files or folders after the pattern."""
    certain = 0
    is_value = False
    for word in words:
        if word.text.startswith("-") and len(word.text) > 1:
            is_value = _may_take_value(word.text, flags)
        else:
            certain += not is_value
            is_value = False
    named = any(_PATTERN_OPTION.match(word.text) for word in words)
    given = _operands(words)
    least = 1 if named else len(("pattern", "folder"))
    return Shown((*given, literal(".")) if certain < least else given)


def _may_take_value(text: str, flags: str) -> bool:
    """Whether the word after an option may be its value."""
    if text.startswith("--"):
        return text != "--" and "=" not in text and text not in _LONG_FLAGS
    first = next((at for at, letter in enumerate(text[1:], 1) if letter not in flags), 0)
    # What follows such a letter in the same word is its value: `-m5`.
    return first == len(text) - 1 and not text[first].isdigit()


def _searches(words: tuple[Word, ...]) -> Shown:
    return _search(words, "")


def _ripgrep(words: tuple[Word, ...]) -> Shown:
    return _search(words, _RG_FLAGS)


def _grep(words: tuple[Word, ...]) -> Shown:
    deep = any(re.match(r"-[^-]*[rRd]|--(?:r|d)", word.text) for word in words)
    return _search(words, _GREP_FLAGS) if deep else Shown()


def _recursive(words: tuple[Word, ...]) -> Shown:
    deep = any(re.match(r"-[^-]*[rRa]|--(?:r|a)", word.text) for word in words)
    return Shown(_operands(words)) if deep else Shown()


# git

_GIT_ALWAYS: Final = names(
    "grep cat-file archive format-patch bundle fast-export diff-tree diff-index diff-files"
    " range-diff checkout-index pack-objects difftool annotate request-pull send-email merge-file"
    " unpack-file show-index merge-tree apply am rerere svn p4 instaweb daemon upload-pack"
)
_GIT_PATCHES: Final = names("diff show whatchanged stash")
_GIT_REFERENCES: Final = names("for-each-ref tag branch")
_HEAD: Final = re.compile(r"HEAD(?:[~^][0-9]*)*")
_GIT_LOGS: Final = names("log reflog shortlog rev-list")
_NO_CONTENT: Final = re.compile(
    r"--(?:stat|shortstat|numstat|name-only|name-status|summary|dirstat|quiet|no-patch|raw"
    r"|compact-summary)(?:=.*)?|-s"
)
_PATCH: Final = re.compile(r"--pat.*|--unif.*|-[a-zA-Z]*[pu].*|-U.*|--cc|--word-diff.*|--bin.*")
_LOG_ONLY: Final = re.compile(
    r"-[0-9]+|-n[0-9]*|-[isEFv]|--(?:oneline|graph|all|decorate|no-decorate|abbrev-commit|since|until"
    r"|after|before|author|committer|grep|max-count|skip|reverse|merges|no-merges|first-parent|follow"
    r"|date|no-color|color|tags|branches|remotes|left-right|boundary|date-order|topo-order|source"
    r"|format|pretty|count|summary|numbered|email|stat|shortstat|numstat|name-only|name-status"
    r"|no-patch|raw|diff-filter|no-pager|cherry-pick|cherry|no-walk|walk-reflogs)(?:=.*)?|-[sne]+"
)


def _git(words: tuple[Word, ...]) -> Shown:
    at = next((at for at, word in enumerate(words) if not word.text.startswith("-")), len(words))
    if at == len(words):
        return Shown()
    verb, rest = words[at].text, words[at + 1 :]
    options = [word.text for word in rest if word.text.startswith("-") and word.text != "--"]
    if verb in _GIT_ALWAYS:
        return _limited(rest)
    if verb == "mv":
        return Shown(_operands(rest))
    if verb == "clone":
        # A copy of a repository on this machine has the files of it under other names.
        local = any(re.match(r"[^:]*(?:/|$)|file:", word.text) for word in _operands(rest)[:1])
        return Shown(everything=local)
    if verb in _GIT_REFERENCES:
        return Shown(everything=formats_raw(rest))
    if verb in _GIT_PATCHES:
        silent = any(map(_NO_CONTENT.fullmatch, options)) or (
            verb == "stash" and (not rest or rest[0].text != "show")
        )
        if verb == "show":
            # Of a name that is not a commit's, the content is shown whatever the options are.
            silent = silent and all(_HEAD.fullmatch(word.text) for word in _operands(rest))
        patch = any(map(_PATCH.fullmatch, options))
        return Shown() if silent and not patch else _limited(rest)
    if verb in _GIT_LOGS:
        return Shown() if all(map(_LOG_ONLY.fullmatch, options)) else _limited(rest)
    shows = verb in {"status", "commit", "add", "checkout", "reset", "restore"}
    if shows and any(re.match(r"-[a-zA-Z]*[vp]|--(?:v|p)", option) for option in options):
        return Shown(everything=True)
    return Shown()


def formats_raw(words: tuple[Word, ...]) -> bool:
    """Whether a format may print the object that a reference names, which may be a file."""
    given = any(word.text.startswith("--f") for word in words)
    return given and any("raw" in word.text or HOLE in word.text for word in words)


def _limited(rest: tuple[Word, ...]) -> Shown:
    """Return the paths after `--` or in `REVISION:path`; everything when there are none."""
    at = next((at for at, word in enumerate(rest) if word.text == "--"), None)
    paths: tuple[Word, ...] = rest[at + 1 :] if at is not None else ()
    if at is None:
        given = _operands(rest)
        named = [word.text.partition(":")[2] for word in given]
        paths = tuple(map(literal, named)) if given and all(named) else ()
    if not paths or any(re.search(r"[*?\[:]|" + HOLE, word.text) for word in paths):
        return Shown(everything=True)
    return Shown(paths)


_READERS: Final[Mapping[str, Callable[[tuple[Word, ...]], Shown]]] = {
    "git": _git,
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "ggrep"), _grep),
    **dict.fromkeys(("rg", "ripgrep"), _ripgrep),
    **dict.fromkeys(("ag", "ack", "ugrep", "ug"), _searches),
    **dict.fromkeys(
        (
            "diff",
            "colordiff",
            "tar",
            "gtar",
            "bsdtar",
            "7z",
            "7za",
            "7zz",
            "rsync",
            "mv",
            "vimdiff",
        ),
        _always,
    ),
    **dict.fromkeys(("zip", "cp", "scp", "gzip", "zstd", "xz"), _recursive),
}


# Files and paths


def files_below(folder: str) -> Iterator[Place | None]:
    """Yield the places below a folder, a bounded number of them; None when there are more."""
    seen = 0
    folders = [folder]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except (OSError, ValueError):
            continue
        for entry in entries:
            seen += 1
            if seen > _MOST_FILES:
                yield None
                return
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            yield Place.of(entry.path)


def path_pieces(word: Word) -> Iterator[Word]:
    """Yield the parts of a word that a program may take for a path: `HEAD:.env`, `x=@.env`."""
    text = word.text
    if re.search(r"\s", text) or not word.literal:
        return
    rest = re.sub(r"^.*?file://", "", text)
    pieces = re.split(r"[=:@,;]", text, maxsplit=_MOST_PIECES)
    for start in range(1, len(pieces)):
        piece = pieces[start].lstrip("<")
        if piece:
            yield literal(piece)
    if rest != text:
        yield literal(rest)


def joined_values(word: Word) -> Iterator[Word]:
    """Yield what may be the value of a short option in the same word: `-bf.env`."""
    if word.literal and re.match(r"-[a-zA-Z0-9]", word.text):
        yield from map(literal, filter(None, (word.text[at:] for at in range(2, _MOST_LETTERS))))


def is_process_path(path: str) -> bool:
    """Whether a path leads through `/proc` or `/dev/fd`, where names depend on who looks."""
    parts = [part for part in path.split("/") if part]
    at = "/"
    links = 0
    while parts:
        part = parts.pop(0)
        at = os.path.normpath(os.path.join(at, part))
        if re.match(r"/proc/[^/]+/(?:cwd|root|fd|task|map_files)\b|/dev/fd(?:/|$)", at):
            return True
        try:
            target = os.readlink(at)
        except (OSError, ValueError):
            continue
        links += 1
        if links > _MOST_LINKS:
            return True
        parts = [each for each in target.split("/") if each] + parts
        at = "/" if target.startswith("/") else os.path.dirname(at)
    return False
