"""Whole folders of sessions: what is reported of each file, as SARIF, and by the doctor."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.check.small_sessions import Records, call, data_of, output, prompt, reply, title

from steno.check.checkup import RULES, Policy, make_policy
from steno.check.doctor import Diagnosis, collect_files, inspect_files
from steno.check.file_reports import FileReport, VerdictScope, check_files, find_all_files, sarif_log, total_bytes
from steno.errors import BadRequest

if TYPE_CHECKING:
    from steno.store.discovery import Problem

__all__ = ["Folder", "Ruled", "cases"]

_NOW: Final = 1_800_000_000.0
_DAY: Final = 86_400
_PROJECT: Final = "projects/-w"
_NAMES: Final = [f"5e551017-0000-4000-8000-{number:012d}" for number in range(9)]


class File(NamedTuple):
    """A file of a folder: what is in it, and how many days ago it was written."""

    content: Records | bytes
    days: float = 1

    @property
    def data(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else data_of(self.content)


class Folder(NamedTuple):
    """A folder of files by their paths, and how it is looked at."""

    name: str
    files: Mapping[str, File]
    policy: Mapping[str, Any] = MappingProxyType({})
    judge: VerdictScope = "all"
    gone: str = ""
    """A file that vanishes when it was found."""
    base: str = ""
    """What paths are told from."""

    def said(self) -> str:
        """Return what is reported of the files, and all that the doctor says."""
        with TemporaryDirectory() as root:
            for path, file in self.files.items():
                place = Path(root, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(file.data)
                moment = _NOW - file.days * _DAY
                os.utime(place, (moment, moment))
            return "\n".join(self._told(root)).replace(f"{root}/", "").replace(root, "ROOT")

    def _told(self, root: str) -> Iterator[str]:
        problems: list[Problem] = []
        policy = make_policy(**self.policy)
        found = find_all_files(root, problems)
        patient = collect_files([root], problems)
        if self.gone:
            Path(root, self.gone).unlink()
        read: list[int] = []
        reports = list(check_files(found, problems=problems, policy=policy, judge=self.judge, done=read.append))
        yield f"{sum(map(total_bytes, found))} bytes found, {patient.size} to read, {sum(read)} read"
        for report in reports:
            yield from _reported(report)
        yield from (f"problem {each.kind} {each.path}: {each.message}" for each in problems)
        run = sarif_log(reports, problems, base=self.base.replace("ROOT", root))["runs"][0]
        del run["tool"]
        for name, value in run.items():
            lines = value if isinstance(value, list) else [value]
            yield from (f"{name} {json.dumps(each)}" for each in lines)
        yield from _diagnosed(inspect_files(patient, _NOW, problems=[], policy=policy))


def _reported(report: FileReport) -> Iterator[str]:
    for file in report.files:
        lost = f", {file.lost} lost, worst {file.worst}, {'sound' if file.sound else 'not sound'}"
        sizes = f"{file.size} bytes, {file.records} records, {file.gaps} gaps, {file.longest} longest"
        yield f"{file.role} {file.name} at {file.path}: {sizes}{lost}"
        counts = [f"{rule} {severity} {number}" for (rule, severity), number in file.counts.items()]
        yield f"  counts: {', '.join(counts)}"
        yield from (f"  {each.severity} {each.id} {each.location.line}" for each in file.findings)
        yield from (f"  {each.words}" for each in file.verdicts)
        yield f"  newest: {file.newest.words if file.newest else 'nobody looked'}"


def _diagnosed(found: Diagnosis) -> Iterator[str]:
    said = "healthy" if found.healthy else "not healthy"
    figures = f"{found.sessions} sessions, {found.sound} sound, {found.size} bytes"
    yield f"doctor: {said}; {figures}, kept for {found.cleanup_days} days"
    for broken in found.broken:
        lost = f"{broken.lost} of {broken.total} lost, {broken.errors} errors, {broken.warnings} warnings"
        yield f"broken {broken.found.path}: {lost}; {broken.words}; mendable {broken.mendable}"
    yield from (f"empty {each.path}" for each in found.empty)
    yield from (f"due {each.found.path}: {each.days:.3f} {each.archived}" for each in found.due)
    yield from (f"large {each.found.path}: {each.longest}" for each in found.large)
    for each in found.leftovers:
        yield f"left over {each.path}: {each.kind} {each.session_id} {each.files} {each.size}"
    yield from (f"copies {' '.join(each.path for each in group)}" for group in found.copies)


class Ruled(NamedTuple):
    """A policy as somebody wrote it."""

    name: str
    silence: list[str]
    severity: dict[str, str]

    def said(self) -> str:
        """Return what the policy comes to, or why it is none."""
        try:
            policy = make_policy(self.silence, self.severity)
        except BadRequest as error:
            return f"{error}\n{error.hint}"
        silent = " ".join(sorted(policy.silence))
        weights = " ".join(f"{rule}={weight}" for rule, weight in sorted(policy.severity.items()))
        return f"silent: {silent}\nweights: {weights}\n{_weighed(policy)}"


def _weighed(policy: Policy) -> str:
    """Return how much some findings weigh, as they are and where they do no harm."""
    told = [
        f"{rule} {severity}>{policy.severity_of(rule, severity)}"
        for rule in ("line.torn", "line.crlf", "chain.dangling", "no.rule")
        for severity in ("error", "warning", "info")
    ]
    return "; ".join(told)


class Listed(NamedTuple):
    """All rules."""

    name: str

    def said(self) -> str:
        """Return the name, the weight and the title of each, and that it is told in full."""
        log = sarif_log([])
        told = log["runs"][0]["tool"]["driver"]
        lines = [f"{told['name']} {sorted(told)} {log['version']} {log['$schema']}"]
        for rule, entry in zip(RULES.values(), told["rules"], strict=True):
            about = rule.why or rule.hint
            assert entry == {
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": about},
                "help": {"text": f"{about}\n\n{rule.hint}" if rule.why else rule.hint},
                "defaultConfiguration": {"level": entry["defaultConfiguration"]["level"]},
                "properties": {"tags": [rule.family]},
            }
            level = entry["defaultConfiguration"]["level"]
            lines.append(f"{rule.id} {rule.severity} {level} {rule.family}: {rule.title}")
        return "\n".join(lines)


def _session(number: int) -> str:
    return f"{_PROJECT}/{_NAMES[number]}.jsonl"


def _agent(number: int, name: str) -> str:
    return f"{_PROJECT}/{_NAMES[number]}/subagents/agent-{name}.jsonl"


def _named(records: Records, number: int) -> Records:
    return [record | {"sessionId": _NAMES[number]} for record in records]


def cases() -> dict[str, list[Any]]:
    """Return the folders, and policies."""
    talk = [prompt(1), reply(2), prompt(3), reply(4)]
    asked = [prompt(1), call(2, "a"), output(3, "a", toolUseResult={"agentId": "x"}), reply(4)]
    agent = [prompt(1, on=0, isSidechain=True, agentId="x"), reply(2, isSidechain=True, agentId="x")]
    sound, delegating = File(_named(talk, 1), 2), File(_named(asked, 2), 3)
    torn = File(data_of(_named(talk, 3))[:-30], 4)
    orphan = [*_named(talk, 4)[:2], output(3, "z", sessionId=_NAMES[4])]
    helper = File([each | {"sessionId": _NAMES[2]} for each in agent], 3)
    several = {
        _session(1): sound,
        _session(2): delegating,
        _agent(2, "x"): helper,
        _session(3): torn,
        _session(4): File(orphan, 0.5),
        _session(5): File([title("Only this.")], 5),
        _session(6): File(b"", 6),
    }
    worse = {_session(7): File(_named([reply(2), reply(4, of="x")], 7)), **several}
    lines = data_of(_named(talk, 1)) + b"x\n" * 103
    return {
        "folders": [
            Folder("one sound session", {_session(1): sound}),
            Folder("an agent", {_session(2): delegating, _agent(2, "x"): helper}),
            Folder("an agent gone", {_session(2): delegating}),
            Folder("an agent that vanishes", {_session(2): delegating, _agent(2, "x"): helper}, gone=_agent(2, "x")),
            Folder("an agent nobody names", {_session(1): sound, _agent(1, "y"): helper}),
            Folder("an agent torn", {_session(2): delegating, _agent(2, "x"): File(helper.data[:-9])}),
            Folder("an agent of nobody", {_agent(2, "x"): helper}),
            Folder("an agent not marked", {_session(2): delegating, _agent(2, "x"): File(_named(talk, 2))}),
            Folder("several", several),
            Folder("several, those in trouble", several, judge="troubled"),
            Folder("several, from a base", several, base="ROOT"),
            Folder("several, from a base with a slash", {_session(3): torn}, base="ROOT/"),
            Folder("several, from another base", {_session(3): torn}, base="/elsewhere"),
            Folder("broken in different ways", worse),
            Folder("one that vanishes", several, gone=_session(3)),
            Folder("silent", several, policy={"silence": ["line.*", "tools.orphan-result"]}),
            Folder("weighed", several, policy={"severity": {"line.*": "info", "chain.empty": "info"}}),
            Folder("more findings than are kept", {_session(1): File(lines)}),
            Folder("no config folder", {f"{_NAMES[1]}.jsonl": sound}),
            Folder("a copy", {_session(1): sound, f"projects/-v/{_NAMES[1]}.jsonl": sound}),
            Folder(
                "about to go",
                {_session(n): File(_named(talk, n), days) for n, days in enumerate((0, 22.9, 23, 23.1, 30, 44))},
            ),
            Folder(
                "what was left",
                {
                    _session(1): sound,
                    f"todos/{_NAMES[8]}-agent-{_NAMES[8]}.json": File(b"[1]"),
                    f"{_PROJECT}/{_NAMES[8]}/tool-results/a.txt": File(b"12345"),
                    "settings.json": File(b'{"cleanupPeriodDays":9}'),
                },
            ),
            Folder("nothing", {"projects/x.txt": File(b"")}),
        ],
        "rules": [Listed("all")],
        "policies": [
            Ruled("none", [], {}),
            Ruled("a rule", ["line.torn"], {"chain.dangling": "error"}),
            Ruled("a family", ["line.*"], {"chain.*": "info"}),
            Ruled("a rule before its family", [], {"line.torn": "info", "line.*": "warning"}),
            Ruled("a rule behind its family", [], {"line.*": "warning", "line.torn": "info"}),
            Ruled("both", ["line.torn"], {"line.torn": "info"}),
            *(
                Ruled(f"no rule {name!r}", [name], {})
                for name in ("line.tron", "torn", "line", "lines.*", "*", "", "chain.torn", "zzzzzzzz")
            ),
            Ruled("no severity", [], {"line.torn": "fatal"}),
            Ruled("no severity of a family", [], {"line.*": "Error"}),
        ],
    }
