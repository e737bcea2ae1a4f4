"""Files in the dialects through every command: the same title, turns and steps everywhere."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.published import protocol_examples
from tests.published.files import FILES, NESTED, Known, in_a_clients_file
from tests.published.forms import Flat
from tests.published.test_dialects import sent_in_order

import steno
from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server, run_server_in_thread


def thoughts() -> Known:
    """Nobody signed these thoughts, so the API takes none of them."""
    made = Flat()
    made.user("First question")
    made.add("assistant", "A thought.", subtype="thinking")
    made.says("First answer.")
    made.user("Second question")
    made.add("assistant", "A thought before a call.", subtype="thinking")
    made.calls("Bash", arguments={"command": "make"})
    made.result("made")
    made.add("assistant", "A last thought.", subtype="thinking")
    said = ("First question", "First answer.", "Second question", "make", "made")
    return Known(made.data(), ("First question", "Second question"), said, ("thought",))


CASES = {**FILES, "in_a_clients_file": in_a_clients_file, "thoughts": thoughts}
NAME = "0c9be80c-c704-4d9f-928e-22f500ed824f"
KEY = "canary-key-of-nobody"


class Home:
    """A home with one session in it, and calls of the command."""

    def __init__(self, folder: Path, case: str, server: Server | None = None) -> None:
        self.known: Known = CASES[case]()
        self.root = folder / "claude"
        self.folder = folder
        flat = case not in {each.__name__ for each in NESTED}
        self.dialect = "spec-000" if flat else "spec-004"
        place = "projects/-home-ada-work" if flat else "conversations/_home_ada_work"
        name = NAME if flat else "2025-01-29T14-15-30"
        self.path = self.root / place / f"{name}.jsonl"
        self.path.parent.mkdir(parents=True)
        self.path.write_bytes(self.known.data)
        self.server = server

    def run(self, *arguments: str, code: int = 0, program: tuple[str, ...] = ("-m", "steno")) -> str:
        env = {
            "PATH": os.environ["PATH"],
            # The package that the tests import, whichever one is installed.
            "PYTHONPATH": str(Path(steno.__file__).parents[1]),
            "HOME": str(self.folder),
            "CLAUDE_CONFIG_DIR": str(self.root),
            "STENO_HOME": str(self.folder / "steno"),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.server.url if self.server is not None else "",
        }
        command = [sys.executable, *program, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, env=env, cwd=self.folder, check=False)
        assert ran.returncode == code, ran.stderr
        self.said = ran.stderr
        return ran.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))


@pytest.fixture(params=["error_recovery", "compaction", "flags", "active_branch", "delegation"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(tmp_path, request.param)


def test_title_project_dialect_and_turns_are_the_same_everywhere(home: Home) -> None:
    (row,) = home.json("ls")
    shown = home.json("show", "last")
    (brief,) = home.json("brief", "last")["briefs"]
    prompts = list(home.known.prompts)
    assert row["project"] == shown["project"] == brief["project"] == "/home/ada/work"
    assert row["dialect"] == shown["dialect"] == home.dialect
    assert row["title"] == shown["title"] == brief["title"] == prompts[0]
    assert row["turns"] == len(shown["turns"]) == len(brief["turns"]) == len(prompts)
    assert [turn["prompt"]["text"] for turn in shown["turns"]] == prompts
    assert f"dialect {home.dialect}, converted" in home.run("show", "last")


def test_the_file_as_it_is_stays_at_hand(home: Home) -> None:
    first = home.known.data.split(b"\n")[0]
    uuid = json.loads(first)["uuid"]
    assert home.run("show", "last", "--raw", uuid).encode().rstrip(b"\n") == first
    rows = home.run("show", "last", "--records", "--json").splitlines()
    assert len(rows) == home.known.data.count(b"\n")
    assert home.path.read_bytes() == home.known.data


def test_search_finds_what_is_not_deleted(home: Home) -> None:
    found = home.json("search", home.known.prompts[0].split()[0])
    assert json.dumps(found).count(home.known.prompts[0]) >= 1
    if "Deleted prompt" in home.known.absent:
        assert home.run("search", '"Deleted prompt"', code=1).startswith("No matches")


def test_commands_run_the_package_that_the_tests_import(tmp_path: Path) -> None:
    home = Home(tmp_path, "flags")
    found = home.run(program=("-c", "import steno; print(steno.__file__)"))
    assert found.strip() == steno.__file__


def test_the_messages_are_exported(home: Home) -> None:
    shown = json.loads(home.run("show", "last", "--messages", "--json"))
    exported = json.loads(home.run("export", "last", "--format", "messages"))
    assert sent_in_order(shown, home.known)
    assert sent_in_order(exported["messages"], home.known)


def test_what_is_deleted_is_shown_on_request(tmp_path: Path) -> None:
    home = Home(tmp_path, "flags")
    assert "Deleted prompt" not in home.run("show", "last", "--json")
    assert "Deleted prompt" in home.run("show", "last", "--all", "--json")
    assert "Deleted prompt" not in home.run("show", "last")
    assert "Deleted prompt" in home.run("show", "last", "--all")


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server_in_thread(ScriptedResponder().otherwise("Yes."), key=KEY) as found:
        yield found


@pytest.mark.parametrize(
    "case", ["tool_usage", "flags", "active_branch", "compact_messages", "late_results", "thoughts"]
)
def test_a_session_goes_on_in_a_converted_copy(tmp_path: Path, server: Server, case: str) -> None:
    home = Home(tmp_path, case, server)
    name = home.path.stem
    assert home.run("chat", "-p", "Go on.", "--resume", name) == "Yes.\n"
    assert f"is written in the dialect {home.dialect}" in home.said
    assert home.path.read_bytes() == home.known.data
    assert list(server.refused) == []
    assert sent_in_order(list(server.requests)[-1].body["messages"], home.known)
    made = [path for path in home.root.glob("projects/*/*.jsonl") if path != home.path]
    (copy,) = made
    found = check(BytesSource(copy.read_bytes()), name=copy.stem).findings
    assert [each.id for each in found if each.severity != "info"] == []


def test_a_clients_session_with_records_of_a_dialect_goes_on_in_a_copy(tmp_path: Path, server: Server) -> None:
    home = Home(tmp_path, "in_a_clients_file", server)
    assert "records in the dialect spec-000 and spec-004, converted" in home.run("show", "last")
    assert home.run("chat", "-p", "Go on.", "--resume", home.path.stem) == "Yes.\n"
    assert "records in the dialect spec-000 and spec-004, which Claude Code cannot read" in home.said
    assert home.path.read_bytes() == home.known.data
    assert sent_in_order(list(server.requests)[-1].body["messages"], home.known)


UNSENT = "the compaction summary is not sent"


@pytest.fixture
def compacted(tmp_path: Path, server: Server) -> Home:
    """A home with one session that was compacted as section 9 of 001 has it."""
    home = Home(tmp_path, "tool_usage", server)
    made = protocol_examples.compacted()
    home.path.unlink()
    home.path = home.path.with_name(f"{made.name}.jsonl")
    home.path.write_bytes(made.data)
    return home


@pytest.mark.parametrize("more", [[], ["--fork-session"], ["--rewind"]])
def test_a_session_whose_summary_is_not_sent_says_so(compacted: Home, more: list[str]) -> None:
    name = compacted.path.stem
    if more == ["--rewind"]:
        records = [json.loads(line) for line in compacted.path.read_bytes().splitlines()]
        more.append([each["uuid"] for each in records if each["type"] == "user"][-1])
    assert compacted.run("chat", "-p", "Go on.", "--resume", name, *more) == "Yes.\n"
    assert compacted.said.count(UNSENT) == 1
    assert f"`steno repair {name}`" in compacted.said
    assert compacted.server is not None
    sent = json.dumps(list(compacted.server.requests)[-1].body["messages"])
    assert "Three faults are fixed." not in sent
    assert ("The audit is complete." in sent) == ("--rewind" not in more)


@pytest.mark.parametrize("view", ["--as-resumed", "--messages"])
def test_messages_without_the_summary_say_so(compacted: Home, view: str) -> None:
    name = compacted.path.stem
    for arguments in ([], ["--json"]):
        compacted.run("show", name, view, *arguments)
        assert compacted.said.count(UNSENT) == 1
        assert f"`steno repair {name}`" in compacted.said
    compacted.run("repair", name, "--in-place", "--force")
    compacted.run("show", name, view)
    assert compacted.said == ""
