"""Which file and which version somebody means, what a session touched, and whether it all fits."""

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import session, tool
from tests.conftest import WriteConfig
from tests.report.file_history_cases import PATH, edit, history_of, read, transcript_of, write

from steno.cli.commands.files import restore_version
from steno.errors import Ambiguous, BadRequest, NotFound, Unwritable
from steno.index.database import open_index
from steno.report.file_history.file_versions import FileTouch, Version, find_version, version_bytes, version_number
from steno.report.file_history.history import unified_diff
from steno.report.file_history.touch_finder import touches_in
from steno.report.file_history.touched_files import files_of_session, find_paths_by_suffix, find_touched_path
from steno.report.file_history.verification import VerificationReport, verify_file, verify_folders

_NOW = 1_794_744_000.0  # 2026-11-15T12:00Z
_TEXTS = st.lists(st.sampled_from(["", "a", "b", "c", "-x", "+y", "\\ z"]), max_size=7).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)])
)


# Versions


def test_versions_are_meant_by_number_turn_session_and_time(config: WriteConfig, tmp_path: Path) -> None:
    one = session(seed=1).user("Begin.")
    write(one, "a\n").assistant("Done.").user("More.")
    edit(one, "a", "b").done()
    two = session(seed=2).wait(3 * 86_400).have(PATH, "b\n").user("Look.").assistant("Hm.")
    two.user("Change.")
    edit(two, "b", "c").done()
    found = history_of(tmp_path, config(one, two))

    def text(word: str) -> str | None:
        return find_version(found, word, _NOW).text

    first, second = one.session_id, two.session_id
    assert [text(word) for word in ("1", "v2", "3", "first", "last")] == [*("a\n", "b\n", "c\n", "a\n", "c\n")]
    assert text(f"{first[:8]}:1") == text(f"{first}:1") == "a\n"
    assert text(f"{first[:8]}:2") == text(f"{first[:8]}:99") == text(first[:8].upper()) == "b\n"
    assert text(":2") == text(f"{second[:6]}") == "c\n"
    day = found.versions[1].time
    assert day is not None
    assert text("@1970-01-05T00:00:00Z" if day < 0 else "@today") == "c\n"
    named = found.versions[1].name
    assert text(named) == "b\n"
    assert version_number(found, find_version(found, named, _NOW)) == 2
    for word in ("0", "4", "v9", f"{second}:1", "@1990-01-01", "ffffffff-0000:1", "nosuchsession"):
        with pytest.raises(NotFound):
            find_version(found, word, _NOW)
    for word in ("", "x", "@nonsense", "@"):
        with pytest.raises((BadRequest, NotFound)):
            find_version(found, word, _NOW)


# Files


@pytest.fixture
def root(config: WriteConfig) -> Path:
    made = session().user("Look around.")
    for path in ("/srv/a/src/x.py", "/srv/b/src/x.py", "/srv/a/100%_y.py", "C:\\w\\src\\z.py"):
        made.have(path, "x\n").assistant(tool("Read", file_path=path)).result()
    made.assistant(tool("Read", file_path="/srv/gone.py")).result("No such file.", error=True)
    return config(made.done())


def test_a_file_is_meant_by_its_path_or_the_end_of_it(root: Path) -> None:
    with open_index(str(root)) as index:
        connection = index.connection
        assert find_touched_path(connection, "/srv/a/src/x.py", "/") == "/srv/a/src/x.py"
        assert find_touched_path(connection, "src/x.py", "/srv/b") == "/srv/b/src/x.py"
        assert find_touched_path(connection, "../src/x.py", "/srv/b/lib") == "/srv/b/src/x.py"
        assert find_touched_path(connection, "a/src/x.py", "/") == "/srv/a/src/x.py"
        assert find_touched_path(connection, "src/z.py", "/") == "C:\\w\\src\\z.py"
        assert find_touched_path(connection, "100%_y.py", "/") == "/srv/a/100%_y.py"
        assert set(find_paths_by_suffix(connection, "x.py")) == {"/srv/a/src/x.py", "/srv/b/src/x.py"}
        with pytest.raises(Ambiguous) as several:
            find_touched_path(connection, "./x.py", "/")
        assert len(several.value.candidates) == 2
        for word in ("y.py", "100__y.py", "gone.py", "X.PY", "", ".", "..", "/", "a\0", "../x.py"):
            with pytest.raises(NotFound):
                find_touched_path(connection, word, "/")


def test_the_files_of_a_session_say_turns_and_lines_and_sub_agents(config: WriteConfig) -> None:
    made = session(entrypoint="sdk-cli").have("/srv/r.md", "r\n").user("One.")
    made.assistant(tool("Read", file_path="/srv/r.md")).result()
    write(made, "a\nb\n").assistant("Done.").user("Two.")
    edit(made, "b", "c\nd")
    call = tool("Agent", description="More", prompt="Do it.", subagent_type="general")
    made.assistant(call).agent(
        lambda child: child.assistant(tool("Write", file_path="/srv/agent.md", content="x\n")).result()
    )
    made.assistant("Done.").done()
    with open_index(str(config(made))) as index:
        found = {each.path: each for each in files_of_session(index.connection, made.session_id)}
        early = files_of_session(index.connection, made.session_id, until=1)
        none = files_of_session(index.connection, "nobody")
    assert list(found) == [PATH, "/srv/agent.md", "/srv/r.md"]
    mine = found[PATH]
    assert (mine.reads, mine.edits, mine.added, mine.removed, mine.turns) == (0, 2, 4, 1, [1, 2])
    assert (found["/srv/r.md"].reads, found["/srv/r.md"].edits) == (1, 0)
    assert (len(found["/srv/agent.md"].agents), found["/srv/agent.md"].turns) == (1, [])
    assert [(each.path, each.edits) for each in early] == [(PATH, 1), ("/srv/r.md", 0)]
    assert none == []


def test_lines_that_an_edit_leaves_as_they_were_are_not_counted(config: WriteConfig) -> None:
    made = session().have(PATH, "a\nb\nc\n").user("Change it.")
    edit(made, "a\nb\nc", "a\nB\nb2\nc").done()
    with open_index(str(config(made))) as index:
        (mine,) = files_of_session(index.connection, made.session_id)
    assert (mine.added, mine.removed) == (2, 1)


def test_what_a_sub_agent_did_is_of_the_turn_that_called_it(config: WriteConfig, tmp_path: Path) -> None:
    made = session(entrypoint="sdk-cli").user("One.").assistant("Done.").user("Two.")
    call = tool("Agent", description="More", prompt="Do it.", subagent_type="general")
    made.assistant(call).agent(lambda child: write(child, "a\n").assistant("Done."))
    made.assistant("Done.").done()
    found = history_of(tmp_path, config(made))
    assert [(bool(each.agent), each.turn) for each in found.versions] == [(True, 2)]
    with pytest.raises(NotFound):
        find_version(found, f"{made.session_id}:1", _NOW)
    assert find_version(found, f"{made.session_id}:2", _NOW).text == "a\n"


# Differences


def _applied(before: str, patch: str) -> str:
    """Carry out a patch, as the book says."""
    old = before.split("\n")
    bare = old.pop() if old else ""
    lines = [f"{line}\n" for line in old] + ([bare] if bare else [])
    made: list[str] = []
    done = 0
    rows = patch.split("\n")[2:-1]
    for at, row in enumerate(rows):
        if head := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", row):
            start = int(head[1]) - (head[2] != "0")
            made += lines[done:start]
            done = start
        elif row[:1] in (" ", "-", "+"):
            cut = at + 1 < len(rows) and rows[at + 1].startswith("\\ No newline")
            line = row[1:] + ("" if cut else "\n")
            if row[0] != "+":
                assert lines[done] == line
                done += 1
            if row[0] != "-":
                made.append(line)
    return "".join(made + lines[done:])


@given(_TEXTS, _TEXTS)
def test_a_difference_can_be_carried_out(before: str, after: str) -> None:
    patch = unified_diff("a/b.py", before, after)
    assert (patch == "") == (before == after)
    if patch:
        assert patch.startswith("--- a/a/b.py\n+++ b/a/b.py\n@@ ")
        assert _applied(before, patch) == after


def test_no_path_can_add_lines_to_a_difference() -> None:
    patch = unified_diff('/x\n+++ b/"evil\\', "a\n", "b\n")
    assert patch.split("\n")[:2] == ['--- "a/x\\n+++ b/\\"evil\\\\"', '+++ "b/x\\n+++ b/\\"evil\\\\"']


# Putting back


def test_only_what_is_known_as_a_whole_is_put_on_the_disk(tmp_path: Path) -> None:
    whole = Version(name="1", verb="write", tool="Write", known="exact", text="a\r\né\n")
    _, size = restore_version(whole, str(tmp_path / "new"))
    assert (tmp_path / "new").read_bytes() == b"a\r\n\xc3\xa9\n"
    assert size == 6
    with pytest.raises(NotFound):
        restore_version(msgspec.structs.replace(whole, text=None), str(tmp_path / "other"))
    with pytest.raises(BadRequest):
        version_bytes(msgspec.structs.replace(whole, text="\ud800"))
    with pytest.raises(Unwritable):
        restore_version(whole, str(tmp_path / "new"))
    (tmp_path / "root").mkdir()
    with pytest.raises(Unwritable):
        restore_version(whole, str(tmp_path / "root" / "x"), roots=[str(tmp_path / "root")])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "root"]


def test_nothing_is_put_into_the_clients_or_our_own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Version(name="1", verb="write", tool="Write", known="exact", text="a\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("STENO_HOME", str(tmp_path / "steno"))
    for name in ("config", "steno", ".claude"):
        (tmp_path / name).mkdir()
        with pytest.raises(Unwritable, match="inside a session directory"):
            restore_version(whole, str(tmp_path / name / "x"), force=True)


# Whether it fits


def _edit(before: str, patch: list[str], old: str = "a", new: str = "b") -> FileTouch:
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": patch}
    return FileTouch(
        tool="Edit",
        tool_input={"old_string": old, "new_string": new},
        result={"originalFile": before, "structuredPatch": [hunk]},
    )


def _tried(*touches: FileTouch) -> VerificationReport:
    trial = VerificationReport()
    verify_file("/a", touches, trial)
    return trial


def test_what_is_rebuilt_otherwise_than_recorded_is_counted() -> None:
    start = FileTouch(tool="Write", tool_input={"content": "a\n"}, result={"type": "create"})
    two = _edit("a\n", ["-a", "+b"]), _edit("b\n", ["-b", "+c"], "b", "c")
    good = _tried(start, *two)
    assert (good.changes, good.rebuilt, good.befores, good.patches) == (3, 3, 2, 2)
    assert (good.chained, good.wrong) == (3, [])
    bad = _tried(_edit("a\n", ["-z", "+b"]))
    assert [each.why for each in bad.wrong] == ["the recorded patch does not produce this text"]
    gap = _tried(start, _edit("other a\n", ["-other a", "+other b"]))
    assert (gap.gaps, gap.wrong) == (1, [])


def test_what_cannot_be_rebuilt_is_counted_with_the_reason() -> None:
    trial = _tried(FileTouch(tool="NotebookEdit"), FileTouch(tool="Edit", tool_input={}))
    assert trial.rebuilt == 0
    assert sum(trial.unknown.values()) == trial.changes == 2
    assert all(reason.startswith(("NotebookEdit: ", "Edit: ")) for reason in trial.unknown)
    assert _tried(FileTouch(tool="Read")).files == 0


@given(st.lists(st.sampled_from(["a", "b", "c", "a\nb"]), min_size=1, max_size=6))
def test_chains_that_are_whole_fit(texts: list[str]) -> None:
    made = session().user("Take notes.")
    for text in texts:
        write(made, f"{text}\n")
        read(made)
    trial = VerificationReport()
    for path, touches in touches_in(transcript_of(made)).items():
        verify_file(path, touches, trial)
    assert (trial.changes, trial.rebuilt, trial.wrong) == (len(texts), len(texts), [])


def test_everything_in_the_corpus_is_rebuilt_as_recorded_and_the_rest_counted(shared: Path) -> None:
    trial = verify_folders([str(shared / "corpus")])
    assert trial.wrong == []
    # Old clients kept nothing of a notebook.
    assert trial.unknown == {"NotebookEdit: The written content is not recorded.": 5}
    assert trial.rebuilt == trial.changes - 5
    assert trial.changes >= 340
    assert trial.befores >= 263
    assert trial.patches >= 261
    assert trial.chained >= 228
    assert trial.unreadable == 0
