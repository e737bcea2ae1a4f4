"""Verdicts: the part of a file that each generation of Claude Code resumes."""

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
    _MISNAMED: "the file name is a session ID that is not a UUID",
    "no message": "the file has no message that it reads",
    "no leaf": "it finds no leaf",
    "no content": "it fails on a message without content",
    "no model": "it hangs on an answer without a model",
    "no time": "it fails on a message without a timestamp",
    "cycle": "it hangs on a parent cycle",
}
_EMPTY: Final = "the file has no message"
_ONLY_AGENTS: Final = "all messages are sub-agent messages"
_NOT_READ: Final = "no message is in a readable format"
# Claude Code inserts a reminder before a conversation that starts with an answer.
_HARMLESS_BREACHES: Final = frozenset(("role.first",))
_REPLAYED_FAMILIES: Final = ("tools", "message")
# Content that every version sends unchanged, and results that only older versions send.
_REFUSED: Final = frozenset(
    ("message.image", "message.unsigned-thinking", "message.unknown-block", "tools.input", "tools.duplicate-use")
)
# Claude Code drops empty text of answers.
_ALWAYS_REFUSED: Final = frozenset(("message.image", "message.unknown-block"))
"""Errors in content that every version sends to the API."""
_REFUSED_OF_USERS: Final = "message.empty-text"
_REFUSED_AS_ORPHANS: Final = frozenset(("tools.orphan-result", "tools.duplicate-result"))
_UNSENT: Final = "; the compaction summary is not sent"
_MAX_REPLAYED_SIZE: Final = 64 << 20
_MAX_RANGES: Final = 2


class LineRange(msgspec.Struct, frozen=True):
    """An inclusive range of lines."""

    first: int
    last: int


class Verdict(msgspec.Struct, frozen=True):
    """The part of a session that one generation of Claude Code resumes."""

    clients: tuple[str, ...]
    """Studied versions with this behaviour."""
    outcome: ResumeOutcome
    sent: int
    """Number of messages sent."""
    there: int
    """Number of messages since the last compaction, without abandoned branches."""
    lost: tuple[LineRange, ...] = ()
    """Lines of the messages that are not sent; no message within a range is sent."""
    refused: str = ""
    """Reason why the file is not resumed at all."""
    rejected: str = ""
    """Reason why the API would reject the request, if checked."""
    words: str = ""
    """The verdict as a sentence."""

    @property
    def client(self) -> str:
        """Newest version with this behaviour."""
        return self.clients[-1]


def verdicts(evidence: Evidence, *, replayed: int = _MAX_REPLAYED_SIZE) -> tuple[Verdict, ...]:
    """Return the verdicts on a file for each generation of Claude Code, oldest first.

    Empty for sub-agent files, which Claude Code does not resume directly. To decide whether the API accepts a request,
    suspect requests are replayed. That is slow, so files of more than `replayed` bytes are judged by their findings.
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
    """Return the verdicts, with the same text for all if no generation resumes the file."""
    refused = {verdict.refused for verdict in all_verdicts}
    if len(refused) == 1 and (same := refused.pop()):
        reason = reason or same
        sentence = f"No version of Claude Code resumes this file: {reason}"
        all_verdicts = [
            msgspec.structs.replace(old_verdict, refused=reason, words=sentence) for old_verdict in all_verdicts
        ]
    return tuple(all_verdicts)


def _dialect_verdicts(evidence: Evidence, replayed: int) -> tuple[Verdict, ...]:
    """Return the verdicts on a file with dialect records, which are not converted for Claude Code."""
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
            f"{versions[-1]} reads {sent:,} of {len(messages):,} messages in the dialect {evidence.dialect}; "
            "`steno repair` converts them"
        )
    outcome = "partly" if lost_indexes or evidence.dialect != "claude" else "fully"
    return Verdict(versions, outcome, sent, len(messages), stretches, rejected=verdict.rejected, words=sentence)


def _common_reason(evidence: Evidence, reason: str) -> str:
    """Return the common reason why no version resumes a file, more specific than that of one version."""
    if reason != _REASONS["no message"]:
        return reason
    messages = [node for node in evidence.transcript.nodes if node.is_message]
    if not messages:
        return _EMPTY
    return _ONLY_AGENTS if all(node.sidechain for node in messages) else _NOT_READ


class _FileCase:
    """Computes the verdicts on one file."""

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
        """Return the verdict for one generation."""
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
            words=f"{versions[-1]} does not resume this file: {explanation}",
        )

    def _lost(self, client: Client, chain: list[Node]) -> set[int]:
        """Return the indexes of the messages that the client version does not send."""
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
        """Return the IDs of messages on a chain that the client version does not send."""
        lost_indexes = self._lost(client, chain)
        return {node.uuid for node in self.messages if node.index in lost_indexes}

    def _rejected(self, client: Client, chain: list[Node]) -> str:
        """Return the reason why the API would reject the request, or an empty string.

        Replaying a request is slow, so it is done only if findings may affect it.
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
        """Return the first of these errors on a client version's chain, or an empty string."""
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
    """Return the line ranges of the lost messages, among all messages."""
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
    """Return the indexes of loaded messages that a client version drops because of unpaired calls or results."""
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
        sentence = f"{version} resumes all messages"
    return f"{sentence}, but the API would reject the request" if rejected else sentence


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
