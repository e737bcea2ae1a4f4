"""Links between the records of a dialect file: parents, calls and results, branches, compactions.

The descriptions do not specify how records are linked: the parent of a parallel result may be its call, the last call
or another result; a call has no ID except that of its record; a deleted record stays in the chain, and a conversation
continues after sub-agent records in the middle of it. Here each record gets the position that Claude Code would have
given it: the lines of a response in sequence, then its results, then the following records. Then compactions are
planned.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Self

from steno.format.dialects.dialect_record import DialectRecord

_MAX_RESPONSE_LINES: Final = 1000
"""Maximum number of lines of a response that are searched for the call of a result."""
_MESSAGES: Final = frozenset(("prompt", "answer", "result", "error"))
NOTE_KINDS: Final = frozenset(("note", "compacting", "compacted", "restoring", "restored"))
"""Kinds of records allowed between a call and its result."""


def link_records(rows: Sequence[DialectRecord]) -> None:
    """Set the position of each row in the converted file, and the links between rows."""
    parents = _ParentIndex(rows)
    owners = _pair_results(rows, parents)
    _delete_with_calls(rows, owners)
    _move_to_call_chain(rows, owners)
    _set_parents(rows, parents)
    _order_responses(rows, owners, parents)
    _mark_inactive(rows)


def messages_before(row: DialectRecord) -> list[DialectRecord]:
    """Return the messages before a row, in order; before a compaction, only those that it kept."""
    messages: list[DialectRecord] = []
    previous, seen = row.parent_record, {id(row)}
    while previous is not None and id(previous) not in seen:
        seen.add(id(previous))
        if previous.drops_messages:
            messages.extend(reversed(previous.kept_messages))
            break
        if previous.kind in _MESSAGES:
            messages.append(previous)
        previous = previous.parent_record
    return messages[::-1]


class _ParentIndex:
    def __init__(self, rows: Sequence[DialectRecord]) -> None:
        self._by_uuid = {row.uuid: row for row in rows if row.uuid}
        self._parents: dict[int, DialectRecord | None] = {}
        for row in rows:
            row.parent_exists = row.parent is None or row.parent in self._by_uuid
        self._main_before: dict[int, DialectRecord | None] = {}
        before: dict[bool, DialectRecord] = {}
        for row in rows:
            self._parents[id(row)] = self._parent(row, before.get(row.sidechain))
            if row.sidechain:
                self._main_before[id(row)] = before.get(False)
            if row.kind != "other":
                before[row.sidechain] = row

    def _parent(self, row: DialectRecord, before: DialectRecord | None) -> DialectRecord | None:
        # A record may omit its parent: it then follows the previous record of the file.
        names_parent = row.has_parent or row.is_client
        parent = self._by_uuid.get(row.parent or "") if names_parent else before
        if parent is row:
            parent = None if row.is_client else before
        if row.is_client:
            return parent
        is_sibling = before is not None and before.has_parent and row.parent == before.parent
        if before is not None and is_sibling and _are_parallel(before, row):
            return before
        return parent

    def parent_of(self, row: DialectRecord) -> DialectRecord | None:
        """Return the parent of a row according to the file."""
        return self._parents[id(row)]

    def parent_across_sidechain(self, row: DialectRecord) -> DialectRecord | None:
        """Return the parent of a sub-agent's record, continuing in the main conversation.

        A sub-agent's first record may name no parent: it then belongs to the previous record.
        """
        return self.parent_of(row) or self._main_before.get(id(row))

    def main_above(self, row: DialectRecord | None) -> DialectRecord | None:
        """Return the nearest record of the main conversation at or above a row."""
        seen: set[int] = set()
        while row is not None and row.sidechain and id(row) not in seen:
            seen.add(id(row))
            row = self.parent_across_sidechain(row)
        return None if row is None or row.sidechain else row

    def response_above(self, row: DialectRecord | None) -> Iterator[DialectRecord]:
        """Yield the lines of the response that ends with a row, last first."""
        for _ in range(_MAX_RESPONSE_LINES):
            if row is None or row.kind != "answer":
                return
            yield row
            row = self.parent_of(row)


def _are_parallel(first: DialectRecord, second: DialectRecord) -> bool:
    """Return whether two calls with the same parent were made in parallel, not on two branches."""
    calls = bool(first.calls and second.calls) and first.kind == second.kind == "answer"
    calls = calls and not first.is_client
    return calls and first.active is None and second.active is None and bool(first.parent)


# Calls and results


def _pair_results(rows: Sequence[DialectRecord], parents: _ParentIndex) -> dict[str, DialectRecord]:
    """Find the call of each result that does not name it; return the records of all calls."""
    owners = {call: row for row in rows for call in row.calls}
    answered: set[str] = {call for row in rows for call in row.results}
    for anchor, outcomes in _unnamed_results(rows, parents):
        lines = list(parents.response_above(anchor))[::-1]
        open_calls = [call for line in lines for call in line.calls if call not in answered]
        own_calls = [call for call in anchor.calls if call in open_calls]
        if len(outcomes) == 1 and own_calls:
            open_calls = own_calls
        remaining = _without_deleted_surplus(outcomes, len(open_calls))
        for outcome, call in zip(remaining, open_calls, strict=False):
            outcome.call = call
            answered.add(call)
    for row in rows:
        if row.kind == "error" and not row.call:
            row.kind = "note"
        elif row.kind == "result" and not row.results:
            row.results = (row.call or row.parent or "",)
        elif row.kind == "error":
            row.kind, row.results = "result", (row.call,)
    return owners


def _without_deleted_surplus(outcomes: list[DialectRecord], calls: int) -> list[DialectRecord]:
    """If there are more outcomes than calls, drop deleted outcomes, which were replaced by others."""
    surplus = len(outcomes) - calls
    if surplus <= 0:
        return outcomes
    dropped = {id(row) for row in [row for row in outcomes if row.deleted][:surplus]}
    return [row for row in outcomes if id(row) not in dropped]


def _unnamed_results(
    rows: Sequence[DialectRecord], parents: _ParentIndex
) -> Iterable[tuple[DialectRecord, list[DialectRecord]]]:
    """Return results and errors that name no call, grouped by the response line they follow."""
    anchors: dict[int, DialectRecord] = {}
    runs: dict[int, tuple[DialectRecord, list[DialectRecord]]] = {}
    for row in rows:
        is_note = row.kind in NOTE_KINDS and not row.is_client
        if not is_note and (row.kind not in ("result", "error") or row.names_call):
            continue
        parent = parents.parent_of(row)
        anchor = anchors.get(id(parent), parent)
        if anchor is not None and anchor.sidechain and not row.sidechain:
            answered = runs.get(id(anchor), (anchor, ()))[1]
            if sum(len(line.calls) for line in parents.response_above(anchor)) <= len(answered):
                # The main conversation continues after the sub-agent's records.
                parent = parents.main_above(anchor)
                anchor = anchors.get(id(parent), parent)
        if anchor is None or anchor.kind != "answer":
            continue
        anchors[id(row)] = anchor
        if is_note:
            continue
        runs.setdefault(id(anchor), (anchor, []))[1].append(row)
    return runs.values()


def _delete_with_calls(rows: Sequence[DialectRecord], owners: dict[str, DialectRecord]) -> None:
    """Delete results whose calls are deleted, because neither may be sent without the other."""
    for row in rows:
        if row.kind != "result" or not row.results:
            continue
        if row.is_client:
            continue
        deleted_calls = [call for call in row.results if (caller := owners.get(call)) is not None and caller.deleted]
        if len(deleted_calls) == len(row.results):
            row.deleted = True
        elif deleted_calls:
            row.deleted_calls = tuple(deleted_calls)
            row.results = tuple(call for call in row.results if call not in deleted_calls)


def _move_to_call_chain(rows: Sequence[DialectRecord], owners: dict[str, DialectRecord]) -> None:
    """Move each result to the conversation of its call: the sub-agent's or the main one."""
    for row in rows:
        caller = _calling_record(row, owners)
        if caller is not None and not row.is_client:
            row.sidechain = caller.sidechain


# Positions


def _set_parents(rows: Sequence[DialectRecord], parents: _ParentIndex) -> None:
    known: dict[int, DialectRecord | None] = {}
    for row in rows:
        if row.is_client:
            row.parent_record = _parent_of_client_record(row, parents)
            continue
        path: list[DialectRecord] = []
        parent = parents.parent_of(row)
        while parent is not None and (parent.deleted or parent.sidechain != row.sidechain):
            key = id(parent) * 2 + row.sidechain
            if key in known:
                parent = known[key]
                break
            known[key] = None  # result for a cycle
            path.append(parent)
            # A sub-agent's first record starts a separate conversation.
            ends = row.sidechain and not parent.sidechain
            crosses = parent.sidechain and not row.sidechain
            parent = None if ends else parents.parent_across_sidechain(parent) if crosses else parents.parent_of(parent)
        known.update(dict.fromkeys((id(passed) * 2 + row.sidechain for passed in path), parent))
        row.parent_record = parent if parent is not row else None


def _parent_of_client_record(row: DialectRecord, parents: _ParentIndex) -> DialectRecord | None:
    """Return the parent of a Claude Code record: the one it names, skipping deleted records."""
    parent, seen = parents.parent_of(row), {id(row)}
    while parent is not None and parent.deleted and id(parent) not in seen:
        seen.add(id(parent))
        parent = parents.parent_of(parent)
    return parent


class _Response:
    def __init__(self, first: DialectRecord) -> None:
        self.first = first
        self.answers = [first]
        self.results: list[DialectRecord] = []
        self.following: DialectRecord | None = None
        """First record written before all results arrived: it is moved after the last result."""
        self.end: DialectRecord | None = None
        """Last record of the conversation at that point."""

    @property
    def tail(self) -> DialectRecord:
        return self.results[-1] if self.results else self.answers[-1]

    def add_result(self, result: DialectRecord) -> Self:
        """Append a result."""
        result.parent_record = self.tail
        self.results.append(result)
        return self


def _order_responses(rows: Sequence[DialectRecord], owners: dict[str, DialectRecord], parents: _ParentIndex) -> None:
    """Order the lines of each response, then its results, then the following records."""
    clusters: dict[int, _Response] = {}
    continuations: dict[int, DialectRecord | None] = {}
    """Where the conversation continues after a late result."""
    previous = _previous_records(rows)
    for row in rows:
        if row.deleted:
            continue
        row.parent_record = continuations.get(id(row.parent_record)) or row.parent_record
        cluster = clusters.get(id(row.parent_record))
        if row.is_client and cluster is None:
            # Records among Claude Code's own records stay in place.
            continue
        if row.kind == "answer" and not row.is_client:
            # An answer after a deleted prompt is a separate response.
            joins = row.parent_record is not None and row.parent_record is parents.parent_of(row)
            clusters[id(row)] = _response_of(row, cluster if joins else None, cluster)
        elif (own_cluster := clusters.get(id(_calling_record(row, owners)))) is not None:
            continuations[id(row)] = _reorder_around_result(row, own_cluster, previous[id(row)], clusters)
            clusters[id(row)] = own_cluster.add_result(row)
        elif cluster is not None and cluster.results:
            row.parent_record = cluster.tail
    for cluster in clusters.values():
        cluster.first.calls_tools = any(answer.calls for answer in cluster.answers)
    for row in rows:
        if row.aborted and not row.deleted:
            _mark_interrupted(row, clusters.get(id(row)))


def _previous_records(rows: Sequence[DialectRecord]) -> dict[int, DialectRecord | None]:
    """Return the previous record of each row in its conversation, by file order."""
    previous: dict[int, DialectRecord | None] = {}
    last: dict[bool, DialectRecord] = {}
    for row in rows:
        previous[id(row)] = last.get(row.sidechain)
        if not (row.deleted or row.kind == "other"):
            last[row.sidechain] = row
    return previous


def _response_of(row: DialectRecord, current: _Response | None, previous: _Response | None) -> _Response:
    if current is not None and not current.results:
        current.answers.append(row)
        row.response_start = current.first
        return current
    if previous is not None and previous.results:
        row.parent_record = previous.tail
    row.response_start = row
    return _Response(row)


def _reorder_around_result(
    result: DialectRecord, response: _Response, previous: DialectRecord | None, clusters: dict[int, _Response]
) -> DialectRecord | None:
    """Move records before a result to after it; return where the conversation continues."""
    first = _first_between(result.parent_record, response, clusters)
    if first is not None:
        response.following, response.end = first, result.parent_record
    else:
        # A result starts no branch: the conversation continues from its last record.
        first = _first_between(previous, response, clusters)
        if first is not None and first.active is not False and result.active is not False:
            response.following, response.end = first, previous
    if response.following is not None:
        response.following.parent_record = result
    return response.end


def _first_between(
    record: DialectRecord | None, response: _Response, clusters: dict[int, _Response]
) -> DialectRecord | None:
    """Return the first record between a response and a later record, if they are connected."""
    first: DialectRecord | None = None
    for _ in range(_MAX_RESPONSE_LINES):
        if record is None:
            break
        if clusters.get(id(record)) is response:
            return first
        first, record = record, record.parent_record
    if record is not None or first is None or first.offset < response.first.offset:
        return None
    # The messages kept by a compaction start without a parent.
    return first if first.kind in ("preserved", "summary") else None


def _calling_record(row: DialectRecord, owners: dict[str, DialectRecord]) -> DialectRecord | None:
    return owners.get(row.results[0]) if row.kind == "result" and row.results else None


def _mark_interrupted(row: DialectRecord, cluster: _Response | None) -> None:
    if row.kind == "prompt":
        row.interrupts = "prompt"
    elif row.kind == "answer" and cluster is not None:
        answered = {call for result in cluster.results for call in result.results}
        calls = [call for answer in cluster.answers for call in answer.calls]
        open_calls = tuple(call for call in calls if call not in answered)
        if open_calls and (cluster.tail is row or not answered.issuperset(row.calls)):
            # The interruption is recorded after the last line of the response.
            cluster.answers[-1].open_calls = open_calls
            cluster.answers[-1].interrupts = "calls"
        elif cluster.tail is row:
            row.interrupts = "prompt"


# Branches


def _mark_inactive(rows: Sequence[DialectRecord]) -> None:
    """Mark inactive branches: those marked as inactive, or with an active sibling."""
    if all(row.active is None for row in rows):
        return
    active_path = _active_with_ancestors(rows)
    active_forks = {id(row.parent_record) for row in rows if id(row) in active_path and row.parent_record is not None}
    inactive_starts = {
        id(row) for row in rows if id(row) not in active_path and _starts_inactive_branch(row, active_forks)
    }
    known: dict[int, bool] = {}
    for row in rows:
        row.inactive = not row.deleted and not row.sidechain and _descends_from(row, inactive_starts, known)
    messages = [row for row in rows if row.kind in _MESSAGES and not (row.deleted or row.sidechain)]
    if all(row.inactive for row in messages):
        # A file without any active record has no other branch to show.
        for row in rows:
            row.inactive = False


def _starts_inactive_branch(row: DialectRecord, active_forks: set[int]) -> bool:
    if row.active is False:
        return True
    # Results of Claude Code's parallel calls are siblings of the continuing conversation.
    begins = row.kind in ("prompt", "answer", "preserved", "summary") or not row.is_client
    return begins and row.parent_record is not None and id(row.parent_record) in active_forks


def _descends_from(row: DialectRecord, inactive_starts: set[int], known: dict[int, bool]) -> bool:
    path: list[int] = []
    at: DialectRecord | None = row
    answer = False
    while at is not None:
        key = id(at)
        if key in known:
            answer = known[key]
            break
        known[key] = False  # result for a cycle
        path.append(key)
        if key in inactive_starts:
            answer = True
            break
        at = at.parent_record
    known.update(dict.fromkeys(path, answer))
    return answer


def _active_with_ancestors(rows: Sequence[DialectRecord]) -> set[int]:
    active: set[int] = set()
    for row in rows:
        ancestor: DialectRecord | None = row if row.active else None
        while ancestor is not None and id(ancestor) not in active:
            active.add(id(ancestor))
            ancestor = ancestor.parent_record
    return active


def plan_compactions(rows: Sequence[DialectRecord]) -> None:
    """Determine the boundary position and the kept messages of each compaction."""
    restored = _undone_compactions(rows)
    for row in rows:
        if row.kind == "compacted" and not (row.deleted or row.sidechain):
            _plan_operation(row, restored=id(row) in restored)
    before: DialectRecord | None = None
    for row in rows:
        if row.deleted or row.sidechain or row.kind == "other":
            continue
        if row.kind in ("preserved", "summary"):
            _plan_boundary(row, before)
        before = row


def _undone_compactions(rows: Sequence[DialectRecord]) -> set[int]:
    """Return the compactions that were undone by a later restoration."""
    undone: set[int] = set()
    seen: set[int] = set()
    for row in rows:
        if row.kind != "restored" or row.deleted or row.sidechain:
            continue
        ancestor = row.parent_record
        while ancestor is not None and id(ancestor) not in seen:
            seen.add(id(ancestor))
            if ancestor.kind == "compacted":
                undone.add(id(ancestor))
            ancestor = ancestor.parent_record
    return undone


def _plan_operation(row: DialectRecord, *, restored: bool) -> None:
    """Determine the effect of a `conversation_compacted`, which only has the number of kept messages."""
    messages = messages_before(row)
    prompt = next((message for message in reversed(messages) if message.kind == "prompt"), None)
    row.by_command = prompt is not None and prompt.compact_command
    kept_count: Any = row.metadata.get("preservedMessages")
    if restored or not isinstance(kept_count, int) or isinstance(kept_count, bool) or kept_count < 0:
        return
    start = max(0, len(messages) - kept_count)
    # The kept messages start with a prompt, as every conversation does.
    while 0 < start < len(messages) and messages[start].kind != "prompt":
        start -= 1
    row.drops_messages = start > 0
    row.kept_messages = tuple(messages[start:]) if row.drops_messages else ()


def _plan_boundary(row: DialectRecord, before: DialectRecord | None) -> None:
    """Determine the boundary position of a `compact_prelude` or `compact_recap`."""
    if row.parent_record is None:
        row.parent_record = before
    row.boundary = row.parent_record is None or row.parent_record.kind != "preserved"
