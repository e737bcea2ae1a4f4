"""`steno repair`: how it tells what it did, and what can be typed next."""

import inspect
import json
import os
import re
from pathlib import Path
from shlex import quote
from uuid import UUID

import pytest
from tests.builders import session
from tests.cli.commands.maintenance.test_repair import TORN, broken, written
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

from steno.check.repair import repair_job
from steno.cli.commands.maintenance import repair
from steno.format.encode import encode_line
from steno.sanitize.terminal import one_line
from steno.session.resume import api_rules


@pytest.mark.parametrize(
    ("name", "shown"), [("a b;rm -rf x.jsonl", True), ("-dash.jsonl", True), ("new\nline.jsonl", False)]
)
def test_the_way_back_can_be_typed_as_it_is_shown(
    steno: Steno, config: WriteConfig, tmp_path: Path, name: str, *, shown: bool
) -> None:
    path, _ = broken(config)
    odd = tmp_path / name
    path.rename(odd)
    os.utime(odd, (1, 1))
    ran = steno("repair", odd, "--in-place", "--width", 40)
    assert ran.lines[-2].startswith(f"Replaced {one_line(str(odd))}")
    back = f"steno repair {quote(str(odd))} --undo   to undo"
    assert ran.lines[-1] == (back if shown else "Use --undo to restore the original.")


@pytest.mark.parametrize("option", ["--until", "-o"])
def test_an_option_that_names_nothing_is_refused(steno: Steno, config: WriteConfig, option: str) -> None:
    _, made = broken(config)
    assert steno("repair", made.session_id, option, "").code == 2


def test_a_dash_prints_the_session_and_tells_the_rest_elsewhere(
    steno: Steno, config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, made = broken(config)
    ran = steno("repair", made.session_id, "-o", "-")
    assert ran.code == 0
    assert ran.data == path.read_bytes().removesuffix(TORN)
    assert "Wrote to standard output" in ran.err
    assert not (tmp_path / "-").exists()
    assert steno("repair", made.session_id, "-o", "-", "--json").code == 2


def test_a_client_that_was_not_studied_is_said_to_be(steno: Steno, config: WriteConfig) -> None:
    _, made = broken(config)
    ran = steno("repair", made.session_id, "-n", "--for", "2.1.100")
    assert ran.lines[1].strip() == "Claude Code 2.1.100: using the rules of 2.1.42, the nearest studied version"
    assert "studied" not in steno("repair", made.session_id, "-n", "--for", "2.1.42").out


def test_a_record_that_is_hung_on_nothing_begins_the_conversation(steno: Steno, config: WriteConfig) -> None:
    path = written(config, session(seed="hung").turn("Where?", "There."))
    first, rest = path.read_bytes().split(b"\n", 1)
    lost = json.dumps({**json.loads(first), "parentUuid": str(UUID(int=7))}).encode()
    path.write_bytes(lost + b"\n" + rest)
    out = steno("repair", path.stem, "-n").out
    assert "make it the start of the conversation: no earlier record" in out
    assert "+ parentUuid: (none)" in out


def test_every_rule_of_the_api_has_plain_words() -> None:
    names = set(re.findall(r'Breach\(\s*f?"([a-z_.{}]+)"', inspect.getsource(api_rules)))
    kinds = {"text", "thinking", "image", "document", "tool_use", "tool_result"}
    wanted = {each for each in names if "{" not in each} | {f"block.{kind}" for kind in kinds}
    assert len(wanted) > len(kinds)
    assert wanted <= set(repair.BREACH_TEXTS)


@pytest.mark.parametrize("count", [1, 2])
def test_what_leaves_the_conversation_is_told_by_its_lines(steno: Steno, config: WriteConfig, count: int) -> None:
    made = session(seed="ring").user("One?").assistant("One.").user("Never mind.")
    made = made.assistant("No.") if count > 1 else made
    path = written(config, made.user("Two?").assistant("Two."))
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    records[0]["parentUuid"] = records[1 + count]["uuid"]
    records[2 + count]["parentUuid"] = records[1]["uuid"]
    path.write_bytes(b"".join(map(encode_line, records)))
    out = " ".join(steno("repair", path.stem, "-n").out.split())
    told = (
        "dropped 2 messages stay in the file, but are no longer in the conversation: lines 3, 4 "
        if count > 1
        else "dropped 1 message stays in the file, but is no longer in the conversation: line 3 "
    )
    assert told in out


def test_a_repair_that_takes_too_long_is_not_said_to_undo_itself(
    steno: Steno, config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = broken(config)
    monkeypatch.setattr(repair_job, "_MAX_RUNS", 2)
    ran = steno("repair", made.session_id, "-n")
    assert ran.code == 1
    assert "Not repaired: problems remained after many rounds" in ran.out
    assert "undoes" not in ran.out
