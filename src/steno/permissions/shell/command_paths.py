"""Paths that a command may name, files it may print, and directories it may run in.

With a rule that denies reading a file, a rule such as `Bash(grep:*)` must not print that file: `grep -r` and `git log
-p` print files that they do not name. A command may print either everything (git prints old versions of any file) or
the files below some directories.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from typing import Final

import msgspec

from steno.permissions.paths import STANDARD_DEVICES, ResolvedPath
from steno.permissions.shell.command import (
    INNER_SPACE,
    UNKNOWN_PART,
    Command,
    Redirection,
    Word,
    literal_word,
    word_set,
)
from steno.permissions.shell.nested_commands import program_name
from steno.permissions.shell.parser import ParsedScript


def file_redirections(command: Command) -> Iterator[Redirection]:
    """Yield redirections to and from files, without the standard devices."""
    return (redirection for redirection in command.redirections if redirection.target.text not in STANDARD_DEVICES)


def is_plain_file(path: str, *, folders: bool) -> bool:
    """Whether reading a path cannot block: missing, a regular file, or with `folders` a directory."""
    return os.path.isfile(path) or (folders and os.path.isdir(path)) or not os.path.lexists(path)


def rule_texts(command: Command) -> Iterator[str]:
    """Yield the texts of a command to match with deny and ask rules."""
    if not command.words:
        return
    by_program_name = msgspec.structs.replace(
        command, words=(literal_word(program_name(command.program)), *command.words[1:])
    )
    variants = (command, by_program_name, _without_options(command), _without_options(by_program_name))
    for variant in variants:
        for text in (variant.text, variant.text_with_assignments):
            yield text
            yield text.replace(INNER_SPACE, " ")


def _without_options(command: Command) -> Command:
    """Remove the options before the first operand: `git -P push` is a push."""
    index = 1
    while index < len(command.words) and command.words[index].text.startswith("-"):
        index += 1
    return msgspec.structs.replace(command, words=(command.words[0], *command.words[index:]))


def possible_rule_texts(command: Command) -> Iterator[str]:
    """Yield the text without options and their possible values: `git -C x push` may be a push."""
    index = 1
    while index < len(command.words) and command.words[index].text.startswith("-"):
        index += 1 if "=" in command.words[index].text else 2
    if 1 < index < len(command.words):
        yield " ".join([program_name(command.program), *(word.escaped_text for word in command.words[index:])])


def path_candidates(command: Command) -> Iterator[Word]:
    """Yield the words and option values of a command that may be paths."""
    for word in command.words[1:]:
        yield word
        _, separator, value = word.text.partition("=")
        if separator and value:
            yield Word(value, splits=word.splits)
        if re.match(r"-[^-].", word.text):
            yield Word(word.text[2:], splits=word.splits)


_MAX_FILES: Final = 2000
_MAX_PARTS: Final = 64
_MAX_LINKS: Final = 40
_MAX_BUNDLED_LETTERS: Final = 12


class ExposedContent(msgspec.Struct, frozen=True):
    """The directories whose files a command may print, or everything."""

    folders: tuple[Word, ...] = ()
    everything: bool = False


def exposed_content(command: Command) -> ExposedContent:
    """Return the unnamed files that a command may print."""
    if not command.words:
        return ExposedContent()
    analyse = _EXPOSURE_BY_PROGRAM.get(program_name(command.program))
    return analyse(command.words[1:]) if analyse is not None else ExposedContent()


# Search and copy programs


def _operands(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words that may be directories; option values are included."""
    return tuple(word for word in words if not word.text.startswith("-"))


def _all_operands(words: tuple[Word, ...]) -> ExposedContent:
    return ExposedContent(_operands(words))


# Option letters without a value, by program; the word after any other option may be its value.
_GREP_FLAGS: Final = "EFGPiyvwxcLlqsobHhnTZzaIrRUu"
_RG_FLAGS: Final = "acFhHiIlLnNoPpqsSuUvVwxz0."
_LONG_FLAGS: Final = word_set(
    "--recursive --dereference-recursive --ignore-case --no-ignore-case --line-number --word-regexp"
    " --line-regexp --count --files-with-matches --files-without-match --no-messages --hidden"
    " --no-ignore --fixed-strings --extended-regexp --basic-regexp --perl-regexp --pcre2"
    " --with-filename --no-filename --only-matching --invert-match --null --null-data --text --quiet"
    " --silent --heading --no-heading --smart-case --case-sensitive --multiline --follow --stats"
    " --trim --json --column --vimgrep --no-config --no-line-number --color --colour"
)
_PATTERN_OPTION: Final = re.compile(r"-[^-]*[ef]|--(?:regexp|file)(?:=|$)")


def _search(words: tuple[Word, ...], flags: str) -> ExposedContent:
    """Return the operands; `rg x` without a directory searches the current one."""
    certain_operands = 0
    is_value = False
    for word in words:
        if word.text.startswith("-") and len(word.text) > 1:
            is_value = _may_take_value(word.text, flags)
        else:
            certain_operands += not is_value
            is_value = False
    has_pattern_option = any(_PATTERN_OPTION.match(word.text) for word in words)
    operands = _operands(words)
    min_operands = 1 if has_pattern_option else len(("pattern", "folder"))
    return ExposedContent((*operands, literal_word(".")) if certain_operands < min_operands else operands)


def _may_take_value(text: str, flags: str) -> bool:
    """Whether the word after an option may be its value."""
    if text.startswith("--"):
        return text != "--" and "=" not in text and text not in _LONG_FLAGS
    value_index = next((index for index, letter in enumerate(text[1:], 1) if letter not in flags), 0)
    # The rest of a word after such a letter is its value: `-m5`.
    return value_index == len(text) - 1 and not text[value_index].isdigit()


def _other_search(words: tuple[Word, ...]) -> ExposedContent:
    return _search(words, "")


def _ripgrep(words: tuple[Word, ...]) -> ExposedContent:
    return _search(words, _RG_FLAGS)


def _grep(words: tuple[Word, ...]) -> ExposedContent:
    is_recursive = any(re.match(r"-[^-]*[rRd]|--(?:r|d)", word.text) for word in words)
    return _search(words, _GREP_FLAGS) if is_recursive else ExposedContent()


def _recursive_copy(words: tuple[Word, ...]) -> ExposedContent:
    is_recursive = any(re.match(r"-[^-]*[rRa]|--(?:r|a)", word.text) for word in words)
    return ExposedContent(_operands(words)) if is_recursive else ExposedContent()


# git

_GIT_ALWAYS: Final = word_set(
    "grep cat-file archive format-patch bundle fast-export diff-tree diff-index diff-files"
    " range-diff checkout-index pack-objects difftool annotate request-pull send-email merge-file"
    " unpack-file show-index merge-tree apply am rerere svn p4 instaweb daemon upload-pack"
)
_GIT_PATCHES: Final = word_set("diff show whatchanged stash")
_GIT_REFERENCES: Final = word_set("for-each-ref tag branch")
_HEAD: Final = re.compile(r"HEAD(?:[~^][0-9]*)*")
_GIT_LOGS: Final = word_set("log reflog shortlog rev-list")
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


def _git(words: tuple[Word, ...]) -> ExposedContent:
    index = next((at for at, word in enumerate(words) if not word.text.startswith("-")), len(words))
    if index == len(words):
        return ExposedContent()
    subcommand, rest = words[index].text, words[index + 1 :]
    options = [word.text for word in rest if word.text.startswith("-") and word.text != "--"]
    if subcommand in _GIT_ALWAYS:
        return _git_paths(rest)
    if subcommand == "mv":
        return ExposedContent(_operands(rest))
    if subcommand == "clone":
        # A clone of a local repository contains its files under other names.
        is_local = any(re.match(r"[^:]*(?:/|$)|file:", word.text) for word in _operands(rest)[:1])
        return ExposedContent(everything=is_local)
    if subcommand in _GIT_REFERENCES:
        return ExposedContent(everything=prints_raw_objects(rest))
    if subcommand in _GIT_PATCHES:
        hides_content = any(map(_NO_CONTENT.fullmatch, options)) or (
            subcommand == "stash" and (not rest or rest[0].text != "show")
        )
        if subcommand == "show":
            # If the operand is not a commit, its content is shown regardless of the options.
            hides_content = hides_content and all(_HEAD.fullmatch(word.text) for word in _operands(rest))
        shows_patch = any(map(_PATCH.fullmatch, options))
        return ExposedContent() if hides_content and not shows_patch else _git_paths(rest)
    if subcommand in _GIT_LOGS:
        return ExposedContent() if all(map(_LOG_ONLY.fullmatch, options)) else _git_paths(rest)
    may_show_content = subcommand in {"status", "commit", "add", "checkout", "reset", "restore"}
    if may_show_content and any(re.match(r"-[a-zA-Z]*[vp]|--(?:v|p)", option) for option in options):
        return ExposedContent(everything=True)
    return ExposedContent()


def prints_raw_objects(words: tuple[Word, ...]) -> bool:
    """Whether a format may print the raw object of a reference, which may be a file."""
    has_format = any(word.text.startswith("--f") for word in words)
    return has_format and any("raw" in word.text or UNKNOWN_PART in word.text for word in words)


def _git_paths(rest: tuple[Word, ...]) -> ExposedContent:
    """Return the paths after `--` or in `REVISION:path`; everything if there are none."""
    separator = next((at for at, word in enumerate(rest) if word.text == "--"), None)
    paths: tuple[Word, ...] = rest[separator + 1 :] if separator is not None else ()
    if separator is None:
        operands = _operands(rest)
        path_texts = [word.text.partition(":")[2] for word in operands]
        paths = tuple(map(literal_word, path_texts)) if operands and all(path_texts) else ()
    if not paths or any(re.search(r"[*?\[:]|" + UNKNOWN_PART, word.text) for word in paths):
        return ExposedContent(everything=True)
    return ExposedContent(paths)


_EXPOSURE_BY_PROGRAM: Final[Mapping[str, Callable[[tuple[Word, ...]], ExposedContent]]] = {
    "git": _git,
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "ggrep"), _grep),
    **dict.fromkeys(("rg", "ripgrep"), _ripgrep),
    **dict.fromkeys(("ag", "ack", "ugrep", "ug"), _other_search),
    **dict.fromkeys(
        ("diff", "colordiff", "tar", "gtar", "bsdtar", "7z", "7za", "7zz", "rsync", "mv", "vimdiff"), _all_operands
    ),
    **dict.fromkeys(("zip", "cp", "scp", "gzip", "zstd", "xz"), _recursive_copy),
}


# Files and paths


def files_below(folder: str) -> Iterator[ResolvedPath | None]:
    """Yield the paths below a directory, up to a limit; None when the limit is exceeded."""
    seen = 0
    folders = [folder]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except (OSError, ValueError):
            continue
        for entry in entries:
            seen += 1
            if seen > _MAX_FILES:
                yield None
                return
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            yield ResolvedPath.of(entry.path)


def path_parts(word: Word) -> Iterator[Word]:
    """Yield the parts of a word that a program may use as a path: `HEAD:.env`, `x=@.env`."""
    text = word.text
    if re.search(r"\s", text) or not word.literal:
        return
    rest = re.sub(r"^.*?file://", "", text)
    parts = re.split(r"[=:@,;]", text, maxsplit=_MAX_PARTS)
    for start in range(1, len(parts)):
        part = parts[start].lstrip("<")
        if part:
            yield literal_word(part)
    if rest != text:
        yield literal_word(rest)


def bundled_values(word: Word) -> Iterator[Word]:
    """Yield possible values of a short option in the same word: `-bf.env`."""
    if word.literal and re.match(r"-[a-zA-Z0-9]", word.text):
        yield from map(literal_word, filter(None, (word.text[index:] for index in range(2, _MAX_BUNDLED_LETTERS))))


def is_process_path(path: str) -> bool:
    """Whether a path goes through `/proc` or `/dev/fd`, where names depend on the process."""
    parts = [part for part in path.split("/") if part]
    current = "/"
    links = 0
    while parts:
        part = parts.pop(0)
        current = os.path.normpath(os.path.join(current, part))
        if re.match(r"/proc/[^/]+/(?:cwd|root|fd|task|map_files)\b|/dev/fd(?:/|$)", current):
            return True
        try:
            target = os.readlink(current)
        except (OSError, ValueError):
            continue
        links += 1
        if links > _MAX_LINKS:
            return True
        parts = [target_part for target_part in target.split("/") if target_part] + parts
        current = "/" if target.startswith("/") else os.path.dirname(current)
    return False


_MAX_MOVES: Final = 3
_MAX_PATH_LENGTH: Final = 8192
"""Maximum length of a path in characters: twice the kernel's limit, because patterns are slow on longer text."""


class RunFolders(msgspec.Struct, frozen=True):
    """The directories that the commands of a script may run in."""

    all: tuple[str, ...]
    home: str
    """The directory that `~` expands to."""
    lost: bool = False
    """Whether the commands may also run in other, unknown directories."""

    def resolve(self, word: Word) -> tuple[ResolvedPath, ...] | None:
        """Return all paths that a word may refer to; None if they are unknown."""
        if not word.literal or len(word.text) > _MAX_PATH_LENGTH:
            return None
        if word.tilde and not self.home:
            return None
        text = self.home + word.text[1:] if word.tilde else word.text
        if self.lost and not os.path.isabs(text):
            return None
        return tuple(dict.fromkeys(ResolvedPath.of(text, folder) for folder in self.all))


def find_run_folders(parsed_script: ParsedScript, cwd: str, home: str) -> RunFolders:
    """Return the directories that the commands of a script may run in, for any order of its `cd` commands."""
    targets: list[str] = []
    for command in parsed_script.all_commands():
        texts = [word.text for word in command.words]
        if command.program in {"pushd", "popd"} or "-execdir" in texts or "-okdir" in texts:
            return RunFolders((cwd,), home, lost=True)
        if command.program == "cd":
            target = cd_target(command, home)
            if target is None or command.repeated:
                return RunFolders((cwd,), home, lost=True)
            targets.append(target)
    if len(targets) > _MAX_MOVES:
        return RunFolders((cwd,), home, lost=True)
    folders = {cwd: None}
    for count in range(1, len(targets) + 1):
        for order in permutations(targets, count):
            current = cwd
            for target in order:
                resolved_path = ResolvedPath.of(target, current)
                # `cd` resolves `..` by name: `link/..` is the directory of the link, not of its target.
                folders[os.path.realpath(resolved_path.path)] = None
                current = resolved_path.real
                folders[current] = None
    return RunFolders(tuple(folders), home)


def cd_target(command: Command, home: str) -> str | None:
    """Return the target of a `cd` command; None if it is unknown."""
    words = [word for word in command.words[1:] if word.text not in {"-P", "-L", "--"}]
    if len(words) != 1 or not words[0].literal:
        return None
    word = words[0]
    if word.text.startswith("-") or not word.text:
        return None
    if word.tilde and not home:
        return None
    return home + word.text[1:] if word.tilde else word.text
