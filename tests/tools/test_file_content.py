"""Texts: paths, encodings and line ends of files."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.format.tool_catalogue import TOOLS
from steno.tools.context import ToolContext
from steno.tools.file_content import TextFormat, decode_text, encode_text, open_regular_file, resolve_tool_path
from steno.tools.output import json_safe_name, quote_name
from steno.tools.protocol import ToolFailure
from steno.tools.registry import builtin_tools

_ALL = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


def _context(folder: Path) -> ToolContext:
    home = {"HOME": str(folder / "home")}
    return ToolContext(cwd=str(folder), project=str(folder), session_id="s", folder="", env=home)


def test_a_relative_path_is_seen_from_the_working_directory(tmp_path: Path) -> None:
    assert resolve_tool_path("a/./b//c.txt", _context(tmp_path)) == str(tmp_path / "a/b/c.txt")


def test_a_tilde_is_the_home_of_the_session_and_only_in_front(tmp_path: Path) -> None:
    context = _context(tmp_path)
    assert resolve_tool_path("~/x", context) == str(tmp_path / "home/x")
    assert resolve_tool_path("~", context) == str(tmp_path / "home")
    assert resolve_tool_path("~root/x", context) == str(tmp_path / "~root/x")
    assert resolve_tool_path("a/~/x", context) == str(tmp_path / "a/~/x")


def test_nothing_else_in_a_path_is_expanded(tmp_path: Path) -> None:
    assert resolve_tool_path("$HOME/*.py", _context(tmp_path)) == str(tmp_path / "$HOME/*.py")


def test_two_dots_behind_a_link_lead_where_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "far/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far/deep")
    assert resolve_tool_path("link/../x", _context(tmp_path)) == str(tmp_path / "far/x")
    assert resolve_tool_path("link/..", _context(tmp_path)) == str(tmp_path / "far")


@pytest.mark.parametrize("bad", ["", "a\0b", "a\ud800b"])
def test_what_is_no_path_is_refused(bad: str, tmp_path: Path) -> None:
    with pytest.raises(ToolFailure):
        resolve_tool_path(bad, _context(tmp_path))


def test_names_that_could_play_tricks_are_quoted() -> None:
    assert quote_name("plain name.py") == "plain name.py"
    assert quote_name('a\n"b\x1b[2J\u202e') == '"a\\n\\"b\\x1b[2J\\u202e"'
    assert quote_name(os.fsdecode(b"\xff")).isascii()


def test_a_name_that_is_no_text_can_still_be_written_as_json() -> None:
    assert json_safe_name(os.fsdecode(b"a\xff")) == "a\ufffd"


@pytest.mark.parametrize(
    ("data", "text", "encoding", "newline"),
    [
        (b"", "", "utf-8", "\n"),
        ("grün\n".encode(), "grün\n", "utf-8", "\n"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb\n", "utf-8", "\r\n"),
        (b"\xff\xfe" + "a\r\nü".encode("utf-16-le"), "a\nü", "utf-16-le", "\r\n"),
        (b"\xfe\xff" + "aü".encode("utf-16-be"), "aü", "utf-16-be", "\n"),
        (b"\xff\xfe\0\0" + "aü".encode("utf-32-le"), "aü", "utf-32-le", "\n"),
        (b"caf\xe9\n", "café\n", "latin-1", "\n"),
        (b"a\nb\r\nc\n", "a\nb\nc\n", "utf-8", "\n"),
    ],
)
def test_every_encoding_is_told_from_the_bytes(data: bytes, text: str, encoding: str, newline: str) -> None:
    found = decode_text(data)
    assert found is not None
    assert (found.text, found.text_format.encoding, found.text_format.newline) == (text, encoding, newline)
    assert encode_text(found.raw_text, found.text_format, "x") == data


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfea\0\0\0", bytes(range(128, 256)), b"\x7fELF\0"])
def test_what_is_no_text_is_not_taken_for_one(data: bytes) -> None:
    assert decode_text(data) is None


@given(st.text(_ALL), st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]))
def test_a_text_comes_back_byte_for_byte(text: str, encoding: str) -> None:
    bom = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[encoding]
    data = bom + text.encode(encoding)
    found = decode_text(data)
    assert found is not None
    assert found.raw_text == text
    assert encode_text(found.raw_text, found.text_format, "x") == data


@given(st.binary())
def test_whatever_is_taken_for_text_comes_back_byte_for_byte(data: bytes) -> None:
    found = decode_text(data)
    assert found is None or encode_text(found.raw_text, found.text_format, "x") == data


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    with pytest.raises(ToolFailure, match=r"LATIN-1, which cannot represent U\+20AC"):
        encode_text("5 €", TextFormat("latin-1"), "x")


def test_half_a_character_is_not_written() -> None:
    with pytest.raises(ToolFailure, match=r"U\+D800"):
        encode_text("\ud800", TextFormat(), "x")


def _open(path: str, folder: Path) -> None:
    open_regular_file(path, path, _context(folder))


def test_a_missing_file_suggests_a_near_name(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(ToolFailure, match=r"File not found.*Did you mean .*/settings\.json\?"):
        _open(str(tmp_path / "setings.json"), tmp_path)
    with pytest.raises(ToolFailure, match=r"Did you mean .*/settings\.json\?"):
        _open(str(tmp_path / "settings.yaml"), tmp_path)
    with pytest.raises(ToolFailure, match=r"working directory is \S+\.$"):
        _open(str(tmp_path / "qqqq"), tmp_path)


def test_links_that_lead_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(ToolFailure, match="broken symbolic link"):
        _open(os.path.realpath(tmp_path / "a"), tmp_path)


def test_every_file_tool_says_what_it_is() -> None:
    specs = [tool.spec for tool in builtin_tools() if TOOLS[tool.spec.name].permission in ("read", "edit")]
    reading = {spec.name for spec in specs if spec.reads_only}
    assert reading == {"Read", "Glob", "Grep"}
    assert {spec.name for spec in specs} - reading == {"Write", "Edit", "MultiEdit", "NotebookEdit"}
    for spec in specs:
        assert len(spec.description) > 50
        assert set(spec.schema["required"]) <= set(spec.schema["properties"])
        assert spec.schema["additionalProperties"] is False
