"""The command itself against what the real client sent, for every case there is."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Steno
from tests.notation import notation, without_prompt

pytestmark = pytest.mark.corpus

CLIENT = "2.1.325"


def test_as_resumed_prints_what_the_client_sent(steno: Steno, shared: Path, tmp_path: Path) -> None:
    folders = sorted((shared / "corpus" / "resume-cases").glob("*/expected.json"))
    assert len(folders) >= 90
    for expected in folders:
        row = json.loads(expected.read_bytes())[CLIENT]
        before = expected.with_name("before.jsonl")
        if expected.parent.name == "seed001_s11":  # the one file that bore its own odd name
            before = tmp_path / "sess-001.jsonl"
            before.write_bytes(expected.with_name("before.jsonl").read_bytes())
        ran = steno("show", before, "--as-resumed", "--client", CLIENT, "--json")
        assert ran.code == 0
        assert notation(ran.json) == without_prompt(row["msgs"]), expected.parent.name


def test_records_tile_every_file_of_the_corpus(steno: Steno, shared: Path) -> None:
    for path in sorted((shared / "corpus" / "resume-cases").rglob("before.jsonl")):
        at = 0
        for piece in steno("show", path, "--records", "--json").json_lines:
            assert piece["offset"] == at
            at += piece["length"]
        assert at == path.stat().st_size
