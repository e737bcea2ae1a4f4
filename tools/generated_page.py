"""Writes a generated page, or checks that it is current."""

import os
from difflib import unified_diff
from pathlib import Path

__all__ = ["write_or_check"]


def write_or_check(page: Path, text: str, arguments: list[str]) -> int:
    """Write the text of a page; with `--check` only report a page that is out of date, with 1.

    A page is replaced as a whole: whoever checks it at the same time never reads half of it.
    """
    before = page.read_text(encoding="utf-8") if page.is_file() else ""
    if page.is_file() and before == text:
        return 0
    if "--check" in arguments:
        print(f"{page} is out of date; run `make docs`")
        print("\n".join(unified_diff(before.splitlines(), text.splitlines(), "page", "now", n=1)))
        return 1
    scratch = page.with_name(f".{page.name}.{os.getpid()}")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(page)
    print(f"wrote {page}")
    return 0
