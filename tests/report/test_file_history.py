"""The time machine: every version of a file that agents touched, and what nobody can know."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import VERSIONS, session, tool
from tests.conftest import WriteConfig
from tests.report.file_history_cases import PATH, command, edit, history_of, read, told, transcript_of, write

from steno.errors import Unreadable
from steno.format.tool_catalogue import EDITING_TOOLS
from steno.index.database import IndexLocation, open_index
from steno.index.sync.updater import sync
from steno.report.actions.shell_command import may_change_file
from steno.report.file_history.file_versions import FileTouch, Version
from steno.report.file_history.history import count_surviving_lines, diff_texts, history
from steno.report.file_history.text_edits import (
    PartialText,
    PatchHunk,
    apply_patch,
    count_changed_lines,
    equal_texts,
    patch_matches,
)
from steno.report.file_history.touch_finder import touches_in
from steno.report.file_history.touched_files import TouchedFilter, list_touched_files, touched_projects
from steno.report.file_history.version_builder import build_versions, evidence_of
from steno.session.transcript import load
from steno.store.file_source import FileSource

_LINES = st.lists(st.sampled_from(["", "a", "b", "\tc", "a b", "é", "}", "\\ No"]), max_size=8)
_TEXTS = _LINES.map("\n".join) | _LINES.map(lambda lines: "".join(f"{line}\n" for line in lines))
_OPS = st.one_of(
    st.tuples(st.just("write"), _TEXTS, st.just("")),
    st.tuples(st.just("edit"), st.integers(0, 99), _TEXTS),
    st.tuples(st.just("everywhere"), st.integers(0, 99), _TEXTS),
    st.tuples(st.just("read"), st.just(""), st.just("")),
    st.tuples(st.just("outside"), _TEXTS, st.just("")),
    st.tuples(st.just("failed"), _TEXTS, st.just("")),
)


class _Told:
    """A session that does some things to a file, and what the file was after each."""

    def __init__(self, version: str) -> None:
        self.made = session(version).user("Take notes.")
        self.text: str | None = None
        self.seen: list[tuple[str, str]] = []
        self.gaps = 0
        self._known: str | None = None

    def do(self, what: str, one: Any, other: str) -> None:
        text = self.text
        if what == "write":
            self._found()
            write(self.made, one)
            self._note("write", one)
        elif what == "outside":
            if text is not None:
                self.made.have(PATH, one)
                self.text = one
        elif what == "failed":
            call = tool("Write", file_path=PATH, content=one)
            self.made.assistant(call).result("File has not been read yet.", error=True)
        elif text:
            self._on_text(what, one, other, text)

    def _on_text(self, what: str, one: Any, other: str, text: str) -> None:
        if what == "read":
            self._found()
            read(self.made)
            self._note("read", text)
            return
        start = one % len(text)
        old = text[start : start + 1 + one % 5]
        if what == "edit" and text.count(old) > 1:
            old = text
        if old == other or (not other and not old.endswith("\n") and f"{old}\n" in text):
            return
        self._found()
        every = what == "everywhere"
        edit(self.made, old, other, every=every)
        self._note("edit", text.replace(old, other) if every else text.replace(old, other, 1))

    def _found(self) -> None:
        """What changed outside is found by what is done next."""
        if self._known is not None and self.text is not None:
            self.gaps += not equal_texts(self._known, self.text)

    def _note(self, verb: str, text: str) -> None:
        self.text = self._known = text
        self.seen.append((verb, text))


@given(st.lists(_OPS, max_size=12), st.sampled_from(VERSIONS))
@example([("write", "a", ""), ("edit", 0, "\n\n")], VERSIONS[-1])
def test_any_chain_of_changes_is_rebuilt_exactly(things: list[tuple[str, Any, str]], version: str) -> None:
    chain = _Told(version)
    for what, one, other in things:
        chain.do(what, one, other)
    touches = touches_in(transcript_of(chain.made)).get(PATH, [])
    versions = build_versions(touches)
    mine = [each for each in versions if each.verb != "outside"]
    assert [(each.verb, each.text) for each in mine] == chain.seen
    if version != "1.0.128":
        # That one does not note what a file was before it is written anew.
        assert len(versions) - len(mine) == chain.gaps


@given(st.lists(_OPS.filter(lambda op: op[0] != "outside"), max_size=12))
def test_a_chain_is_rebuilt_without_a_word_of_what_was_before(things: list[tuple[str, Any, str]]) -> None:
    chain = _Told(VERSIONS[-1])
    chain.do("write", "one\ntwo\n", "")
    for what, one, other in things:
        chain.do(what, one, other)
    touches = touches_in(transcript_of(chain.made))[PATH]
    versions = build_versions(_bare(touch) for touch in touches)
    assert [(each.verb, each.text) for each in versions] == chain.seen
    edits = {each.known for each in versions if each.verb == "edit"}
    assert edits <= {"derived"}


def _bare(touch: FileTouch) -> FileTouch:
    """Return a touch as clients note it that keep nothing of the file before."""
    left = {
        name: value
        for name, value in touch.result.items()
        if name not in ("originalFile", "structuredPatch", "originalFileContents", "original_file")
    }
    return msgspec.structs.replace(touch, result=left)


@given(_TEXTS, _TEXTS)
def test_a_diff_leads_from_one_text_to_the_other(before: str, after: str) -> None:
    hunks = [
        PatchHunk(
            each.old,
            sum(line[0] != "+" for line in each.lines),
            each.new,
            sum(line[0] != "-" for line in each.lines),
            each.lines,
        )
        for each in diff_texts(before, after)
    ]
    end = "\n" if before.endswith("\n") == after.endswith("\n") else ""
    made = before
    for hunk in reversed(hunks):
        start = hunk.old_start - 1
        lines = made.split("\n")
        lines[start : start + len(hunk.lines_of_side("-"))] = hunk.lines_of_side("+")
        made = "\n".join(lines)
    assert made.rstrip("\n") == after.rstrip("\n") or not end
    signs = [line[0] for each in hunks for line in each.lines]
    assert (signs.count("+"), signs.count("-")) == count_changed_lines(before, after)


# What is known in part


def _ranged(start: int, lines: list[str], total: int) -> FileTouch:
    file = {"content": "\n".join(lines), "startLine": start, "numLines": len(lines), "totalLines": total}
    return FileTouch(tool="Read", result={"type": "text", "file": file}, offset=start)


def test_reads_of_ranges_add_up_until_the_file_is_whole() -> None:
    touches = [_ranged(1, ["a", "b"], 5), _ranged(4, ["d", ""], 5), _ranged(2, ["b", "c"], 5)]
    versions = build_versions(touches)
    assert [each.known for each in versions] == ["partial", "partial", "exact"]
    assert versions[-1].text == "a\nb\nc\nd\n"
    assert [(piece.start, piece.lines) for piece in versions[1].pieces] == [(1, ("a", "b")), (4, ("d", ""))]


def test_a_range_that_does_not_fit_is_a_change_from_outside() -> None:
    whole = FileTouch(tool="Write", tool_input={"content": "a\nb\nc\n"}, result={"type": "create"})
    versions = build_versions([whole, _ranged(2, ["b"], 4), _ranged(2, ["x"], 4)])
    assert [(each.verb, each.known) for each in versions] == [
        ("write", "exact"),
        ("read", "exact"),
        ("outside", "partial"),
        ("read", "partial"),
    ]


def test_an_edit_of_a_file_known_in_part_moves_what_is_known() -> None:
    patch = [{"oldStart": 2, "oldLines": 1, "newStart": 2, "newLines": 2, "lines": ["-b", "+x", "+y"]}]
    change = FileTouch(
        tool="Edit", tool_input={"old_string": "b", "new_string": "x\ny"}, result={"structuredPatch": patch}
    )
    versions = build_versions([_ranged(1, ["a", "b"], 5), _ranged(4, ["d", ""], 5), change])
    assert [(piece.start, piece.lines) for piece in versions[-1].pieces] == [(1, ("a", "x", "y")), (5, ("d", ""))]
    assert (versions[-1].added, versions[-1].removed, versions[-1].total) == (2, 1, 6)


def test_a_patch_with_tabs_made_spaces_is_the_same_patch() -> None:
    before, after = "\tif a {\n\t\tb\n", "\tif a {\n\t\tc\n"
    hunks = [PatchHunk(1, 2, 1, 2, ("   if a {", "-    b", "+    c"))]
    assert apply_patch(before, hunks) is None
    assert patch_matches(hunks, before, after)
    assert not patch_matches(hunks, before, before)


def test_what_a_person_changed_before_it_was_carried_out_is_what_counts() -> None:
    patch = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+mine"]}]
    change = FileTouch(
        tool="Edit",
        tool_input={"old_string": "a", "new_string": "yours"},
        result={"originalFile": "a\n", "structuredPatch": patch, "userModified": True},
    )
    (version,) = build_versions([change])
    assert version.text == "mine\n"


@pytest.mark.parametrize(
    "result",
    [
        {"file": 3},
        {"file": {"content": ["a"]}},
        {"file": {"content": "a", "startLine": "x", "numLines": 1e400, "totalLines": -1}},
        {"originalFile": {"a": 1}, "structuredPatch": [{"lines": [1]}], "edits": "x"},
        {"structuredPatch": [{"oldStart": -5, "oldLines": 9, "newStart": 0, "newLines": 0, "lines": []}]},
    ],
)
@pytest.mark.parametrize("name", ["Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "attached"])
def test_odd_results_are_no_trouble(name: str, result: dict[str, Any]) -> None:
    touch = FileTouch(tool=name, tool_input={"old_string": 1, "content": None, "edits": [3]}, result=result)
    assert all(isinstance(each, Version) for each in build_versions([touch, touch]))


def test_an_edit_behind_a_command_is_doubtful_unless_the_file_before_it_is_recorded() -> None:
    start = FileTouch(tool="Write", tool_input={"content": "a\nb\n"}, result={"type": "create"})
    ran = FileTouch(tool="Bash", tool_input={"command": "./tidy notes.txt"})
    change = FileTouch(tool="Edit", tool_input={"old_string": "a", "new_string": "c"})
    assert "command" in build_versions([start, ran, change])[-1].note
    sure = msgspec.structs.replace(change, result={"originalFile": "a\nb\n"})
    *_, command_, last = build_versions([start, ran, sure])
    assert (last.text, last.note, command_.settled) == ("c\nb\n", "", True)


def test_lines_that_old_clients_showed_are_read_from_their_numbers() -> None:
    words = "     1→a\n     2→\tb\n     3→\n\n<system-reminder>\nBe kind.\n</system-reminder>\n"
    assert evidence_of(FileTouch(tool="Read", model_text=words)).after == "a\n\tb\n"
    part = FileTouch(tool="Read", model_text="7\tx\n8\ty", tool_input={"offset": 7, "limit": 2})
    assert (evidence_of(part).start, evidence_of(part).lines) == (7, ("x", "y"))
    assert evidence_of(FileTouch(tool="Read", model_text="no numbers")).after is None


def test_lines_known_in_part_are_told_in_stretches() -> None:
    lines = PartialText(9)
    lines.set_lines(3, ["c", "d"])
    lines.set_lines(7, ["g"])
    assert [piece.start for piece in lines.pieces()] == [3, 7]
    assert lines.text is None
    assert lines.matches_text("a\nb\nc\nd\ne\nf\ng\nh\n")
    assert not lines.matches_text("a\nb\nx\nd\ne\nf\ng\nh\n")


# Across sessions


def test_versions_come_in_order_across_sessions_with_what_was_asked(config: WriteConfig, tmp_path: Path) -> None:
    one = session(seed=1).user("Begin the notes.")
    write(one, "a\n").done()
    two = session(seed=2).wait(86_400).have(PATH, "a\n").user("Go on with them.")
    edit(two, "a", "b").done()
    three = session(seed=3).wait(40_000).have(PATH, "a\n").user("Look at them.")
    read(three).done()
    found = history_of(tmp_path, config(two, three, one))
    assert told(found) == [("write", "exact", "a\n"), ("read", "exact", "a\n"), ("edit", "derived", "b\n")]
    assert [each.prompt for each in found.versions] == ["Begin the notes.", "Look at them.", "Go on with them."]
    assert [each.session for each in found.versions] == [each.session_id for each in (one, three, two)]
    assert [(each.added, each.removed) for each in found.versions] == [(1, 0), (0, 0), (1, 1)]


def test_what_no_session_wrote_is_found_by_the_next_touch(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Note it.")
    write(made, "a\n").have(PATH, "mine\n")
    edit(made, "mine", "ours").done()
    found = history_of(tmp_path, config(made))
    assert told(found) == [("write", "exact", "a\n"), ("outside", "exact", "mine\n"), ("edit", "derived", "ours\n")]
    assert "Not written by a session" in found.versions[1].note


def test_a_file_that_was_put_back_says_to_which_version(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Note it.")
    write(made, "a\n")
    edit(made, "a", "b").have(PATH, "a\n")
    read(made).done()
    found = history_of(tmp_path, config(made))
    assert [each.verb for each in found.versions] == ["write", "edit", "outside", "read"]
    assert found.versions[2].back == found.versions[0].name


def test_a_command_that_names_the_file_is_a_gap_until_something_shows_what_it_did(
    config: WriteConfig, tmp_path: Path
) -> None:
    made = session(entrypoint="sdk-cli").user("Note it.")
    write(made, "a\n")
    command(made, "sed -i s/x/y/ notes.txt")
    read(made)
    command(made, "cat notes.txt | wc -l")
    command(made, "sort -o notes.txt notes.txt")
    made.have(PATH, "b\n")
    read(made)
    command(made, "mv notes.txt old.txt")
    made.done()
    found = history_of(tmp_path, config(made))
    commands = [each for each in found.versions if each.verb == "command"]
    assert [(each.command.split()[0], each.settled, each.known) for each in commands] == [
        ("sed", True, "exact"),
        ("sort", False, "unknown"),
        ("mv", False, "unknown"),
    ]
    outside = next(each for each in found.versions if each.verb == "outside")
    assert "command" in outside.note
    assert outside.text == "b\n"


def test_what_failed_or_was_denied_does_not_count(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Note it.")
    write(made, "a\n")
    denial = "The user doesn't want to proceed with this tool use."
    for words in ("String to replace not found in file.", denial):
        call = tool("Edit", file_path=PATH, old_string="a", new_string="b")
        made.assistant(call).result(words, error=True)
    made.assistant(tool("Bash", command="rm notes.txt")).result(denial, error=True)
    made.assistant(tool("Write", file_path=PATH, content="never answered"))
    found = history_of(tmp_path, config(made))
    assert told(found) == [("write", "exact", "a\n")]


def test_sub_agents_count_and_say_what_the_session_was_asked(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Have somebody note it.")
    call = tool("Agent", description="Notes", prompt="Write the notes.", subagent_type="general")
    made.assistant(call).agent(lambda child: write(child, "a\n").assistant("Done."))
    made.assistant("There it is.").done()
    found = history_of(tmp_path, config(made))
    (version,) = found.versions
    assert (version.text, version.session) == ("a\n", made.session_id)
    assert version.agent
    assert version.prompt == "Have somebody note it."


def test_what_was_done_in_an_abandoned_branch_is_marked(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Note it.")
    write(made, "a\n").assistant("Noted.").done()
    made.user("Now in red.")
    edit(made, "a", "red").assistant("Red it is.").done()
    made.rewind(1).user("Now in blue.")
    edit(made, "red", "blue").assistant("Blue it is.").done()
    found = history_of(tmp_path, config(made))
    assert [(each.text, each.abandoned) for each in found.versions] == [
        ("a\n", False),
        ("red\n", True),
        ("blue\n", False),
    ]
    assert [each.prompt for each in found.versions] == ["Note it.", "Now in red.", "Now in blue."]


@pytest.mark.parametrize("traced", [True, False])
def test_a_copy_in_another_session_is_no_touch_of_its_own(config: WriteConfig, tmp_path: Path, *, traced: bool) -> None:
    made = session(entrypoint="sdk-cli").user("Note it.")
    write(made, "a\n").assistant("Noted.").done()
    fork = made.fork(traced=traced).user("Go on.")
    edit(fork, "a", "b").done()
    root = config(made, fork)
    found = history_of(tmp_path, root)
    assert [(each.text, each.copies) for each in found.versions] == [("a\n", 1), ("b\n", 0)]
    with open_index(str(root)) as index:
        (row,) = list_touched_files(index.connection)
    assert (row.edits, row.sessions) == (2, 2)


def test_backups_fill_what_no_tool_recorded(config: WriteConfig, tmp_path: Path) -> None:
    made = session(full=True).user("Note it.")
    write(made, "a\n").assistant("Noted.").done()
    made.have(PATH, "by hand\n").user("What now?").assistant("Nothing.").done()
    found = history_of(tmp_path, config(made))
    assert told(found)[-1] == ("outside", "exact", "by hand\n")
    assert found.versions[-1].tool == "kept"


def test_attached_files_are_reads(config: WriteConfig, tmp_path: Path) -> None:
    made = session().user("See @notes.txt")
    made.mention("notes.txt", "a\nb\n")
    edit(made.have(PATH, "a\nb\n"), "b", "c").done()
    found = history_of(tmp_path, config(made))
    assert [(each.verb, each.tool, each.text) for each in found.versions] == [
        ("read", "attached", "a\nb\n"),
        ("edit", "Edit", "a\nc\n"),
    ]


def test_a_notice_that_the_file_changed_is_a_change_from_outside(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("Note it.")
    write(made, "a\nb\n")
    made.attach("edited_text_file", filename=PATH, snippet="     2→x\n     3→y")
    made.assistant("I see.").done()
    found = history_of(tmp_path, config(made))
    last = found.versions[-1]
    assert (last.verb, last.known, last.tool) == ("outside", "partial", "noticed")
    assert [(piece.start, piece.lines) for piece in last.pieces] == [(2, ("x", "y"))]


def test_sessions_that_are_gone_are_counted(config: WriteConfig, tmp_path: Path) -> None:
    one = session(seed=1).user("Begin.")
    write(one, "a\n").done()
    two = session(seed=2).wait(60).have(PATH, "a\n").user("Go on.")
    edit(two, "a", "b").done()
    root = config(one, two)
    home = IndexLocation(str(tmp_path / "index"), (str(root),))
    sync(home)
    next(root.rglob(f"{one.session_id}.jsonl")).unlink()
    found = history_of(tmp_path, root)
    assert [each.text for each in found.versions] == ["b\n"]
    assert found.lost == 1


def test_sessions_that_are_only_in_the_archive_count(config: WriteConfig, tmp_path: Path) -> None:
    from steno.store.archive.archive import archive_all

    made = session(entrypoint="sdk-cli").user("Begin.")
    write(made, "a\n")
    edit(command(made, "./tidy notes.txt"), "a", "b").done()
    root = config(made)
    sync(IndexLocation(str(tmp_path / "index"), (str(root),)))
    archive_all((str(root),))
    next(root.rglob(f"{made.session_id}.jsonl")).unlink()
    found = history_of(tmp_path, root)
    assert [(each.verb, each.text) for each in found.versions] == [
        ("write", "a\n"),
        ("command", "a\n"),
        ("edit", "b\n"),
    ]
    assert found.lost == 0


def test_a_file_nobody_touched_has_no_history(config: WriteConfig) -> None:
    made = session().user("Note it.")
    write(made, "a\n").done()
    with open_index(str(config(made))) as index:
        assert history(index.connection, "/nowhere") is None


# All files


def test_the_list_counts_reads_edits_lines_and_sessions(config: WriteConfig) -> None:
    one = session(seed=1).user("Begin.")
    write(one, "a\nb\n").have("/home/ada/tidegauge/other.md", "x")
    one.assistant(tool("Read", file_path="/home/ada/tidegauge/other.md")).result("x")
    one.assistant(tool("Read", file_path="/home/ada/missing")).result("No such file.", error=True)
    one.assistant(tool("Grep", pattern="x", path="/home/ada/tidegauge")).result("").done()
    two = session(seed=2, cwd="/home/ada/else").wait(60).have(PATH, "a\nb\n").user("Go on.")
    read(two)
    edit(two, "a", "c").done()
    with open_index(str(config(one, two))) as index:
        rows = list_touched_files(index.connection)
        first = list_touched_files(index.connection, limit=1)
        mine = list_touched_files(index.connection, TouchedFilter(project="/home/ada/else"))
        words = list_touched_files(index.connection, TouchedFilter(words="OTHER md"))
        strange = list_touched_files(index.connection, TouchedFilter(words="100%_"))
        changed = list_touched_files(index.connection, TouchedFilter(changed=True), limit=5)
        known = touched_projects(index.connection)
    assert [(row.path, row.reads, row.edits, row.sessions) for row in rows] == [
        (PATH, 1, 2, 2),
        ("/home/ada/tidegauge/other.md", 1, 0, 1),
    ]
    assert first == rows[:1]
    assert [(row.reads, row.edits) for row in mine] == [(1, 1)]
    assert [row.path for row in words] == ["/home/ada/tidegauge/other.md"]
    assert strange == []
    assert [row.path for row in changed] == [PATH]
    assert [(each.path, each.touches) for each in known] == [("/home/ada/else", 2), ("/home/ada/tidegauge", 2)]


@pytest.mark.parametrize(
    ("words", "may"),
    [
        ("sed -i 's/a/b/' src/x.py", True),
        ("sed -n 1,4p src/x.py", False),
        ("cat src/x.py | head -3", False),
        ("cat > src/x.py <<'EOF'\na\nEOF", True),
        ("grep a src/x.py > src/y.py", False),
        ("echo a >> ./x.py", True),
        ("cd src && mv y.py x.py", True),
        ("git checkout -- src/x.py", True),
        ("git diff src/x.py && git add src/x.py", False),
        ("python -m pytest tests/x.py", False),
        ("python src/x.py", False),
        ("python - <<'E'\nopen('x.py','w')\nE", True),
        ("black x.py", True),
        ("cat src/max.py", False),
        ("rm x.pyc", False),
        ("", False),
    ],
)
def test_a_command_may_change_a_file_that_it_names(words: str, *, may: bool) -> None:
    assert may_change_file(words, "x.py") is may


def test_lines_that_still_stand_are_counted() -> None:
    assert count_surviving_lines("a\n", "a\nb\nc\n", "c\na\n") == (1, 2)
    assert count_surviving_lines("", "x\nx\n", "x\n") == (1, 2)


# The real thing


def _transcripts(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jsonl"))


def test_every_chain_of_the_corpus_is_rebuilt_as_it_was_recorded(shared: Path) -> None:
    rebuilt: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for path in _transcripts(shared / "corpus"):
        try:
            chains = touches_in(load(FileSource(str(path))))
        except Unreadable:
            continue
        for touches in chains.values():
            _check(touches, rebuilt, unknown)
    # What is recorded of a file before and after a change is what the versions say it was.
    assert rebuilt["before"] > 240
    assert rebuilt["patch"] > 240
    assert rebuilt["chained"] > 100
    # And this is all that could not be rebuilt: old clients kept nothing of a notebook.
    assert unknown == {"NotebookEdit: The written content is not recorded.": 5}


def _check(touches: list[FileTouch], rebuilt: Counter[str], unknown: Counter[str]) -> None:
    versions = build_versions(touches)
    changes = [each for each in versions if each.verb in ("write", "edit")]
    made = [touch for touch in touches if touch.tool in EDITING_TOOLS]
    assert len(changes) == len(made)
    for touch, version in zip(made, changes, strict=True):
        said = evidence_of(touch)
        if version.text is None:
            unknown[f"{touch.tool}: {version.note}"] += 1
            continue
        if said.before is not None:
            rebuilt["before"] += 1
            assert version.before is not None
            assert equal_texts(version.before, said.before)
            if said.patch:
                rebuilt["patch"] += 1
                assert patch_matches(said.patch, said.before, version.text), version.note
    # The same without a word of what was before: every text follows from those before it.
    bare = [each for each in build_versions(map(_bare, touches)) if each.verb in ("write", "edit")]
    gaps = any(each.verb == "outside" for each in versions)
    for version, again in zip(changes, bare, strict=True):
        if again.text is not None and not gaps:
            rebuilt["chained"] += 1
            assert equal_texts(again.text, version.text or "")
