"""Runs a repair from diagnosis to verification.

Each stage works on the output of the previous one, so stages are independent, and they repeat until no stage changes
anything. Repairing a repaired file changes nothing, and an intact file is returned byte for byte. A repair can also
keep only part of a file: up to a record, or one of several sessions.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from steno.check.checkup import check
from steno.check.evidence import Evidence
from steno.check.findings import SEVERITIES, Severity
from steno.check.record_graph import RecordGraph
from steno.check.repair.chain_repairs import repair_beginning, repair_chain, repair_compactions, repair_leaf
from steno.check.repair.edits import DroppedMessage, Edit, EditPlan
from steno.check.repair.record_repairs import (
    convert_dialect,
    repair_content,
    repair_fields,
    repair_ids,
    repair_images,
    repair_lines,
    slim_records,
)
from steno.check.repair.tool_repairs import repair_tools
from steno.check.rules.chain import is_agent_file
from steno.check.verdict import Verdict, verdicts
from steno.errors import NotFound
from steno.format.records import Gap
from steno.format.source import BytesSource, Source
from steno.session.resume.api_rules import Breach, find_breaches
from steno.session.resume.clients import LATEST, Client, client_for
from steno.session.resume.replay import as_resumed, resumed_chain
from steno.session.transcript import Node, Transcript, load
from steno.store.replace import StagingArea


def keep_until(plan: EditPlan, *, uuid: str) -> None:
    """Remove all records after a record.

    Raises NotFound if no record has that ID.
    """
    node = find_record(plan.transcript, uuid)
    later_count = len(plan.transcript.nodes) - node.index - 1
    if not later_count:
        return
    description = f"end the session here and remove {later_count:,} later records"
    edit = Edit("", "remove", plan.line(node), node.uuid or "", description, f"{later_count:,} later records")
    plan.keep_only(lambda offset: offset <= node.offset, edit)


def find_record(transcript: Transcript, uuid: str) -> Node:
    """Return the record with an ID, or with a unique ID prefix.

    Raises NotFound if no record or several records match.
    """
    matches = {name for name in transcript.by_uuid if name.startswith(uuid)} if uuid else set[str]()
    if uuid in matches:
        matches = {uuid}
    if len(matches) != 1:
        problem = f"{len(matches)} records match" if matches else "no record matches"
        raise NotFound(f"{problem} {uuid!r}", hint="Run `steno show SESSION --records` to list record IDs.")
    return transcript.by_uuid[matches.pop()]


def sessions_in(transcript: Transcript) -> dict[str, list[Node]]:
    """Return the records by session ID; a record without one belongs to the session of the record before."""
    nodes_by_session: dict[str, list[Node]] = {}
    pending: list[Node] = []
    name = ""
    for node in transcript.nodes:
        name = node.session or name
        if name:
            nodes_by_session.setdefault(name, []).extend([*pending, node])
            pending = []
        else:
            pending.append(node)
    return nodes_by_session


def keep_session(plan: EditPlan, *, name: str) -> None:
    """Remove the records of all other sessions in the file."""
    parts = sessions_in(plan.transcript)
    other_count = sum(len(nodes) for other, nodes in parts.items() if other != name)
    if not other_count:
        return
    records = len(parts.get(name, ()))
    description = f"keep {records:,} records of session {name} and remove {other_count:,} records of other sessions"
    edit = Edit("ids.several-sessions", "remove", 1, "", description)
    plan.keep_only(_with_gaps(plan.transcript, parts.get(name, ())).__contains__, edit)


def _with_gaps(transcript: Transcript, nodes: Iterable[Node]) -> set[int]:
    """Return the offsets of records and of the gaps after them; later stages handle the gaps."""
    offsets = {node.offset for node in nodes}
    keeps_gaps = not transcript.nodes or transcript.nodes[0].offset in offsets
    for piece in transcript.pieces():
        if isinstance(piece, Gap):
            offsets |= {piece.offset} if keeps_gaps else set()
        else:
            keeps_gaps = piece.offset in offsets
    return offsets


Stage = Callable[[EditPlan], None]
StageStore = Callable[[Iterable[bytes]], Source]
"""Stores the output of a stage: takes the bytes and returns them as a source."""
_MAX_RUNS: Final = 400


class RepairResult(msgspec.Struct):
    """Result of running the repair stages."""

    transcript: Transcript
    """The repaired file, or the original if no edit was needed."""
    edits: list[Edit]
    settled: bool
    """Whether no stage has further edits."""
    left: tuple[DroppedMessage, ...] = ()
    """Messages that the client version resumed before the repair but no longer does."""
    endless: bool = False
    """Whether the repair stopped at its limit of stage runs."""

    @property
    def lost(self) -> list[str]:
        """Descriptions of the content that the new file no longer contains."""
        return [edit.lost for edit in self.edits if edit.lost]

    @property
    def data(self) -> bytes:
        """Bytes of the new file; only for files that fit in memory."""
        return b"".join(self.transcript.source.chunks())


def stages_for(target: str | None, client: Client, written: datetime) -> tuple[Stage, ...]:
    """Return the repair stages for a client version, in order.

    `target` is the leaf that the repaired session should have, if known.
    """
    return (
        repair_lines,
        lambda drafts: repair_fields(drafts, written=written),
        repair_ids,
        lambda drafts: repair_chain(drafts, client=client),
        repair_compactions,
        repair_content,
        repair_images,
        repair_tools,
        lambda drafts: repair_beginning(drafts, client=client),
        lambda drafts: repair_leaf(drafts, client=client, target=target),
    )


def repair(
    graph: RecordGraph,
    stages: Sequence[Stage],
    store_stage: StageStore,
    *,
    client: Client = LATEST,
    first: Iterable[Stage] = (),
    done: Callable[[], None] = lambda: None,
) -> RepairResult:
    """Run the stages in turn, each until it makes no edits, and repeat until none does.

    The stages in `first` run once at the beginning. `done` is called after every stage. If a stage repeats the same
    edits, the repair ends unsettled. Dropped messages are computed for `client`.
    """
    state = _RepairState(graph, store_stage, client)
    for stage in first:
        state.run_stage(stage)
        done()
    state.begin()
    quiet_stages = at = 0
    before: dict[int, list[Edit]] = {}
    stuck = False
    for _ in range(_MAX_RUNS):
        if edits := state.run_stage(stages[at]):
            # Run the stage again, before the next one builds on an incomplete result.
            quiet_stages = 0
            stuck = edits == before.get(at)
            if stuck:
                break
            before[at] = edits
        else:
            quiet_stages += 1
            at = (at + 1) % len(stages)
        done()
        if quiet_stages == len(stages):
            break
    settled = quiet_stages == len(stages)
    return RepairResult(
        state.graph.transcript, state.edits, settled, state.dropped_messages(), endless=not settled and not stuck
    )


class _RepairState:
    """Current file and the edits so far."""

    def __init__(self, graph: RecordGraph, store_stage: StageStore, client: Client) -> None:
        self.graph = graph
        self.edits: list[Edit] = []
        self._workshop = store_stage
        self._client = client
        self._lines = _LineOrigins()
        self._messages_before: list[DroppedMessage] | None = []
        self._unlinked: dict[str, str | None] = {}

    def begin(self) -> None:
        """Reset the recorded messages, so that the next edit records the conversation before it."""
        self._messages_before = None

    def run_stage(self, stage: Stage) -> list[Edit]:
        """Run one stage and return its edits."""
        drafts = EditPlan(self.graph, self._lines.line_numbers(self.graph.transcript), self._unlinked)
        stage(drafts)
        if not drafts:
            return []
        if self._messages_before is None:
            self._messages_before = [DroppedMessage(drafts.line(node), node.uuid or "") for node in self._messages()]
        self.edits.extend(drafts.edits)
        self.graph = RecordGraph(load(self._workshop(self._lines.track(drafts))))
        self._unlinked = {**self._unlinked, **drafts.unlinked}
        return drafts.edits

    def _messages(self) -> list[Node]:
        """Return the messages of the conversation, and those that the client version resumes."""
        read = self.graph.readings.of(self._client).chain or ()
        resumed = (node for node in read if node.is_message)
        by_index = {node.index: node for node in (*self.graph.messages, *resumed)}
        return [by_index[index] for index in sorted(by_index)]

    def dropped_messages(self) -> tuple[DroppedMessage, ...]:
        """Return the messages that left the conversation without being removed or set aside."""
        if not self._messages_before:
            return ()
        uuids = {node.uuid for node in self._messages()}
        removed = {edit.uuid for edit in self.edits if edit.action in ("remove", "set aside")}
        # Of several records with the same ID, another one may remain in the file.
        by_uuid = self.graph.by_uuid
        uuids |= removed.difference(by_uuid)
        line_of = self._lines.line_numbers(self.graph.transcript)
        return tuple(
            DroppedMessage(line_of(by_uuid[message.uuid].offset), message.uuid) if message.uuid in by_uuid else message
            for message in self._messages_before
            if message.uuid and message.uuid not in uuids
        )


class _LineOrigins:
    """Maps each line of the current file to its line in the original file."""

    def __init__(self) -> None:
        self._origin: array[int] | None = None

    def line_numbers(self, transcript: Transcript) -> Callable[[int], int]:
        """Return a function that maps an offset in the current file to a line of the original file."""
        starts: dict[int, int] = {}

        def line(offset: int) -> int:
            if not starts:
                starts.update(_offsets_with_lines(transcript))
            number = starts.get(offset, 0)
            return number if self._origin is None or not number else self._origin[number - 1]

        return line

    def track(self, plan: EditPlan) -> Iterator[bytes]:
        """Yield the new file, and record the origin of each line."""
        line_of = self.line_numbers(plan.transcript)
        origin = array("L")
        for offset, data in plan.new_lines():
            origin.extend([line_of(offset)] * data.count(b"\n"))
            yield data
        self._origin = origin


def _offsets_with_lines(transcript: Transcript) -> Iterator[tuple[int, int]]:
    line = 1
    for piece in transcript.pieces():
        yield piece.offset, line
        line += piece.ends_line(transcript.source) if isinstance(piece, Gap) else piece.ending.endswith(b"\n")


def repair_bytes(data: bytes, *, client: str | Client = LATEST, written: float = 0.0) -> RepairResult:
    """Repair a file in memory."""
    client_habits = client_for(client) if isinstance(client, str) else client
    graph = RecordGraph(load(BytesSource(data)))
    target = graph.leaf.uuid if graph.leaf is not None else None
    stages = stages_for(target, client_habits, datetime.fromtimestamp(written, UTC))
    first = (convert_dialect,) if graph.transcript.is_converted else ()
    return repair(graph, stages, lambda chunks: BytesSource(b"".join(chunks)), client=client_habits, first=first)


MIN_STEPS: Final = 12
"""Minimum number of progress steps: two checks and ten stages."""
_PROMPT: Final = "Go on."


class RepairOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a repair."""

    client: Client = LATEST
    until: str = ""
    """ID or ID prefix of the last record to keep."""
    name: str = ""
    """New file name, if it changes."""
    slim: bool = False
    session: str = ""
    """Session to keep, in a file with several sessions."""
    written: float = 0.0
    """Modification time of the file, used for messages in a file without timestamps."""


class FileState(msgspec.Struct, frozen=True):
    """State of a file: findings, verdicts and API rule breaches."""

    size: int
    counts: dict[Severity, int]
    verdicts: tuple[Verdict, ...]
    breaches: tuple[Breach, ...]
    wayward: bool = False
    """Whether the client version does not reach the target record."""

    @property
    def errors(self) -> int:
        """Number of errors."""
        return self.counts.get("error", 0)


class RepairJob(msgspec.Struct):
    """A repair that is computed but not written."""

    options: RepairOptions
    before: FileState
    after: FileState
    edits: list[Edit]
    source: Source
    """The repaired file."""
    settled: bool
    is_agent: bool = False
    """Whether this is a sub-agent file, of which only the lines are repaired."""
    left: tuple[DroppedMessage, ...] = ()
    """Messages that stay in the file but leave the conversation."""
    endless: bool = False
    """Whether the repair stopped at its limit of stage runs."""

    @property
    def changed(self) -> bool:
        """Whether the repair changes anything."""
        return bool(self.edits) or self.renamed

    @property
    def renamed(self) -> bool:
        """Whether a new file name fixes an error."""
        return bool(self.options.name) and self.before.errors > self.after.errors

    @property
    def lost(self) -> list[str]:
        """Descriptions of the content that the repaired file no longer contains, without duplicates."""
        return list(dict.fromkeys(edit.lost for edit in self.edits if edit.lost))

    @property
    def is_hopeless(self) -> bool:
        """Whether no version of Claude Code can resume the repaired file."""
        judged = self.after.verdicts
        return bool(judged) and all(verdict.outcome == "not at all" for verdict in judged)

    @property
    def is_verified(self) -> bool:
        """Whether the client version resumes the whole repaired file and the API accepts its request.

        Claude Code does not resume sub-agent files, so those only have to be free of errors.
        """
        if self.is_agent:
            return self.settled and not self.after.errors
        own_verdict = next((v for v in self.after.verdicts if self.options.client.version in v.clients), None)
        is_complete = own_verdict is not None and own_verdict.outcome == "fully"
        sound = not self.after.errors and not self.after.breaches and not self.after.wayward
        return self.settled and is_complete and sound

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the repaired file."""
        return iter(self.source.chunks())


def run_repair(
    source: Source, name: str, options: RepairOptions, staging: StagingArea, done: Callable[[], None] = lambda: None
) -> RepairJob:
    """Check a file, repair it in the staging area, and check the result.

    `done` is called after each step, at least `MIN_STEPS` times.
    """
    evidence = check(source, name=name)
    before = _file_state(evidence, options.client, proof=False)
    done()
    agent = is_agent_file(evidence)
    target = _target_record(evidence, options)
    written = datetime.fromtimestamp(options.written, UTC)
    stages = (repair_lines,) if agent else stages_for(target, options.client, written)
    result = repair(
        evidence.graph, stages, staging.stage, client=options.client, first=_first_stages(options, evidence), done=done
    )
    if result.edits or options.name:
        evidence = check(result.transcript.source, name=options.name or name)
        after = _file_state(evidence, options.client, proof=True)
        done()
    else:
        after = _with_breaches(evidence, before, options.client)
    if options.until and not agent:
        after = msgspec.structs.replace(after, wayward=not _reaches(evidence, options.client, target))
    return RepairJob(
        options=options,
        before=before,
        after=after,
        edits=result.edits,
        source=result.transcript.source,
        settled=result.settled,
        is_agent=agent,
        left=result.left,
        endless=result.endless,
    )


def _target_record(evidence: Evidence, options: RepairOptions) -> str | None:
    """Return the ID of the target leaf: the one requested, or the current leaf."""
    if options.until:
        return find_record(evidence.transcript, options.until).uuid
    leaf = evidence.graph.leaf if not options.session else None
    return leaf.uuid if leaf is not None else None


def _reaches(evidence: Evidence, client: Client, target: str | None) -> bool:
    """Return whether the client version's chain includes a record."""
    chain = evidence.graph.readings.of(client).chain or []
    if any(node.uuid == target for node in chain):
        return True
    # A reading may omit notes without descendants, and the record may be one.
    return any(node.uuid == target for node in resumed_chain(evidence.transcript, client) or ())


def _first_stages(options: RepairOptions, evidence: Evidence) -> Iterator[Stage]:
    if evidence.is_converted:
        yield convert_dialect
    if options.session:
        yield lambda drafts: keep_session(drafts, name=options.session)
    if options.until:
        yield lambda drafts: keep_until(drafts, uuid=options.until)
    if options.slim:
        yield slim_records


def _file_state(evidence: Evidence, client: Client, *, proof: bool) -> FileState:
    """Return the state of a file; without `proof`, API rules are checked only in case of doubt."""
    counts: dict[Severity, int] = dict.fromkeys(SEVERITIES, 0)
    for (_, severity), number in evidence.findings.counts.items():
        counts[severity] += number
    state = FileState(evidence.transcript.source.size, counts, verdicts(evidence), ())
    rejected = any(verdict.rejected for verdict in state.verdicts if client.version in verdict.clients)
    return _with_breaches(evidence, state, client) if proof or rejected else state


def _with_breaches(evidence: Evidence, state: FileState, client: Client) -> FileState:
    """Return a state with the API rule breaches of the messages that the client version sends."""
    sent = as_resumed(evidence.transcript, client, prompt=_PROMPT) or []
    return msgspec.structs.replace(state, breaches=tuple(find_breaches(sent)))
