"""Small parts of the console: pastes, completion, the last line, notices, images, patches."""

import asyncio
import base64
import io
from pathlib import Path

import pytest
from prompt_toolkit.data_structures import Size
from tests.console.recording_screen import paper, words

from steno.console.approval_dialogs import command_parts, preview_patch, short_path, shorten_paths
from steno.console.chat_status import StatusState, notification_sequence, parse_colours, status_line
from steno.console.dialog import Choice, Dialog
from steno.console.local_input import attach_images
from steno.console.prompt import Pastes, PromptHistory, fuzzy_match, pasted_image_path
from steno.console.screen import FrameOutput
from steno.sanitize.terminal import StyledLine, display_width

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_a_large_paste_is_one_word_and_is_sent_whole() -> None:
    pastes = Pastes()
    text = "\n".join(f"line {number}" for number in range(5000))
    word = pastes.add(text)
    assert word == "[paste 1: 5,000 lines]"
    assert pastes.expand(f"See {word} and [paste 2: x]") == f"See {text} and [paste 2: x]"
    assert pastes.add("short") == "short"
    assert Pastes().add("x\n" * 20) == "[paste 1: 20 lines]"
    assert pastes.add("x" * 5000) == "[paste 2: 5,000 characters]"


def test_what_was_typed_is_found_again_newest_first(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "prompts.jsonl"
    typed = PromptHistory(str(path))
    for text in ("one", "two\nlines", "two\nlines", "bad \ud800"):
        typed.store_string(text)
    path.write_bytes(b"torn{\n" + path.read_bytes())
    assert list(PromptHistory(str(path)).load_history_strings()) == ["bad ?", "two\nlines", "one"]
    assert path.stat().st_mode & 0o077 == 0


def test_files_are_found_by_a_few_letters() -> None:
    names = ["src/steno/console/screen.py", "docs/screens.md", "src/core.py", "README.md"]
    assert fuzzy_match("screen", names)[0] == "docs/screens.md"
    assert fuzzy_match("stscreen", names) == ["src/steno/console/screen.py"]
    assert fuzzy_match("zzz", names) == []
    assert fuzzy_match("", names)[0] == "README.md"


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 120, 200])
def test_the_last_line_fits_and_keeps_what_matters(columns: int) -> None:
    state = StatusState(
        model="claude-opus-4-5-20251101",
        branch="fix/duplicate-import",
        turn=5,
        seconds=190.0,
        context=68_000,
        window=200_000,
        cost=540_000,
        mode="acceptEdits",
        background_tasks=2,
    )
    (line,) = words([status_line(state, columns, 0.0)])
    assert display_width(line) <= columns
    assert "opus-4-5" in line
    if columns >= 80:
        assert "turn 5, working 3:10" in line
        assert "context 34%" in line
        assert "$0.54" in line
        assert "accept edits" in line


def test_a_line_of_a_program_keeps_its_colours_and_nothing_else() -> None:
    assert parse_colours("\x1b[1;32mok\x1b[0m \x1b[2Jx\x1b]0;t\x07") == [("ok", "bold green"), (" ␛[2Jx␛]0;t␇", "")]


def test_notices_go_the_way_that_was_chosen() -> None:
    assert notification_sequence("x", "notifications_disabled", {}) == ""
    assert notification_sequence("x", "terminal_bell", {"TERM_PROGRAM": "WezTerm"}) == "\a"
    assert notification_sequence("x", "", {"TERM_PROGRAM": "WezTerm"}) == "\x1b]9;x\x1b\\"
    assert notification_sequence("x", "", {}) == "\a"
    assert "\x1b]0" not in notification_sequence("\x1b]0;evil\x07", "iterm2", {})


def test_images_are_sent_beside_the_words_that_name_them(tmp_path: Path) -> None:
    (tmp_path / "a dot.png").write_bytes(DOT)
    (tmp_path / "no.png").write_bytes(b"not an image")
    content, named = attach_images("see 'a dot.png' and no.png and gone.png", str(tmp_path))
    assert named == ["a dot.png"]
    assert [block["type"] for block in content if isinstance(block, dict)] == ["text", "image"]
    assert attach_images("nothing here", str(tmp_path)) == ("nothing here", [])


def test_a_patch_is_known_before_the_call_is_made(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    given = {"file_path": "a.py", "old_string": "two", "new_string": "three"}
    assert preview_patch("Edit", given, str(tmp_path))[0]["lines"] == [" one", "-two", "+three"]
    made = preview_patch("Write", {"file_path": "new.py", "content": "x\n"}, str(tmp_path))
    assert made[0]["lines"] == ["+x"]


def test_a_command_is_read_in_parts() -> None:
    assert [part.program for part in command_parts("cd a && git push | tee log; rm b")] == ["cd", "git", "tee", "rm"]


def test_what_an_answer_means_is_told_in_full_beside_it_or_below() -> None:
    meaning = "like a fire engine that comes around the corner at night"
    choices = (Choice("1", "Red", "red", meaning), Choice("2", "Green", "green", "like grass"))

    async def shown(columns: int) -> list[str]:
        return words(Dialog("Colour", (), choices).lines(columns, 20, ""))

    wide = asyncio.run(shown(60))
    assert wide[1:4] == [
        "▸  1  Red    like a fire engine that comes around the",
        "             corner at night",
        "   2  Green  like grass",
    ]
    narrow = asyncio.run(shown(30))
    assert " ".join("".join(narrow[2:5]).split()) == meaning
    assert all(display_width(line) <= 30 for line in narrow)


def test_a_frame_goes_out_in_one_piece() -> None:
    written: list[str] = []

    class Sink(io.StringIO):
        encoding = "utf-8"

        def write(self, data: str, /) -> int:
            written.append(data)
            return len(data)

    frames = FrameOutput(Sink(), lambda: Size(rows=24, columns=80))
    frames.is_held = True
    frames.write_raw("one")
    frames.flush()
    assert written == []
    frames.is_held = False
    frames.write_raw("two")
    frames.flush()
    assert written == ["\x1b[?2026honetwo\x1b[?2026l"]


def test_the_region_shows_what_would_act() -> None:
    screen, _ = paper(colour=True)
    lines: list[StyledLine] = [[("\x1b[2J", "bold red"), "\u202ex"], ["\x07"]]
    assert screen.fragments(lines) == [("bold ansired", "␛[2J"), ("", "\\u{202e}x"), ("", "\n"), ("", "␇")]


def test_a_question_fits_and_is_answered_by_a_key() -> None:
    async def ask() -> None:
        choices = (Choice("y", "Yes", "once"), Choice("n", "No", "no"))
        body: list[StyledLine] = [["x" * 20] for _ in range(50)]
        dialog = Dialog("Permission", body, choices, is_framed=True)
        for columns in (30, 60, 120):
            lines = words(dialog.lines(columns, 12, ""))
            assert len(lines) <= 13
            assert max(map(display_width, lines)) <= columns
        assert not dialog.press_key("q")
        assert dialog.press_key("n")
        reply = await dialog.answer
        assert reply is not None
        assert reply.value == "no"

    asyncio.run(ask())


def test_a_long_list_is_searched_and_shown_around_what_is_pointed_at() -> None:
    async def ask() -> None:
        choices = [Choice("", f"session {at}", str(at), "main") for at in range(300)]
        dialog = Dialog("Which?", (), choices, is_search=True)
        dialog.move(200, "")
        assert any("▸ session 200" in line for line in words(dialog.lines(80, 20, "")))
        dialog.confirm("session 29")
        reply = await dialog.answer
        assert reply is not None
        assert reply.value in {"29", *(f"29{at}" for at in range(10))}

    asyncio.run(ask())


def test_a_picture_is_named_in_the_prompt_and_its_path_is_sent(tmp_path: Path) -> None:
    (tmp_path / "a b.png").write_bytes(DOT)
    (tmp_path / "notes.txt").write_text("no picture")
    pastes = Pastes()
    for given in (f"'{tmp_path}/a b.png'", f"{tmp_path}/a\\ b.png", "a b.png"):
        assert pasted_image_path(given, str(tmp_path)) == f"{tmp_path}/a b.png"
    assert pasted_image_path((tmp_path / "a b.png").as_uri(), "/") == f"{tmp_path}/a b.png"
    for other in ("notes.txt", "none.png", "a b.png\nand more", "", '"'):
        assert pasted_image_path(other, str(tmp_path)) == ""
    marks = pastes.add("a b.png", str(tmp_path)) + pastes.add("a b.png", str(tmp_path))
    assert marks == "[image 1: a b.png][image 2: a b.png]"
    whole = pastes.expand(f"{marks} and")
    content, named = attach_images(whole, "/")
    assert named == ["a b.png", "a b.png"]
    assert isinstance(content, list)


def test_paths_are_said_from_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert short_path("/home/ada/tide/src/a.py", "/home/ada/tide") == "src/a.py"
    assert short_path("/home/ada/tide", "/home/ada/tide") == "."
    assert short_path("/home/ada/tidegauge/a.py", "/home/ada/tide") == "~/tidegauge/a.py"
    assert short_path("/etc/passwd", "/home/ada/tide") == "/etc/passwd"
    said = shorten_paths("/home/ada/x is read, not /home/adam or a/home/ada/b", "/home/ada/tide")
    assert said == "~/x is read, not /home/adam or a/home/ada/b"
