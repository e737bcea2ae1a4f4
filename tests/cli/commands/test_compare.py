"""`steno compare`."""

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.builders import session, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig
from tests.web.compared_sessions import first_try, second_try


@pytest.fixture
def pair(config: WriteConfig) -> tuple[str, str]:
    one, other = first_try(), second_try()
    config(one, other)
    return one.session_id, other.session_id


def test_two_tries_say_what_differs_and_where_they_part(steno: Steno, pair: tuple[str, str]) -> None:
    ran = steno("compare", *pair)
    assert ran.code == 0
    assert ran.lines[0].startswith(f"A  {pair[0][:8]}  ")
    assert ran.lines[1].startswith(f"B  {pair[1][:8]}  ")
    assert "same first prompt" in ran.lines[2]
    rows = {line.strip().partition("  ")[0]: line for line in ran.lines[4:20]}
    assert "✓" in rows["Failed steps"]
    assert rows["Last tests"].split("  ")[1:] != []
    assert "PATH  diverges after 4 common steps, 1 more common step later" in ran.lines
    parting = "  step 5: A edits papercrane/text/shape.py, B runs uv run papercrane glyphs --missing"
    assert parting in ran.lines
    heads = [line.split()[0] for line in ran.lines if line.strip() and not line.startswith("   ")]
    for head in ("PROMPTS", "FILES", "COMMANDS", "TOOLS"):
        assert head in heads
    whole = steno("compare", *pair, "--all")
    assert len(whole.lines) >= len(ran.lines)


def test_programs_get_all_of_it(steno: Steno, pair: tuple[str, str]) -> None:
    told = steno("compare", *pair, "--json").json
    assert told == steno("compare", *pair, "--format", "json").json
    assert [told[side]["session"] for side in ("a", "b")] == list(pair)
    assert (told["relation"], told["common_steps"], told["divergence"]["steps"]) == ("prompt", 5, 4)
    files = {row["path"]: row for row in told["files"]}
    assert files["papercrane/text/shape.py"]["a"]["edits"] == 2
    commands = {row["command"]: row for row in told["commands"]}
    assert commands["uv run pytest -q"]["b"]["tests"] == {"passed": 121, "failed": 0}
    steps = [item for part in told["path"] for item in part["a"] if item["kind"] != "prompt"]
    figures = {each["name"]: each for each in told["figures"]}
    assert len(steps) == figures["Steps"]["a"]
    assert figures["Failing tests"]["better"] == "b"
    assert told["a"]["cost_micro_usd"] is not None
    first = told["prompts"][0]
    assert first["a"]
    assert first["b"]


def test_markdown_quotes_what_sessions_say(steno: Steno, config: WriteConfig) -> None:
    made = [session(seed=number).user("Do `this` | <b>now</b>\n# Not a head") for number in (1, 2)]
    for each in made:
        each.assistant(tool("Bash", command="echo '```' | cat")).result("x").done()
    config(*made)
    ran = steno("compare", *(each.session_id for each in made), "--format", "markdown")
    assert ran.lines[0] == "# Two sessions: same first prompt"
    assert "- **A and B** `` “Do `this` | <b>now</b> # Not a head” ``" in ran.lines
    assert "| x | x | `` Do `this` \\| <b>now</b> # Not a head `` |" in ran.lines
    assert any(line.startswith("| ```` echo '```' \\| cat ````") for line in ran.lines)
    heads = [line for line in ran.lines if line.startswith("#")]
    assert heads[1:] == ["## Path", "## Prompts", "## Commands", "## Tools"]


def test_the_same_session_twice_or_none_is_refused(steno: Steno, pair: tuple[str, str]) -> None:
    same = steno("compare", pair[0], pair[0][:10])
    assert (same.code, same.out) == (2, "")
    assert "the same session" in same.err
    assert steno("compare", pair[0], "nosuchsession").code == 1
    assert steno("compare", pair[0]).code == 2


def test_files_that_are_in_no_index_say_the_same_as_those_that_are(
    steno: Steno, pair: tuple[str, str], tmp_path: Path
) -> None:
    paths: list[Path] = []
    for number, made in enumerate((first_try(), second_try())):
        paths.append(tmp_path / f"{number}.jsonl")
        paths[-1].write_bytes(made.bytes())
    told = steno("compare", *paths, "--json").json
    assert told["common_steps"] == 5
    known = steno("compare", *pair, "--json").json
    assert known["a"]["cost_micro_usd"] > 0
    for side in "ab":
        for name in ("cost_micro_usd", "models", "branch", "project", "title"):
            assert told[side][name] == known[side][name], name
    assert told["figures"] == known["figures"]


@pytest.mark.usefixtures("demo")
def test_nothing_that_acts_on_a_terminal_gets_out_of_sessions_of_the_demo(steno: Steno) -> None:
    ids = [row["id"] for row in steno("ls", "--demo", "--json", "--limit", "0").json]
    for one, other in list(pairwise(ids))[:8]:
        for style in ("text", "markdown"):
            ran = steno("compare", "--demo", one, other, "--format", style)
            assert ran.code == 0
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ran.out)


# Golden: what real sessions hold, counted in their lines alone


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def _blocks(line: dict[str, Any]) -> list[dict[str, Any]]:
    content = (line.get("message") or {}).get("content")
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def _told_by(path: Path) -> tuple[Counter[str], set[str], set[str]]:
    """Return how often each tool was called, and the commands and files of calls that worked."""
    calls: dict[str, dict[str, Any]] = {}
    failed: set[str] = set()
    for line in _lines(path):
        for block in _blocks(line):
            if block.get("type") == "tool_use" and not line.get("isSidechain"):
                calls[block["id"]] = block
            elif block.get("type") == "tool_result" and block.get("is_error"):
                failed.add(block["tool_use_id"])
    tools = Counter(call["name"] for call in calls.values())
    commands = {call["input"]["command"] for call in calls.values() if call["name"] == "Bash"}
    files = {
        call["input"]["file_path"]
        for name, call in calls.items()
        if call["name"] in ("Read", "Write", "Edit") and name not in failed
    }
    return tools, commands, files


def _main(folder: Path) -> Path:
    """Return the session of a scenario: the transcript with the most in it."""
    return max(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("version", ["2.0.76", "2.1.29", "2.1.42", "2.1.325"])
def test_comparisons_of_real_sessions_count_what_their_lines_say(steno: Steno, shared: Path, version: str) -> None:
    folder = shared / "corpus" / "real-client"
    one, other = _main(folder / "1.0.128" / "compact"), _main(folder / version / "compact")
    told = steno("compare", one, other, "--root", folder, "--json").json
    for side, path in (("a", one), ("b", other)):
        tools, commands, files = _told_by(path)
        found = {row["tool"]: row[side]["calls"] for row in told["tools"] if row[side]}
        mine = {name: number for name, number in tools.items() if name not in ("Task", "Agent")}
        assert {name: found.get(name) for name in mine} == mine
        project = told[side]["project"]
        assert {row["command"] for row in told["commands"] if row[side]} >= {
            command.strip().replace(f"{project}/", "")[:500] for command in commands
        }
        assert {row["path"] for row in told["files"] if row[side]} >= {
            file.removeprefix(f"{project}/") for file in files
        }
    # Every client was given the same task by the same script, so the first prompts agree.
    assert told["relation"] == "prompt"
    assert told["prompts"][0]["a"]
    assert told["prompts"][0]["b"]
    assert told["common_steps"] > 0
