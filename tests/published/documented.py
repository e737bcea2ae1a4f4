"""What tests of documented files ask: sessions on a disk, their messages and their steps."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.published.examples import EXAMPLES
from tests.published.test_client_fields import records_of

from steno.format.lines import read_bytes
from steno.format.records import Record
from steno.format.source import BytesSource
from steno.session.resume.replay import valid_messages
from steno.session.session import Session
from steno.session.transcript import load
from steno.session.turns.steps import Step

Json = dict[str, Any]
Open = Callable[[str], Session]
Check = Callable[[Open], bool]


@cache
def messages(name: str) -> list[Json]:
    return valid_messages(load(BytesSource(EXAMPLES[name].data)))


def text_of(name: str) -> str:
    return json.dumps(messages(name), ensure_ascii=False)


def steps(session: Session, *kinds: str) -> list[Step]:
    every = [step for turn in session.turns() for step in turn.steps]
    return [step for step in every if step.kind in kinds or not kinds]


def uuids(name: str, kind: str) -> list[tuple[str | None, str]]:
    return [(each.get("parentUuid"), each["uuid"]) for each in records_of(name) if each["type"] == kind]


def steno_findings(name: str) -> list[str]:
    from steno.check.checkup import check

    found = check(BytesSource(EXAMPLES[name].data), name=EXAMPLES[name].name).findings
    return [f"{each.id} {each.message}" for each in found]


def pieces_of(name: str) -> list[Record]:
    pieces = read_bytes(EXAMPLES[name].data)
    return [piece for piece in pieces if isinstance(piece, Record)]
