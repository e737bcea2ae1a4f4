"""Every kind of damage at every kind of place: what comes out resumes, and nothing is lost."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest
from tests.builders import VERSIONS
from tests.builders.everything import everything
from tests.check.damaged_sessions import damages_of

from steno.check.checkup import check
from steno.check.repair.edits import ASIDE_TYPE
from steno.check.repair.repair_job import RepairResult, repair_bytes
from steno.format.lines import read_bytes
from steno.format.records import Record
from steno.format.source import BytesSource
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed

SURVIVING: Final = 0.999
FEWEST: Final = 300
# Broken so early that no message is left in the file.
_NOTHING: Final = "chain.empty"


_LINKS: Final = ("type", "uuid", "parentUuid", "logicalParentUuid", "leafUuid", "timestamp")


class _Tally(msgspec.Struct):
    files: int = 0
    records: int = 0
    kept: int = 0


def errors(data: bytes) -> list[str]:
    return [found.id for found in check(BytesSource(data)).findings if found.severity == "error"]


def names(data: bytes) -> set[str]:
    """Return what tells the records of a file apart: their ids, or for the others their bytes."""
    found: set[str] = set()
    for piece in read_bytes(data):
        if isinstance(piece, Record):
            inner = piece.fields.get("record") if piece.type == ASIDE_TYPE else None
            uuid = inner.get("uuid") if isinstance(inner, dict) else piece.uuid
            found.add(uuid or piece.line.decode("utf-8", "replace"))
    return found


def contents(data: bytes) -> list[frozenset[str]]:
    """Return what each record of a file says, set aside or not, whatever it hangs on."""
    found: list[frozenset[str]] = []
    for piece in read_bytes(data):
        if isinstance(piece, Record):
            inner = piece.fields.get("record") if piece.type == ASIDE_TYPE else None
            found.append(frozenset(_parts(inner if isinstance(inner, dict) else piece.fields)))
    return found


def _parts(record: dict[str, Any]) -> Iterator[str]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else message
    if content is None:
        body = {key: value for key, value in record.items() if key not in _LINKS}
        yield json.dumps(body, sort_keys=True)
    for block in content if isinstance(content, list) else [content]:
        # Text is the same as a block and alone.
        fields = block if isinstance(block, dict) else {}
        said = fields.get("text") if fields.get("type") == "text" else block
        if said:
            yield json.dumps(said, sort_keys=True)


def judge(name: str, broken: bytes, tally: _Tally) -> Iterator[str]:
    """Yield what is wrong with a repair."""
    done = repair_bytes(broken)
    data = done.data
    if not done.settled:
        yield f"{name}: not settled"
    if repair_bytes(data).edits:
        yield f"{name}: a second repair finds something to do"
    found = errors(data)
    if found not in ([], [_NOTHING]):
        yield f"{name}: {found}"
    flaws = find_breaches(as_resumed(done.transcript, LATEST, prompt="Go on.") or [])
    if flaws and not found:
        yield f"{name}: {flaws}"
    yield from _survival(name, broken, done, tally)


def _survival(name: str, broken: bytes, done: RepairResult, tally: _Tally) -> Iterator[str]:
    before, after = names(broken), names(done.data)
    told = {edit.uuid for edit in done.edits}
    there = contents(broken)
    said = frozenset[str]().union(*contents(done.data))
    tally.files += 1
    tally.records += len(there)
    tally.kept += sum(each <= said for each in there)
    invented = {each for each in after - before if not each.startswith("{")} - told
    # A record that had no id gets one.
    given = {c.after for edit in done.edits for c in edit.changes if c.field == "uuid"}
    if invented - given:
        yield f"{name}: invented {invented}"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_damage_is_mended(version: str) -> None:
    tally = _Tally()
    wrong = [said for name, broken in damages_of(version) for said in judge(name, broken, tally)]
    assert wrong == []
    assert tally.kept >= tally.records * SURVIVING, tally
    assert tally.files >= FEWEST


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_session_comes_out_as_it_went_in(version: str) -> None:
    for made in everything(version):
        data = made.bytes()
        done = repair_bytes(data)
        assert done.edits == []
        assert done.data == data
