"""Commands that only read: programs, and their options that neither write nor run anything.

Unlisted options are not considered harmless, and long options only count in full.

Commands in the sandbox may have words with unknown values (`cat *.md`), because the kernel limits what they can access.
For such commands, the tables only decide which ones to try without approval.

Fixed commands may run without sandbox and approval: if no sandbox is available, and next to a command that a rule
allows. All their words are literal, all options are listed, and every other word names a file that the caller checks.
"""

import os
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import msgspec

from steno.permissions.shell.command import Command, Word, is_harmless_variable, literal_word, word_set
from steno.permissions.shell.command_paths import prints_raw_objects

_OperandKind: TypeAlias = Literal["paths", "text", "none", "pattern"]


class ReadOnlyOptions(msgspec.Struct, frozen=True):
    """The options and operands with which a program only reads."""

    short: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options with a value."""
    long: str = ""
    """Names of options, with or without a value after `=`."""
    long_valued: str = ""
    """Names of options whose value may be the next word."""
    operands: _OperandKind = "paths"
    most: int = 1000
    """Maximum number of operands."""
    numbers: bool = False
    """Whether `-5` is an option."""
    deep: str = ""
    """Options that read directories recursively; `*` if the program always does."""


_SUM: Final = ReadOnlyOptions("bctwz", long="--check --tag --text --binary --zero --quiet --status --strict")
_GREP: Final = ReadOnlyOptions(
    "EFGPivwxcLlqsonHhbTUZzraI",
    "eABCmd",
    "--extended-regexp --fixed-strings --perl-regexp --ignore-case --invert-match --word-regexp"
    " --line-regexp --count --files-with-matches --files-without-match --quiet --no-messages"
    " --only-matching --line-number --with-filename --no-filename --recursive --include --exclude"
    " --exclude-dir --color --colour --text --null --max-count --after-context --before-context"
    " --context --binary-files",
    "--regexp",
    "pattern",
    numbers=True,
    deep="r recursive d",
)
READ_ONLY_PROGRAMS: Final[Mapping[str, ReadOnlyOptions]] = {
    "ls": ReadOnlyOptions(
        "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        "wTI",
        "--all --almost-all --color --classify --directory --full-time --group-directories-first"
        " --human-readable --inode --recursive --reverse --size --sort --time --time-style --width"
        " --hide --ignore --format --indicator-style --no-group --numeric-uid-gid --si",
    ),
    "cat": ReadOnlyOptions("AbeEnstTuv", long="--show-all --number --number-nonblank --squeeze-blank"),
    "head": ReadOnlyOptions("qvz", "nc", "--lines --bytes --quiet --verbose", "", numbers=True),
    "tail": ReadOnlyOptions("qvzr", "nc", "--lines --bytes --quiet --verbose", "", numbers=True),
    "wc": ReadOnlyOptions("clLmw", long="--bytes --chars --lines --words --max-line-length --total"),
    "nl": ReadOnlyOptions("p", "bdfhilnsvw"),
    "tac": ReadOnlyOptions("br", "s"),
    "rev": ReadOnlyOptions(),
    "stat": ReadOnlyOptions("Ltxf", "c", "--format --printf --dereference --terse"),
    "file": ReadOnlyOptions("bhiLkNps0", "F", "--brief --mime --mime-type --mime-encoding --dereference"),
    "du": ReadOnlyOptions("0abcDhHklLmPsSx", "dBt", "--max-depth --human-readable --summarize --total --all"),
    "df": ReadOnlyOptions("ahHiklTP", "Btx", "--human-readable --type --total --output"),
    "diff": ReadOnlyOptions(
        "abBcdeEiNnpqstTuwyZ",
        "CUWIFx",
        "--brief --unified --context --side-by-side --ignore-all-space --ignore-case --color"
        " --ignore-space-change --ignore-blank-lines --new-file --text --exclude",
    ),
    "cmp": ReadOnlyOptions("bls", "in"),
    "comm": ReadOnlyOptions("123z", long="--check-order --nocheck-order --output-delimiter --total"),
    "cut": ReadOnlyOptions(
        "nsz", "bcdf", "--bytes --characters --delimiter --fields --complement --only-delimited --output-delimiter"
    ),
    "paste": ReadOnlyOptions("sz", "d"),
    "join": ReadOnlyOptions("i", "a12ejotv"),
    "column": ReadOnlyOptions("txeJn", "scoHNR"),
    "fold": ReadOnlyOptions("bs", "w"),
    "expand": ReadOnlyOptions("i", "t"),
    "tr": ReadOnlyOptions("cCdst", operands="text", long="--complement --delete --squeeze-repeats"),
    "uniq": ReadOnlyOptions("cdDiuz", "fsw", "--count --repeated --unique --ignore-case", most=1),
    "sort": ReadOnlyOptions(
        "bcCdfghiMmnRrsuVz",
        "kt",
        "--reverse --numeric-sort --unique --key --field-separator"
        " --human-numeric-sort --version-sort --ignore-case --check --stable",
    ),
    "md5sum": _SUM,
    "sha1sum": _SUM,
    "sha256sum": _SUM,
    "sha512sum": _SUM,
    "cksum": ReadOnlyOptions(),
    "xxd": ReadOnlyOptions("abeipuE", "closg", most=1),
    "zcat": ReadOnlyOptions("f"),
    "bzcat": ReadOnlyOptions(),
    "xzcat": ReadOnlyOptions(),
    "zgrep": ReadOnlyOptions("EFGPivwxclnHho", "eABCm", operands="pattern"),
    "od": ReadOnlyOptions("abcdfhiloxv", "ANjtS"),
    "hexdump": ReadOnlyOptions("bcCdovx", "ns"),
    "strings": ReadOnlyOptions("af", "nte"),
    "basename": ReadOnlyOptions("az", "s", operands="text"),
    "dirname": ReadOnlyOptions("z", operands="text"),
    "realpath": ReadOnlyOptions("eLmPqsz"),
    "readlink": ReadOnlyOptions("efmnqsvz"),
    "pwd": ReadOnlyOptions("LP", operands="none"),
    "echo": ReadOnlyOptions(operands="text"),
    "printf": ReadOnlyOptions(operands="text"),
    "true": ReadOnlyOptions(operands="text"),
    "false": ReadOnlyOptions(operands="text"),
    ":": ReadOnlyOptions(operands="text"),
    "sleep": ReadOnlyOptions(operands="text"),
    "seq": ReadOnlyOptions("w", "fs", operands="text"),
    "exit": ReadOnlyOptions(operands="text"),
    "return": ReadOnlyOptions(operands="text"),
    "break": ReadOnlyOptions(operands="text"),
    "continue": ReadOnlyOptions(operands="text"),
    "shift": ReadOnlyOptions(operands="text"),
    "whoami": ReadOnlyOptions(operands="none"),
    "id": ReadOnlyOptions("gGnruz", operands="text"),
    "groups": ReadOnlyOptions(operands="text"),
    "uname": ReadOnlyOptions("asnrvmpio", operands="none"),
    "arch": ReadOnlyOptions(operands="none"),
    "nproc": ReadOnlyOptions(operands="none", long="--all"),
    "uptime": ReadOnlyOptions("ps", operands="none"),
    "hostname": ReadOnlyOptions("fsidI", operands="none"),
    "date": ReadOnlyOptions("uRI", "d", "--utc --iso-8601 --rfc-3339 --rfc-email", "--date", "text"),
    "which": ReadOnlyOptions("as", operands="text"),
    "type": ReadOnlyOptions("afptP", operands="text"),
    "command": ReadOnlyOptions("vV", operands="text"),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": ReadOnlyOptions(
        "iSsvwxclnNHIopFPUuq.0",
        "eABCmgtTdEMr",
        "--files --hidden --no-ignore --ignore-case --smart-case --case-sensitive --invert-match"
        " --word-regexp --count --count-matches --files-with-matches --files-without-match"
        " --line-number --no-line-number --with-filename --no-filename --only-matching --heading"
        " --no-heading --fixed-strings --pcre2 --multiline --multiline-dotall --glob --iglob"
        " --type --type-not --type-list --max-count --max-depth --context --after-context"
        " --before-context --json --color --colors --sort --sortr --stats --replace --column"
        " --vimgrep --trim --no-messages --version",
        "--regexp",
        "pattern",
        deep="*",
    ),
    "tree": ReadOnlyOptions("adfisphugDFrtUCNlLJv", "LPI", "--dirsfirst --noreport --prune --gitignore"),
    "test": ReadOnlyOptions("fderwxszLhn", operands="text"),
    "jq": ReadOnlyOptions(
        "cCeMnrRsSaj",
        "",
        "--raw-output --compact-output --exit-status --slurp --null-input --tab --sort-keys"
        " --raw-input --monochrome-output --color-output --join-output",
        operands="pattern",
    ),
    "ps": ReadOnlyOptions("aAdefHjlLTwx", "opuCt", "--forest --sort --no-headers", operands="text"),
    "lsof": ReadOnlyOptions("nPitl", operands="none"),
    "free": ReadOnlyOptions("bkmght", operands="none"),
    "tty": ReadOnlyOptions(operands="none"),
    "locale": ReadOnlyOptions("a", operands="none"),
    "getconf": ReadOnlyOptions(operands="text"),
}
FIND_OPTIONS: Final = word_set(
    "-type -name -iname -path -ipath -wholename -regex -iregex -maxdepth -mindepth -mtime -mmin"
    " -atime -amin -ctime -cmin -newer -size -empty -print -print0 -not -a -o -and -or ! ( ) , -user"
    " -group -perm -readable -writable -executable -prune -depth -links -inum -xdev -mount -daystart"
    " -true -false -quit -ls -printf -regextype -P"
)
FIND_PATH_OPTIONS: Final = frozenset({"-newer"})
_LOG: Final = (
    "--oneline --graph --all --decorate --no-decorate --stat --shortstat --numstat --name-only"
    " --name-status --patch --no-patch --format --pretty --abbrev-commit --no-abbrev-commit --since"
    " --until --after --before --author --committer --grep --max-count --skip --reverse --merges"
    " --no-merges --first-parent --follow --date --no-color --color --unified --word-diff"
    " --color-words --cached --staged --no-renames --find-renames --diff-filter --summary --check"
    " --ignore-all-space --ignore-space-change --ignore-blank-lines --no-ext-diff --no-textconv"
    " --exit-code --quiet --raw --binary --full-index --abbrev --minimal --patience --histogram"
    " --function-context --no-prefix --merge-base --tags --branches --remotes --left-right --boundary"
    " --date-order --topo-order --source --dirstat --compact-summary --no-index"
)
_DIFF: Final = ReadOnlyOptions("pswbuRzM", "nUSG", _LOG, "--since --until --author --grep", numbers=True)
READ_ONLY_GIT: Final[Mapping[str, ReadOnlyOptions]] = {
    "status": ReadOnlyOptions(
        "sbvuz",
        "",
        "--short --branch --porcelain --long --verbose --untracked-files --ignored"
        " --show-stash --column --no-column --no-renames --ahead-behind --no-ahead-behind",
    ),
    "diff": _DIFF,
    "log": _DIFF,
    "show": _DIFF,
    "shortlog": ReadOnlyOptions("sne", long="--summary --numbered --email --since --until"),
    "blame": ReadOnlyOptions("slwefncpMC", "L", "--date --porcelain --line-porcelain --show-email"),
    "rev-parse": ReadOnlyOptions(
        "q",
        long="--abbrev-ref --show-toplevel --short --verify --git-dir --is-inside-work-tree --quiet"
        " --show-prefix --absolute-git-dir --symbolic-full-name --show-cdup --is-bare-repository",
    ),
    "rev-list": ReadOnlyOptions("", "n", "--count --all --max-count --since --until --left-right", numbers=True),
    "ls-files": ReadOnlyOptions(
        "cdmoistuz",
        "x",
        "--cached --deleted --modified --others --ignored --stage --unmerged"
        " --exclude-standard --error-unmatch --full-name",
    ),
    "ls-tree": ReadOnlyOptions("drtlz", long="--name-only --name-status --long --full-name --full-tree"),
    "describe": ReadOnlyOptions(long="--tags --all --always --long --dirty --abbrev --match --exact-match"),
    "merge-base": ReadOnlyOptions("a", long="--all --is-ancestor --octopus --independent"),
    "cat-file": ReadOnlyOptions("tspe"),
    "branch": ReadOnlyOptions(
        "avr",
        long="--all --remotes --list --show-current --verbose --no-color --merged --no-merged"
        " --contains --sort --format",
        most=0,
    ),
    "remote": ReadOnlyOptions("v", long="--verbose", most=0),
    "tag": ReadOnlyOptions("ln", long="--list --sort --contains --points-at --format", most=0),
    "name-rev": ReadOnlyOptions(long="--name-only --tags"),
    "grep": ReadOnlyOptions(
        "nilLwcEFPGhHvaIoqz",
        "eABCm",
        "--line-number --ignore-case --files-with-matches --name-only --word-regexp --count"
        " --extended-regexp --fixed-strings --perl-regexp --heading --break --cached --untracked"
        " --no-index --max-depth --and --or --not --column --only-matching",
        operands="pattern",
        numbers=True,
    ),
    "check-ignore": ReadOnlyOptions("vnz", long="--verbose --non-matching --no-index"),
    "for-each-ref": ReadOnlyOptions(long="--sort --format --count --merged --no-merged --contains --points-at"),
    "diff-tree": _DIFF,
    "whatchanged": _DIFF,
    "count-objects": ReadOnlyOptions("vH", long="--verbose --human-readable", operands="none"),
    "reflog": ReadOnlyOptions("", "n", _LOG, numbers=True),
    "version": ReadOnlyOptions(operands="none"),
}


class ReadAccess(msgspec.Struct, frozen=True):
    """The files that a command reads."""

    paths: tuple[Word, ...] = ()
    deep: bool = False
    """Whether it reads the content of files that it does not name."""


def read_access(command: Command, *, sandboxed: bool = False) -> ReadAccess | None:
    """Return the files that a command reads; None if it may do more than read.

    `sandboxed` means that it will run in a read-only sandbox.
    """
    if not command.words or not command.words[0].literal:
        return None
    if command.sealed:
        return None
    if sandboxed:
        access = _sandboxed_access(command)
        if access is not None:
            return access
    if command.inner:
        return None
    name = command.program
    check = _PROGRAM_CHECKS.get(name)
    if check is not None:
        return check(_literal_words(command.words) if sandboxed else command.words)
    options = READ_ONLY_PROGRAMS.get(name)
    if options is None or (sandboxed and name in _PROCESS_VIEWERS):
        return None
    return _check_options(_literal_words(command.words[1:]) if sandboxed else command.words[1:], options)


def _literal_words(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words with a known value; the kernel limits the access of the others."""
    return tuple(word for word in words if word.literal)


def _sandboxed_access(command: Command) -> ReadAccess | None:
    """Return the files of a command that only reads because of the sandbox."""
    name, words = command.program, _literal_words(command.words)
    texts = [word.text for word in words[1:]]
    if name in _SCRIPT_PROGRAMS:
        if command.inner or any(_IN_PLACE.match(text) for text in texts):
            return None
        files = [word for word in words[1:] if not word.text.startswith("-")][1:]
        return ReadAccess(tuple(word for word in files if "=" not in word.text))
    if name == "find":
        if any(text in _FIND_CHANGES for text in texts):
            return None
        return _find(_without_exec(words))
    if name == "xargs":
        return ReadAccess() if command.inner and not _XARGS_FILE.search(" ".join(texts)) else None
    if len(texts) == 1 and len(words) == len(command.words) and _PROGRAM_NAME.fullmatch(name):
        is_version = texts[0] == "-v" and name in _VERSION_IS_V
        return ReadAccess() if is_version or texts[0] in _VERSION_OPTIONS else None
    if name in _ARCHIVE_LISTINGS and texts and _ARCHIVE_LISTINGS[name].fullmatch(texts[0]):
        files = [word for word in words[2:] if not word.text.startswith("-")]
        is_listing = len(files) == len(words[2:]) and not command.inner
        return ReadAccess(tuple(files)) if is_listing else None
    return None


# Programs that list archives, and the options with which they only do that.
_ARCHIVE_LISTINGS: Final[Mapping[str, re.Pattern[str]]] = {
    "tar": re.compile(r"-?t[vzjJ]*f?|-?[zjJv]*tf|--list"),
    "unzip": re.compile(r"-[lZ]1?"),
    "zipinfo": re.compile(r"-1"),
}
_VERSION_IS_V: Final = frozenset(
    {"node", "npm", "pnpm", "yarn", "bun", "ruby", "php", "tsc", "perl", "rg", "mvn", "gradle"}
)


_SCRIPT_PROGRAMS: Final = frozenset({"awk", "gawk", "mawk", "nawk", "sed", "gsed"})
_IN_PLACE: Final = re.compile(r"-[a-zA-Z]*[iI]|--in-place|-f$|--file|--include|--load")
_FIND_CHANGES: Final = frozenset(
    {"-delete", "-fprint", "-fprint0", "-fls", "-fprintf", "-ok", "-okdir", "-files0-from"}
)
_XARGS_FILE: Final = re.compile(r"(?:^| )(?:-[a-zA-Z0-9]*a|--arg-file)")
_VERSION_OPTIONS: Final = frozenset({"--version", "-V", "--help", "version"})
_PROGRAM_NAME: Final = re.compile(r"[A-Za-z0-9][\w.+-]*")
# They show other processes, which a sandboxed program cannot see.
_PROCESS_VIEWERS: Final = frozenset({"ps", "lsof"})


def _without_exec(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of `find` without its `-exec` commands, which are checked separately."""
    result: list[Word] = []
    inside = False
    for index, word in enumerate(words):
        if word.text in {"-exec", "-execdir"}:
            inside = True
        elif inside and (word.text == ";" or (word.text == "+" and words[index - 1].text == "{}")):
            inside = False
        elif not inside:
            result.append(word)
    return tuple(result)


def _check_options(words: tuple[Word, ...], options: ReadOnlyOptions) -> ReadAccess | None:
    """Check words against the options of a program."""
    if options.operands == "text" and not options.short and not options.valued and not options.long:
        return ReadAccess()
    operands: list[Word] = []
    reads_folders = options.deep == "*"
    has_pattern = False
    rest = iter(words)
    for word in rest:
        if not word.literal:
            return None
        if word.text == "--":
            operands += rest
            break
        if not word.text.startswith("-") or word.text == "-":
            operands.append(word)
            continue
        takes_value = _takes_next_word(word.text, options)
        if takes_value is None:
            return None
        reads_folders = reads_folders or _reads_folders(word.text, options)
        has_pattern = has_pattern or re.match(r"-[^-]*e|--regexp|--files|--type-list", word.text) is not None
        if takes_value:
            value = next(rest, None)
            if value is None or not value.literal:
                return None
    return _operands(operands, options, reads_folders=reads_folders, has_pattern=has_pattern)


def _operands(
    operands: list[Word], options: ReadOnlyOptions, *, reads_folders: bool, has_pattern: bool
) -> ReadAccess | None:
    if any(not word.literal for word in operands) or len(operands) > options.most:
        return None
    if options.operands == "none":
        return ReadAccess() if not operands else None
    if options.operands == "text":
        return ReadAccess()
    if options.operands == "pattern" and not has_pattern:
        operands = operands[1:]
    return ReadAccess(tuple(word for word in operands if word.text != "-"), reads_folders)


def _takes_next_word(text: str, options: ReadOnlyOptions) -> bool | None:
    """Return whether an option takes the next word; None if it is unlisted."""
    if text.startswith("--"):
        name, separator, _ = text.partition("=")
        if name in options.long_valued.split():
            return not separator
        return False if name in options.long.split() else None
    if options.numbers and re.fullmatch(r"-[0-9]+", text):
        return False
    for index, letter in enumerate(text[1:], 2):
        if letter in options.valued:
            return not text[index:]
        if letter not in options.short:
            return None
    return False


def _reads_folders(text: str, options: ReadOnlyOptions) -> bool:
    if text.startswith("--"):
        return text[2:].partition("=")[0] in options.deep.split()
    return any(letter in options.deep.split() for letter in text[1:])


def _find(words: tuple[Word, ...]) -> ReadAccess | None:
    paths: list[Word] = []
    in_expression = False
    previous = ""
    for word in words[1:]:
        if not word.literal:
            return None
        text = word.text
        in_expression = in_expression or text.startswith("-") or text in {"(", "!"}
        if text.startswith("-") and text not in FIND_OPTIONS and not re.fullmatch(r"-[0-9]+.*", text):
            return None
        if previous in FIND_PATH_OPTIONS or not in_expression:
            paths.append(word)
        previous = text
    return ReadAccess(tuple(paths))


def _git(words: tuple[Word, ...]) -> ReadAccess | None:
    """Return the files of a read-only `git` subcommand; only harmless global options are accepted."""
    rest = list(words[1:])
    paths: list[Word] = [literal_word(".")]
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option == "-C" and rest and rest[0].literal:
            paths.append(rest.pop(0))
        elif option not in {"--no-pager", "--no-optional-locks", "--version"}:
            return None
    if not rest:
        return ReadAccess()
    if not rest[0].literal:
        return None
    name, arguments = rest[0].text, tuple(rest[1:])
    if _is_listing(name, tuple(word.text for word in arguments)):
        return ReadAccess(tuple(paths))
    if name == "reflog" and arguments and not arguments[0].text.startswith("-"):
        return None
    arguments = tuple(word for word in arguments if name != "status" or word.text not in _UNTRACKED_OPTIONS)
    options = READ_ONLY_GIT.get(name)
    access = _check_options(arguments, options) if options is not None else None
    if access is None:
        return None
    return ReadAccess((*paths, *access.paths), deep=_shows_content(name, arguments))


def _is_listing(name: str, texts: tuple[str, ...]) -> bool:
    """Whether a git command only lists tags, stashes or work trees."""
    if name == "tag" and texts[:1] in {("-l",), ("--list",)}:
        # Patterns follow; without the option a word would be the name of a new tag.
        return all(_PLAIN_PATTERN.fullmatch(text) for text in texts[1:])
    return (name, *texts) in {("stash", "list"), ("worktree", "list")}


_PLAIN_PATTERN: Final = re.compile(r"[\w*?.][\w*?./-]*")
_UNTRACKED_OPTIONS: Final = frozenset({"-uall", "-uno", "-unormal"})


def _shows_content(name: str, arguments: tuple[Word, ...]) -> bool:
    """Whether a git command may print file contents, including committed ones."""
    options = [word.text for word in arguments if word.text.startswith("-") and word.text != "--"]
    if name in {"log", "diff"}:
        is_summary = all(_SUMMARY_OPTIONS.fullmatch(option) for option in options)
        return not is_summary or (name == "diff" and not any(map(_NAME_OPTIONS.fullmatch, options)))
    if name == "status":
        return any(re.match(r"-[a-z]*v|--v", option) for option in options)
    if name in {"branch", "for-each-ref", "tag"} and prints_raw_objects(arguments):
        return True
    return name not in _METADATA_COMMANDS


_METADATA_COMMANDS: Final = frozenset(
    {"branch", "describe", "ls-files", "ls-tree", "merge-base", "remote", "rev-list", "rev-parse"}
    | {"shortlog", "tag", "check-ignore", "for-each-ref", "count-objects", "name-rev", "version"}
)
_NAME_OPTIONS: Final = re.compile(r"--(?:stat|shortstat|numstat|name-only|name-status)")
_SUMMARY_OPTIONS: Final = re.compile(
    r"-[0-9]+|-n(?:[0-9]+)?|--(?:oneline|graph|all|decorate|no-decorate|stat|shortstat|numstat"
    r"|name-only|name-status|abbrev-commit|reverse|merges|no-merges|first-parent|follow|no-color"
    r"|tags|branches|remotes|cached|staged|exit-code|quiet"
    r"|(?:format|pretty|since|until|after|before|author|max-count|skip|date)(?:=.*)?)",
    re.DOTALL,
)


def _sed(words: tuple[Word, ...]) -> ReadAccess | None:
    """Return the files of `sed -n 1,5p file`."""
    arguments = words[1:]
    if any(not word.literal for word in arguments):
        return None
    match [word.text for word in arguments]:
        case ["-n", script, *_] if re.fullmatch(r"[0-9]+(?:,(?:[0-9]+|\$))?p", script):
            files = arguments[2:]
            return ReadAccess(files) if not any(file.text.startswith("-") for file in files) else None
        case _:
            return None


def _read_builtin(words: tuple[Word, ...]) -> ReadAccess | None:
    for word in words[1:]:
        if not word.literal:
            return None
        if word.text != "-r" and not (re.fullmatch(r"\w+", word.text) and is_harmless_variable(word.text)):
            return None
    return ReadAccess()


def _declaration(words: tuple[Word, ...]) -> ReadAccess | None:
    for word in words[1:]:
        name, separator, _ = word.text.partition("=")
        if not is_harmless_variable(name) or (not separator and words[0].text != "unset" and not word.literal):
            return None
    return ReadAccess()


def _jq(words: tuple[Word, ...]) -> ReadAccess | None:
    access = _check_options(words[1:], READ_ONLY_PROGRAMS["jq"])
    texts = " ".join(word.text for word in words[1:])
    # A filter may read the environment and files.
    return access if not re.search(r"\benv\b|ENV|import|include|input_|getpath|\$__", texts) else None


def _date(words: tuple[Word, ...]) -> ReadAccess | None:
    # Any operand other than a format would set the clock.
    formats = [word for word in words[1:] if not word.text.startswith("-")]
    is_format = all(
        word.text.startswith("+") or before.text in {"-d", "--date"}
        for before, word in pairwise(words)
        if word in formats
    )
    return _check_options(words[1:], READ_ONLY_PROGRAMS["date"]) if is_format else None


def _test(words: tuple[Word, ...]) -> ReadAccess | None:
    if any(not word.literal for word in words):
        return None
    operator = re.compile(r"-[fderwxszLhn]|-nt|-ot|-ef|-eq|-ne|-lt|-le|-gt|-ge|!|=|==|!=|[^-].*|")
    return ReadAccess() if all(operator.fullmatch(word.text) for word in words[1:]) else None


_PROGRAM_CHECKS: Final[Mapping[str, Callable[[tuple[Word, ...]], ReadAccess | None]]] = {
    "find": _find,
    "git": _git,
    "sed": _sed,
    "read": _read_builtin,
    "export": _declaration,
    "local": _declaration,
    "readonly": _declaration,
    "unset": _declaration,
    "jq": _jq,
    "date": _date,
    "test": _test,
}


def find_repository(folder: str) -> str:
    """Return the directory whose `.git` git would use; `?` if a directory only imitates a bare repository."""
    current = os.path.realpath(folder)
    while True:
        if os.path.lexists(os.path.join(current, ".git")):
            return current
        if all(os.path.lexists(os.path.join(current, name)) for name in ("HEAD", "objects", "refs")):
            return "?"
        parent = os.path.dirname(current)
        if parent == current:
            return ""
        current = parent
