"""Output on its way to the model."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.tools.context import ToolContext
from steno.tools.output import (
    MAX_OUTPUT_LENGTH,
    OutputCapture,
    OutputDecoder,
    OutputLog,
    escape_controls,
    save_output,
    saved_output_message,
)
from steno.tools.protocol import ToolFailure

ESCAPES = (
    b"\x1b[1;31mred\x1b[0m",
    b"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x07",
    b"\x1b(B\x1bc\x1b7\x1b=",
    b"\x1bPq#0;2\x1b\\",
    b"a\r\nb\rc",
    "ü日本😀".encode(),
)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (ESCAPES[0], "red"),
        (ESCAPES[1], "link"),
        (ESCAPES[2], ""),
        (ESCAPES[3], ""),
        (ESCAPES[4], "a\nb\nc"),
        (ESCAPES[5], "ü日本😀"),
        (b"tab\tstays", "tab\tstays"),
        (b"\x00\x07\x08\x7f", "␀␇␈␡"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("\x9b31m".encode(), "\\u{9b}31m"),
        ("\U000e0041hidden".encode(), "\\u{e0041}hidden"),
        ("e\u0301\u200d\ufeff".encode(), "e\u0301\u200d\ufeff"),
        (b"\x1b", "␛"),
        (b"\x1b[31", "␛[31"),
        (b"\x1b]never ends", "␛]never ends"),
    ],
)
def test_controls_are_taken_out_or_made_visible(raw: bytes, text: str) -> None:
    assert OutputDecoder().decode(raw, last=True) == text


@given(st.lists(st.sampled_from(ESCAPES), max_size=6), st.data())
def test_where_the_pieces_are_cut_changes_nothing(parts: list[bytes], data: st.DataObject) -> None:
    raw = b"".join(parts)
    at = data.draw(st.integers(0, len(raw)))
    cleaner = OutputDecoder()
    whole = OutputDecoder().decode(raw, last=True)
    assert cleaner.decode(raw[:at]) + cleaner.decode(raw[at:], last=True) == whole


@given(st.binary(max_size=400))
def test_no_control_comes_through(raw: bytes) -> None:
    text = OutputDecoder().decode(raw, last=True)
    assert all(letter in "\t\n" or letter >= " " for letter in text)
    assert escape_controls(text) == text


def test_a_sequence_without_end_is_shown_in_the_end() -> None:
    cleaner = OutputDecoder()
    text = "".join(cleaner.decode(b"\x1b]" + b"x" * 1000) for _ in range(10))
    assert len(text) > 5000


def test_a_capture_keeps_the_beginning_as_text_and_all_as_bytes() -> None:
    capture = OutputCapture()
    piece = b"0123456789" * 1000
    for _ in range(100):
        capture.add(piece)
    assert len(capture.text) == MAX_OUTPUT_LENGTH + 1
    assert capture.length == capture.size == 1_000_000
    assert b"".join(capture.raw_chunks()) == piece * 100
    capture.close()


@pytest.mark.parametrize("most", [10, 300_000])
def test_a_capture_has_an_end_and_says_so(most: int) -> None:
    capture = OutputCapture(most)
    for _ in range(4):
        capture.add(b"x" * 100_000)
    kept = b"".join(capture.raw_chunks())
    note = f"\n[{400_000 - most} more bytes were discarded]\n".encode()
    assert kept == b"x" * most + note
    capture.close()


def test_a_preview_ends_with_a_line_or_in_the_middle_of_a_long_one() -> None:
    assert saved_output_message("a\n" * 2000, "/p", 4000).count("a\n") == 1000
    assert "b" * 2000 + "\n...\n" in saved_output_message("b" * 4000, "/p", 4000)


def make(tmp_path: Path) -> ToolContext:
    return ToolContext(cwd="/", project="/", session_id="s", folder=str(tmp_path), env={})


def test_saving_leaves_one_private_file(tmp_path: Path) -> None:
    path, size = save_output(make(tmp_path), "toolu_1", [b"one", b"two"])
    save_output(make(tmp_path), "toolu_1", [b"again"])
    assert size == 6
    assert Path(path).read_bytes() == b"again"
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert [each.name for each in Path(path).parent.iterdir()] == ["toolu_1.txt"]


def test_saving_does_not_follow_a_link_that_waits_there(tmp_path: Path) -> None:
    (tmp_path / "tool-results").mkdir()
    (tmp_path / "tool-results" / "toolu_1.txt").symlink_to(tmp_path / "victim")
    save_output(make(tmp_path), "toolu_1", [b"x"])
    assert not (tmp_path / "victim").exists()


def test_a_folder_that_cannot_be_made_is_a_failure_in_words(tmp_path: Path) -> None:
    (tmp_path / "tool-results").write_text("no folder", "utf-8")
    with pytest.raises(ToolFailure, match="could not be saved"):
        save_output(make(tmp_path), "toolu_1", [b"x"])


def test_a_log_gives_what_is_new_and_no_letter_in_halves(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path / "log"))
    letter = "ü".encode()
    log.add(b"one" + letter[:1])
    assert log.read_new(last=False) == "one"
    log.add(letter[1:] + b"two")
    assert log.read_new(last=False) == "ütwo"
    assert log.read_new(last=True) == ""
    log.close()


def test_a_log_gives_the_newest_of_too_much_and_says_where_the_rest_is(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    log = OutputLog(path)
    for number in range(100_000):
        log.add(f"{number}\n".encode())
    text = log.read_new(last=False)
    log.close()
    assert text.startswith(f"[earlier output is in {path}]\n")
    assert text.endswith("\n99999\n")
    assert len(text) < MAX_OUTPUT_LENGTH + 200


def test_the_file_of_a_log_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = OutputLog(str(path), max_size=1000)
    for _ in range(100):
        log.add(b"x" * 64)
    log.close()
    assert path.read_bytes() == b"x" * 1000 + b"\n[output limit reached, later output was discarded]\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert log.size == 6400


def test_a_full_disk_loses_output_but_not_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steno.tools.output._open_unlinked_file", _broken)
    capture = OutputCapture()
    for _ in range(4):
        capture.add(b"y" * 100_000)
    assert len(capture.text) == MAX_OUTPUT_LENGTH + 1
    assert b"more bytes were discarded" in b"".join(capture.raw_chunks())


def _broken() -> None:
    raise OSError(28, "No space left on device")
