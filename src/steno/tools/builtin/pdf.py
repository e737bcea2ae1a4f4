"""PDF files as documents, complete or by page.

This module also runs as a program that splits the PDF, because a hostile file can keep a parser busy
forever and a process can be ended.
"""

import sys
from base64 import b64encode
from typing import Any, Final

import msgspec

from steno.tools.output import format_size, json_safe_name, quote_name
from steno.tools.programs import run_module
from steno.tools.protocol import ToolFailure, ToolResult

_MAX_PAGES_PER_READ: Final = 20
_MAX_PAGES_WITHOUT_RANGE: Final = 100
_PDF_TIMEOUT: Final = 30.0


class PdfFile(msgspec.Struct, frozen=True):
    """A PDF that is still to be looked into."""

    path: str
    data: bytes


async def pdf_result(pdf: PdfFile, page_range: str | None) -> ToolResult:
    """Return a PDF as a document, or those of its pages that are named.

    Raises:
        ToolFailure: it is damaged, or there are no such pages.
    """
    first, last = _parse_page_range(page_range) if page_range is not None else (0, 0)
    count, data = await _extract_pages(pdf, first, last)
    if not first and count > _MAX_PAGES_WITHOUT_RANGE:
        raise ToolFailure(
            f'{quote_name(pdf.path)} has {count:,} pages: name some with `pages`, like "1-{_MAX_PAGES_PER_READ}"'
        )
    if first > count:
        raise ToolFailure(f"{quote_name(pdf.path)} has only {count:,} pages")
    description = f"{quote_name(pdf.path)}: a PDF of {count:,} pages ({format_size(len(pdf.data))})"
    if first:
        description += f", of which these are {first} to {min(last, count)}"
    encoded = b64encode(data or pdf.data).decode("ascii")
    source = {"type": "base64", "media_type": "application/pdf", "data": encoded}
    file = {"filePath": json_safe_name(pdf.path), "base64": encoded, "originalSize": len(pdf.data)}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": description}, {"type": "document", "source": source}]
    return ToolResult(blocks, {"type": "pdf", "file": file})


def _parse_page_range(pages: str) -> tuple[int, int]:
    first, dash, last = (part.strip() for part in pages.partition("-"))
    if not first.isdecimal() or (dash and last and not last.isdecimal()):
        raise ToolFailure(f'{quote_name(pages)} are no pages: say "3" or "1-5"')
    start = int(first)
    end = int(last) if last else start + _MAX_PAGES_PER_READ - 1 if dash else start
    if not 1 <= start <= end:
        raise ToolFailure(f'{quote_name(pages)} are no pages: say "3" or "1-5"')
    if end - start >= _MAX_PAGES_PER_READ:
        raise ToolFailure(f"at most {_MAX_PAGES_PER_READ} pages at a time")
    return start, end


async def _extract_pages(pdf: PdfFile, first: int, last: int) -> tuple[int, bytes]:
    """Return how many pages there are, and a PDF of those that are wanted."""
    numbers = (str(first), str(last))
    completed = await run_module("steno.tools.builtin.pdf", *numbers, stdin=pdf.data, time_limit=_PDF_TIMEOUT)
    if completed.timed_out:
        raise ToolFailure(f"{quote_name(pdf.path)} takes too long to be read")
    count, _, data = completed.stdout.partition(b"\n")
    if not count.isdigit():
        reason = count.decode("utf-8", "replace") or "it is damaged"
        raise ToolFailure(f"{quote_name(pdf.path)} cannot be read as a PDF: {reason}")
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
