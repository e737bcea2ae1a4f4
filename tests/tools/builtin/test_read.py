"""Read: texts with numbers, images, PDFs, notebooks, and plain words for all the rest."""

import asyncio
import base64
import json
import os
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from steno.tools.builtin import read as module
from steno.tools.builtin.read import Read
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    folder = str(tmp_path)
    return ToolContext(cwd=folder, project=folder, session_id="s", folder=folder, env={})


def _read(context: ToolContext, path: str | Path, **more: Any) -> ToolResult:
    return asyncio.run(Read().run({"file_path": str(path), **more}, context, "call"))


def _blocks(outcome: ToolResult) -> list[dict[str, Any]]:
    assert isinstance(outcome.content, list)
    return outcome.content


def _file(context: ToolContext, data: bytes, name: str = "a.txt") -> Path:
    path = Path(context.cwd) / name
    path.write_bytes(data)
    return path


def _png(width: int = 1, height: int = 1, filling: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        end = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + end

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * (1 + width)) + filling
    parts = ((b"IHDR", head), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


# Text


def test_lines_are_numbered(context: ToolContext) -> None:
    path = _file(context, b"x = 1\nprint(x)\n")
    outcome = _read(context, path)
    assert outcome.content == "1\tx = 1\n2\tprint(x)\n3\t"
    assert outcome.detail == {
        "type": "text",
        "file": {"filePath": str(path), "content": "x = 1\nprint(x)\n", "numLines": 3, "startLine": 1, "totalLines": 3},
    }


def test_what_was_read_is_noted_under_its_real_path(context: ToolContext, tmp_path: Path) -> None:
    path = _file(context, b"x")
    (tmp_path / "link").symlink_to(path)
    _read(context, "link")
    status = path.stat()
    assert context.file_stamps == {str(path): (status.st_mtime_ns, status.st_size)}


def test_a_part_of_the_lines_is_read(context: ToolContext) -> None:
    _file(context, b"".join(b"line %d\n" % n for n in range(1, 11)))
    outcome = _read(context, "a.txt", offset=4, limit=2)
    assert str(outcome.content).startswith("4\tline 4\n5\tline 5\n\n(")
    assert "offset: 6" in str(outcome.content)
    file = outcome.detail["file"]
    assert (file["content"], file["numLines"]) == ("line 4\nline 5", 2)
    assert (file["startLine"], file["totalLines"]) == (4, 11)


def test_two_thousand_lines_are_read_at_a_time(context: ToolContext) -> None:
    _file(context, b"x\n" * 5000)
    outcome = _read(context, "a.txt")
    assert outcome.detail["file"]["numLines"] == 2000
    assert outcome.detail["file"]["totalLines"] == 5001
    assert "Use offset: 2001" in str(outcome.content)
    assert _read(context, "a.txt", allow_large=True).detail["file"]["numLines"] == 5001


def test_much_text_is_cut_at_a_line(context: ToolContext) -> None:
    _file(context, (b"y" * 1000 + b"\n") * 500)
    outcome = _read(context, "a.txt")
    assert len(outcome.content) < 140_000
    shown = outcome.detail["file"]["numLines"]
    assert f"Use offset: {shown + 1}" in str(outcome.content)
    rest = _read(context, "a.txt", offset=shown + 1)
    assert str(rest.content).startswith(f"{shown + 1}\tyyy")


def test_a_huge_line_is_cut(context: ToolContext) -> None:
    _file(context, b"z" * 3_000_000 + b"\nend")
    first, second = str(_read(context, "a.txt").content).split("\n")
    assert first == "1\t" + "z" * 2000 + "… (line truncated, 2,998,000 more characters)"
    assert second == "2\tend"


def test_an_empty_file_is_said_to_be_empty(context: ToolContext) -> None:
    path = _file(context, b"")
    assert _read(context, path).content == f"{path} is empty."
    assert str(path) in context.file_stamps


def test_an_offset_behind_the_end_is_said(context: ToolContext) -> None:
    _file(context, b"a\nb")
    assert "has only 2 lines" in str(_read(context, "a.txt", offset=9).content)


@pytest.mark.parametrize("given", [{"offset": -1}, {"limit": 0}, {"limit": -5}, {"offset": "x"}])
def test_lines_that_cannot_be_are_refused(context: ToolContext, given: dict[str, Any]) -> None:
    _file(context, b"a\nb")
    with pytest.raises(ToolFailure):
        _read(context, "a.txt", **given)


def test_numbers_may_come_as_text(context: ToolContext) -> None:
    _file(context, b"a\nb\nc")
    assert _read(context, "a.txt", offset="2", limit=1.0).detail["file"]["content"] == "b"


@pytest.mark.parametrize(
    "data",
    [
        "ä\nß".encode(),
        b"\xef\xbb\xbf" + "ä\r\nß".encode(),
        "ä\r\nß".encode("utf-16"),
        b"\xfe\xff" + "ä\nß".encode("utf-16-be"),
        b"\xe4\r\n\xdf",
    ],
)
def test_every_encoding_is_shown_as_plain_text(context: ToolContext, data: bytes) -> None:
    _file(context, data)
    assert _read(context, "a.txt").content == "1\tä\n2\tß"


def test_a_file_too_big_for_memory_is_read_in_parts(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"line {n} ä" for n in range(1, 4001)]
    _file(context, "\r\n".join(lines).encode())
    whole = [_read(context, "a.txt", offset=n, limit=3).detail for n in (1, 500, 3999, 4000)]
    monkeypatch.setattr(module, "MAX_FILE_SIZE", 1000)
    monkeypatch.setattr(module, "_CHUNK_SIZE", 97)
    context.text_forms.clear()
    parts = [_read(context, "a.txt", offset=n, limit=3).detail for n in (1, 500, 3999, 4000)]
    assert parts == whole
    assert whole[2]["file"]["content"] == "line 3999 ä\nline 4000 ä"
    assert whole[2]["file"]["totalLines"] == 4000


def test_a_long_line_of_such_a_file_is_not_cut_within_a_character(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FILE_SIZE", 1000)
    monkeypatch.setattr(module, "_DEFAULT_CHARACTERS", 2500)
    _file(context, ("x" + "ä" * 20_000).encode())
    assert str(_read(context, "a.txt").content).startswith("1\txä" + "ä" * 1998)


def test_a_sparse_giant_is_refused(context: ToolContext) -> None:
    path = _file(context, b"x\n")
    os.truncate(path, 1 << 40)
    with pytest.raises(ToolFailure, match="too large to read"):
        _read(context, path)


# What is no text


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_devices_are_refused(context: ToolContext, path: str) -> None:
    with pytest.raises(ToolFailure, match="is a device, not a regular file"):
        _read(context, path)


def test_a_pipe_is_refused_without_waiting_for_it(context: ToolContext, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    with pytest.raises(ToolFailure, match="is a pipe"):
        _read(context, "p")


def test_a_folder_is_refused(context: ToolContext) -> None:
    with pytest.raises(ToolFailure, match="is a directory"):
        _read(context, ".")


def test_binary_data_is_refused(context: ToolContext) -> None:
    _file(context, b"\x7fELF\0\0\0\x01" * 100)
    with pytest.raises(ToolFailure, match="is a binary file"):
        _read(context, "a.txt")
    assert context.file_stamps == {}


def test_a_missing_file_names_the_working_directory(context: ToolContext, tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match=f"nope.txt. The working directory is {tmp_path}"):
        _read(context, "nope.txt")


def test_a_hostile_name_is_quoted_in_the_words(context: ToolContext) -> None:
    with pytest.raises(ToolFailure) as failure:
        _read(context, "a\nb\x1b[2Jc")
    assert "\x1b" not in str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_file_that_may_not_be_read_is_refused(context: ToolContext) -> None:
    path = _file(context, b"x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(ToolFailure, match="permission denied"):
        _read(context, path)


# Images


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (_png(), "image/png"),
        (b"GIF89a\x01\0\x01\0\0\0\0;", "image/gif"),
        (b"\xff\xd8\xff\xc0\0\x11\x08\0\x01\0\x01\x03" + b"\0" * 9 + b"\xff\xd9", "image/jpeg"),
        (b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0" + b"\0" * 10, "image/webp"),
    ],
)
def test_images_are_told_from_their_bytes(context: ToolContext, data: bytes, media_type: str) -> None:
    _file(context, data, "misnamed.txt")
    outcome = _read(context, "misnamed.txt")
    encoded = base64.b64encode(data).decode()
    source = {"type": "base64", "media_type": media_type, "data": encoded}
    assert outcome.content == [{"type": "image", "source": source}]
    assert outcome.detail == {
        "type": "image",
        "file": {
            "base64": encoded,
            "type": media_type,
            "originalSize": len(data),
            "dimensions": {"originalWidth": 1, "originalHeight": 1, "displayWidth": 1, "displayHeight": 1},
        },
    }
    assert context.file_stamps


@pytest.mark.parametrize("data", [_png(9000, 10), _png(filling=b"x" * 4_500_000)])
def test_an_image_that_is_too_big_is_refused(context: ToolContext, data: bytes) -> None:
    _file(context, data, "big.png")
    with pytest.raises(ToolFailure, match="Cannot show"):
        _read(context, "big.png")


# PDF


def _pdf(pages: int) -> bytes:
    from pypdf import PdfWriter

    writer = PdfWriter()
    for number in range(pages):
        writer.add_blank_page(100 + number, 100)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def _widths(outcome: ToolResult) -> list[int]:
    from pypdf import PdfReader

    data = base64.b64decode(_blocks(outcome)[-1]["source"]["data"])
    return [int(page.mediabox.width) for page in PdfReader(BytesIO(data)).pages]


def test_a_pdf_is_a_document(context: ToolContext) -> None:
    data = _pdf(3)
    path = _file(context, data, "a.pdf")
    outcome = _read(context, path)
    encoded = base64.b64encode(data).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": encoded}
    assert _blocks(outcome)[1] == {"type": "document", "source": source}
    assert outcome.detail == {
        "type": "pdf",
        "file": {"filePath": str(path), "base64": encoded, "originalSize": len(data)},
    }


@pytest.mark.parametrize(("pages", "widths"), [("2", [101]), ("2-3", [101, 102]), ("4-", [103, 104]), ("5-9", [104])])
def test_some_pages_of_a_pdf_are_read(context: ToolContext, pages: str, widths: list[int]) -> None:
    _file(context, _pdf(5), "a.pdf")
    assert _widths(_read(context, "a.pdf", pages=pages)) == widths


@pytest.mark.parametrize("pages", ["", "x", "0", "3-2", "1-21", "-3", "1,2", "6"])
def test_pages_that_cannot_be_are_refused(context: ToolContext, pages: str) -> None:
    _file(context, _pdf(5), "a.pdf")
    with pytest.raises(ToolFailure, match=r"page range|only 5 pages|at a time"):
        _read(context, "a.pdf", pages=pages)


def test_a_long_pdf_is_read_by_pages_only(context: ToolContext) -> None:
    _file(context, _pdf(101), "a.pdf")
    with pytest.raises(ToolFailure, match=r"has 101 pages\. Select some"):
        _read(context, "a.pdf")


def test_a_damaged_pdf_is_refused(context: ToolContext) -> None:
    _file(context, b"%PDF-1.7\n" + b"garbage" * 100, "a.pdf")
    with pytest.raises(ToolFailure, match="as a PDF: it is damaged"):
        _read(context, "a.pdf")


def test_pages_of_what_is_no_pdf_are_refused(context: ToolContext) -> None:
    _file(context, b"text")
    with pytest.raises(ToolFailure, match="is not a PDF"):
        _read(context, "a.txt", pages="1")


# Notebooks


def _notebook(*cells: dict[str, Any]) -> bytes:
    about = {"language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4}).encode()


def test_a_notebook_is_read_as_cells(context: ToolContext) -> None:
    picture = base64.b64encode(_png()).decode()
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]},
        {"output_type": "display_data", "data": {"image/png": picture + "\n", "text/plain": "<p>"}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["T1", "T2"]},
    ]
    code = {"cell_type": "code", "id": "c1", "source": ["print(1)\n", "print(2)"]}
    path = _file(
        context,
        _notebook({**code, "execution_count": 3, "outputs": outputs}, {"cell_type": "markdown", "source": "# Title"}),
        "nb.ipynb",
    )
    outcome = _read(context, path)
    text, image, title = _blocks(outcome)
    assert text == {"type": "text", "text": '<cell id="c1">print(1)\nprint(2)</cell id="c1">\n1\n2\n\n<p>\nT1\nT2'}
    assert image["type"] == "image"
    assert image["source"]["data"] == picture
    assert "<cell_type>markdown</cell_type># Title" in title["text"]
    first, second = outcome.detail["file"]["cells"]
    assert (first["cellType"], first["source"], first["cell_id"], first["language"]) == (
        "code",
        "print(1)\nprint(2)",
        "c1",
        "python",
    )
    assert second == {"cellType": "markdown", "source": "# Title", "cell_id": "cell-1"}
    assert str(path) in context.file_stamps


def test_some_cells_of_a_notebook_are_read(context: ToolContext) -> None:
    cells = [{"cell_type": "code", "id": f"c{n}", "source": "x" * 50_000} for n in range(9)]
    _file(context, _notebook(*cells), "nb.ipynb")
    outcome = _read(context, "nb.ipynb")
    assert "has 9 cells. Use offset: 3" in str(outcome.content[-1])
    assert len(outcome.detail["file"]["cells"]) == 2
    rest = _read(context, "nb.ipynb", offset=3, limit=1)
    assert [cell["cell_id"] for cell in rest.detail["file"]["cells"]] == ["c2"]


def test_hostile_cells_do_no_harm(context: ToolContext) -> None:
    cells: list[Any] = [5, {}, {"cell_type": "code", "source": 3, "outputs": [1, {"data": []}]}]
    cells.append({"cell_type": "code", "source": "\ud800", "id": "\udfff"})
    _file(context, _notebook(*cells), "nb.ipynb")
    outcome = _read(context, "nb.ipynb")
    assert len(outcome.content) == 4
    json.dumps(outcome.content, ensure_ascii=False).encode()


def test_an_image_in_a_notebook_that_the_api_refuses_is_left_out(context: ToolContext) -> None:
    bad = {"output_type": "display_data", "data": {"image/png": "bm90IGFuIGltYWdl"}}
    _file(context, _notebook({"cell_type": "code", "source": "x", "outputs": [bad]}), "nb.ipynb")
    assert [block["type"] for block in _blocks(_read(context, "nb.ipynb"))] == ["text"]
