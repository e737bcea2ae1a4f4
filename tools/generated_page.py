"""Writes a generated page, or checks that it is up to date."""

import os
from difflib import unified_diff
from pathlib import Path

__all__ = ["write_or_check"]


def write_or_check(page: Path, text: str, arguments: list[str]) -> int:
    """Write the text of a page; with `--check` return 1 and print a diff if the page is out of date.

    The page is replaced atomically, so that a concurrent check never reads a partial page.
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
