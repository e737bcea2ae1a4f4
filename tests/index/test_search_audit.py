"""Every byte of every file is accounted for: searched, or why not."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.builders import VERSIONS, image, png, session, text, thinking, tool
from tests.builders.everything import everything
from tests.index.searching import Searched, harbour, ledger, prompts, write

from steno.index.database import IndexLocation
from steno.index.search.audit import AUDIT_REASONS, FileAudit, audit_index
from steno.index.text_index import MAX_TOKEN_SIZE


def accounts(searched: Searched) -> list[FileAudit]:
    steps: list[int] = []
    found = list(audit_index(searched.index.connection, searched.index.texts, steps.append))
    assert sum(steps) == sum(account.size for account in found)
    for account in found:
        assert sum(account.bytes.values()) == account.size, account
        assert set(account.bytes) <= set(AUDIT_REASONS)
        assert not account.mismatched, account
    return found


def only(searched: Searched) -> FileAudit:
    (account,) = accounts(searched)
    return account


def test_the_sums_are_the_sizes_of_the_files(tmp_path: Path) -> None:
    found = accounts(Searched(tmp_path, (harbour(), ledger())))
    assert all(account.is_complete for account in found)
    assert all(account.documents == account.indexed > 0 for account in found)


def test_all_that_is_searched_is_words_and_all_words_are_searched(tmp_path: Path) -> None:
    account = only(Searched(tmp_path, [prompts("Seven gulls.", "Ünïcödé gulls")]))
    said = "Seven gulls." + "Aye." + "Ünïcödé gulls" + "Aye."
    assert account.bytes["words"] >= len(said.encode())


def test_pictures_and_signatures_are_said_to_be_left_out(tmp_path: Path) -> None:
    picture = png([[(1, 2, 3)] * 8] * 8)
    made = session().user([text("Look"), image(picture)])
    made.assistant(thinking("Hm.", "c2lnbmF0dXJl" * 9), text("A square.")).done()
    account = only(Searched(tmp_path, [made]))
    assert account.bytes["base64"] >= len(picture) + 108


def test_the_clients_own_copy_of_a_result_is_said_to_be_a_repeat(tmp_path: Path) -> None:
    made = session().user("go").assistant(tool("Bash", command="ls")).result("gull.txt " * 50)
    account = only(Searched(tmp_path, [made.done()]))
    assert account.bytes["repeat"] >= 450


def test_progress_is_named_apart_from_repeats(tmp_path: Path) -> None:
    made = prompts("Seven gulls.")
    searched = Searched(tmp_path, [made])
    path = write(searched.root, made)
    line = b'{"type":"progress","data":{"type":"bash_progress","output":"gull"}}\n'
    before = only(searched).bytes["repeat"]
    path.write_bytes(path.read_bytes() + line)
    searched.open()
    account = only(searched)
    assert (account.bytes["progress"], account.records["progress"]) == (len(line), 1)
    assert account.bytes["repeat"] == before
    assert "only copy" in AUDIT_REASONS["progress"]


def test_a_copy_of_an_unknown_shape_is_searched(tmp_path: Path) -> None:
    made = session().user("go").assistant(tool("Bash", command="ls"))
    made.result("short", detail={"neverSeen": "cormorant short", "deep": [{"x": "albatross"}]})
    searched = Searched(tmp_path, [made.done()])
    assert searched.kinds("cormorant albatross") == ["output"]
    assert only(searched).is_complete


def test_words_without_end_and_data_are_counted_apart(tmp_path: Path) -> None:
    made = prompts("a " + "y" * MAX_TOKEN_SIZE + " b", "c " + "z" * (MAX_TOKEN_SIZE - 1))
    made.user("go").assistant(tool("Write", file_path="/x", content="A" * 5000)).result("ok")
    searched = Searched(tmp_path, [made.done()])
    account = only(searched)
    assert (account.bytes["long"], account.bytes["data"]) == (MAX_TOKEN_SIZE, 5000)
    assert len(searched.found("z" * (MAX_TOKEN_SIZE - 1)).messages) == 1


def test_what_is_torn_unread_or_lost_is_named_with_its_bytes(tmp_path: Path) -> None:
    made = prompts("Seven gulls.")
    searched = Searched(tmp_path, [made])
    path = write(searched.root, made)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"user","torn\n' + b"\0" * 8 + b'\n{"type":"us')
    searched.open()
    account = only(searched)
    assert account.bytes["unreadable"] >= 29
    assert account.bytes["unread"] == len(b'{"type":"us')
    assert not account.is_complete


def test_a_file_that_is_gone_is_counted_with_its_last_size(tmp_path: Path) -> None:
    made = prompts("Seven gulls.")
    searched = Searched(tmp_path, [made])
    path = write(searched.root, made)
    size = path.stat().st_size
    path.unlink()
    searched.open()
    account = only(searched)
    assert (account.size, account.bytes["gone"], account.gone) == (size, size, True)


def test_what_should_be_in_the_index_and_is_not_is_missing(tmp_path: Path) -> None:
    from steno.index.database import open_for_writing

    searched = Searched(tmp_path, [prompts("Seven gulls.")])
    connection = open_for_writing(searched.home.folder)
    connection.execute("DELETE FROM messages WHERE id = (SELECT min(id) FROM messages)")
    connection.close()
    account = only(searched)
    assert account.records["missing"] == 1
    assert not account.is_complete


@pytest.mark.parametrize("version", VERSIONS)
def test_every_kind_of_record_is_accounted_for(tmp_path: Path, version: str) -> None:
    searched = Searched(tmp_path, everything(version))
    assert all(account.is_complete for account in accounts(searched))


@pytest.mark.corpus
def test_every_byte_of_real_sessions_is_accounted_for(tmp_path: Path, shared: Path) -> None:
    searched = Searched(tmp_path, ())
    searched.home = IndexLocation(searched.home.folder, (str(shared / "corpus"),))
    searched.open()
    found = accounts(searched)
    assert len(found) > 100
    assert all(account.documents == account.indexed for account in found)
    assert sum(account.bytes["missing"] for account in found) == 0


@pytest.mark.corpus
def test_planted_words_are_found_as_often_as_grep_finds_them(tmp_path: Path, shared: Path) -> None:
    generator = shared / "bench" / "gen.py"
    pytest.importorskip("numpy")
    pytest.importorskip("orjson")
    if not generator.is_file():
        pytest.skip("the generator of big folders is not there")
    out = tmp_path / "made"
    command = [sys.executable, str(generator), "--mb", "4", "--out", str(out), "--seed", "3"]
    subprocess.run(command, check=True, capture_output=True)
    truth = json.loads((out / "truth.json").read_text())["needles"]
    lines = [line for path in (out / ".claude").rglob("*.jsonl") for line in path.read_bytes().split(b"\n")]
    searched = Searched(tmp_path, ())
    searched.home = IndexLocation(searched.home.folder, (str(out / ".claude"),))
    searched.open()
    assert truth
    for needle, planted in truth.items():
        grep = re.compile(rb"(?<![A-Za-z0-9])%b(?![A-Za-z0-9])" % needle.encode())
        number = sum(grep.search(line) is not None for line in lines)
        hits = searched.hits(needle)
        assert len(hits) == number >= planted > 0
        assert Counter(mark for hit in hits for mark in hit.marked)[needle] == number
    assert len(searched.found("zqneedle*").messages) == sum(b"zqneedle" in line for line in lines)
    assert all(account.is_complete or account.bytes["unread"] for account in accounts(searched))
