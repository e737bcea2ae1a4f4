"""What a repair comes to: when it is proven, hopeless or a change; and blank lines of a response."""

from typing import Any

import pytest
from tests.check.small_sessions import SESSION, Records, blank, data_of, prompt, reply, words

from steno.check.evidence import RecordView, RuleHooks, gather_evidence
from steno.check.findings import Findings, Severity
from steno.check.repair.edits import Edit
from steno.check.repair.repair_job import FileState, RepairJob, RepairOptions, run_repair
from steno.check.verdict import ResumeOutcome, Verdict
from steno.format.source import BytesSource
from steno.session.resume.api_rules import Breach
from steno.session.resume.clients import LATEST, client_for
from steno.store.replace import StagingArea


def _mended(records: Records) -> RepairJob:
    with StagingArea() as bench:
        return run_repair(BytesSource(data_of(records)), SESSION, RepairOptions(), bench)


def test_a_blank_line_stays_in_a_response_that_says_something_elsewhere() -> None:
    told = [reply(2, [blank(), words("x")], "m"), reply(3, [blank()], "m")]
    job = _mended([prompt(1), *told, prompt(4), reply(5)])
    assert [edit.line for edit in job.edits] == [2]
    other = [reply(2, [words("x")], "m"), reply(3, [blank()], "m")]
    assert _mended([prompt(1), *other, prompt(4), reply(5)]).edits == []


def _job(*, errors: int = 0, wayward: bool = False, outcome: ResumeOutcome = "fully", **more: Any) -> RepairJob:
    """Return a repair that came to something."""
    verdicts = (Verdict(("2.1.200",), "partly", 1, 2), Verdict(("2.1.300", LATEST.version), outcome, 2, 2))
    counts: dict[Severity, int] = {"error": errors, "warning": 3, "info": 2}
    broken = tuple(more.pop("broken", ()))
    after = FileState(9, counts, more.pop("verdicts", verdicts), broken, wayward)
    before = FileState(9, {"error": 1}, (), ())
    made: dict[str, Any] = {"edits": [], "settled": True, "options": RepairOptions(), **more}
    return RepairJob(before=before, after=after, source=BytesSource(b"x"), **made)


@pytest.mark.parametrize(
    ("job", "proven"),
    [
        (_job(), True),
        (_job(settled=False), False),
        (_job(errors=1), False),
        (_job(wayward=True), False),
        (_job(outcome="partly"), False),
        (_job(outcome="not at all"), False),
        (_job(broken=[Breach("role.first", 0, None, "x")]), False),
        (_job(verdicts=()), False),
        (_job(options=RepairOptions(client=client_for("2.1.200"))), False),
        (_job(is_agent=True, verdicts=()), True),
        (_job(is_agent=True, verdicts=(), settled=False), False),
        (_job(is_agent=True, verdicts=(), errors=1), False),
    ],
)
def test_a_repair_is_proven_only_if_the_client_sends_all_and_nothing_is_wrong(job: RepairJob, *, proven: bool) -> None:
    assert job.is_verified is proven


@pytest.mark.parametrize(
    ("job", "hopeless"),
    [
        (_job(), False),
        (_job(outcome="not at all"), False),
        (_job(verdicts=()), False),
        (_job(verdicts=(Verdict(("1",), "not at all", 0, 2),) * 2), True),
    ],
)
def test_a_repair_is_hopeless_only_if_no_client_resumes_the_file(job: RepairJob, *, hopeless: bool) -> None:
    assert job.is_hopeless is hopeless


def test_a_name_of_its_own_is_a_change_only_if_it_leaves_fewer_errors() -> None:
    edit = Edit("a.b", "change", 1, "", "what", "lost")
    assert not _job().changed
    assert _job(edits=[edit]).changed
    assert _job(options=RepairOptions(name="x")).renamed
    assert _job(options=RepairOptions(name="x")).changed
    assert not _job(options=RepairOptions(name="x"), errors=1).renamed
    assert not _job(options=RepairOptions(name="")).renamed
    other = Edit("a.b", "change", 2, "", "what", "more")
    bare = Edit("a.b", "change", 3, "", "what")
    assert _job(edits=[edit, bare, other, edit]).lost == ["lost", "more"]
    assert b"".join(_job().chunks()) == b"x"


def test_a_record_among_plain_lines_has_the_bytes_of_its_line() -> None:
    data = data_of([prompt(1), reply(2), prompt(3), reply(4), prompt(5)])
    found: list[tuple[bytes, bytes, bytes]] = []

    def look(seen: RecordView, _: Findings) -> None:
        record = seen.record
        found.append((record.line, record.ending, data[seen.node.offset :][: seen.node.length]))

    gather_evidence(BytesSource(data), hooks=RuleHooks(((look, None),)))
    assert found == [(line, b"\n", line + b"\n") for line in data.splitlines()]
