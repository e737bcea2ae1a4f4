"""Programs that only read, and those of their options that can neither write nor run anything."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from steno.guard.words import names

__all__ = ["FIND", "FIND_PATHS", "GIT", "READ_ONLY", "Plain"]

_Operands: TypeAlias = Literal["paths", "text", "none", "pattern"]


class Plain(msgspec.Struct, frozen=True):
    """A program that reads, and what may be given to it."""

    short: str = ""
    """Letters of options that stand alone."""
    valued: str = ""
    """Letters of options that take a value."""
    long: str = ""
    """Names of options, with or without a value after `=`."""
    long_valued: str = ""
    """Names of options whose value may be the next word."""
    operands: _Operands = "paths"
    most: int = 1000
    """How many operands there may be."""
    numbers: bool = False
    """Whether `-5` is an option."""
    deep: str = ""
    """Options that make it read whole folders; `*` when it always does."""


_SUM: Final = Plain("bctwz", long="--check --tag --text --binary --zero --quiet --status --strict")
_GREP: Final = Plain(
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
READ_ONLY: Final[Mapping[str, Plain]] = {
    "ls": Plain(
        "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        "wTI",
        "--all --almost-all --color --classify --directory --full-time --group-directories-first"
        " --human-readable --inode --recursive --reverse --size --sort --time --time-style --width"
        " --hide --ignore --format --indicator-style --no-group --numeric-uid-gid --si",
    ),
    "cat": Plain("AbeEnstTuv", long="--show-all --number --number-nonblank --squeeze-blank"),
    "head": Plain("qvz", "nc", "--lines --bytes --quiet --verbose", "", numbers=True),
    "tail": Plain("qvzr", "nc", "--lines --bytes --quiet --verbose", "", numbers=True),
    "wc": Plain("clLmw", long="--bytes --chars --lines --words --max-line-length --total"),
    "nl": Plain("p", "bdfhilnsvw"),
    "tac": Plain("br", "s"),
    "rev": Plain(),
    "stat": Plain("Ltxf", "c", "--format --printf --dereference --terse"),
    "file": Plain("bhiLkNps0", "F", "--brief --mime --mime-type --mime-encoding --dereference"),
    "du": Plain("0abcDhHklLmPsSx", "dBt", "--max-depth --human-readable --summarize --total --all"),
    "df": Plain("ahHiklTP", "Btx", "--human-readable --type --total --output"),
    "diff": Plain(
        "abBcdeEiNnpqstTuwyZ",
        "CUWIFx",
        "--brief --unified --context --side-by-side --ignore-all-space --ignore-case --color"
        " --ignore-space-change --ignore-blank-lines --new-file --text --exclude",
    ),
    "cmp": Plain("bls", "in"),
    "comm": Plain("123z", long="--check-order --nocheck-order --output-delimiter --total"),
    "cut": Plain(
        "nsz",
        "bcdf",
        "--bytes --characters --delimiter --fields --complement --only-delimited --output-delimiter",
    ),
    "paste": Plain("sz", "d"),
    "join": Plain("i", "a12ejotv"),
    "column": Plain("txeJn", "scoHNR"),
    "fold": Plain("bs", "w"),
    "expand": Plain("i", "t"),
    "tr": Plain("cCdst", operands="text", long="--complement --delete --squeeze-repeats"),
    "uniq": Plain("cdDiuz", "fsw", "--count --repeated --unique --ignore-case", most=1),
    "sort": Plain(
        "bcCdfghiMmnRrsuVz",
        "kt",
        "--reverse --numeric-sort --unique --key --field-separator"
        " --human-numeric-sort --version-sort --ignore-case --check --stable",
    ),
    "md5sum": _SUM,
    "sha1sum": _SUM,
    "sha256sum": _SUM,
    "sha512sum": _SUM,
    "cksum": Plain(),
    "xxd": Plain("abeipuE", "closg", most=1),
    "zcat": Plain("f"),
    "bzcat": Plain(),
    "xzcat": Plain(),
    "zgrep": Plain("EFGPivwxclnHho", "eABCm", operands="pattern"),
    "od": Plain("abcdfhiloxv", "ANjtS"),
    "hexdump": Plain("bcCdovx", "ns"),
    "strings": Plain("af", "nte"),
    "basename": Plain("az", "s", operands="text"),
    "dirname": Plain("z", operands="text"),
    "realpath": Plain("eLmPqsz"),
    "readlink": Plain("efmnqsvz"),
    "pwd": Plain("LP", operands="none"),
    "echo": Plain(operands="text"),
    "printf": Plain(operands="text"),
    "true": Plain(operands="text"),
    "false": Plain(operands="text"),
    ":": Plain(operands="text"),
    "sleep": Plain(operands="text"),
    "seq": Plain("w", "fs", operands="text"),
    "exit": Plain(operands="text"),
    "return": Plain(operands="text"),
    "break": Plain(operands="text"),
    "continue": Plain(operands="text"),
    "shift": Plain(operands="text"),
    "whoami": Plain(operands="none"),
    "id": Plain("gGnruz", operands="text"),
    "groups": Plain(operands="text"),
    "uname": Plain("asnrvmpio", operands="none"),
    "arch": Plain(operands="none"),
    "nproc": Plain(operands="none", long="--all"),
    "uptime": Plain("ps", operands="none"),
    "hostname": Plain("fsidI", operands="none"),
    "date": Plain("uRI", "d", "--utc --iso-8601 --rfc-3339 --rfc-email", "--date", "text"),
    "which": Plain("as", operands="text"),
    "type": Plain("afptP", operands="text"),
    "command": Plain("vV", operands="text"),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": Plain(
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
    "tree": Plain("adfisphugDFrtUCNlLJv", "LPI", "--dirsfirst --noreport --prune --gitignore"),
    "test": Plain("fderwxszLhn", operands="text"),
    "jq": Plain(
        "cCeMnrRsSaj",
        "",
        "--raw-output --compact-output --exit-status --slurp --null-input --tab --sort-keys"
        " --raw-input --monochrome-output --color-output --join-output",
        operands="pattern",
    ),
    "ps": Plain("aAdefHjlLTwx", "opuCt", "--forest --sort --no-headers", operands="text"),
    "lsof": Plain("nPitl", operands="none"),
    "free": Plain("bkmght", operands="none"),
    "tty": Plain(operands="none"),
    "locale": Plain("a", operands="none"),
    "getconf": Plain(operands="text"),
}
FIND: Final = names(
    "-type -name -iname -path -ipath -wholename -regex -iregex -maxdepth -mindepth -mtime -mmin"
    " -atime -amin -ctime -cmin -newer -size -empty -print -print0 -not -a -o -and -or ! ( ) , -user"
    " -group -perm -readable -writable -executable -prune -depth -links -inum -xdev -mount -daystart"
    " -true -false -quit -ls -printf -regextype -P"
)
FIND_PATHS: Final = frozenset({"-newer"})
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
_DIFF: Final = Plain("pswbuRzM", "nUSG", _LOG, "--since --until --author --grep", numbers=True)
GIT: Final[Mapping[str, Plain]] = {
    "status": Plain(
        "sbvuz",
        "",
        "--short --branch --porcelain --long --verbose --untracked-files --ignored"
        " --show-stash --column --no-column --no-renames --ahead-behind --no-ahead-behind",
    ),
    "diff": _DIFF,
    "log": _DIFF,
    "show": _DIFF,
    "shortlog": Plain("sne", long="--summary --numbered --email --since --until"),
    "blame": Plain("slwefncpMC", "L", "--date --porcelain --line-porcelain --show-email"),
    "rev-parse": Plain(
        "q",
        long="--abbrev-ref --show-toplevel --short --verify --git-dir --is-inside-work-tree --quiet"
        " --show-prefix --absolute-git-dir --symbolic-full-name --show-cdup --is-bare-repository",
    ),
    "rev-list": Plain(
        "", "n", "--count --all --max-count --since --until --left-right", numbers=True
    ),
    "ls-files": Plain(
        "cdmoistuz",
        "x",
        "--cached --deleted --modified --others --ignored --stage --unmerged"
        " --exclude-standard --error-unmatch --full-name",
    ),
    "ls-tree": Plain("drtlz", long="--name-only --name-status --long --full-name --full-tree"),
    "describe": Plain(long="--tags --all --always --long --dirty --abbrev --match --exact-match"),
    "merge-base": Plain("a", long="--all --is-ancestor --octopus --independent"),
    "cat-file": Plain("tspe"),
    "branch": Plain(
        "avr",
        long="--all --remotes --list --show-current --verbose --no-color --merged --no-merged"
        " --contains --sort --format",
        most=0,
    ),
    "remote": Plain("v", long="--verbose", most=0),
    "tag": Plain("ln", long="--list --sort --contains --points-at --format", most=0),
    "name-rev": Plain(long="--name-only --tags"),
    "grep": Plain(
        "nilLwcEFPGhHvaIoqz",
        "eABCm",
        "--line-number --ignore-case --files-with-matches --name-only --word-regexp --count"
        " --extended-regexp --fixed-strings --perl-regexp --heading --break --cached --untracked"
        " --no-index --max-depth --and --or --not --column --only-matching",
        operands="pattern",
        numbers=True,
    ),
    "check-ignore": Plain("vnz", long="--verbose --non-matching --no-index"),
    "for-each-ref": Plain(
        long="--sort --format --count --merged --no-merged --contains --points-at"
    ),
    "diff-tree": _DIFF,
    "whatchanged": _DIFF,
    "count-objects": Plain("vH", long="--verbose --human-readable", operands="none"),
    "reflog": Plain("", "n", _LOG, numbers=True),
    "version": Plain(operands="none"),
}
