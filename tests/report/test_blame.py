"""Who wrote each line of a file as it is now: sessions, people who committed, or nobody known."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.builders import Session, session, tool
from tests.conftest import WriteConfig
from tests.gitting import Repo

from steno.errors import BadRequest, Unreadable
from steno.index.database import open_index
from steno.report.blame import FileBlame, attribute_lines, blame, split_lines
from steno.report.file_history.touch_finder import touches_in
from steno.report.file_history.version_builder import build_versions
from steno.session.transcript import load
from steno.store.file_source import FileSource
from steno.store.session_lookup import open_session

git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


def _written(made: Session, path: Path, text: str) -> Session:
    return made.assistant(tool("Write", file_path=str(path), content=text)).result()


def _edited(made: Session, path: Path, old: str, new: str) -> Session:
    return made.assistant(tool("Edit", file_path=str(path), old_string=old, new_string=new)).result()


def _blame(root: Path, path: Path, **more: Any) -> FileBlame:
    with open_index(str(root)) as index:
        return blame(index.connection, str(path), open_session, **more)


def _told(found: FileBlame) -> list[tuple[str, str]]:
    """Return each line with who wrote it: the prompt, the commit's words, or the kind."""
    made: list[tuple[str, str]] = []
    for line in found.lines:
        origin = found.origins[line.origin]
        who: str = origin.kind
        if origin.kind == "session" and origin.version is not None:
            who = origin.version.prompt
        elif origin.kind == "commit" and origin.commit is not None:
            who = origin.commit.summary
        made.append((line.text, who))
    return made


def test_lines_say_the_prompt_that_wrote_them_across_sessions(config: WriteConfig, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    one = session(seed=1).user("Begin.")
    _written(one, path, "a\nb\n").done()
    two = session(seed=2).wait(86_400).have(str(path), "a\nb\nhand\n").user("Go on.")
    _edited(two, path, "b", "c\nd").done()
    path.write_text("a\nc\nd\nhand\nnew\n")
    found = _blame(config(one, two), path)
    assert _told(found) == [("a", "Begin."), ("c", "Go on."), ("d", "Go on."), ("hand", "outside"), ("new", "unknown")]
    assert found.total == 5
    assert not found.git
    versions = [origin.version for origin in found.origins[:2]]
    assert [each and (each.session, each.turn) for each in versions] == [(one.session_id, 1), (two.session_id, 1)]


def test_only_the_lines_that_are_wanted_are_told(config: WriteConfig, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    made = session().user("Begin.")
    _written(made, path, "a\nb\nc\n").done()
    path.write_text("x\na\nb\nc\n")
    root = config(made)
    some = _blame(root, path, lines=(2, 3))
    assert [(line.number, line.text) for line in some.lines] == [(2, "a"), (3, "b")]
    assert [origin.lines for origin in some.origins] == [2]
    assert len(_blame(root, path, lines=(4, 99)).lines) == 1
    for lines in ((5, 6), (0, 1), (3, 2)):
        with pytest.raises(BadRequest):
            _blame(root, path, lines=lines)


def test_what_cannot_be_read_is_said(config: WriteConfig, tmp_path: Path) -> None:
    root = config(session().user("Hi.").assistant("Hello.").done())
    with pytest.raises(Unreadable):
        _blame(root, tmp_path / "nothing")
    with pytest.raises(Unreadable):
        _blame(root, tmp_path)
    (tmp_path / "binary").write_bytes(b"a\0b")
    with pytest.raises(BadRequest):
        _blame(root, tmp_path / "binary")
    (tmp_path / "empty").write_text("")
    assert _blame(root, tmp_path / "empty").lines == ()
    (tmp_path / "odd").write_bytes(b"\xff\n")
    assert _told(_blame(root, tmp_path / "odd")) == [("\ufffd", "unknown")]


def test_a_command_that_may_have_written_a_line_is_named(config: WriteConfig, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    made = session(entrypoint="sdk-cli").user("Begin.")
    _written(made, path, "a\n")
    made.assistant(tool("Bash", command="echo b >> a.py")).result("").have(str(path), "a\nb\n")
    made.assistant(tool("Read", file_path=str(path))).result()
    made.assistant(tool("Bash", command="echo c >> a.py")).result("").done()
    path.write_text("a\nb\nc\n")
    found = _blame(config(made), path)
    assert _told(found) == [("a", "Begin."), ("b", "outside"), ("c", "unknown")]
    suspects = [origin.suspect for origin in found.origins]
    assert [each and each.command for each in suspects] == [None, "echo b >> a.py", "echo c >> a.py"]
    assert found.doubts == 2


def test_what_sub_agents_wrote_says_what_the_session_was_asked(config: WriteConfig, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    made = session(entrypoint="sdk-cli").user("Have it written.")
    call = tool("Agent", description="Write", prompt="Do it.", subagent_type="general")
    made.assistant(call).agent(lambda child: _written(child, path, "a\n").assistant("Done."))
    made.assistant("Done.").done()
    path.write_text("a\n")
    found = _blame(config(made), path)
    assert _told(found) == [("a", "Have it written.")]
    assert found.origins[0].version is not None
    assert found.origins[0].version.agent


def test_further_names_are_looked_for(config: WriteConfig, tmp_path: Path) -> None:
    path = tmp_path / "here.py"
    made = session().user("Begin.")
    _written(made, Path("/srv/app/there.py"), "a\n").done()
    path.write_text("a\n")
    root = config(made)
    assert _told(_blame(root, path)) == [("a", "unknown")]
    found = _blame(root, path, names=["/srv/app/there.py"])
    assert _told(found) == [("a", "Begin.")]
    assert found.names == ("/srv/app/there.py",)


# With git


@git
def test_lines_that_people_committed_say_the_commit(config: WriteConfig, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "one\ntwo\n")
    repo.commit("Ada's start", when="2020-01-01T00:00:00Z")
    made = session().have(str(path), "one\ntwo\n").user("Add three.")
    _edited(made, path, "two", "two\nthree").done()
    path.write_text("one\ntwo\nthree\n")
    mine = repo.commit("Three", when="2030-01-01T00:00:00Z")
    path.write_text("one\ntwo\nthree\nfour\n")
    root = config(made)
    found = _blame(root, path)
    assert _told(found) == [
        ("one", "Ada's start"),
        ("two", "Ada's start"),
        ("three", "Add three."),
        ("four", "unknown"),
    ]
    assert found.git
    # What a session wrote says where it was committed, too.
    commits = [origin.commit for origin in found.origins]
    assert [each and each.hash == mine for each in commits] == [False, True, None]
    without = _blame(root, path, git=False)
    assert [who for _, who in _told(without)] == ["before", "before", "Add three.", "unknown"]
    assert not without.git


@git
@pytest.mark.parametrize("committed", [True, False])
def test_a_renamed_file_is_followed(config: WriteConfig, tmp_path: Path, *, committed: bool) -> None:
    repo = Repo(tmp_path / "r")
    old = repo.write("old.py", "human\n")
    repo.commit("Begin", when="2020-01-01T00:00:00Z")
    one = session(seed=1).have(str(old), "human\n").user("Under the old name.")
    _edited(one, old, "human", "human\na\nb\nc\nd\ne").done()
    old.write_text("human\na\nb\nc\nd\ne\n")
    repo.commit("Work", when="2029-01-01T00:00:00Z")
    repo.run("mv", "old.py", "sub.py")
    if committed:
        repo.commit("Rename", when="2029-06-01T00:00:00Z")
    new = repo.folder / "sub.py"
    two = session(seed=2).wait(86_400).have(str(new), old_text := new.read_text())
    two.user("Under the new name.")
    _edited(two, new, "c", "C").done()
    new.write_text(old_text.replace("c", "C"))
    found = _blame(config(one, two), new)
    assert _told(found) == [
        ("human", "Begin"),
        ("a", "Under the old name."),
        ("b", "Under the old name."),
        ("C", "Under the new name."),
        ("d", "Under the old name."),
        ("e", "Under the old name."),
    ]
    assert [Path(name).name for name in found.names] == ["sub.py", "old.py"]


@git
def test_what_became_of_an_old_name_after_the_rename_does_not_count(config: WriteConfig, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    old = repo.folder / "old.py"
    one = session(seed=1).user("First.")
    _written(one, old, "a\nb\nc\n").done()
    repo.write("old.py", "a\nb\nc\n")
    repo.commit("Work", when="2026-11-14T12:00:00Z")
    repo.run("mv", "old.py", "new.py")
    repo.commit("Rename", when="2026-11-14T13:00:00Z")
    later = session(seed=2).wait(30 * 86_400).user("Another file by the old name.")
    _written(later, old, "c\n").done()
    new = repo.write("new.py", "a\nb\nc\nmore\n")
    found = _blame(config(one, later), new)
    assert [who for _, who in _told(found)] == ["First.", "First.", "First.", "unknown"]


@git
def test_what_was_written_in_another_work_tree_counts(config: WriteConfig, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.write("a.py", "one\n")
    repo.commit("Begin", when="2020-01-01T00:00:00Z")
    repo.run("worktree", "add", "-q", str(tmp_path / "tree"))
    made = session().have(str(tmp_path / "tree" / "a.py"), "one\n").user("In the tree.")
    _edited(made, tmp_path / "tree" / "a.py", "one", "one\ntwo").done()
    path = repo.write("a.py", "one\ntwo\n")
    repo.commit("Merged", when="2029-01-01T00:00:00Z")
    assert _told(_blame(config(made), path)) == [("one", "Begin"), ("two", "In the tree.")]


@git
def test_a_line_committed_before_it_was_written_again_is_the_commits(config: WriteConfig, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    path = repo.write("a.py", "old\n")
    repo.commit("Begin", when="2020-01-01T00:00:00Z")
    # An old client keeps nothing of the file that it writes over.
    made = session("1.0.128").have(str(path), "old\n").user("Write it all.")
    _written(made, path, "old\nnew\n").done()
    path.write_text("old\nnew\n")
    assert _told(_blame(config(made), path)) == [("old", "Begin"), ("new", "Write it all.")]


# The real thing


def _spaced(line: str) -> str:
    """Return a line as patches note it: clients make spaces of the tabs that it begins with."""
    bare = line.lstrip("\t")
    return "  " * (len(line) - len(bare)) + bare


def _hunks(lines: list[tuple[str, int]], patch: list[dict[str, Any]], who: int) -> bool:
    """Carry a recorded patch out on lines with their writers, by nothing but its numbers."""
    shift = 0
    for hunk in patch:
        signed = [line for line in hunk["lines"] if not line.startswith("\\")]
        at = hunk["oldStart"] - 1 + shift if hunk["oldLines"] else hunk["oldStart"] + shift
        made: list[tuple[str, int]] = []
        for line in signed:
            if line[0] in " -":
                if at >= len(lines) or lines[at][0] != _spaced(line[1:]):
                    return False
                if line[0] == " ":
                    made.append(lines[at])
                at += 1
            else:
                made.append((_spaced(line[1:]), who))
        old = sum(line[0] in " -" for line in signed)
        lines[at - old : at] = made
        shift += len(made) - old
    return True


def test_blame_of_the_corpus_is_what_the_recorded_patches_say(shared: Path) -> None:
    counts: Counter[str] = Counter()
    for path in sorted((shared / "corpus").rglob("*.jsonl")):
        recorded = _recorded(path)
        if not recorded:
            continue
        with FileSource(str(path)) as source:
            chains = touches_in(load(source))
        for name, results in recorded.items():
            versions = build_versions(chains.get(name, []))
            changes = [at for at, each in enumerate(versions) if each.verb in ("write", "edit")]
            expected = _simulated(results)
            last = versions[changes[-1]].text if changes else None
            if expected is None or last is None or len(changes) != len(results):
                counts["left out"] += 1
                continue
            marks = attribute_lines(versions[: changes[-1] + 1], last).marks
            lines = split_lines(last)
            assert len(marks) == len(lines)
            # What was rebuilt is what the patches alone make of the file, line by line.
            assert [_spaced(line) for line in lines] == [line for line, _ in expected]
            told = Counter(
                (_spaced(line), changes.index(mark) + 1 if mark in changes else 0)
                for line, mark in zip(lines, marks, strict=True)
            )
            counts["files"] += 1
            counts["lines"] += len(lines)
            counts["of sessions"] += sum(mark in changes for mark in marks)
            counts["otherwise"] += (told - Counter(expected)).total()
    # Which of two lines that are alike is new, a patch may tell otherwise.
    assert counts["otherwise"] <= counts["of sessions"] // 1000
    assert counts["files"] > 130
    assert counts["lines"] > 40_000
    assert counts["of sessions"] > 7_000
    assert counts["left out"] < 20


def _recorded(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the results of changes by file, straight from the lines."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_bytes().split(b"\n"):
        if b"structuredPatch" not in line and b'"type":"create"' not in line:
            continue
        try:
            result = json.loads(line).get("toolUseResult")
        except (ValueError, AttributeError):
            continue
        if isinstance(result, dict) and isinstance(result.get("filePath"), str):
            found.setdefault(result["filePath"], []).append(result)
    return found


def _simulated(results: list[dict[str, Any]]) -> list[tuple[str, int]] | None:
    """Return the lines with their writers; None where not every change is recorded in full."""
    lines: list[tuple[str, int]] = []
    for who, result in enumerate(results, 1):
        before = result.get("originalFile") or ""
        found = [_spaced(line) for line in before.removesuffix("\n").split("\n")] if before else []
        if who == 1:
            lines = [(line, 0) for line in found]
        elif found and found != [line for line, _ in lines]:
            # Something else changed the file in between.
            return None
        patch = result.get("structuredPatch")
        if result.get("type") == "create":
            text = result["content"].removesuffix("\n")
            lines = [(_spaced(line), who) for line in text.split("\n")]
        elif not patch or not _hunks(lines, patch, who):
            return None
    return lines
