"""Everything that is said of a small file, as text: findings, verdicts, and a repair of it."""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tests.check.small_sessions import ENVELOPE, SESSION, Records, data_of

from steno.check.checkup import RULES, check
from steno.check.evidence import Evidence, SubagentFileInfo
from steno.check.repair.edits import ASIDE_TYPE, Change, Edit
from steno.check.repair.repair_job import FileState, RepairJob, RepairOptions, run_repair
from steno.check.verdict import Verdict, verdicts
from steno.format.encode import encode_line
from steno.format.lines import LINE_CAP
from steno.format.source import BytesSource
from steno.session.resume.clients import client_for
from steno.store.replace import StagingArea

__all__ = ["Case"]

_ENVELOPE: Final = json.dumps(ENVELOPE, separators=(",", ":"))[1:-1]
_ID: Final = re.compile(r"00000000-0000-4000-8000-0{0,11}([0-9]+|dead)(?![0-9a-f])")
_DAY: Final = "2026-01-05T"


class Case(NamedTuple):
    """A file, under what name it lies, and what is asked of a repair."""

    name: str
    file: bytes | Records
    called: str = SESSION
    agents: Sequence[SubagentFileInfo] | None = None
    wish: Mapping[str, Any] = MappingProxyType({})
    """How to repair it; of a file with a wish only the repair is told."""
    cap: int = LINE_CAP

    @property
    def data(self) -> bytes:
        return self.file if isinstance(self.file, bytes) else data_of(self.file)

    def said(self) -> str:
        """Return all that is said of the file, and what a repair makes of it."""
        return _answer(self)


def _answer(case: Case) -> str:
    if case.wish:
        return _short("\n".join(_repair(case)))
    evidence = check(BytesSource(case.data), name=case.called, agents=case.agents, cap=case.cap)
    found = [_finding(evidence, at) for at in range(len(list(evidence.findings)))]
    judged = verdicts(evidence)
    said = [*found, *_verdicts(judged), *_verdicts_unlike(judged, evidence)]
    said += _repair(case)
    return _short("\n".join(said))


def _short(text: str) -> str:
    text = text.replace(_ENVELOPE, '"…"').replace(SESSION, "SESSION").replace(_DAY, "T")
    return _ID.sub(r"#\1", text)


def _finding(evidence: Evidence, at: int) -> str:
    found = list(evidence.findings)[at]
    place = found.location
    rule = RULES[found.id]
    message = "" if found.message == rule.title else f": {found.message}"
    where = f"{place.line} {place.span.offset}+{place.span.length} {place.uuid}".rstrip()
    assert found.hint == rule.hint
    return f"{found.severity} {found.id} at {where}{message}"


def _verdicts(judged: Sequence[Verdict]) -> list[str]:
    """Return one line for each thing that is said, with the clients it is said of."""
    said: dict[str, list[str]] = {}
    for each in judged:
        said.setdefault(_verdict(each), []).append(each.client)
    return [f"{' '.join(clients)}: {words}" for words, clients in said.items()]


def _verdict(each: Verdict) -> str:
    words = each.words.replace(each.client, "it", 1)
    counts = f"{each.sent}/{each.there}"
    if words == "it resumes all messages":
        assert (each.outcome, each.lost, each.refused, each.rejected) == ("fully", (), "", "")
        return f"fully {counts}"
    lost = ",".join(f"{part.first}-{part.last}" for part in each.lost)
    parts = [f"{each.outcome} {counts}", f"lost {lost}", words]
    assert words.endswith(each.refused)
    parts += [f"rejected: {each.rejected}" if each.rejected else ""]
    return "; ".join(part for part in parts if part)


def _verdicts_unlike(judged: Sequence[Verdict], evidence: Evidence) -> list[str]:
    """Return what is said where no request is put together, if that is something else."""
    quick = verdicts(evidence, replayed=0)
    return [
        f"unread {new.client}: {new.rejected or 'accepted'}"
        for old, new in zip(judged, quick, strict=True)
        if old != new
    ]


def _repair(case: Case) -> list[str]:
    wish = {**case.wish}
    if "client" in wish:
        wish["client"] = client_for(wish["client"])
    with StagingArea() as bench:
        steps: list[int] = []
        source = BytesSource(case.data)
        job = run_repair(source, case.called, RepairOptions(**wish), bench, lambda: steps.append(1))
        lines = [f"- {_edit(edit)}" for edit in job.edits]
        lines += [f"- left in the file: line {each.line} {each.uuid}" for each in job.left]
        if job.edits:
            lines += _lines(case.data, b"".join(job.chunks()))
        assert job.lost == list(dict.fromkeys(edit.lost for edit in job.edits if edit.lost))
    return [*lines, f"{_outcome(job)} in {len(steps)} steps"]


def _edit(edit: Edit) -> str:
    parts = [f"{edit.action} {edit.line} {edit.uuid}".rstrip(), edit.finding, edit.what]
    parts += [_change(each) for each in edit.changes]
    parts += [f"LOST {edit.lost}"] if edit.lost else []
    return " | ".join(parts)


def _change(change: Change) -> str:
    return f"{change.field}: {_json(change.before)} > {_json(change.after)}"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _lines(before: bytes, after: bytes) -> list[str]:
    """Return a new file: the numbers of lines that are as they were, and the others."""
    old = before.split(b"\n")
    places = {line: at for at, line in reversed(list(enumerate(old, 1)))}
    *new, end = after.split(b"\n")
    said: list[str] = []
    for line in new:
        text = f"={places[line]}" if line in places else _line(line, old)
        if said and text.startswith("=") and said[-1].startswith("="):
            said[-1] += f" {text}"
        else:
            said.append(text)
    return [*said, f"open end {end!r}"] if end else said


def _line(line: bytes, old: list[bytes]) -> str:
    """Return a new line; of one with fields changed only these, if nothing else was changed."""
    new = json.loads(line)
    if new.get("type") == ASIDE_TYPE and list(new) == ["type", "finding", "sessionId", "record"]:
        record = _line(encode_line(new["record"])[:-1], old)
        return f"aside {new['finding']} of {new['sessionId']}: {record}"
    for at, each in enumerate(old, 1):
        fields = _fields(each)
        if fields and "uuid" in new and fields.get("uuid") == new["uuid"]:
            changed = {key: new[key] for key in new if new[key] != fields.get(key, ...)}
            gone = [key for key in fields if key not in new]
            made = {key: value for key, value in fields.items() if key not in gone} | changed
            if encode_line(made) == line + b"\n":
                return f"~{at} {_json(changed)}" + "".join(f" without {key}" for key in gone)
    return line.decode()


def _fields(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _outcome(job: RepairJob) -> str:
    after = job.after
    said = ["proven" if job.is_verified else "not proven"]
    said += ["hopeless"] if job.is_hopeless else []
    said += ["unsettled"] if not job.settled else []
    said += ["endless"] if job.endless else []
    said += ["unchanged"] if not job.changed else []
    said += ["renamed"] if job.renamed else []
    said += ["a sub-agent's"] if job.is_agent else []
    said += ["wayward"] if after.wayward else []
    return f"{', '.join(said)}; {_state(job.before)} > {_state(after)}"


def _state(state: FileState) -> str:
    broken = "".join(f" {each.rule}@{each.message}" for each in state.breaches)
    counts = "/".join(str(each) for each in state.counts.values())
    assert state.errors == state.counts["error"]
    return f"{counts} {state.size}{broken}"
