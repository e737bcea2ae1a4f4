"""What both ends of a file say, and how many turns there are."""

import os
from pathlib import Path
from typing import Final

import pytest
from tests.builders import VERSIONS, Session, session, text, thinking, tool

from steno.format.source import BytesSource
from steno.index.sync.extract import extract_rows
from steno.store.discovery import discover_file
from steno.store.file_source import FileSource
from steno.store.session_counts import count_turns
from steno.store.session_lookup import open_file_session, sessions_newest_first
from steno.store.summary import SessionSummary, project_in_listing, summarize

LATER: Final = 2e9


def look(folder: Path, built: Session | bytes, now: float = LATER) -> SessionSummary:
    path = folder / "talk.jsonl"
    path.write_bytes(built if isinstance(built, bytes) else built.bytes())
    return summarize(discover_file(str(path)), now)


def turns(folder: Path, built: Session | bytes) -> int | None:
    path = folder / "talk.jsonl"
    path.write_bytes(built if isinstance(built, bytes) else built.bytes())
    return count_turns(discover_file(str(path)))


def test_the_plain_facts(tmp_path: Path) -> None:
    built = session(cwd="/home/ada/tide", branch="surge", start="2026-11-07T09:02:00.000Z")
    seen = look(tmp_path, built.turn("What is the tide?", "High at noon."))
    assert (seen.project, seen.branch) == ("/home/ada/tide", "surge")
    assert (seen.model, seen.version) == ("claude-opus-5-5", "2.1.325")
    assert (seen.title, seen.has_title, seen.status) == ("What is the tide?", False, "finished")
    assert seen.id == built.session_id
    assert seen.started is not None
    assert seen.ended is not None
    assert 1_794_042_120.0 < seen.started < seen.ended
    assert not seen.hidden


def test_titles_follow_the_rules_of_the_picker(tmp_path: Path) -> None:
    built = session().turn("First", "Yes.").turn("Second", "No.")
    assert look(tmp_path, built).title == "First"
    assert look(tmp_path, built.last_prompt("Second")).title == "Second"
    assert look(tmp_path, built.summary("Summed up", built.uuids()[-1])).title == "Summed up"
    assert look(tmp_path, built.ai_title("By the model")).title == "By the model"
    assert look(tmp_path, built.title("By hand")).title == "By hand"
    assert look(tmp_path, built.ai_title("Later")).title == "By hand"
    assert look(tmp_path, built.title("By hand again")).has_title


def test_a_summary_of_another_session_is_no_title_here(tmp_path: Path) -> None:
    seen = look(tmp_path, session().summary("Elsewhere", "x-1").turn("Here", "Yes."))
    assert seen.title == "Here"
    assert seen.foreign_titles == (("x-1", "Elsewhere"),)


def test_a_title_beside_the_session_counts(tmp_path: Path) -> None:
    (tmp_path / "talk").mkdir()
    (tmp_path / "talk" / "custom-title.json").write_text('{"customTitle":"Beside"}')
    assert look(tmp_path, session().turn("First", "Yes.").ai_title("AI")).title == "Beside"


def test_a_notification_is_no_title(tmp_path: Path) -> None:
    built = session().turn("First", "Yes.").last_prompt("<task-notification>done")
    assert look(tmp_path, built).title == "First"


@pytest.mark.parametrize(("age", "status"), [(10, "running"), (1000, "running"), (4000, "interrupted")])
def test_an_open_call_runs_until_it_is_too_old(tmp_path: Path, age: float, status: str) -> None:
    built = session().user("Go").assistant(tool("Bash", command="make"))
    path = tmp_path / "talk.jsonl"
    path.write_bytes(built.bytes())
    # The time of the file does not count.
    os.utime(path, (1e9, 1e9))
    last = summarize(discover_file(str(path)), 0.0).ended
    assert last is not None
    assert summarize(discover_file(str(path)), last + age).status == status


def test_how_a_session_ended(tmp_path: Path) -> None:
    asked = session().user("Go")
    assert look(tmp_path, asked).status == "interrupted"
    assert look(tmp_path, session().turn("Go", "Done.")).status == "finished"
    assert look(tmp_path, session().user("Go").fatal("too long")).status == "failed"
    call = tool("Bash", command="make")
    assert look(tmp_path, session().user("Go").assistant(call).interrupt()).status == "interrupted"
    question = tool("AskUserQuestion", questions=[])
    assert look(tmp_path, session().user("Go").assistant(question)).status == "waiting"
    assert look(tmp_path, b"").status == "empty"


def test_what_listings_leave_out(tmp_path: Path) -> None:
    assert not look(tmp_path, session().user("Hello?")).hidden
    assert look(tmp_path, session().command("exit")).hidden
    assert look(tmp_path, b"\x00" * 100).hidden
    side = session().turn("Go", "Done.").bytes().replace(b'"isSidechain":false', b'"isSidechain":true')
    assert look(tmp_path, side).sidechain
    assert look(tmp_path, side).hidden


def test_a_session_begun_by_a_command_is_called_by_it(tmp_path: Path) -> None:
    seen = look(tmp_path, session().command("init").assistant("Done."))
    assert (seen.title, seen.hidden) == ("/init", False)


def test_only_the_ends_of_a_long_file_are_needed(tmp_path: Path) -> None:
    built = session().turn("First", "Yes.")
    for number in range(200):
        built.turn(f"Prompt {number}", thinking("x" * 2000), "Answer.")
    seen = look(tmp_path, built.title("At the end"))
    assert (seen.title, seen.status) == ("At the end", "finished")
    assert turns(tmp_path, built) == 201


def test_a_first_record_longer_than_the_head_is_still_read(tmp_path: Path) -> None:
    seen = look(tmp_path, session().turn("Long " * 60_000, "Short.").turn("Next", "Yes."))
    assert seen.title.startswith("Long Long")
    assert seen.answered


@pytest.mark.parametrize("end", ["answered", "alone"])
def test_a_first_record_with_a_pasted_picture_is_still_read(tmp_path: Path, end: str) -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 1_500_000}}
    built = session().user([text("What is this?"), picture])
    seen = look(tmp_path, built.assistant("A gauge.") if end == "answered" else built)
    assert (seen.title, seen.hidden) == ("What is this?", False)


def test_a_reminder_before_the_typed_words_is_passed_over(tmp_path: Path) -> None:
    reminder = "<system-reminder>\nMind the gap.\n</system-reminder>"
    seen = look(tmp_path, session().user([text(reminder), text("What is this?")]).assistant("A."))
    assert (seen.title, seen.hidden) == ("What is this?", False)
    assert look(tmp_path, session().turn(f"{reminder}\n\nAnd this?", "B.")).title == "And this?"
    assert look(tmp_path, session().turn(reminder, "C.")).hidden


def test_a_prompt_of_several_texts_is_called_by_all_of_them(tmp_path: Path) -> None:
    built = session().user([text("Look at this."), text("Then at that.")]).assistant("A.")
    source = BytesSource(built.bytes())
    assert look(tmp_path, built).title == "Look at this. Then at that."
    assert extract_rows(source, 1).state.first_prompt == "Look at this. Then at that."


def test_records_glued_on_one_line_all_count(tmp_path: Path) -> None:
    built = session().turn("Glued", "Yes.").bytes()
    seen = look(tmp_path, built.replace(b"\n", b"", 1))
    assert (seen.title, seen.answered, seen.hidden) == ("Glued", True, False)


def test_a_last_record_longer_than_the_tail_is_still_read(tmp_path: Path) -> None:
    call = tool("Bash", command="cat big")
    built = session().user("Go").assistant(call).result("y" * 300_000)
    assert look(tmp_path, built).status == "interrupted"
    assert look(tmp_path, session().turn("Go", "z" * 300_000)).status == "finished"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_generation_is_glanced_at(tmp_path: Path, version: str) -> None:
    built = session(version, full=True).turn("One", "Two").turn("Three", "Four")
    seen = look(tmp_path, built)
    assert (seen.version, seen.status) == (version, "finished")
    assert seen.title in ("One", "Three")
    assert turns(tmp_path, built) == 2


def test_damage_hides_nothing_else(tmp_path: Path) -> None:
    built = session().turn("One", "Two").turn("Three", "Four").splice(1, 40).torn_tail(20)
    assert look(tmp_path, built).title == "One"
    assert turns(tmp_path, built) == 2


def test_rewound_turns_do_not_count(tmp_path: Path) -> None:
    built = session().turn("One", "Yes.").turn("Two", "No.").turn("Three", "No.")
    assert turns(tmp_path, built) == 3
    assert turns(tmp_path, built.rewind(1).turn("Two again", "Yes.")) == 2


def test_results_notices_and_lone_commands_are_no_turns(tmp_path: Path) -> None:
    call = tool("Bash", command="ls")
    built = session().user("Go").assistant(call).result("a\nb").assistant("Two files.")
    assert turns(tmp_path, built.command("cost")) == 1
    assert turns(tmp_path, b"") == 0


def test_spaces_after_colons_do_not_matter(tmp_path: Path) -> None:
    built = session().turn("One", "Two").turn("Three", "Four")
    spaced = built.bytes().replace(b'"type":"', b'"type": "')
    assert turns(tmp_path, spaced) == 2


@pytest.mark.parametrize("dialect", ["spec-000", "spec-004"])
def test_dialects_are_counted(tmp_path: Path, dialect: str) -> None:
    assert turns(tmp_path, session(dialect=dialect).turn("One", "Two").turn("Three", "Four")) == 2


def test_a_line_without_end_is_not_held_on_to(tmp_path: Path) -> None:
    data = session().turn("One", "Two").bytes() + b"x" * (3 << 20)
    assert turns(tmp_path, data) == 1


@pytest.mark.corpus
def test_the_fast_count_agrees_with_the_story_on_real_files(shared: Path) -> None:
    files = sessions_newest_first(str(shared / "corpus" / "real-client"))
    odd = [f.path for f in files if count_turns(f) != len(open_file_session(f).turns())]
    assert len(files) > 100
    assert len(odd) <= len(files) // 50, odd


def test_a_pipe_in_place_of_a_title_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "talk").mkdir()
    os.mkfifo(tmp_path / "talk" / "custom-title.json")
    assert look(tmp_path, session().turn("Hi", "Ho")).title == "Hi"


def test_turns_are_counted_in_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = session()
    for number in range(200):
        made.user(f"<command-name>/{number}</command-name>")
    data = made.turn("Hi", "Ho").bytes()
    amount = 0
    plain = FileSource.read

    def counted(self: FileSource, offset: int, length: int) -> bytes:
        nonlocal amount
        found = plain(self, offset, length)
        amount += len(found)
        return found

    monkeypatch.setattr(FileSource, "read", counted)
    assert turns(tmp_path, data) == 1
    assert amount <= 4 * len(data)


def test_the_project_of_a_session_is_told_from_its_beginning_as_from_all_of_it(shared: Path, tmp_path: Path) -> None:
    files = sessions_newest_first(str(shared / "corpus"))
    assert len(files) > 300
    for found in files:
        whole = summarize(found, LATER)
        assert project_in_listing(found) == (None if whole.hidden else whole.project), found.path
    path = tmp_path / "talk.jsonl"
    # A first record longer than what is looked at, then nothing but a sub-agent's, then a prompt.
    late = session(cwd="/home/ada/late").user("x" * 200_000)
    side = session(cwd="/home/ada/side").user("Go.").assistant("Done.").bytes()
    hidden = side.replace(b'"isSidechain":false', b'"isSidechain":true')
    assert hidden != side
    for data, project in ((late.bytes(), "/home/ada/late"), (hidden, None), (hidden + side, "/home/ada/side")):
        path.write_bytes(data)
        assert project_in_listing(discover_file(str(path))) == project
