"""Writes a generated page, or checks that it is current."""

from pathlib import Path

__all__ = ["write_or_check"]


def write_or_check(page: Path, text: str, arguments: list[str]) -> int:
    """Write the text of a page; with `--check` only report a page that is out of date, with 1."""
    if page.is_file() and page.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in arguments:
        print(f"{page} is out of date; run `make docs`")
        return 1
    page.write_text(text, encoding="utf-8")
    print(f"wrote {page}")
    return 0
