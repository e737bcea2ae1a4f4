"""Check files and report on each; SARIF 2.1.0 output for code hosts and editors.

for report in check_files(find_all_files(root, problems), problems=problems): …
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from steno._version import __version__
from steno.check.checkup import RULES, Counts, Policy, check
from steno.check.evidence import Evidence, SubagentFileInfo
from steno.check.findings import SEVERITIES, Finding, Rule, Severity
from steno.check.verdict import Verdict, verdicts
from steno.errors import Unreadable
from steno.format.paths import JSONL_SUFFIX, Role
from steno.format.records import Dialect
from steno.session.resume.clients import LATEST
from steno.store.discovery import DiscoveredFile, Discovery, Problem, config_folder_of, problem_from_error
from steno.store.file_source import FileSource

VerdictScope = Literal["all", "troubled"]
"""Whether to compute verdicts for every session, or only for those with errors or warnings."""
ProgressCallback = Callable[[int], None]
_length: Final = attrgetter("length")
_TROUBLE_SEVERITIES: Final = ("error", "warning")
_MAX_REPLAYED_BYTES: Final = 8 << 20
"""Maximum session size in bytes for which suspect requests are replayed."""


class FileReport(msgspec.Struct, frozen=True):
    """Findings of one file and of its sub-agent files."""

    found: DiscoveredFile
    findings: tuple[Finding, ...] = ()
    """First findings of each rule, in file order."""
    counts: Counts = {}
    verdicts: tuple[Verdict, ...] = ()
    records: int = 0
    longest: int = 0
    """Length of the longest record or gap in bytes."""
    agents: tuple["FileReport", ...] = ()
    gaps: int = 0
    """Number of byte ranges that are not records."""
    dialect: Dialect = "claude"
    """Published dialect of the file; "claude" for files written by Claude Code."""
    is_converted: bool = False
    """Whether the file contains dialect records that were converted for reading."""

    @property
    def path(self) -> str:
        """Path of the file."""
        return self.found.path

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.found.size

    @property
    def name(self) -> str:
        """File name without its suffix."""
        return _file_name(self.found)

    @property
    def role(self) -> Role:
        """Whether this is a session file or a sub-agent file."""
        return self.found.place.role

    @property
    def files(self) -> Iterator["FileReport"]:
        """This file and its sub-agent files."""
        yield self
        for agent in self.agents:
            yield from agent.files

    def number(self, *severities: Severity) -> int:
        """Return the number of findings with these severities, including sub-agent files."""
        return sum(
            number for file in self.files for (_, severity), number in file.counts.items() if severity in severities
        )

    @property
    def worst(self) -> Severity | None:
        """Highest severity of any finding."""
        return next((severity for severity in SEVERITIES if self.number(severity)), None)

    @property
    def sound(self) -> bool:
        """Whether the file has no errors or warnings."""
        return not self.number(*_TROUBLE_SEVERITIES)

    @property
    def newest(self) -> Verdict | None:
        """Verdict for the latest Claude Code, if computed."""
        return next((verdict for verdict in self.verdicts if LATEST.version in verdict.clients), None)

    @property
    def lost(self) -> int:
        """Number of messages that the latest Claude Code would not send."""
        return self.newest.there - self.newest.sent if self.newest else 0


def find_all_files(root: str, problems: list[Problem]) -> list[DiscoveredFile]:
    """Return all sessions in a directory with their sub-agents, then sub-agents without a session."""
    discovery = Discovery(root, problems)
    sessions = [discovery.with_agents(session_file) for session_file in discovery.sessions()]
    session_agents = {agent.path for session in sessions for agent in session.agents}
    # Problems with directories were recorded by the first pass.
    without_session = [
        found
        for found in Discovery(root).transcripts()
        if found.place.role == "agent" and found.path not in session_agents
    ]
    return [*sorted(sessions, key=_age_key), *without_session]


def with_agents(session_file: DiscoveredFile, problems: list[Problem]) -> DiscoveredFile:
    """Return a session with its sub-agent files filled in; sub-agent files are returned unchanged."""
    if session_file.place.role == "agent":
        return session_file
    return Discovery("", problems).with_agents(session_file)


def total_bytes(session_file: DiscoveredFile) -> int:
    """Return the number of bytes to read, including sub-agent files."""
    return session_file.size + sum(agent.size for agent in session_file.agents)


def check_files(
    files: Iterable[DiscoveredFile],
    *,
    problems: list[Problem],
    policy: Policy | None = None,
    judge: VerdictScope = "all",
    done: ProgressCallback | None = None,
) -> Iterator[FileReport]:
    """Yield a report for each readable file; unreadable files are added to `problems`."""
    for session_file in files:
        try:
            yield check_file(session_file, problems=problems, policy=policy, judge=judge, done=done)
        except Unreadable as error:
            problems.append(_problem_of_error(session_file.path, error))


def check_file(
    session_file: DiscoveredFile,
    *,
    problems: list[Problem],
    policy: Policy | None = None,
    judge: VerdictScope = "all",
    done: ProgressCallback | None = None,
) -> FileReport:
    """Check a session and its sub-agent files; unreadable sub-agent files are added to `problems`.

    Raises Unreadable if the session file itself cannot be read.
    """
    policy = policy or Policy()
    notes: list[SubagentFileInfo] = []
    agents: list[FileReport] = []
    for agent in session_file.agents:
        try:
            report, note = _check_agent(agent, policy, done)
        except Unreadable as error:
            problems.append(_problem_of_error(agent.path, error))
            # The file exists even though it is unreadable.
            notes.append(SubagentFileInfo(agent.place.agent_id, agent.path, 0, 0))
        else:
            agents.append(report)
            notes.append(note)
    with FileSource(session_file.path) as file:
        source = _ProgressSource(file, done)
        evidence = check(source, name=_file_name(session_file), agents=_agent_files(session_file, notes))
        report = _make_report(session_file, evidence, policy, tuple(agents))
        if session_file.place.role == "agent" or (judge == "troubled" and report.sound):
            return report
        return msgspec.structs.replace(report, verdicts=verdicts(evidence, replayed=_MAX_REPLAYED_BYTES))


def _check_agent(
    agent_file: DiscoveredFile, policy: Policy, done: ProgressCallback | None
) -> tuple[FileReport, SubagentFileInfo]:
    with FileSource(agent_file.path) as file:
        evidence = check(_ProgressSource(file, done), name=_file_name(agent_file))
    nodes = evidence.transcript.nodes
    flagged = sum(node.sidechain for node in nodes)
    note = SubagentFileInfo(agent_file.place.agent_id, agent_file.path, len(nodes), flagged)
    return _make_report(agent_file, evidence, policy), note


def _agent_files(session_file: DiscoveredFile, notes: list[SubagentFileInfo]) -> list[SubagentFileInfo] | None:
    """Return the sub-agent files, or None for a file outside a config directory."""
    if session_file.place.role == "agent":
        return None
    return notes if notes or config_folder_of(session_file.path) else None


def _make_report(
    session_file: DiscoveredFile, evidence: Evidence, policy: Policy, agents: tuple[FileReport, ...] = ()
) -> FileReport:
    findings, counts = policy.apply(evidence.findings)
    written = evidence.as_written.transcript
    nodes, gaps = written.nodes, written.gaps
    longest = max(map(_length, chain(nodes, gaps)), default=0)
    return FileReport(
        session_file,
        findings,
        counts,
        records=len(nodes),
        longest=longest,
        agents=agents,
        gaps=len(gaps),
        dialect=evidence.dialect,
        is_converted=evidence.is_converted,
    )


def _file_name(session_file: DiscoveredFile) -> str:
    return session_file.path.replace("\\", "/").rpartition("/")[2].removesuffix(JSONL_SUFFIX)


def _age_key(session_file: DiscoveredFile) -> tuple[int, str]:
    return -session_file.mtime_ns, session_file.path


def _problem_of_error(path: str, error: Unreadable) -> Problem:
    cause = error.__cause__
    if isinstance(cause, OSError):
        return problem_from_error(path, cause)
    return Problem("unreadable", path, str(error))


class _ProgressSource:
    """A file source that reports how many bytes were read for the first time."""

    def __init__(self, file: FileSource, done: ProgressCallback | None) -> None:
        self._file = file
        self._done = done
        self._seen = 0
        self.size = file.size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return self._file.read(offset, length)

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield all data from `start` on, in order."""
        at = start
        for chunk in self._file.chunks(start):
            at += len(chunk)
            if self._done is not None and at > self._seen:
                self._done(at - self._seen)
                self._seen = at
            yield chunk


_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}
_BASE_ID: Final = "%SRCROOT%"
_DRIVE: Final = re.compile(r"[A-Za-z]:/")


def sarif_log(reports: Iterable[FileReport], problems: Sequence[Problem] = (), *, base: str = "") -> dict[str, Any]:
    """Return one run as a SARIF log. Paths are absolute, or relative to `base` if they are below it."""
    rule_index = {rule_id: at for at, rule_id in enumerate(RULES)}
    results: list[dict[str, Any]] = []
    left_out = 0
    for report in reports:
        for file in report.files:
            artifact = _artifact_location(file.path, base)
            results += [_result(finding, artifact, rule_index) for finding in file.findings]
            left_out += sum(file.counts.values()) - len(file.findings)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "steno",
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in RULES.values()],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not problems,
                "toolExecutionNotifications": [_notification(problem, base) for problem in problems],
            }
        ],
        "columnKind": "utf16CodeUnits",
        "results": results,
        # Each rule lists at most a fixed number of findings per file.
        "properties": {"findingsNotListed": left_out},
    }
    if base:
        run["originalUriBaseIds"] = {_BASE_ID: {"uri": file_uri(base).rstrip("/") + "/"}}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def file_uri(path: str) -> str:
    """Return an absolute path as a `file:` URI with percent-encoded bytes.

    >>> file_uri("/tmp/my notes.jsonl")
    'file:///tmp/my%20notes.jsonl'
    """
    path = _forward_slashes(path)
    if path.startswith("//"):
        return "file:" + _percent_encoded(path)
    return "file://" + ("" if path.startswith("/") else "/") + _percent_encoded(path)


def _forward_slashes(path: str) -> str:
    """Return a Windows path with forward slashes; on other systems a backslash is an ordinary character."""
    windows = _DRIVE.match(path.replace("\\", "/")) or path.startswith("\\\\")
    return path.replace("\\", "/") if windows else path


def _percent_encoded(path: str) -> str:
    drive = _DRIVE.match(path)
    head = drive[0] if drive else ""
    return head + quote(path[len(head) :].encode("utf-8", "surrogateescape"), safe="/~")


def _artifact_location(path: str, base: str) -> dict[str, Any]:
    base_prefix = _forward_slashes(base).rstrip("/") + "/"
    if base and _forward_slashes(path).startswith(base_prefix):
        return {"uri": _percent_encoded(_forward_slashes(path)[len(base_prefix) :]), "uriBaseId": _BASE_ID}
    return {"uri": file_uri(path)}


def _rule(rule: Rule) -> dict[str, Any]:
    about = rule.why or rule.hint
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": about},
        "help": {"text": f"{about}\n\n{rule.hint}" if rule.why else rule.hint},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family]},
    }


def _result(finding: Finding, artifact: dict[str, Any], rule_index: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": artifact,
                    "region": {
                        "startLine": finding.location.line,
                        "byteOffset": finding.location.span.offset,
                        "byteLength": finding.location.span.length,
                    },
                }
            }
        ],
    }
    if finding.id in rule_index:
        result["ruleIndex"] = rule_index[finding.id]
    if finding.location.uuid:
        result["partialFingerprints"] = {"record/v1": f"{finding.id}:{finding.location.uuid}"}
    return result


def _notification(problem: Problem, base: str) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": problem.message or problem.kind},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact_location(problem.path, base)}}],
    }
