"""`steno drift`: a table for people, JSON for programs, an exit code for a nightly job."""

import json
import os
from pathlib import Path
from shutil import which
from subprocess import run
from sys import executable
from typing import Any

import pytest
from tests.builders import Session, session, text, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig
from tests.docs.pages import DOCS, ROOT, fences, read

from steno.check.drift import apply_merge_patch
from steno.demo.recording import DemoReport
from steno.errors import Unreadable
from steno.format.catalogue import catalogue
from steno.sanitize.terminal import display_width
from steno.store.file_source import FileSource

SAID = "Opensesame 42"


def file_with(folder: Path, *records: dict[str, Any], name: str = "odd.jsonl") -> Path:
    """Write a session of the newest client with some records behind it."""
    made = session().user("Which port?").assistant(text("It is 8080.")).records()
    made[0]["zzz"] = {"note": SAID}
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in [*made, *records]))
    return path


def asked() -> Session:
    return session(seed="asked").turn("Which port?", "It is 8080.")


def test_the_demo_does_not_drift(steno: Steno, demo: DemoReport) -> None:
    assert demo
    ran = steno("drift", "--demo")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("No drift in ")
    assert ran.out.endswith(f"compared with the catalogue of {catalogue().newest}.\n")


def test_drift_is_a_table_by_code_and_exit_code_1(steno: Steno, tmp_path: Path) -> None:
    path = file_with(tmp_path, {"type": "novel", "sessionId": "s", "tide": 3})
    ran = steno("drift", path)
    assert ran.code == 1
    assert ran.lines == [
        "UNKNOWN_TYPE  unknown record types",
        "  COUNT  NAME   VERSIONS  SAMPLE",
        "      1  novel  2.1.325   {tide: 0}",
        "",
        "NEW_FIELD  unknown fields",
        "  COUNT  IN           FIELD  VERSIONS  SAMPLE",
        '      1  user/prompt  zzz    2.1.325   {xxxx: "xxxxxxxxxx 00"}',
        "",
        "2 differences in 3 records of 1 file, compared with the catalogue of 2.1.325.",
    ]
    assert SAID not in ran.out


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_no_line_of_the_table_is_wider_than_asked(steno: Steno, demo: DemoReport, columns: int) -> None:
    assert demo
    ran = steno("drift", "--demo", "--as-of", "2.1.29", "--width", columns)
    table = [line for line in ran.lines if line.startswith("  ")]
    assert len(table) > 60
    assert [line for line in table if display_width(line) > columns] == []


def test_the_same_field_on_several_kinds_is_one_line(steno: Steno, tmp_path: Path) -> None:
    records = session().user("Which port?").assistant(text("It is 8080.")).records()
    for record in records:
        record["zzz"] = 1
    path = tmp_path / "odd.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (row,) = [line for line in steno("drift", path).lines if "zzz" in line]
    assert row.split()[:4] == ["2", "assistant/text", "+1", "zzz"]


def test_json_has_every_difference_by_version(steno: Steno, tmp_path: Path) -> None:
    ran = steno("drift", file_with(tmp_path), "--json")
    assert ran.code == 1
    told = ran.json
    assert (told["files"], told["records"], told["versions"]) == (1, 2, ["2.1.325"])
    assert told["drift"] == [
        {
            "code": "NEW_FIELD",
            "kind": "user/prompt",
            "path": "zzz",
            "name": "",
            "count": 1,
            "versions": {"2.1.325": 1},
            "types": ["obj"],
            "known": [],
            "sample": '{xxxx: "xxxxxxxxxx 00"}',
            "docs": None,
        }
    ]


def test_a_folder_is_looked_through_with_its_sub_agents(steno: Steno, tmp_path: Path) -> None:
    file_with(tmp_path, name="projects/-p/00000000-0000-4000-8000-000000000001.jsonl")
    inside = "projects/-p/00000000-0000-4000-8000-000000000001/subagents/agent-a1b2c3d.jsonl"
    file_with(tmp_path, name=inside)
    ran = steno("drift", tmp_path, "--json")
    assert (ran.json["files"], ran.json["drift"][0]["count"]) == (2, 2)


def test_without_a_name_every_session_is_looked_at_and_with_one_only_that(steno: Steno, config: WriteConfig) -> None:
    made, other = asked(), session(seed="other").turn("Which pier?", "The third.")
    config(made, other)
    assert steno("drift", "--json").json["files"] == 2
    assert steno("drift", made.session_id[:8], "--json").json["files"] == 1
    assert steno("drift", "last", made.session_id, other.session_id, "--json").json["files"] == 2


def test_a_session_that_is_named_brings_its_sub_agents(steno: Steno, demo: DemoReport) -> None:
    assert demo
    listed = steno("ls", "--demo", "--limit", 0, "--json").json
    one = next(each for each in listed if each["agents"])
    ran = steno("drift", "--demo", one["id"], "--json")
    assert ran.json["files"] == 1 + one["agents"]
    assert steno("drift", one["path"], "--json").json["files"] == 1


def test_only_what_newer_clients_wrote_can_be_asked_for(steno: Steno, tmp_path: Path) -> None:
    path = file_with(tmp_path)
    assert steno("drift", path, "--since-version", "2.1.325").code == 1
    ran = steno("drift", path, "--since-version", "2.1.326")
    assert (ran.code, ran.out[:33]) == (0, "No records of Claude Code 2.1.326")


def test_what_is_learned_makes_drift_silent(steno: Steno, tmp_path: Path) -> None:
    path = file_with(tmp_path, {"type": "novel", "sessionId": "s", "tide": 3})
    ran = steno("drift", path, "--learn")
    assert ran.code == 1
    assert SAID not in ran.out
    assert ran.json["records"]["novel"]["fields"]["tide"]["types"] == ["num"]
    known = tmp_path / "catalogue.json"
    known.write_text(json.dumps(apply_merge_patch(json.loads(catalogue().dump()), ran.json)))
    assert steno("drift", path, "--catalogue", known).code == 0
    assert steno("drift", path, "--catalogue", known, "--learn").json == {}
    assert steno("drift", path, "--catalogue", known, "--as-of", "2.1.42").code == 1


@pytest.mark.parametrize(
    "arguments", [("--as-of", "latest"), ("--since-version", ""), ("--learn", "--json"), ("--no-such-option",)]
)
def test_what_makes_no_sense_is_wrong_usage(steno: Steno, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = steno("drift", file_with(tmp_path), *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("steno: ")


def test_a_catalogue_that_is_none_is_wrong_usage(steno: Steno, tmp_path: Path) -> None:
    path, bad = file_with(tmp_path), tmp_path / "bad.json"
    bad.write_text('{"records": 5}')
    ran = steno("drift", path, "--catalogue", bad)
    assert ran.code == 2
    assert "not a catalogue" in ran.err


def test_what_is_not_there_cannot_be_read(steno: Steno, tmp_path: Path) -> None:
    assert steno("drift", tmp_path / "gone.jsonl").code == 3
    assert steno("drift", "--root", tmp_path / "gone").code == 3
    path = file_with(tmp_path)
    assert steno("drift", path, "--catalogue", tmp_path / "gone.json").code == 3


def test_a_folder_without_sessions_is_no_clean_bill(steno: Steno, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    ran = steno("drift", empty)
    assert (ran.code, ran.out) == (1, "")
    assert "no sessions in" in ran.err
    (empty / "00000000-0000-4000-8000-000000000001.jsonl").symlink_to(tmp_path / "gone")
    ran = steno("drift", empty)
    assert (ran.code, ran.out) == (1, "")


def test_a_machine_without_sessions_is_no_trouble(steno: Steno, tmp_path: Path) -> None:
    ran = steno("drift")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("No sessions to compare.")
    assert steno("drift", "--root", tmp_path).code == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_a_pipe_among_sessions_ends_in_3_and_the_rest_is_compared(steno: Steno, config: WriteConfig) -> None:
    folder = config(asked())
    os.mkfifo(folder / "projects" / "00000000-0000-4000-8000-00000000000f.jsonl")
    ran = steno("drift")
    assert ran.code == 3
    assert "0000000f.jsonl: is a pipe" in ran.err
    assert ran.out.startswith("No drift in 2 records of ")
    ran = steno("drift", folder, folder / "gone.jsonl")
    assert ran.code == 3
    assert "2 paths could not be read" in ran.err
    assert ran.out.startswith("No drift in 2 records of ")


def test_a_catalogue_that_is_not_there_is_called_one(steno: Steno, tmp_path: Path) -> None:
    ran = steno("drift", file_with(tmp_path), "--catalogue", tmp_path / "gone.json")
    assert "cannot read catalogue" in ran.err
    assert "steno ls" not in ran.err
    assert "catalogue" in steno("drift", file_with(tmp_path), "--catalogue", tmp_path).err


def test_a_client_beyond_the_known_is_said_to_be(steno: Steno, tmp_path: Path) -> None:
    ran = steno("drift", file_with(tmp_path), "--as-of", "9.9.9")
    assert "; 9.9.9 is newer than the catalogue." in " ".join(ran.out.split())


def test_a_session_that_cannot_be_read_is_no_clean_bill(
    steno: Steno, config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = asked(), session(seed="other").turn("Which pier?", "The third.")
    folder = config(made, other)

    class Denied(FileSource):
        def __init__(self, path: str) -> None:
            if made.session_id in path:
                raise Unreadable(f"cannot read {path}: permission denied")
            super().__init__(path)

    monkeypatch.setattr("steno.report.drift_report.FileSource", Denied)
    ran = steno("drift", folder)
    assert ran.code == 3
    assert "1 path could not be read" in ran.err
    assert ran.out.startswith("No drift in 2 records of ")
    file_with(folder / "projects" / "p")
    ran = steno("drift", folder)
    assert ran.code == 3
    assert "zzz" in ran.out


def test_what_drifts_can_still_be_read(steno: Steno, tmp_path: Path) -> None:
    made = session().user("Which port?").assistant(tool("Brew", minutes=3)).result("tea")
    records = made.assistant(text("It is 8080.")).records()
    records[0]["zzz"] = 1
    records.append({"type": "novel", "uuid": "u", "parentUuid": records[-1]["uuid"]})
    path = tmp_path / "odd.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert steno("drift", path).code == 1
    ran = steno("show", path)
    assert ran.code == 0
    assert "It is 8080." in ran.out


NPM = """#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/.bin"
cp "$FAKE_CLIENT" "$2/node_modules/.bin/claude"
chmod +x "$2/node_modules/.bin/claude"
"""
CLIENT = """#!/bin/sh
[ "$1" = --version ] && exit
mkdir -p "$CLAUDE_CONFIG_DIR/projects/-p"
cp "@SESSION@" "$CLAUDE_CONFIG_DIR/projects/-p/00000000-0000-4000-8000-000000000001.jsonl"
"""


@pytest.mark.skipif(not all(map(which, ("sh", "mkfifo", "timeout", "python3"))), reason="needs a Unix shell")
@pytest.mark.parametrize("drifting", [True, False])
def test_the_nightly_job_of_the_docs_fails_on_drift_and_leaves_a_patch(tmp_path: Path, *, drifting: bool) -> None:
    page = read(DOCS / "guide" / "fix" / "drift.md")
    (job,) = [body for language, body, _ in fences(page) if language == "sh"]
    written = file_with(tmp_path)
    if not drifting:
        written.write_bytes(b"".join(made for made in asked().files().values() if b"8080" in made))
    (tmp_path / "client").write_text(CLIENT.replace("@SESSION@", str(written)))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text_of in (("npm", NPM), ("steno", f'#!/bin/sh\nexec {executable} -m steno "$@"\n')):
        (programs / name).write_text(text_of)
        (programs / name).chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "FAKE_CLIENT": str(tmp_path / "client"),
        "TMPDIR": str(tmp_path),
    }
    ran = run(["sh", "-c", job], cwd=tmp_path, env=env, capture_output=True, check=False)
    patch = tmp_path / "drift-patch.json"
    assert (ran.returncode, patch.exists()) == (int(drifting), drifting), ran.stderr
    if drifting:
        assert "zzz" in patch.read_text()
    assert not list(tmp_path.glob("tmp.*"))


def test_nothing_that_may_be_a_secret_is_told(steno: Steno, tmp_path: Path) -> None:
    token = "sk-" + "ant-api03-" + "Zq7"
    made = session().user("Which port?").assistant(text("It is 8080.")).records()
    made[0][token] = {token: token}
    made[0]["permissionMode"] = token
    made[1]["message"]["stop_reason"] = "Opensesame"
    made[1]["message"]["content"].append({"type": token})
    made[1]["message"]["content"].append({"type": "tool_use", "name": token, "input": {token: 1}})
    made.append({"type": token, token: token, "version": f"2.1.325-{token}"})
    path = tmp_path / "odd.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in made))
    for options in ([], ["--json"], ["--learn"]):
        ran = steno("drift", path, "--width", 400, *options)
        assert ran.code == 1
        for secret in (token, "Zq7", "Opensesame"):
            assert secret not in ran.out
