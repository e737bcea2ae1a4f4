"""PDF files as documents, complete or by page.

This module also runs as a separate process that splits the PDF, because a malicious file can keep the
parser busy forever and only a process can be killed.
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
    """A PDF file that was loaded but not parsed."""

    path: str
    data: bytes


async def pdf_result(pdf: PdfFile, page_range: str | None) -> ToolResult:
    """Return a PDF, or the pages in `page_range`, as a document.

    Raises:
        ToolFailure: The PDF is damaged, too long, or lacks the pages.
    """
    first, last = _parse_page_range(page_range) if page_range is not None else (0, 0)
    count, data = await _extract_pages(pdf, first, last)
    if not first and count > _MAX_PAGES_WITHOUT_RANGE:
        raise ToolFailure(
            f'{quote_name(pdf.path)} has {count:,} pages. Select some with `pages`, such as "1-{_MAX_PAGES_PER_READ}".'
        )
    if first > count:
        raise ToolFailure(f"{quote_name(pdf.path)} has only {count:,} pages.")
    description = f"{quote_name(pdf.path)}: PDF, {count:,} pages, {format_size(len(pdf.data))}"
    if first:
        description += f", showing pages {first} to {min(last, count)}"
    encoded = b64encode(data or pdf.data).decode("ascii")
    source = {"type": "base64", "media_type": "application/pdf", "data": encoded}
    file = {"filePath": json_safe_name(pdf.path), "base64": encoded, "originalSize": len(pdf.data)}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": description}, {"type": "document", "source": source}]
    return ToolResult(blocks, {"type": "pdf", "file": file})


def _parse_page_range(pages: str) -> tuple[int, int]:
    first, dash, last = (part.strip() for part in pages.partition("-"))
    if not first.isdecimal() or (dash and last and not last.isdecimal()):
        raise ToolFailure(f'Invalid page range {pages!r}. Use "3" or "1-5".')
    start = int(first)
    end = int(last) if last else start + _MAX_PAGES_PER_READ - 1 if dash else start
    if not 1 <= start <= end:
        raise ToolFailure(f'Invalid page range {pages!r}. Use "3" or "1-5".')
    if end - start >= _MAX_PAGES_PER_READ:
        raise ToolFailure(f"At most {_MAX_PAGES_PER_READ} pages can be read at a time.")
    return start, end


async def _extract_pages(pdf: PdfFile, first: int, last: int) -> tuple[int, bytes]:
    """Return the number of pages, and a PDF of the requested pages."""
    numbers = (str(first), str(last))
    completed = await run_module("steno.tools.builtin.pdf", *numbers, stdin=pdf.data, time_limit=_PDF_TIMEOUT)
    if completed.timed_out:
        raise ToolFailure(f"Reading {quote_name(pdf.path)} timed out.")
    count, _, data = completed.stdout.partition(b"\n")
    if not count.isdigit():
        reason = count.decode("utf-8", "replace") or "it is damaged"
        raise ToolFailure(f"Cannot read {quote_name(pdf.path)} as a PDF: {reason}")
    return int(count), data


def main() -> None:
    """Read a PDF from stdin; write its page count and a PDF of the requested pages to stdout."""
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
