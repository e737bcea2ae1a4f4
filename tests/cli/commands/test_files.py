"""`steno files`."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.builders import session, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig
from tests.report.file_history_cases import PATH, command, edit, read, write

from steno.cli.output.file_history_lines import diff_lines, file_history_lines, version_lines
from steno.index.database import open_index
from steno.report.file_history.file_versions import KnownLines
from steno.report.file_history.history import history
from steno.sanitize.terminal import StyledText, TerminalStyler
from steno.store.environment import demo_dir

MINUS = "\N{MINUS SIGN}"
HOSTILE = "/srv/\x1b]0;pwned\x07\u202e.py"


@pytest.fixture
def ids(config: WriteConfig) -> tuple[str, str]:
    one = session(seed=1, entrypoint="sdk-cli").user("Begin the notes.")
    write(one, "a\nb\n").assistant("Done.").user("Go on.")
    edit(one, "b", "c")
    command(one, "sed -i s/a/A/ notes.txt").done()
    two = session(seed=2, cwd="/srv/else").wait(86_400).user("Look at all.")
    two.have(HOSTILE, "x\x1b[31m\n").assistant(tool("Read", file_path=HOSTILE)).result().done()
    config(one, two)
    return one.session_id, two.session_id


@pytest.mark.usefixtures("ids")
def test_without_a_name_the_files_are_listed_newest_first(steno: Steno) -> None:
    ran = steno("files")
    assert ran.code == 0
    assert ran.lines[0].split() == ["FILE", "EDITS", "+", MINUS, "READS", "SESSIONS", "LAST"]
    assert "\\u{202e}.py" in ran.lines[1]
    assert ran.lines[2].split()[:4] == [PATH, "2", "+3", f"{MINUS}1"]
    assert "\x1b" not in ran.out
    rows = steno("files", "--json").json
    assert [row["path"] for row in rows] == [HOSTILE, PATH]
    assert [(row["reads"], row["edits"]) for row in rows] == [(1, 0), (0, 2)]


@pytest.mark.usefixtures("ids")
def test_the_list_can_be_filtered(steno: Steno) -> None:
    def paths(*options: str) -> list[str]:
        return [row["path"] for row in steno("files", "--json", *options).json]

    assert paths("--project", "else") == [HOSTILE]
    assert paths("--project", "TIDEGAUGE") == [PATH]
    assert paths("--changed") == [PATH]
    assert paths("--sort", "path") == [PATH, HOSTILE]
    assert paths("--limit", "1") == [HOSTILE]
    assert "first 1" in steno("files", "--limit", "1").out
    none = steno("files", "--since", "2027-01-01")
    assert (none.code, none.lines) == (1, ["No session accessed a file."])
    assert steno("files", "--project", "nowhere", "--json").code == 1


def test_a_folder_lists_what_was_touched_in_it(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    made = session().user("Begin.")
    for name in ("in/a.py", "in/deep/b.py", "inner/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        path = str(tmp_path / name)
        made.assistant(tool("Write", file_path=path, content="x\n")).result()
    config(made.done())

    def names(*options: str) -> list[str]:
        rows = steno("files", "--json", "--sort", "path", *options).json
        return [os.path.relpath(row["path"], tmp_path) for row in rows]

    assert names("in") == names("in/", "--changed") == ["in/a.py", "in/deep/b.py"]
    assert names(".") == ["in/a.py", "in/deep/b.py", "inner/c.py"]
    (tmp_path / "empty").mkdir()
    assert steno("files", "empty").code == 1
    assert steno("files", "in", "--verify").code == 2


def test_a_session_says_its_files(steno: Steno, ids: tuple[str, str]) -> None:
    ran = steno("files", ids[0][:8])
    assert ran.lines[0].startswith(ids[0][:8])
    assert ran.lines[4].split() == ["notes.txt", "2", "+3", f"{MINUS}1", "1-2"]
    assert ran.lines[-1] == f"1 file changed, +3 {MINUS}1"
    told = steno("files", ids[0], "--json").json
    assert (told["session"], [file["turns"] for file in told["files"]]) == (ids[0], [[1, 2]])
    early = steno("files", ids[0], "--at", "1", "--json").json
    assert [file["edits"] for file in early["files"]] == [1]
    assert steno("files", "last", "--json").json["session"] == ids[1]
    assert steno("files", "Begin the notes", "--json").json["session"] == ids[0]
    assert steno("files", ids[0], "--diff", "1", "2").code == 2
    assert steno("files", ids[0], "--at", "x").code == 2


def test_a_file_is_told_through_time_with_gaps(steno: Steno, ids: tuple[str, str]) -> None:
    ran = steno("files", "notes.txt")
    assert ran.lines[0] == PATH
    assert ran.lines[1] == f"2 changes in 1 session, +3 {MINUS}1"
    rows = [line.split() for line in ran.lines[4:7]]
    assert [row[0] for row in rows] == ["3", "2", "1"]
    assert "May have changed" in ran.lines[4]
    assert "unknown" in ran.lines[4]
    assert "sed -i" in ran.lines[4]
    assert f"{ids[0][:8]}:2" in ran.lines[5]
    assert "Begin the notes." in ran.lines[6]
    assert "1 command may have changed the file" in ran.out
    told = steno("files", PATH, "--json").json
    assert [each["verb"] for each in told["versions"]] == ["write", "edit", "command"]
    assert [each["number"] for each in told["versions"]] == [1, 2, 3]
    assert told["versions"][1]["prompt"] == "Go on."


def test_a_command_whose_doing_was_found_later_is_no_gap(steno: Steno, config: WriteConfig) -> None:
    path = "/home/ada/found.txt"
    made = session(seed="found").user("Go.").assistant(tool("Write", file_path=path, content="a\n"))
    made.result().assistant(tool("Bash", command=f"echo b >> {path}")).result("")
    made.assistant(tool("Read", file_path=path)).result(
        "1\ta\n2\tb",
        detail={
            "type": "text",
            "file": {"filePath": path, "content": "a\nb\n", "numLines": 3, "startLine": 1, "totalLines": 3},
        },
    )
    config(made.assistant("Done.").done())
    told = steno("files", path).out
    assert "Changed outside" in told
    assert "without recording" not in told


def test_a_version_comes_out_of_a_pipe_byte_for_byte(steno: Steno, ids: tuple[str, str]) -> None:
    assert steno("files", PATH, "--at", "1").data == b"a\nb\n"
    assert steno("files", PATH, "--at", f"{ids[0][:8]}:2").data != b""
    assert steno("files", PATH, "--at", "2").data == b"a\nc\n"
    assert steno("files", PATH, "--at", "2", "--json").json["text"] == "a\nc\n"
    unknown = steno("files", PATH, "--at", "last")
    assert unknown.code == 1
    assert "Unknown" in unknown.out
    assert steno("files", PATH, "--at", "9").code == 1
    assert steno("files", PATH, "--at", "?").code == 2


@pytest.mark.usefixtures("ids")
def test_a_difference_is_a_patch(steno: Steno) -> None:
    ran = steno("files", PATH, "--diff", "1", "2")
    assert ran.lines == [*("--- a/notes.txt", "+++ b/notes.txt", "@@ -1,2 +1,2 @@", " a", "-b", "+c")]
    told = steno("files", PATH, "--diff", "1", "2", "--json").json
    assert (told["added"], told["removed"], told["a"]["number"]) == (1, 1, 1)
    assert steno("files", PATH, "--diff", "1", "1").data == b""
    assert steno("files", PATH, "--diff", "1", "3").code == 1
    assert steno("files", PATH, "--diff", "1", "disk").code == 3


def test_the_file_on_the_disk_is_a_version_too(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    path = tmp_path / "here.txt"
    made = session().user("Begin.")
    made.assistant(tool("Write", file_path=str(path), content="a\n")).result().done()
    config(made)
    path.write_text("b\n")
    assert steno("files", "here.txt", "--diff", "1", "disk").lines[-2:] == ["-a", "+b"]
    assert steno("files", "here.txt", "--at", "disk").data == b"b\n"
    assert steno("files", "here.txt", "--at", "disk", "--restore").code == 2


# Restoring


@pytest.mark.usefixtures("ids")
def test_a_version_is_restored_to_a_new_file_here(steno: Steno, tmp_path: Path) -> None:
    ran = steno("files", "notes.txt", "--restore")
    assert ran.code == 0
    # The last that is known: nobody knows what the command did.
    assert (tmp_path / "notes.v2.txt").read_text() == "a\nc\n"
    again = steno("files", "notes.txt", "--restore")
    assert again.code == 3
    assert "already exists" in again.err
    first = steno("files", PATH, "--at", "1", "--restore", "-o", "old.txt", "--json")
    assert first.json == {"version": 1, "path": str(tmp_path / "old.txt"), "bytes": 4}
    assert (tmp_path / "old.txt").read_text() == "a\nb\n"
    assert steno("files", PATH, "--at", "2", "--restore", "-o", "old.txt", "--force").code == 0
    assert (tmp_path / "old.txt").read_text() == "a\nc\n"
    assert steno("files", PATH, "--at", "3", "--restore", "-o", "x").code == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["notes.v2.txt", "old.txt"]


def test_a_file_is_written_over_only_where_its_whole_path_is_named(
    steno: Steno, config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deep" / "down"
    folder.mkdir(parents=True)
    path = folder / "a.txt"
    made = session().user("Begin.")
    made.assistant(tool("Write", file_path=str(path), content="agent\n")).result().done()
    config(made)
    path.write_text("mine\n")
    refused = steno("files", "a.txt", "--restore", "--force")
    assert refused.code == 2
    assert " is " in refused.err
    assert path.read_text() == "mine\n"
    monkeypatch.chdir(folder)
    assert steno("files", "a.txt", "--restore", "--force").code == 0
    assert path.read_text() == "agent\n"


def test_nothing_is_restored_through_links_or_among_sessions(
    steno: Steno, ids: tuple[str, str], tmp_path: Path
) -> None:
    config = Path(os.environ["CLAUDE_CONFIG_DIR"])
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / "link").symlink_to(mine)
    (tmp_path / "way").symlink_to(config / "projects")
    before = {each: each.read_bytes() for each in config.rglob("*.jsonl")}
    transcript = next(each for each in before if ids[0] in each.name)
    for output in (
        tmp_path / "link",
        config / "new.txt",
        tmp_path / "way" / "new.txt",
        transcript,
        Path(os.devnull),
        tmp_path,
    ):
        ran = steno("files", PATH, "--at", "1", "--restore", "--force", "-o", output)
        assert (ran.code, ran.out) == (3, ""), output
    assert mine.read_text() == "mine"
    assert {each: each.read_bytes() for each in config.rglob("*.jsonl")} == before


def test_a_root_that_was_named_is_never_written_to(steno: Steno, tmp_path: Path) -> None:
    root = tmp_path / "root"
    made = session().user("Begin.")
    write(made, "a\n").done()
    for name, data in made.files().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    ran = steno("files", PATH, "--root", root, "--restore", "-o", root / "x.txt")
    assert ran.code == 3
    assert not (root / "x.txt").exists()


@pytest.mark.usefixtures("ids")
def test_options_that_would_be_ignored_are_refused(steno: Steno) -> None:
    for options in (
        ("--at", "1"),
        ("--restore",),
        ("--diff", "1", "2"),
        (PATH, "--force"),
        (PATH, "-o", "x"),
        (PATH, "--diff", "1", "2", "--at", "1"),
        (PATH, "--project", "x"),
        (PATH, "--verify"),
    ):
        assert steno("files", *options).code == 2
    missing = steno("files", "nothing.py")
    assert (missing.code, missing.out) == (1, "")
    assert "no session accessed 'nothing.py'" in missing.err


@pytest.mark.usefixtures("ids")
def test_names_that_are_no_text_are_names_that_nobody_knows(steno: Steno, tmp_path: Path) -> None:
    odd = os.fsdecode(b"odd\xff.txt")
    assert steno("files", odd).code == 1
    assert steno("files", "a\0b").code == 1
    (tmp_path / odd).write_text("x\n")
    assert steno("files", odd).code == 1
    ran = steno("blame", odd)
    assert (ran.code, ran.err) == (0, "")
    assert steno("blame", odd, "--json").code == 0
    assert steno("files", PATH, "--at", "1", "--restore", "-o", tmp_path / f"new{odd}").code == 0


def test_half_letters_are_told_and_not_written(steno: Steno, config: WriteConfig) -> None:
    made = session(entrypoint="sdk-cli").user("Begin.")
    write(made, "a\nHALF\n").done()
    root = config(made)
    transcript = next(root.rglob("*.jsonl"))
    transcript.write_bytes(transcript.read_bytes().replace(b"HALF", b"\\ud83d"))
    told = steno("files", PATH, "--at", "1", "--json")
    assert told.code == 0
    assert told.json["text"].startswith("a\n")
    for options in (("--at", "1"), ("--restore",), ("--diff", "1", "1")):
        ran = steno("files", PATH, *options)
        assert ran.code in (0, 2)
        assert "internal" not in ran.err


# Whether it fits


@pytest.mark.usefixtures("ids")
def test_how_rebuilding_went_is_said(steno: Steno) -> None:
    ran = steno("files", "--verify")
    assert ran.code == 0
    assert [line.split()[:2] for line in ran.lines[:3]] == [["2", "transcripts"], ["2", "changes"], ["2", "changes"]]
    assert ran.lines[-1].strip() == "0 mismatches"
    assert steno("files", "--verify", "--json").json["rebuilt"] == 2


def test_what_does_not_fit_is_a_finding(steno: Steno, config: WriteConfig) -> None:
    made = session(entrypoint="sdk-cli").have(PATH, "a\nb\n").user("Begin.")
    edit(made, "a", "x").done()
    root = config(made)
    transcript = next(root.rglob("*.jsonl"))
    data = transcript.read_bytes()
    assert data.count(b'"-a","+x"') == 1
    transcript.write_bytes(data.replace(b'"-a","+x"', b'"-q","+x"'))
    ran = steno("files", "--verify")
    assert ran.code == 1
    assert "1 mismatch" in ran.out
    assert steno("files", "--verify", "--json").json["wrong"][0]["path"] == PATH


def test_the_corpus_is_rebuilt_and_the_rest_is_counted(steno: Steno, shared: Path) -> None:
    told = steno("files", "--verify", "--root", shared / "corpus", "--json").json
    assert (told["wrong"], sum(told["unknown"].values())) == ([], 5)
    assert told["rebuilt"] == told["changes"] - 5 >= 335


def test_reads_in_a_row_are_one_row_unless_all_are_wanted(steno: Steno, config: WriteConfig) -> None:
    made = session(entrypoint="sdk-cli").have(PATH, "a\n").user("Look.")
    for _ in range(3):
        read(made)
    command(made, "sed -i s/x/y/ notes.txt")
    read(made).done()
    config(made)
    assert [line.split()[0] for line in steno("files", PATH).lines[4:]] == ["2-5"]
    each = steno("files", PATH, "--all").lines[4:]
    assert [line.split()[0] for line in each] == ["5", "4", "3", "2", "1"]
    assert "No change" in each[1]


# Golden: what real clients recorded, derived from their lines alone


def _recorded(root: Path) -> dict[str, set[str]]:
    """Return every whole text that clients wrote down for a file, by its path."""
    found: dict[str, set[str]] = {}
    for path in root.rglob("*.jsonl"):
        for line in path.read_bytes().split(b"\n"):
            result = json.loads(line).get("toolUseResult") if b"toolUseResult" in line else None
            if not isinstance(result, dict) or not isinstance(result.get("filePath"), str):
                continue
            texts = found.setdefault(result["filePath"], set())
            texts.update(text for text in (result.get("content"), result.get("originalFile")) if isinstance(text, str))
    return found


@pytest.mark.parametrize("version", ["1.0.128", "2.0.76", "2.1.29", "2.1.42", "2.1.325"])
def test_versions_of_real_sessions_are_what_their_lines_say(steno: Steno, shared: Path, version: str) -> None:
    root = shared / "corpus" / "real-client" / version / "compact"
    recorded = _recorded(root)
    assert recorded
    for name, texts in recorded.items():
        told = steno("files", name, "--root", root, "--json").json
        numbers = [each["number"] for each in told["versions"] if each["known"] != "unknown"]
        found = {steno("files", name, "--root", root, "--at", number, "--no-sync").data.decode() for number in numbers}
        assert texts <= found


# What people see


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def _painted(lines: Iterable[Sequence[StyledText]]) -> list[str]:
    return [TerminalStyler().style_line(line) for line in lines]


@pytest.mark.usefixtures("demo")
def test_nothing_that_acts_on_a_terminal_gets_out_of_any_file_of_the_demo(steno: Steno) -> None:
    paths = [row["path"] for row in steno("files", "--demo", "--json").json]
    assert len(paths) > 15
    with open_index(demo_dir(), sync_first=False) as index:
        for path in paths:
            found = history(index.connection, path)
            assert found is not None
            told = _painted(file_history_lines(found, 90, 0.0, show_all=True))
            for version in found.versions:
                told += _painted(version_lines(found, version, 90))
            known = [each for each in found.versions if each.text is not None]
            if known:
                told += _painted(diff_lines(found, known[0], known[-1]))
            assert not [line for line in told if _CONTROLS.search(line)]
            assert all(len(line) <= 90 for line in told[:3])


@pytest.mark.usefixtures("ids")
def test_a_version_has_its_story_above_and_numbers_beside_its_lines(steno: Steno) -> None:
    assert steno("files").code == 0
    with open_index(sync_first=False) as index:
        found = history(index.connection, PATH)
    assert found is not None
    told = _painted(version_lines(found, found.versions[1], 90))
    assert told[0] == PATH
    assert told[1].startswith("version 2 of 3 · edited · ")
    assert told[2] == "Derived: the previous version with the edit applied."
    assert told[3] == "  Go on."
    assert [line.split() for line in told[5:]] == [["1", "a"], ["2", "c"]]
    part = msgspec.structs.replace(
        found.versions[1],
        text=None,
        known="partial",
        total=9,
        pieces=(KnownLines(2, ("x",)), KnownLines(5, ("y", "z"))),
    )
    lines = [line.strip() for line in _painted(version_lines(found, part, 90))[5:]]
    assert lines == [*("1 line unknown", "2  x", "2 lines unknown", "5  y", "6  z", "3 lines unknown")]
    changed = _painted(diff_lines(found, found.versions[0], found.versions[1]))
    assert [line[:11] for line in changed[:2]] == ["A version 1", "B version 2"]
    assert changed[3:] == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    same = _painted(diff_lines(found, found.versions[0], found.versions[0]))
    assert same[-1] == "No differences."


def test_files_known_from_backups_alone_are_marked_as_such(steno: Steno, config: WriteConfig) -> None:
    made = session(seed=3, entrypoint="sdk-cli").user("Generate it.")
    write(made, "a\n").assistant(tool("Bash", command="make gen"))
    kept = {"backupFileName": "aa@v1", "version": 1, "backupTime": "2026-11-14T09:00:00.000Z"}
    made.snapshot("x", of=made.prompts[0], backups={f"gen/{HOSTILE[-6:]}": kept})
    config(made.result("ok").assistant("Done.").done())
    rows = {row["path"]: row for row in steno("files", "--json", "--changed").json}
    (name,) = set(rows) - {PATH}
    assert (rows[name]["source"], rows[name]["backups"]) == ("snapshot", 1)
    assert rows[PATH]["source"] == "calls"
    listed = steno("files")
    assert "SOURCE" in listed.lines[0]
    assert "snapshot (1)" in listed.out
    assert not {"\x1b", "\u202e"} & set(listed.out)
    mine = steno("files", made.session_id)
    assert "1 more file known only from Claude Code backups" in mine.out
    told = steno("files", name)
    assert "unknown" in told.out
