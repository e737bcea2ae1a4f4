"""Files that were found, checked one after the other: only what was found in them is held on to.

for report in check_files(everything_below(root, problems), problems=problems): …
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Final, Literal

import msgspec

from steno.check.checkup import check
from steno.check.evidence import AgentNote, Evidence
from steno.check.findings import SEVERITIES, Finding, Severity
from steno.check.policy import Counts, Policy
from steno.check.verdict import Verdict, verdicts
from steno.errors import Unreadable
from steno.format.dialects.names import Dialect
from steno.format.paths import Role
from steno.session.resume.clients import LATEST
from steno.store.discover import Discovery, config_of
from steno.store.found import Found, Problem, problem_of
from steno.store.read import FileSource

__all__ = [
    "FileReport",
    "bytes_of",
    "check_file",
    "check_files",
    "everything_below",
    "with_agents",
]

Judge = Literal["all", "troubled"]
"""Whether to say of every session what clients resume of it, or only where something is wrong."""
Done = Callable[[int], None]
_SUFFIX: Final = ".jsonl"
_length: Final = attrgetter("length")
_TROUBLE: Final = ("error", "warning")
_REPLAYED: Final = 8 << 20
"""Up to which size the requests of a session are put together, where there is doubt about them."""


class FileReport(msgspec.Struct, frozen=True):
    """What was found in one file, and in the files of its sub-agents."""

    found: Found
    findings: tuple[Finding, ...] = ()
    """Of each rule the first ones, by where they lie."""
    counts: Counts = {}
    verdicts: tuple[Verdict, ...] = ()
    records: int = 0
    longest: int = 0
    """The bytes of its longest record or gap."""
    agents: tuple["FileReport", ...] = ()
    gaps: int = 0
    """How many stretches of it are no record."""
    dialect: Dialect = "claude"
    """The published dialect that it is written in, if it is not what the real client writes."""
    is_converted: bool = False
    """Whether it has records in a dialect, so that it is read in another form than it has."""

    @property
    def path(self) -> str:
        """Where the file lies."""
        return self.found.path

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.found.size

    @property
    def name(self) -> str:
        """What the file is called, without its ending."""
        return _name(self.found)

    @property
    def role(self) -> Role:
        """Whether it is a session's file or a sub-agent's."""
        return self.found.place.role

    @property
    def files(self) -> Iterator["FileReport"]:
        """This file and those of its sub-agents."""
        yield self
        for agent in self.agents:
            yield from agent.files

    def number(self, *severities: Severity) -> int:
        """Return how many findings of these severities there are, sub-agents' included."""
        return sum(
            number
            for file in self.files
            for (_, severity), number in file.counts.items()
            if severity in severities
        )

    @property
    def worst(self) -> Severity | None:
        """The gravest severity there is."""
        return next((each for each in SEVERITIES if self.number(each)), None)

    @property
    def sound(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return not self.number(*_TROUBLE)

    @property
    def newest(self) -> Verdict | None:
        """What the newest client would resume, where that was looked at."""
        return next((each for each in self.verdicts if LATEST.version in each.clients), None)

    @property
    def lost(self) -> int:
        """How many messages the newest client would not send."""
        return self.newest.there - self.newest.sent if self.newest else 0


def everything_below(root: str, problems: list[Problem]) -> list[Found]:
    """Return every session below a folder with its sub-agents, and sub-agents without a session."""
    discovery = Discovery(root, problems)
    sessions = [discovery.with_agents(found) for found in discovery.sessions()]
    owned = {agent.path for session in sessions for agent in session.agents}
    # Whatever is wrong with a folder was noted the first time.
    alone = [
        found
        for found in Discovery(root).transcripts()
        if found.place.role == "agent" and found.path not in owned
    ]
    return [*sorted(sessions, key=_age), *alone]


def with_agents(found: Found, problems: list[Problem]) -> Found:
    """Return a session with its sub-agents' files filled in; a sub-agent's has none."""
    if found.place.role == "agent":
        return found
    return Discovery("", problems).with_agents(found)


def bytes_of(found: Found) -> int:
    """Return how much there is to read, sub-agents included."""
    return found.size + sum(agent.size for agent in found.agents)


def check_files(
    files: Iterable[Found],
    *,
    problems: list[Problem],
    policy: Policy | None = None,
    judge: Judge = "all",
    done: Done | None = None,
) -> Iterator[FileReport]:
    """Yield a report of each file that can be read; the others go to `problems`."""
    for found in files:
        try:
            yield check_file(found, problems=problems, policy=policy, judge=judge, done=done)
        except Unreadable as error:
            problems.append(_problem(found.path, error))


def check_file(
    found: Found,
    *,
    problems: list[Problem],
    policy: Policy | None = None,
    judge: Judge = "all",
    done: Done | None = None,
) -> FileReport:
    """Check a session and the sub-agents that `found` lists; theirs may go to `problems`.

    Raises:
        Unreadable: the session's own file cannot be read.
    """
    policy = policy or Policy()
    notes: list[AgentNote] = []
    agents: list[FileReport] = []
    for agent in found.agents:
        try:
            report, note = _checked_agent(agent, policy, done)
        except Unreadable as error:
            problems.append(_problem(agent.path, error))
            # It is there, whatever is in it.
            notes.append(AgentNote(agent.place.agent_id, agent.path, 0, 0))
        else:
            agents.append(report)
            notes.append(note)
    with FileSource(found.path) as file:
        source = _Watched(file, done)
        evidence = check(source, name=_name(found), agents=_known(found, notes))
        report = _report(found, evidence, policy, tuple(agents))
        if found.place.role == "agent" or (judge == "troubled" and report.sound):
            return report
        return msgspec.structs.replace(report, verdicts=verdicts(evidence, replayed=_REPLAYED))


def _checked_agent(found: Found, policy: Policy, done: Done | None) -> tuple[FileReport, AgentNote]:
    with FileSource(found.path) as file:
        evidence = check(_Watched(file, done), name=_name(found))
    nodes = evidence.transcript.nodes
    flagged = sum(node.sidechain for node in nodes)
    note = AgentNote(found.place.agent_id, found.path, len(nodes), flagged)
    return _report(found, evidence, policy), note


def _known(found: Found, notes: list[AgentNote]) -> list[AgentNote] | None:
    """Return the sub-agents' files; None for a file that was copied away from where they lie."""
    if found.place.role == "agent":
        return None
    return notes if notes or config_of(found.path) else None


def _report(
    found: Found, evidence: Evidence, policy: Policy, agents: tuple[FileReport, ...] = ()
) -> FileReport:
    findings, counts = policy.apply(evidence.findings)
    written = evidence.as_written.transcript
    nodes, gaps = written.nodes, written.gaps
    longest = max(map(_length, chain(nodes, gaps)), default=0)
    return FileReport(
        found,
        findings,
        counts,
        records=len(nodes),
        longest=longest,
        agents=agents,
        gaps=len(gaps),
        dialect=evidence.dialect,
        is_converted=evidence.is_converted,
    )


def _name(found: Found) -> str:
    return found.path.replace("\\", "/").rpartition("/")[2].removesuffix(_SUFFIX)


def _age(found: Found) -> tuple[int, str]:
    return -found.mtime_ns, found.path


def _problem(path: str, error: Unreadable) -> Problem:
    why = error.__cause__
    if isinstance(why, OSError):
        return problem_of(path, why)
    return Problem("unreadable", path, str(error))


class _Watched:
    """A file that says how much of it was read, the first time."""

    def __init__(self, file: FileSource, done: Done | None) -> None:
        self._file = file
        self._done = done
        self._seen = 0
        self.size = file.size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return self._file.read(offset, length)

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield everything from `start` on, in order."""
        at = start
        for chunk in self._file.chunks(start):
            at += len(chunk)
            if self._done is not None and at > self._seen:
                self._done(at - self._seen)
                self._seen = at
            yield chunk
