"""Options that make a program run or write something: `tar --to-command`, `sed -i`, `git -c`."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from steno.permissions.shell.command import UNKNOWN_PART, Word, literal_word


class DangerousOptions(msgspec.Struct, frozen=True):
    """The dangerous options of one program."""

    short: str = ""
    """Letters of options that run something."""
    long: str = ""
    """Names of options that run something, including their abbreviations."""
    runs: str = ""
    """Options whose value is a program to run."""
    writes: str = ""
    """Options whose value is a file to write."""
    code: str = ""
    """Regular expression for words that run something."""
    values: str = ""
    """Options whose value is only text."""
    first: str = ""
    """Subcommands that run their operands or the content of a file."""


class DangerousUse(msgspec.Struct, frozen=True):
    """The programs and files that the options of a command name."""

    runs: tuple[tuple[Word, ...], ...] = ()
    writes: tuple[Word, ...] = ()
    at: int = -1
    why: str = ""


_PYTHON: Final = DangerousOptions(short="cm", long="--command", code=r"-")
_AWK: Final = DangerousOptions(
    short="fiElDWo",
    long="--file --include --exec --load --debug --dump-variables --profile --pretty-print --source",
    code=r"(?s).*(?:system|\||>|getline|@|printf?\s*>|close|fflush).*",
)
_EDITOR: Final = DangerousOptions(
    short="cSsuUwWibEel",
    long="--cmd --startuptime --listen --server --remote --eval --load --batch --script -c",
    code=r"\+.*",
)
_PAGER: Final = DangerousOptions(short="kKoOtT", long="--lesskey --log-file --tag --LOG-FILE", code=r"\+.*")
_SEARCH: Final = DangerousOptions(runs="--pre --hostname-bin")
DANGEROUS_OPTIONS: Final[Mapping[str, DangerousOptions]] = {
    "python": _PYTHON,
    "pypy": _PYTHON,
    "node": DangerousOptions(
        short="eprC",
        long="--eval --print --require --import --loader --experimental-loader --env-file"
        " --run --inspect --inspect-brk --openssl-config",
        code=r"-|inspect",
    ),
    "nodejs": DangerousOptions(short="epr", long="--eval --print --require --import --loader", code=r"-"),
    "deno": DangerousOptions(first="eval repl run task x", long="--config --import-map"),
    "bun": DangerousOptions(short="epr", long="--eval --print --preload", first="x exec repl"),
    "perl": DangerousOptions(short="eEIMmnpixS", code=r"-"),
    "ruby": DangerousOptions(short="eIrnpixSC", code=r"-"),
    "php": DangerousOptions(short="raBREFdczS", long="--run --process-code --define", code=r"-"),
    "lua": DangerousOptions(short="elix", code=r"-"),
    "luajit": DangerousOptions(short="elbj", code=r"-"),
    "r": DangerousOptions(short="ef"),
    "rscript": DangerousOptions(short="e"),
    "julia": DangerousOptions(short="eEL", long="--eval --print --load"),
    "ghc": DangerousOptions(short="eF", long="-pgm"),
    "groovy": DangerousOptions(short="e"),
    "awk": _AWK,
    "gawk": _AWK,
    "mawk": _AWK,
    "nawk": _AWK,
    "tar": DangerousOptions(
        short="IF",
        long="--use-compress-program --to-command --checkpoint-action --info-script"
        " --new-volume-script --rsh-command --rmt-command",
    ),
    "bsdtar": DangerousOptions(long="--use-compress-program"),
    "gtar": DangerousOptions(short="IF", long="--use-compress-program --to-command --checkpoint-action"),
    "rg": _SEARCH,
    "ripgrep": _SEARCH,
    "man": DangerousOptions(short="PHB", long="--pager --html --browser --preprocessor", code=r"-[pTX].*"),
    "less": _PAGER,
    "more": _PAGER,
    "most": _PAGER,
    "vim": _EDITOR,
    "vi": _EDITOR,
    "nvim": _EDITOR,
    "view": _EDITOR,
    "vimdiff": _EDITOR,
    "ex": _EDITOR,
    "ed": DangerousOptions(code=r".*"),
    "emacs": _EDITOR,
    "nano": DangerousOptions(short="sC"),
    "sort": DangerousOptions(long="--compress-program", writes="-o --output"),
    "tree": DangerousOptions(writes="-o"),
    "rsync": DangerousOptions(short="e", long="--rsh --rsync-path"),
    "scp": DangerousOptions(short="SoF"),
    "sftp": DangerousOptions(short="SoFbDs"),
    "curl": DangerousOptions(short="K", long="--config", writes="-o --output -D --dump-header -c"),
    "wget": DangerousOptions(short="e", long="--execute --use-askpass --config", writes="-O --output-document -o"),
    "zip": DangerousOptions(long="--unzip-command", code=r"-TT.*"),
    "7z": DangerousOptions(),
    "split": DangerousOptions(long="--filter"),
    "git": DangerousOptions(
        long="--config-env --exec-path --upload-pack --receive-pack --exec --extcmd"
        " --open-files-in-pager --template --ext-diff --textconv --config --tool",
        code=r"ext::.*|.*\bcore\..*=.*",
        values="-m --message -am -F --format --grep --author --since --until -S -G",
        first="bisect submodule filter-branch difftool mergetool config instaweb daemon alias"
        " send-email credential hook archive p4 svn citool gui shell upload-pack receive-pack"
        " for-each-repo maintenance",
        writes="--output",
    ),
    "hg": DangerousOptions(long="--config"),
    "svn": DangerousOptions(long="--config-option --diff-cmd --diff3-cmd --editor-cmd --config-dir"),
    "docker": DangerousOptions(first="run exec compose build buildx"),
    "podman": DangerousOptions(first="run exec compose build"),
    "kubectl": DangerousOptions(first="exec run debug cp edit"),
    "npx": DangerousOptions(code=r".*"),
    "bunx": DangerousOptions(code=r".*"),
    "uvx": DangerousOptions(code=r".*"),
    "pipx": DangerousOptions(first="run"),
    "npm": DangerousOptions(first="exec x explore edit", long="--script-shell --node-options --prefix"),
    "pnpm": DangerousOptions(first="exec dlx x", long="--script-shell"),
    "yarn": DangerousOptions(first="exec dlx node", long="--use-yarnrc"),
    "uv": DangerousOptions(first="run tool"),
    "poetry": DangerousOptions(first="run"),
    "cargo": DangerousOptions(long="--config"),
    "go": DangerousOptions(long="-exec -toolexec", first="run generate tool"),
    "make": DangerousOptions(long="--eval", code=r"(?:SHELL|MAKEFLAGS|\.SHELLFLAGS|CC|CXX|LD|AR)[:+?]?=.*"),
    "gmake": DangerousOptions(long="--eval", code=r"SHELL[:+?]?=.*"),
    "openssl": DangerousOptions(long="-engine -provider"),
    "gcc": DangerousOptions(long="-wrapper -fplugin -specs", code=r"@.*|-B.*"),
    "mysql": DangerousOptions(short="e", long="--execute --pager --init-command", code=r"\\!.*"),
    "psql": DangerousOptions(short="cf", long="--command --file"),
    "sqlite3": DangerousOptions(long="-cmd -init", code=r"(?s)(?:.*\n)?[ \t\r\f\v]*\..*|.*load_extension.*"),
    "sed": DangerousOptions(short="fs", long="--file"),
    "gsed": DangerousOptions(short="fs", long="--file"),
    "dd": DangerousOptions(writes="of"),
    "tee": DangerousOptions(),
    "date": DangerousOptions(short="s", long="--set"),
    "jq": DangerousOptions(short="fL", long="--from-file"),
    "ip": DangerousOptions(first="netns", short="b"),
    "journalctl": DangerousOptions(),
    "systemctl": DangerousOptions(first="edit set-environment"),
    "apt": DangerousOptions(short="oc"),
    "apt-get": DangerousOptions(short="oc"),
    "nmap": DangerousOptions(long="--script --interactive"),
    "ssh-keygen": DangerousOptions(short="D"),
    "tcpdump": DangerousOptions(short="zw"),
    "capsh": DangerousOptions(code=r".*"),
    "openvpn": DangerousOptions(code=r".*"),
    "ansible": DangerousOptions(code=r".*"),
}
# Number of operands after a subcommand that decide what it runs: `uv run pytest`, `docker exec web ls`.
_OPERANDS_AFTER_SUBCOMMAND: Final[Mapping[tuple[str, str], int]] = {
    ("uv", "run"): 1,
    ("poetry", "run"): 1,
    ("pipx", "run"): 1,
    ("npm", "exec"): 1,
    ("npm", "x"): 1,
    ("pnpm", "exec"): 1,
    ("yarn", "exec"): 1,
    ("bun", "x"): 1,
    ("deno", "run"): 1,
    ("deno", "task"): 1,
    ("go", "run"): 1,
    ("docker", "build"): 0,
    ("docker", "compose"): 0,
    ("docker", "exec"): 2,
    ("docker", "run"): 2,
    ("podman", "build"): 0,
    ("podman", "compose"): 0,
    ("podman", "exec"): 2,
    ("podman", "run"): 2,
    ("kubectl", "exec"): 2,
}
_GIT_SHORT_OPTIONS: Final = {"": "c", "clone": "cu", "rebase": "x", "difftool": "x", "grep": "O", "init": "c"}
_SED_PROGRAMS: Final = frozenset({"sed", "gsed"})
# sed scripts that only print, delete and replace. `e` runs commands, `w` and `r` access files.
_SED_STEP: Final = (
    r"(?:(?:[0-9]+|\$|/[^/\\\n]*/)(?:,(?:\+?[0-9]+|\$|/[^/\\\n]*/))?!?)?\s*"
    r"(?:[pdq=]|s(?P<d{0}>[/|,#:@!])(?:(?!(?P=d{0}))[^\\\n]|\\[^\n])*(?P=d{0})"
    r"(?:(?!(?P=d{0}))[^\\\n]|\\[^\n])*(?P=d{0})[gpiI0-9]*)"
)
_SED_FLAG: Final = re.compile(
    r"-[nErzul]+|-e|--(?:expression|quiet|silent|regexp-extended|null-data|posix|debug|version)"
)
_SED_SCRIPT: Final = re.compile(
    rf"\s*{_SED_STEP.format(0)}\s*(?:;\s*{_SED_STEP.format(1)}\s*)?"
    rf"(?:;\s*{_SED_STEP.format(2)}\s*)?;?\s*"
)


def find_dangerous_use(words: tuple[Word, ...], options: DangerousOptions) -> DangerousUse:
    """Return the programs that the words of a command run, and the files that they write."""
    name = words[0].text.rsplit("/", 1)[-1]
    if name in _SED_PROGRAMS:
        return _sed_use(words)
    scanner = _OptionScanner(words, options)
    index = 1
    while index < len(words):
        index = scanner.scan_word(index)
    if scanner.reason:
        return DangerousUse(at=scanner.index, why=scanner.reason, writes=tuple(scanner.writes))
    return DangerousUse(tuple(scanner.runs), tuple(scanner.writes), scanner.index)


class _OptionScanner:
    """Scans the words of a command."""

    def __init__(self, words: tuple[Word, ...], options: DangerousOptions) -> None:
        self.words = words
        self.options = options
        self.runs: list[tuple[Word, ...]] = []
        self.writes: list[Word] = []
        self.index = -1
        self.reason = ""
        self.operands = 0
        self.subcommand = ""

    def mark_opaque(self, index: int, reason: str) -> int:
        """Record why the command is opaque, and skip the remaining words."""
        self.index = index
        self.reason = reason
        return len(self.words)

    def scan_word(self, index: int) -> int:
        """Scan a word; return the index of the next one."""
        word, options = self.words[index], self.options
        text = word.text
        previous = self.words[index - 1].text
        if previous in options.values.split() and not word.splits:
            return index + 1
        if word.splits or text.startswith(UNKNOWN_PART):
            return self.mark_opaque(index, "its options depend on a variable")
        if options.code and re.fullmatch(options.code, text):
            return self.mark_opaque(index, f"{text!r} may run a program")
        if self.words[0].text.endswith("git") and self.is_dangerous_git_option(text):
            return self.mark_opaque(min(index + 1, len(self.words) - 1), f"{text!r} may run a program")
        if not text.startswith("-") or text == "-":
            self.subcommand = self.subcommand or text
            self.operands += 1
            if self.operands == 1 and text in options.first.split():
                return self.mark_opaque(self.last_naming_word(index, text), f"{text!r} runs its arguments")
            name, separator, value = text.partition("=")
            if separator and name in options.writes.split():
                self.writes.append(Word(value))
            return index + 1
        return self.scan_option(index, text)

    def last_naming_word(self, index: int, subcommand: str) -> int:
        """Return the last word that a rule must name to determine what a subcommand runs."""
        operand_count = _OPERANDS_AFTER_SUBCOMMAND.get((self.words[0].text.rsplit("/", 1)[-1], subcommand))
        if operand_count is None:
            return len(self.words) - 1
        operands = [
            position for position, word in enumerate(self.words) if position > index and not word.text.startswith("-")
        ]
        return [index, *operands][operand_count] if operand_count <= len(operands) else len(self.words) - 1

    def is_dangerous_git_option(self, text: str) -> bool:
        """Whether a short option of git runs something, which depends on the subcommand."""
        letters = _GIT_SHORT_OPTIONS.get(self.subcommand, "")
        return re.match(rf"-[{letters}]", text) is not None if letters else False

    def scan_option(self, index: int, text: str) -> int:
        options = self.options
        name, separator, value = text.partition("=")
        if any(_abbreviates(name, dangerous_name) for dangerous_name in options.long.split()):
            return self.mark_opaque(index + (0 if separator else 1), f"{name!r} runs a program")
        if not text.startswith("--") and any(letter in options.short for letter in text[1:]):
            return self.mark_opaque(min(index + 1, len(self.words) - 1), f"{text!r} runs a program")
        if any(_abbreviates(name, each) for each in options.runs.split()):
            program = Word(value) if separator else self.words[index + 1] if index + 1 < len(self.words) else None
            if program is None or not program.literal:
                return self.mark_opaque(index, f"{name!r} runs a program")
            self.index = index if separator else index + 1
            if program.text:
                # The preprocessor gets a path as its argument, the hostname program none.
                given_path = () if name.startswith("--hostname") else (Word(UNKNOWN_PART),)
                self.runs.append((program, *given_path))
            return self.index + 1
        for each in options.writes.split():
            if (_abbreviates(name, each) or name == each) and (separator or index + 1 < len(self.words)):
                self.writes.append(Word(value) if separator else self.words[index + 1])
            elif not each.startswith("--") and each != text and _has_bundled_letter(text, each[-1]):
                self.writes.append(Word(UNKNOWN_PART))
        return index + 1


def _has_bundled_letter(text: str, letter: str) -> bool:
    return not text.startswith("--") and letter in text[1:]


def _abbreviates(option: str, name: str) -> bool:
    """Whether a long option is a name or an abbreviation of it."""
    if not name.startswith("--"):
        return option == name
    return len(option) > len("--") and name.startswith(option)


def _sed_use(words: tuple[Word, ...]) -> DangerousUse:
    """Find scripts that run or write something, and files that are edited in place."""
    scripts: list[tuple[int, Word]] = []
    operands: list[tuple[int, Word]] = []
    in_place = False
    for index, word in enumerate(words[1:], 1):
        text = word.text
        if word.splits or text.startswith(UNKNOWN_PART):
            return DangerousUse(at=index, why="its options depend on a variable")
        if words[index - 1].text in {"-e", "--expression"}:
            scripts.append((index, word))
        elif text.startswith("--expression="):
            scripts.append((index, literal_word(text.partition("=")[2])))
        elif not text.startswith("-") or text == "-":
            operands.append((index, word))
        elif re.match(r"-[nErzu]*i|--in-pl", text):
            in_place = True
        elif not _SED_FLAG.fullmatch(text):
            return DangerousUse(at=index, why=f"{text!r} may run a program")
    if not scripts and operands:
        scripts.append(operands.pop(0))
    unsafe_scripts = [at for at, script in scripts if not script.literal or not _SED_SCRIPT.fullmatch(script.text)]
    if unsafe_scripts:
        return DangerousUse(at=unsafe_scripts[0], why="its script may run programs or write files")
    return DangerousUse(writes=tuple(word for _, word in operands) if in_place else ())
