"""Write the manual page and the shell completions that the wheel installs: `share/`.

python -m tools.make_shell_files            write them
python -m tools.make_shell_files --check    exit 1 when one is out of date
"""

import re
import sys
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class
from tools.generated_page import write_or_check
from tools.make_cli_docs import Found, commands, group

from steno.cli.main import COMPLETION_VARIABLE

SHARE: Final = Path(__file__).parent.parent / "share"
MANUAL: Final = SHARE / "man" / "man1" / "steno.1"
COMPLETIONS: Final = {
    "bash": SHARE / "bash-completion" / "completions" / "steno",
    "zsh": SHARE / "zsh" / "site-functions" / "_steno",
    "fish": SHARE / "fish" / "vendor_completions.d" / "steno.fish",
}
_EXIT_STATUS: Final = {
    "0": "Success.",
    "1": "Nothing matches, or a check found problems.",
    "2": "The command line is wrong, or a name matches several sessions.",
    "3": "A file cannot be read or written, or steno itself failed.",
}
_ENVIRONMENT: Final = {
    "CLAUDE_CONFIG_DIR": "Configuration directory of Claude Code (default: ~/.claude).",
    "STENO_HOME": "Directory for the index, the archive and caches.",
    "NO_COLOR": "Turns colors off.",
}


def build_manual() -> str:
    """Return the manual page in the man(7) format."""
    root, *rest = commands()
    lines = [
        '.\\" Generated from the commands by tools/make_shell_files.py; do not edit.',
        ".TH STENO 1",
        ".SH NAME",
        f"steno \\- {_escape(_lower_first(root.command.get_short_help_str(limit=200)))}",
        ".SH SYNOPSIS",
        ".B steno",
        "[OPTIONS] [COMMAND] [ARGS]...",
        ".SH DESCRIPTION",
        *_help_lines(root.command),
        ".SH OPTIONS",
        *_option_lines(root),
        ".SH COMMANDS",
    ]
    for command in rest:
        usage = " ".join([command.name, *command.command.collect_usage_pieces(command.context)])
        lines += [f".SS {_escape(usage)}", *_help_lines(command.command), *_option_lines(command)]
    for heading, rows in (("EXIT STATUS", _EXIT_STATUS), ("ENVIRONMENT", _ENVIRONMENT)):
        lines.append(f".SH {heading}")
        for name, meaning in rows.items():
            lines += [".TP", f".B {_escape(name)}", _escape(meaning)]
    return "\n".join(lines) + "\n"


def _help_lines(command: click.Command) -> list[str]:
    lines: list[str] = []
    text = re.sub(r"(?m)^[ \t]+$", "", command.help or "")
    for block in re.split(r"\n{2,}", text.strip()):
        head, _, rest = block.partition("\n")
        if head.strip() == "\b":
            lines += [".PP", ".nf", *(_escape(line) for line in rest.splitlines()), ".fi"]
        else:
            lines += [".PP", _escape(" ".join(block.split()))]
    return lines


def _option_lines(found: Found) -> list[str]:
    records = [option.get_help_record(found.context) for option in found.options]
    lines: list[str] = []
    for record in records:
        if record is not None:
            lines += [".TP", f".B {_escape(record[0])}", _escape(record[1])]
    return lines


def _escape(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _lower_first(text: str) -> str:
    return (text[:1].lower() + text[1:]).rstrip(".")


def build_completion(shell: str) -> str:
    """Return the completion script for a shell."""
    completion_class = get_completion_class(shell)
    if completion_class is None:
        sys.exit(f"click has no completion for {shell}")
    return completion_class(group(), {}, "steno", COMPLETION_VARIABLE).source() + "\n"


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` report those that are out of date."""
    MANUAL.parent.mkdir(parents=True, exist_ok=True)
    codes = [write_or_check(MANUAL, build_manual(), arguments)]
    for shell, path in COMPLETIONS.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        codes.append(write_or_check(path, build_completion(shell), arguments))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
