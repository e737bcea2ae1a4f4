"""PDF files: shown as documents, whole or some of their pages.

They are taken apart by this very module, run as a program: a hostile file can keep a reader busy
for ever, and a program can be ended.
"""

import sys
from base64 import b64encode
from typing import Any, Final

import msgspec

from steno.tools.base import ToolFailure, ToolResult
from steno.tools.programs import run_self
from steno.tools.words import shown, size_words, spoken

__all__ = ["Pdf", "main", "show_pdf"]

_MOST_PAGES: Final = 20
_PAGES_WHOLE: Final = 100
_SECONDS: Final = 30.0


class Pdf(msgspec.Struct, frozen=True):
    """A PDF that is still to be looked into."""

    path: str
    data: bytes


async def show_pdf(pdf: Pdf, pages: str | None) -> ToolResult:
    """Return a PDF as a document, or those of its pages that are named.

    Raises:
        ToolFailure: it is damaged, or there are no such pages.
    """
    first, last = _pages(pages) if pages is not None else (0, 0)
    count, data = await _taken_apart(pdf, first, last)
    if not first and count > _PAGES_WHOLE:
        raise ToolFailure(
            f'{shown(pdf.path)} has {count:,} pages: name some with `pages`, like "1-{_MOST_PAGES}"'
        )
    if first > count:
        raise ToolFailure(f"{shown(pdf.path)} has only {count:,} pages")
    words = f"{shown(pdf.path)}: a PDF of {count:,} pages ({size_words(len(pdf.data))})"
    if first:
        words += f", of which these are {first} to {min(last, count)}"
    encoded = b64encode(data or pdf.data).decode("ascii")
    source = {"type": "base64", "media_type": "application/pdf", "data": encoded}
    file = {"filePath": spoken(pdf.path), "base64": encoded, "originalSize": len(pdf.data)}
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": words},
        {"type": "document", "source": source},
    ]
    return ToolResult(blocks, {"type": "pdf", "file": file})


def _pages(pages: str) -> tuple[int, int]:
    first, dash, last = (part.strip() for part in pages.partition("-"))
    if not first.isdecimal() or (dash and last and not last.isdecimal()):
        raise ToolFailure(f'{shown(pages)} are no pages: say "3" or "1-5"')
    start = int(first)
    end = int(last) if last else start + _MOST_PAGES - 1 if dash else start
    if not 1 <= start <= end:
        raise ToolFailure(f'{shown(pages)} are no pages: say "3" or "1-5"')
    if end - start >= _MOST_PAGES:
        raise ToolFailure(f"at most {_MOST_PAGES} pages at a time")
    return start, end


async def _taken_apart(pdf: Pdf, first: int, last: int) -> tuple[int, bytes]:
    """Return how many pages there are, and a PDF of those that are wanted."""
    numbers = (str(first), str(last))
    ran = await run_self("steno.tools.pdf", *numbers, given=pdf.data, seconds=_SECONDS)
    if ran.is_late:
        raise ToolFailure(f"{shown(pdf.path)} takes too long to be read")
    count, _, data = ran.out.partition(b"\n")
    if not count.isdigit():
        why = count.decode("utf-8", "replace") or "it is damaged"
        raise ToolFailure(f"{shown(pdf.path)} cannot be read as a PDF: {why}")
    return int(count), data


def main() -> None:
    """Read a PDF, and write the number of its pages and a PDF of some of them."""
    from io import BytesIO

    from pypdf import PdfReader, PdfWriter
    from pypdf.errors import PyPdfError

    first, last = map(int, sys.argv[1:3])
    out = sys.stdout.buffer
    try:
        reader = PdfReader(BytesIO(sys.stdin.buffer.read()))
        if reader.is_encrypted:
            out.write(b"it is encrypted")
            return
        count = len(reader.pages)
        writer = PdfWriter()
        for page in reader.pages[max(first - 1, 0) : last]:
            writer.add_page(page)
        data = BytesIO()
        if first:
            writer.write(data)
    except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        out.write(f"it is damaged ({type(error).__name__})".encode())
        return
    out.write(b"%d\n" % count + data.getvalue())


if __name__ == "__main__":
    main()
