"""Whether a shell command may have changed a file that it names.

This is a guess that errs towards yes: what is only looked at, tested or run is known by the
command's name; every other command that names the file counts.
"""

import re
from typing import Final

__all__ = ["READERS", "may_change"]

_PARTS: Final = re.compile(r"&&|\|\||[;|\n]")
_SKIPPED: Final = re.compile(
    r"\s*(?:(?:\w+=\S*|sudo|time|env|command|nohup|then|do|else|\(|!)\s+)*"
)
READERS: Final = frozenset(
    (
        *("ack", "awk", "bat", "cat", "cd", "cksum", "cmp", "cut", "diff", "du", "echo", "egrep"),
        *("fgrep", "file", "find", "fold", "grep", "head", "hexdump", "jq", "less", "ls", "md5sum"),
        *("more", "mypy", "nl", "od", "printf", "pwd", "pytest", "pyright", "readlink", "rg"),
        *("sha1sum", "sha256sum", "sort", "stat", "strings", "tac", "tail", "test", "tree", "uniq"),
        *("vulture", "wc", "which", "xxd", "[", "[["),
    )
)
"""Programs that change no file they are given."""
_RUNNERS: Final = frozenset(
    ("bash", "deno", "node", "perl", "php", "python", "python3", "ruby", "sh")
)
_GIT: Final = frozenset(
    ("add", "blame", "branch", "commit", "diff", "grep", "log", "ls-files", "show", "status")
)
_TESTS: Final = frozenset(("build", "check", "test", "vet"))
_BUILDERS: Final = frozenset(("cargo", "go", "make", "npm", "npx", "pnpm", "uv", "yarn"))
_WRITING: Final = re.compile(r"\s(?:-o|--output|-delete|-exec)\b")
_SOMETIMES: Final = frozenset(("find", "sort", "uniq"))
_LONGEST: Final = 100_000


def may_change(command: str, name: str) -> bool:
    """Whether a command that names a file may have changed it; `name` is the file's own.

    >>> may_change("sed -i s/a/b/ src/x.py", "x.py"), may_change("cat src/x.py | head", "x.py")
    (True, False)
    >>> may_change("grep a x.py > y.py", "x.py"), may_change("grep a y.py > x.py", "x.py")
    (False, True)
    """
    if not name or name not in command:
        return False
    if len(command) > _LONGEST:
        return True
    word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    return any(_writes(part, word) for part in _PARTS.split(command) if word.search(part))


def _writes(part: str, word: re.Pattern[str]) -> bool:
    before, *targets = re.split(r"\d?>>?&?", part)
    if any(word.search(target) for target in targets):
        return True
    words = _SKIPPED.sub("", before, count=1).split()
    if not words:
        return False
    program = words[0].rpartition("/")[2]
    rest = before[before.find(words[0]) + len(words[0]) :]
    if program == "sed":
        return bool(re.search(r"\s(?:-[a-zA-Z]*i|--in-place)", rest))
    if program == "git":
        return not _GIT.intersection(words[1:3])
    if program in _RUNNERS:
        return bool(re.search(r"\s-[a-zA-Z]*[cei]\b|<<|\s-$", rest))
    if program in _BUILDERS:
        return not _TESTS.intersection(words[1:3]) and "pytest" not in words
    return program not in READERS or bool(_WRITING.search(rest) and program in _SOMETIMES)
