"""Options that make a program run or write something: `tar --to-command`, `sed -i`, `git -c`."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from steno.guard.words import HOLE, Word, literal

__all__ = ["RUNNERS", "Found", "Switches", "dangerous"]


class Switches(msgspec.Struct, frozen=True):
    """What to look for among the words of a program."""

    short: str = ""
    """Letters of options that run something."""
    long: str = ""
    """Names of options that run something; beginnings of them count too."""
    runs: str = ""
    """Options whose value is a program that is run."""
    writes: str = ""
    """Options whose value is a file that is written."""
    code: str = ""
    """A pattern: a word that fits it runs something."""
    values: str = ""
    """Options whose value is nothing but text."""
    first: str = ""
    """Subcommands that run what they are given, or what a file says."""


class Found(msgspec.Struct, frozen=True):
    """What was found."""

    runs: tuple[tuple[Word, ...], ...] = ()
    writes: tuple[Word, ...] = ()
    at: int = -1
    why: str = ""


_PYTHON: Final = Switches(short="cm", long="--command", code=r"-")
_AWK: Final = Switches(
    short="fiElDWo",
    long="--file --include --exec --load --debug --dump-variables --profile --pretty-print"
    " --source",
    code=r"(?s).*(?:system|\||>|getline|@|printf?\s*>|close|fflush).*",
)
_EDITOR: Final = Switches(
    short="cSsuUwWibEel",
    long="--cmd --startuptime --listen --server --remote --eval --load --batch --script -c",
    code=r"\+.*",
)
_PAGER: Final = Switches(short="kKoOtT", long="--lesskey --log-file --tag --LOG-FILE", code=r"\+.*")
_SEARCH: Final = Switches(runs="--pre --hostname-bin")
RUNNERS: Final[Mapping[str, Switches]] = {
    "python": _PYTHON,
    "pypy": _PYTHON,
    "node": Switches(
        short="eprC",
        long="--eval --print --require --import --loader --experimental-loader --env-file"
        " --run --inspect --inspect-brk --openssl-config",
        code=r"-|inspect",
    ),
    "nodejs": Switches(short="epr", long="--eval --print --require --import --loader", code=r"-"),
    "deno": Switches(first="eval repl run task x", long="--config --import-map"),
    "bun": Switches(short="epr", long="--eval --print --preload", first="x exec repl"),
    "perl": Switches(short="eEIMmnpixS", code=r"-"),
    "ruby": Switches(short="eIrnpixSC", code=r"-"),
    "php": Switches(short="raBREFdczS", long="--run --process-code --define", code=r"-"),
    "lua": Switches(short="elix", code=r"-"),
    "luajit": Switches(short="elbj", code=r"-"),
    "r": Switches(short="ef"),
    "rscript": Switches(short="e"),
    "julia": Switches(short="eEL", long="--eval --print --load"),
    "ghc": Switches(short="eF", long="-pgm"),
    "groovy": Switches(short="e"),
    "awk": _AWK,
    "gawk": _AWK,
    "mawk": _AWK,
    "nawk": _AWK,
    "tar": Switches(
        short="IF",
        long="--use-compress-program --to-command --checkpoint-action --info-script"
        " --new-volume-script --rsh-command --rmt-command",
    ),
    "bsdtar": Switches(long="--use-compress-program"),
    "gtar": Switches(short="IF", long="--use-compress-program --to-command --checkpoint-action"),
    "rg": _SEARCH,
    "ripgrep": _SEARCH,
    "man": Switches(short="PHB", long="--pager --html --browser --preprocessor", code=r"-[pTX].*"),
    "less": _PAGER,
    "more": _PAGER,
    "most": _PAGER,
    "vim": _EDITOR,
    "vi": _EDITOR,
    "nvim": _EDITOR,
    "view": _EDITOR,
    "vimdiff": _EDITOR,
    "ex": _EDITOR,
    "ed": Switches(code=r".*"),
    "emacs": _EDITOR,
    "nano": Switches(short="sC"),
    "sort": Switches(long="--compress-program", writes="-o --output"),
    "tree": Switches(writes="-o"),
    "rsync": Switches(short="e", long="--rsh --rsync-path"),
    "scp": Switches(short="SoF"),
    "sftp": Switches(short="SoFbDs"),
    "curl": Switches(short="K", long="--config", writes="-o --output -D --dump-header -c"),
    "wget": Switches(
        short="e", long="--execute --use-askpass --config", writes="-O --output-document -o"
    ),
    "zip": Switches(long="--unzip-command", code=r"-TT.*"),
    "7z": Switches(),
    "split": Switches(long="--filter"),
    "git": Switches(
        long="--config-env --exec-path --upload-pack --receive-pack --exec --extcmd"
        " --open-files-in-pager --template --ext-diff --textconv --config --tool",
        code=r"ext::.*|.*\bcore\..*=.*",
        values="-m --message -am -F --format --grep --author --since --until -S -G",
        first="bisect submodule filter-branch difftool mergetool config instaweb daemon alias"
        " send-email credential hook archive p4 svn citool gui shell upload-pack receive-pack"
        " for-each-repo maintenance",
        writes="--output",
    ),
    "hg": Switches(long="--config"),
    "svn": Switches(long="--config-option --diff-cmd --diff3-cmd --editor-cmd --config-dir"),
    "docker": Switches(first="run exec compose build buildx"),
    "podman": Switches(first="run exec compose build"),
    "kubectl": Switches(first="exec run debug cp edit"),
    "npx": Switches(code=r".*"),
    "bunx": Switches(code=r".*"),
    "uvx": Switches(code=r".*"),
    "pipx": Switches(first="run"),
    "npm": Switches(first="exec x explore edit", long="--script-shell --node-options --prefix"),
    "pnpm": Switches(first="exec dlx x", long="--script-shell"),
    "yarn": Switches(first="exec dlx node", long="--use-yarnrc"),
    "uv": Switches(first="run tool"),
    "poetry": Switches(first="run"),
    "cargo": Switches(long="--config"),
    "go": Switches(long="-exec -toolexec", first="run generate tool"),
    "make": Switches(long="--eval", code=r"(?:SHELL|MAKEFLAGS|\.SHELLFLAGS|CC|CXX|LD|AR)[:+?]?=.*"),
    "gmake": Switches(long="--eval", code=r"SHELL[:+?]?=.*"),
    "openssl": Switches(long="-engine -provider"),
    "gcc": Switches(long="-wrapper -fplugin -specs", code=r"@.*|-B.*"),
    "mysql": Switches(short="e", long="--execute --pager --init-command", code=r"\\!.*"),
    "psql": Switches(short="cf", long="--command --file"),
    "sqlite3": Switches(
        long="-cmd -init", code=r"(?s)(?:.*\n)?[ \t\r\f\v]*\..*|.*load_extension.*"
    ),
    "sed": Switches(short="fs", long="--file"),
    "gsed": Switches(short="fs", long="--file"),
    "dd": Switches(writes="of"),
    "tee": Switches(),
    "date": Switches(short="s", long="--set"),
    "jq": Switches(short="fL", long="--from-file"),
    "ip": Switches(first="netns", short="b"),
    "journalctl": Switches(),
    "systemctl": Switches(first="edit set-environment"),
    "apt": Switches(short="oc"),
    "apt-get": Switches(short="oc"),
    "nmap": Switches(long="--script --interactive"),
    "ssh-keygen": Switches(short="D"),
    "tcpdump": Switches(short="zw"),
    "capsh": Switches(code=r".*"),
    "openvpn": Switches(code=r".*"),
    "ansible": Switches(code=r".*"),
}
# How many operands after a subcommand say what it runs: `uv run pytest`, `docker exec web ls`.
_NAMED_AFTER: Final[Mapping[tuple[str, str], int]] = {
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
_GIT_SHORT: Final = {
    "": "c",
    "clone": "cu",
    "rebase": "x",
    "difftool": "x",
    "grep": "O",
    "init": "c",
}
_SED: Final = frozenset({"sed", "gsed"})
# Scripts of sed that print, delete and replace, and nothing else. `e` runs, `w` and `r` use files.
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


def dangerous(words: tuple[Word, ...], switches: Switches) -> Found:
    """Return what the words of a command make its program run and write."""
    name = words[0].text.rsplit("/", 1)[-1]
    if name in _SED:
        return _sed(words)
    look = _Look(words, switches)
    at = 1
    while at < len(words):
        at = look.word(at)
    if look.why:
        return Found(at=look.at, why=look.why, writes=tuple(look.writes))
    return Found(tuple(look.runs), tuple(look.writes), look.at)


class _Look:
    """Goes over the words of a command."""

    def __init__(self, words: tuple[Word, ...], switches: Switches) -> None:
        self.words = words
        self.switches = switches
        self.runs: list[tuple[Word, ...]] = []
        self.writes: list[Word] = []
        self.at = -1
        self.why = ""
        self.operands = 0
        self.verb = ""

    def seal(self, at: int, why: str) -> int:
        """Note why nobody can say what is run; the words after that do not matter."""
        self.at = at
        self.why = why
        return len(self.words)

    def word(self, at: int) -> int:
        """Look at a word; return where to go on."""
        word, switches = self.words[at], self.switches
        text = word.text
        before = self.words[at - 1].text
        if before in switches.values.split() and not word.splits:
            return at + 1
        if word.splits or text.startswith(HOLE):
            return self.seal(at, "its options are not known before it runs")
        if switches.code and re.fullmatch(switches.code, text):
            return self.seal(at, f"{text!r} may make it run something")
        if self.words[0].text.endswith("git") and self.git_option(text):
            return self.seal(min(at + 1, len(self.words) - 1), f"{text!r} may run something")
        if not text.startswith("-") or text == "-":
            self.verb = self.verb or text
            self.operands += 1
            if self.operands == 1 and text in switches.first.split():
                return self.seal(self.reach_of(at, text), f"{text!r} runs what it is given")
            name, given, value = text.partition("=")
            if given and name in switches.writes.split():
                self.writes.append(Word(value))
            return at + 1
        return self.option(at, text)

    def reach_of(self, at: int, verb: str) -> int:
        """Return the last word that a rule must name to say what a subcommand runs."""
        more = _NAMED_AFTER.get((self.words[0].text.rsplit("/", 1)[-1], verb))
        if more is None:
            return len(self.words) - 1
        operands = [
            place
            for place, word in enumerate(self.words)
            if place > at and not word.text.startswith("-")
        ]
        return [at, *operands][more] if more <= len(operands) else len(self.words) - 1

    def git_option(self, text: str) -> bool:
        """Whether a short option of git runs something: that hangs on the word before it."""
        letters = _GIT_SHORT.get(self.verb, "")
        return re.match(rf"-[{letters}]", text) is not None if letters else False

    def option(self, at: int, text: str) -> int:
        switches = self.switches
        name, given, value = text.partition("=")
        if any(_is_short_for(name, each) for each in switches.long.split()):
            return self.seal(at + (0 if given else 1), f"{name!r} runs something")
        if not text.startswith("--") and any(letter in switches.short for letter in text[1:]):
            return self.seal(min(at + 1, len(self.words) - 1), f"{text!r} runs something")
        if any(_is_short_for(name, each) for each in switches.runs.split()):
            program = (
                Word(value) if given else self.words[at + 1] if at + 1 < len(self.words) else None
            )
            if program is None or not program.literal:
                return self.seal(at, f"{name!r} runs something")
            self.at = at if given else at + 1
            if program.text:
                # The preprocessor is given a path, and the other nothing.
                given_path = () if name.startswith("--hostname") else (Word(HOLE),)
                self.runs.append((program, *given_path))
            return self.at + 1
        for each in switches.writes.split():
            if (_is_short_for(name, each) or name == each) and (given or at + 1 < len(self.words)):
                self.writes.append(Word(value) if given else self.words[at + 1])
            elif not each.startswith("--") and each != text and _clustered(text, each[-1]):
                self.writes.append(Word(HOLE))
        return at + 1


def _clustered(text: str, letter: str) -> bool:
    return not text.startswith("--") and letter in text[1:]


def _is_short_for(given: str, name: str) -> bool:
    """Whether a long option is another, cut short as many programs allow."""
    if not name.startswith("--"):
        return given == name
    return len(given) > len("--") and name.startswith(given)


def _sed(words: tuple[Word, ...]) -> Found:
    """Look for scripts that run or write, and for files that are changed in place."""
    scripts: list[tuple[int, Word]] = []
    operands: list[tuple[int, Word]] = []
    in_place = False
    for at, word in enumerate(words[1:], 1):
        text = word.text
        if word.splits or text.startswith(HOLE):
            return Found(at=at, why="its options are not known before it runs")
        if words[at - 1].text in {"-e", "--expression"}:
            scripts.append((at, word))
        elif text.startswith("--expression="):
            scripts.append((at, literal(text.partition("=")[2])))
        elif not text.startswith("-") or text == "-":
            operands.append((at, word))
        elif re.match(r"-[nErzu]*i|--in-pl", text):
            in_place = True
        elif not _SED_FLAG.fullmatch(text):
            return Found(at=at, why=f"{text!r} may make it run something")
    if not scripts and operands:
        scripts.append(operands.pop(0))
    odd = [at for at, each in scripts if not each.literal or not _SED_SCRIPT.fullmatch(each.text)]
    if odd:
        return Found(at=odd[0], why="its script may run something or write files")
    return Found(writes=tuple(word for _, word in operands) if in_place else ())
