"""The verdict: what each generation of the client would resume of a file."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from steno.check.client_readings import GENERATIONS, NEWEST_CLIENTS
from steno.check.evidence import Evidence
from steno.check.record_graph import ToolPairs, pair_tools
from steno.check.rules.chain import has_invalid_name, is_agent_file
from steno.check.rules.compaction import TITLE_FORM
from steno.format.dialects.detection import is_converted
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import Client
from steno.session.resume.replay import as_resumed
from steno.session.transcript import Node

ResumeOutcome: TypeAlias = Literal["fully", "partly", "not at all"]

_MISNAMED: Final = "misnamed"
_REASONS: Final = {
    _MISNAMED: "the file is named by an id that is no UUID",
    "no message": "the file has no message that it takes in",
    "no leaf": "it finds no message to go on from",
    "no content": "it fails on a message without content",
    "no model": "it hangs on an answer that names no model",
    "no time": "it fails on a message without a time",
    "cycle": "it hangs, as the parents lead round in a circle",
}
_EMPTY: Final = "the file has no message"
_ONLY_AGENTS: Final = "every message is a sub-agent's"
_NOT_READ: Final = "no message is of a form that clients take in"
# Clients put a reminder of their own before a conversation that an answer begins.
_HARMLESS_BREACHES: Final = frozenset(("role.first",))
_REPLAYED_FAMILIES: Final = ("tools", "message")
# What every client passes on as it is, and what only older ones do.
_REFUSED: Final = frozenset(
    ("message.image", "message.unsigned-thinking", "message.unknown-block", "tools.input", "tools.duplicate-use")
)
# Of an answer clients leave empty text out themselves.
_ALWAYS_REFUSED: Final = frozenset(("message.image", "message.unknown-block"))
"""Errors that every client passes on to the API with the record they are in."""
_REFUSED_OF_USERS: Final = "message.empty-text"
_REFUSED_AS_ORPHANS: Final = frozenset(("tools.orphan-result", "tools.duplicate-result"))
_UNSENT: Final = "; the summary of what was compacted is not sent"
_MAX_REPLAYED_SIZE: Final = 64 << 20
_MAX_RANGES: Final = 2


class LineRange(msgspec.Struct, frozen=True):
    """Lines from one to another, both included."""

    first: int
    last: int


class Verdict(msgspec.Struct, frozen=True):
    """What one generation of the client makes of a session."""

    clients: tuple[str, ...]
    """The versions that were studied and do the same."""
    outcome: ResumeOutcome
    sent: int
    """How many messages of the conversation it sends."""
    there: int
    """How many there are: since the last compaction, branches left out."""
    lost: tuple[LineRange, ...] = ()
    """Where the others lie; between two messages of a stretch none is sent."""
    refused: str = ""
    """Why it does not resume the file at all."""
    rejected: str = ""
    """Why the API would not take what it sends, as far as that was looked at."""
    words: str = ""
    """All of it in a sentence."""

    @property
    def client(self) -> str:
        """The newest version it holds for."""
        return self.clients[-1]


def verdicts(evidence: Evidence, *, replayed: int = _MAX_REPLAYED_SIZE) -> tuple[Verdict, ...]:
    """Return what becomes of a file in each generation of the client, the oldest first.

    None for a sub-agent's own file, which no client resumes by itself. To know for certain whether the API takes it,
    the requests are put together where there is doubt. That takes long: for a file of more than `replayed` bytes the
    findings have to do.
    """
    if is_agent_file(evidence):
        return ()
    if evidence.is_converted:
        return _dialect_verdicts(evidence, replayed)
    case = _FileCase(evidence, replayed)
    all_verdicts = [case.judge(versions) for versions in GENERATIONS]
    reason = all_verdicts[0].refused
    return _unify_refusals(all_verdicts, _common_reason(evidence, reason) if reason else "")


def _unify_refusals(all_verdicts: list[Verdict], reason: str = "") -> tuple[Verdict, ...]:
    """Return verdicts in the same words where no generation resumes the file."""
    refused = {verdict.refused for verdict in all_verdicts}
    if len(refused) == 1 and (same := refused.pop()):
        reason = reason or same
        sentence = f"no client resumes it: {reason}"
        all_verdicts = [
            msgspec.structs.replace(old_verdict, refused=reason, words=sentence) for old_verdict in all_verdicts
        ]
    return tuple(all_verdicts)


def _dialect_verdicts(evidence: Evidence, replayed: int) -> tuple[Verdict, ...]:
    """Return the verdicts on a file with records in a dialect: what clients send of it as it is."""
    case = _FileCase(evidence.as_written, replayed)
    source = evidence.transcript.source
    nodes = {node.index: node for node in (*evidence.graph.messages, *evidence.graph.unreachable)}
    messages = [nodes[index] for index in sorted(nodes)]
    if is_converted(source):
        messages = [node for node in messages if not source.is_inserted(node.offset)]
    return _unify_refusals([_dialect_verdict(evidence, case, versions, messages) for versions in GENERATIONS])


def _dialect_verdict(evidence: Evidence, case: "_FileCase", versions: tuple[str, ...], messages: list[Node]) -> Verdict:
    verdict = case.judge(versions)
    if verdict.refused:
        return msgspec.structs.replace(verdict, there=len(messages))
    chain = evidence.as_written.graph.readings.of(NEWEST_CLIENTS[versions]).chain or []
    names = {node.uuid for node in chain if node.is_message}
    names -= case.dropped_names(NEWEST_CLIENTS[versions], chain)
    lost_indexes = {node.index for node in messages if node.uuid not in names}
    sent = len(messages) - len(lost_indexes)
    stretches = _lost_ranges(messages, lost_indexes, evidence.lines)
    if evidence.dialect == "claude":
        sentence = _sentence(versions[-1], sent, len(messages), stretches, verdict.rejected)
    else:
        sentence = (
            f"{versions[-1]} reads {sent:,} of {len(messages):,} messages of the dialect "
            f"{evidence.dialect}; `steno repair` converts it"
        )
    outcome = "partly" if lost_indexes or evidence.dialect != "claude" else "fully"
    return Verdict(versions, outcome, sent, len(messages), stretches, rejected=verdict.rejected, words=sentence)


def _common_reason(evidence: Evidence, reason: str) -> str:
    """Return the reason that no client resumes a file, which may be plainer than that of one."""
    if reason != _REASONS["no message"]:
        return reason
    messages = [node for node in evidence.transcript.nodes if node.is_message]
    if not messages:
        return _EMPTY
    return _ONLY_AGENTS if all(node.sidechain for node in messages) else _NOT_READ


class _FileCase:
    """One file before the judges."""

    def __init__(self, evidence: Evidence, replayed: int) -> None:
        self.evidence = evidence
        self.replay = evidence.transcript.source.size <= replayed
        self.misnamed = has_invalid_name(evidence)
        self.lost_by_chain: dict[int, tuple[set[int], ToolPairs]] = {}
        graph = evidence.graph
        without_uuid = (
            node for node in evidence.transcript.nodes if not node.uuid and node.is_message and not node.sidechain
        )
        by_index = {node.index: node for node in (*graph.messages, *graph.unreachable, *without_uuid)}
        self.messages = [by_index[index] for index in sorted(by_index)]
        errors = {rule for rule, level in evidence.findings.counts if level == "error"}
        self.certain = bool(errors & _ALWAYS_REFUSED)
        self.unsent_note = _UNSENT if TITLE_FORM.id in errors else ""
        self.suspect = any(rule.startswith(_REPLAYED_FAMILIES) for rule in errors - _ALWAYS_REFUSED)

    def judge(self, versions: tuple[str, ...]) -> Verdict:
        """Return what becomes of the file in one generation."""
        client = NEWEST_CLIENTS[versions]
        if self.misnamed:
            return self._refused(versions, _MISNAMED)
        reading = self.evidence.graph.readings.of(client)
        if reading.refused:
            return self._refused(versions, reading.refused)
        lost_indexes = self._lost(client, reading.chain or [])
        sent = len(self.messages) - len(lost_indexes)
        rejected = self._rejected(client, reading.chain or [])
        stretches = _lost_ranges(self.messages, lost_indexes, self.evidence.lines)
        return Verdict(
            versions,
            "partly" if lost_indexes else "fully",
            sent,
            len(self.messages),
            stretches,
            rejected=rejected,
            words=_sentence(client.version, sent, len(self.messages), stretches, rejected) + self.unsent_note,
        )

    def _refused(self, versions: tuple[str, ...], reason: str) -> Verdict:
        explanation = _REASONS[reason]
        return Verdict(
            versions,
            "not at all",
            0,
            len(self.messages),
            _lost_ranges(self.messages, {node.index for node in self.messages}, self.evidence.lines),
            refused=explanation,
            words=f"{versions[-1]} does not resume it: {explanation}",
        )

    def _lost(self, client: Client, chain: list[Node]) -> set[int]:
        """Return the places of the messages that the client does not send."""
        if id(chain) not in self.lost_by_chain:
            graph = self.evidence.graph
            pairs = graph.pairs if chain == graph.conversation else pair_tools(chain)
            names = {node.uuid or node.index for node in chain}
            lost_indexes = {node.index for node in self.messages if (node.uuid or node.index) not in names}
            self.lost_by_chain[id(chain)] = lost_indexes, pairs
        lost_indexes, pairs = self.lost_by_chain[id(chain)]
        if pairs.is_complete:
            return lost_indexes
        return lost_indexes | (_dropped_indexes(client, pairs) & {node.index for node in self.messages})

    def dropped_names(self, client: Client, chain: list[Node]) -> set[str | None]:
        """Return the ids of messages on a chain that the client does not send."""
        lost_indexes = self._lost(client, chain)
        return {node.uuid for node in self.messages if node.index in lost_indexes}

    def _rejected(self, client: Client, chain: list[Node]) -> str:
        """Return why the API would not take what the client sends, or nothing.

        To put a request together takes long: only where something was found that may, or may not, be part of it.
        """
        certain = self._first_error_on(chain, _ALWAYS_REFUSED) if self.certain else ""
        if certain or not self.suspect:
            return certain
        if not self.replay:
            orphans = _REFUSED_AS_ORPHANS if not client.drops_orphans else frozenset[str]()
            return self._first_error_on(chain, _REFUSED | orphans)
        messages = as_resumed(self.evidence.transcript, client, prompt="…") or []
        problems = (breach for breach in find_breaches(messages) if breach.rule not in _HARMLESS_BREACHES)
        first = next(problems, None)
        return f"{first.rule}: {first.detail}" if first is not None else ""

    def _first_error_on(self, chain: list[Node], refused: frozenset[str]) -> str:
        """Return the first error of these on a client's chain, or nothing."""
        types = {node.offset: node.type for node in chain}
        for finding in self.evidence.findings:
            record_type = types.get(finding.location.span.offset)
            if finding.severity != "error" or record_type is None:
                continue
            is_user_text = finding.id == _REFUSED_OF_USERS and record_type == "user"
            if finding.id in refused or (is_user_text and refused is not _ALWAYS_REFUSED):
                return f"{finding.id}: {finding.message}"
        return ""


def _lost_ranges(messages: Sequence[Node], lost_indexes: set[int], lines: Sequence[int]) -> tuple[LineRange, ...]:
    """Return the lines of the messages that are lost, among all messages."""
    ranges: list[LineRange] = []
    was_lost = False
    for node in messages if lost_indexes else ():
        line, is_lost = lines[node.index], node.index in lost_indexes
        if is_lost and was_lost:
            ranges[-1] = LineRange(ranges[-1].first, line)
        elif is_lost:
            ranges.append(LineRange(line, line))
        was_lost = is_lost
    return tuple(ranges)


def _dropped_indexes(client: Client, pairs: ToolPairs) -> set[int]:
    """Return the places of what a client takes in, then leaves out for want of a call or result."""
    blocks = pairs.open
    if not client.answers_interrupted:
        blocks += pairs.interrupted
    if client.drops_orphans:
        blocks += pairs.orphans + pairs.repeated + pairs.late
    return {block.node.index for block in blocks}


def _sentence(version: str, sent: int, total: int, lost_ranges: Sequence[LineRange], rejected: str) -> str:
    if lost_ranges:
        verb = "is" if len(lost_ranges) == 1 and lost_ranges[0].first == lost_ranges[0].last else "are"
        sentence = f"{version} resumes {sent:,} of {total:,} messages: {_describe_ranges(lost_ranges)} {verb} lost"
    else:
        sentence = f"{version} resumes it fully"
    return f"{sentence}, but the API would refuse it" if rejected else sentence


def _describe_ranges(stretches: Sequence[LineRange]) -> str:
    shown = [_describe_range(line_range) for line_range in stretches[:_MAX_RANGES]]
    more = len(stretches) - len(shown)
    if more:
        shown.append(f"{more:,} more up to line {stretches[-1].last:,}")
    return _join_with_and(shown)


def _describe_range(stretch: LineRange) -> str:
    if stretch.first == stretch.last:
        return f"line {stretch.first:,}"
    return f"lines {stretch.first:,} to {stretch.last:,}"


def _join_with_and(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
