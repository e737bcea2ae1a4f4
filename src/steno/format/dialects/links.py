"""What the records of a file in a dialect are to each other.

The descriptions leave open how records hang together: results of parallel calls may hang on their
calls, on the last call or on each other; a call is known by nothing but its record; a deleted
record stays in the chain, and a conversation goes on behind the sub-agent's records in the middle
of it. Here each record gets the place that the real client would have given it: the lines of a
response behind one another, then its results, then what follows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self

from steno.format.dialects.rows import Row

__all__ = ["NOTES", "link", "messages_above"]

_FURTHEST: Final = 1000
"""How many lines of a response are looked at for the call of a result."""
_MESSAGES: Final = frozenset(("prompt", "answer", "result", "error"))
NOTES: Final = frozenset(("note", "compacting", "compacted", "restoring", "restored"))
"""What may stand between a call and its result."""


def link(rows: Sequence[Row]) -> None:
    """Set in each row its place in the converted file, and what it belongs to."""
    given = _Parents(rows)
    owners = _pair(rows, given)
    _hide_with_calls(rows, owners)
    _keep_with_calls(rows, owners)
    _place(rows, given)
    _arrange(rows, owners, given)
    _mark_inactive(rows)


def messages_above(row: Row) -> list[Row]:
    """Return the messages that lead to a row, in order; of those before a compaction, what it kept."""
    found: list[Row] = []
    above, seen = row.above, {id(row)}
    while above is not None and id(above) not in seen:
        seen.add(id(above))
        if above.cuts:
            found.extend(reversed(above.kept))
            break
        if above.kind in _MESSAGES:
            found.append(above)
        above = above.above
    return found[::-1]


class _Parents:
    """The parents that the records name."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._by_uuid = {row.uuid: row for row in rows if row.uuid}
        self._parents: dict[int, Row | None] = {}
        for row in rows:
            row.rooted = row.parent is None or row.parent in self._by_uuid
        self._main_before: dict[int, Row | None] = {}
        before: dict[bool, Row] = {}
        for row in rows:
            self._parents[id(row)] = self._parent(row, before.get(row.sidechain))
            if row.sidechain:
                self._main_before[id(row)] = before.get(False)
            if row.kind != "other":
                before[row.sidechain] = row

    def _parent(self, row: Row, before: Row | None) -> Row | None:
        # A record may leave its parent out: it then follows the one before it in the file.
        named = row.has_parent or row.is_client
        parent = self._by_uuid.get(row.parent or "") if named else before
        if parent is row:
            parent = None if row.is_client else before
        if row.is_client:
            return parent
        is_sibling = before is not None and before.has_parent and row.parent == before.parent
        if before is not None and is_sibling and _are_parallel(before, row):
            return before
        return parent

    def of(self, row: Row) -> Row | None:
        """Return the record that a row follows, by what the file says."""
        return self._parents[id(row)]

    def around(self, row: Row) -> Row | None:
        """Return what the main conversation has above a sub-agent's record.

        A sub-agent's first record may name no parent: then it belongs to the one before it.
        """
        return self.of(row) or self._main_before.get(id(row))

    def main_above(self, row: Row | None) -> Row | None:
        """Return the nearest record of the main conversation from a row on."""
        seen: set[int] = set()
        while row is not None and row.sidechain and id(row) not in seen:
            seen.add(id(row))
            row = self.around(row)
        return None if row is None or row.sidechain else row

    def response_above(self, row: Row | None) -> Iterator[Row]:
        """Yield the lines of the response that ends with a row, the last first."""
        for _ in range(_FURTHEST):
            if row is None or row.kind != "answer":
                return
            yield row
            row = self.of(row)


def _are_parallel(one: Row, other: Row) -> bool:
    """Whether two calls on the same parent were made together, and are no branches."""
    calls = bool(one.calls and other.calls) and one.kind == other.kind == "answer"
    calls = calls and not one.is_client
    return calls and one.active is None and other.active is None and bool(one.parent)


# Calls and results


def _pair(rows: Sequence[Row], given: _Parents) -> dict[str, Row]:
    """Find the call of each result that does not name it; return the records of all calls."""
    owners = {call: row for row in rows for call in row.calls}
    taken: set[str] = {call for row in rows for call in row.results}
    for anchor, outcomes in _runs(rows, given):
        lines = list(given.response_above(anchor))[::-1]
        waiting = [call for line in lines for call in line.calls if call not in taken]
        own = [call for call in anchor.calls if call in waiting]
        if len(outcomes) == 1 and own:
            waiting = own
        standing = _standing(outcomes, len(waiting))
        for outcome, call in zip(standing, waiting, strict=False):
            outcome.call = call
            taken.add(call)
    for row in rows:
        if row.kind == "error" and not row.call:
            row.kind = "note"
        elif row.kind == "result" and not row.results:
            row.results = (row.call or row.parent or "",)
        elif row.kind == "error":
            row.kind, row.results = "result", (row.call,)
    return owners


def _standing(outcomes: list[Row], calls: int) -> list[Row]:
    """Leave out what is deleted where there are more outcomes than calls: another one took its place."""
    surplus = len(outcomes) - calls
    if surplus <= 0:
        return outcomes
    gone = {id(row) for row in [row for row in outcomes if row.deleted][:surplus]}
    return [row for row in outcomes if id(row) not in gone]


def _runs(rows: Sequence[Row], given: _Parents) -> Iterable[tuple[Row, list[Row]]]:
    """Return results and errors that name no call, by the line of a response they follow."""
    anchors: dict[int, Row] = {}
    runs: dict[int, tuple[Row, list[Row]]] = {}
    for row in rows:
        is_note = row.kind in NOTES and not row.is_client
        if not is_note and (row.kind not in ("result", "error") or row.names_call):
            continue
        parent = given.of(row)
        anchor = anchors.get(id(parent), parent)
        if anchor is not None and anchor.sidechain and not row.sidechain:
            answered = runs.get(id(anchor), (anchor, ()))[1]
            if not _has_open_calls(anchor, len(answered), given):
                # The main conversation goes on behind the sub-agent's records.
                parent = given.main_above(anchor)
                anchor = anchors.get(id(parent), parent)
        if anchor is None or anchor.kind != "answer":
            continue
        anchors[id(row)] = anchor
        if is_note:
            continue
        runs.setdefault(id(anchor), (anchor, []))[1].append(row)
    return runs.values()


def _has_open_calls(anchor: Row, answered: int, given: _Parents) -> bool:
    """Whether the response that ends with a line calls more than was answered."""
    return sum(len(line.calls) for line in given.response_above(anchor)) > answered


def _hide_with_calls(rows: Sequence[Row], owners: dict[str, Row]) -> None:
    """A result is deleted with its call: without it, nothing may be sent of it."""
    for row in rows:
        if row.kind != "result" or not row.results:
            continue
        if row.is_client:
            continue
        gone = [call for call in row.results if _is_deleted(owners.get(call))]
        if len(gone) == len(row.results):
            row.deleted = True
        elif gone:
            row.gone = tuple(gone)
            row.results = tuple(call for call in row.results if call not in gone)


def _is_deleted(caller: Row | None) -> bool:
    return caller is not None and caller.deleted


def _keep_with_calls(rows: Sequence[Row], owners: dict[str, Row]) -> None:
    """A result is in the conversation of its call: the sub-agent's, or the main one."""
    for row in rows:
        caller = _caller(row, owners)
        if caller is not None and not row.is_client:
            row.sidechain = caller.sidechain


# Places


def _place(rows: Sequence[Row], given: _Parents) -> None:
    """Give each row the nearest record above it that is in the same conversation."""
    known: dict[int, Row | None] = {}
    for row in rows:
        if row.is_client:
            row.above = _kept_above(row, given)
            continue
        path: list[Row] = []
        above = given.of(row)
        while above is not None and (above.deleted or above.sidechain != row.sidechain):
            key = id(above) * 2 + row.sidechain
            if key in known:
                above = known[key]
                break
            known[key] = None  # what a ring ends in
            path.append(above)
            # A sub-agent's first record begins a conversation of its own.
            ends = row.sidechain and not above.sidechain
            crosses = above.sidechain and not row.sidechain
            above = None if ends else given.around(above) if crosses else given.of(above)
        known.update(dict.fromkeys((id(each) * 2 + row.sidechain for each in path), above))
        row.above = above if above is not row else None


def _kept_above(row: Row, given: _Parents) -> Row | None:
    """Return the record that one of the client's follows: the one it names, unless it is deleted."""
    above, seen = given.of(row), {id(row)}
    while above is not None and above.deleted and id(above) not in seen:
        seen.add(id(above))
        above = given.of(above)
    return above


class _Cluster:
    """A response and its results."""

    def __init__(self, first: Row) -> None:
        self.first = first
        self.answers = [first]
        self.results: list[Row] = []
        self.next: Row | None = None
        """What was said before all results had come: it follows the last of them."""
        self.end: Row | None = None
        """Where the conversation had come to by then."""

    @property
    def tail(self) -> Row:
        return self.results[-1] if self.results else self.answers[-1]

    def answered(self, result: Row) -> Self:
        """Take in a result."""
        result.above = self.tail
        self.results.append(result)
        return self


def _arrange(rows: Sequence[Row], owners: dict[str, Row], given: _Parents) -> None:
    """Put the lines of each response behind one another, then its results, then the rest."""
    clusters: dict[int, _Cluster] = {}
    behind: dict[int, Row | None] = {}
    """Where the conversation goes on behind a result that came late."""
    before = _before(rows)
    for row in rows:
        if row.deleted:
            continue
        row.above = behind.get(id(row.above)) or row.above
        cluster = clusters.get(id(row.above))
        if row.is_client and cluster is None:
            # What the client wrote among its own records stays where it is.
            continue
        if row.kind == "answer" and not row.is_client:
            # What follows a deleted prompt is an answer of its own.
            joins = row.above is not None and row.above is given.of(row)
            clusters[id(row)] = _take_answer(row, cluster if joins else None, cluster)
        elif (own := clusters.get(id(_caller(row, owners)))) is not None:
            behind[id(row)] = _part(row, own, before[id(row)], clusters)
            clusters[id(row)] = own.answered(row)
        elif cluster is not None and cluster.results:
            row.above = cluster.tail
    for cluster in clusters.values():
        cluster.first.asks = any(answer.calls for answer in cluster.answers)
    for row in rows:
        if row.aborted and not row.deleted:
            _interrupt(row, clusters.get(id(row)))


def _before(rows: Sequence[Row]) -> dict[int, Row | None]:
    """Return what stands before each row in its conversation, by the order of the file."""
    found: dict[int, Row | None] = {}
    last: dict[bool, Row] = {}
    for row in rows:
        found[id(row)] = last.get(row.sidechain)
        if not (row.deleted or row.kind == "other"):
            last[row.sidechain] = row
    return found


def _take_answer(row: Row, joined: _Cluster | None, above: _Cluster | None) -> _Cluster:
    """Return the response that a line belongs to: the one above it, or one of its own."""
    if joined is not None and not joined.results:
        joined.answers.append(row)
        row.group = joined.first
        return joined
    if above is not None and above.results:
        row.above = above.tail
    row.group = row
    return _Cluster(row)


def _part(
    result: Row, own: _Cluster, before: Row | None, clusters: dict[int, _Cluster]
) -> Row | None:
    """Have what came before a result follow it; return where the conversation goes on behind it."""
    first = _first_between(result.above, own, clusters)
    if first is not None:
        own.next, own.end = first, result.above
    else:
        # A result begins no branch: what the conversation came to meanwhile goes on.
        first = _first_between(before, own, clusters)
        if first is not None and first.active is not False and result.active is not False:
            own.next, own.end = first, before
    if own.next is not None:
        own.next.above = result
    return own.end


def _first_between(at: Row | None, own: _Cluster, clusters: dict[int, _Cluster]) -> Row | None:
    """Return the first record between a response and one that came later, if it leads there."""
    first: Row | None = None
    for _ in range(_FURTHEST):
        if at is None:
            break
        if clusters.get(id(at)) is own:
            return first
        first, at = at, at.above
    if at is not None or first is None or first.offset < own.first.offset:
        return None
    # What a compaction kept begins without a parent.
    return first if first.kind in ("preserved", "summary") else None


def _caller(row: Row, owners: dict[str, Row]) -> Row | None:
    """Return the record of the call that a result answers."""
    return owners.get(row.results[0]) if row.kind == "result" and row.results else None


def _interrupt(row: Row, cluster: _Cluster | None) -> None:
    """Say what the user interrupted with a row."""
    if row.kind == "prompt":
        row.interrupts = "prompt"
    elif row.kind == "answer" and cluster is not None:
        answered = {call for result in cluster.results for call in result.results}
        calls = [call for answer in cluster.answers for call in answer.calls]
        waiting = tuple(call for call in calls if call not in answered)
        if waiting and (cluster.tail is row or not answered.issuperset(row.calls)):
            # What was interrupted is said behind the last line of the response.
            cluster.answers[-1].open_calls = waiting
            cluster.answers[-1].interrupts = "calls"
        elif cluster.tail is row:
            row.interrupts = "prompt"


# Branches


def _mark_inactive(rows: Sequence[Row]) -> None:
    """Mark the branches that are not active: said so, or another one of the fork is."""
    if all(row.active is None for row in rows):
        return
    leads = _leading_to_active(rows)
    chosen = {id(row.above) for row in rows if id(row) in leads and row.above is not None}
    off = {id(row) for row in rows if id(row) not in leads and _is_off(row, chosen)}
    known: dict[int, bool] = {}
    for row in rows:
        row.inactive = not row.deleted and not row.sidechain and _hangs_on(row, off, known)
    spoken = [row for row in rows if row.kind in _MESSAGES and not (row.deleted or row.sidechain)]
    if all(row.inactive for row in spoken):
        # A file that calls nothing active has no other branch to show.
        for row in rows:
            row.inactive = False


def _is_off(row: Row, chosen: set[int]) -> bool:
    """Whether a branch that is not active begins with a row."""
    if row.active is False:
        return True
    # The results of a client's calls hang on them beside what goes on.
    begins = row.kind in ("prompt", "answer", "preserved", "summary") or not row.is_client
    return begins and row.above is not None and id(row.above) in chosen


def _hangs_on(row: Row, off: set[int], known: dict[int, bool]) -> bool:
    """Whether a row, or one above it, is among those that are off."""
    path: list[int] = []
    at: Row | None = row
    answer = False
    while at is not None:
        key = id(at)
        if key in known:
            answer = known[key]
            break
        known[key] = False  # what a ring ends in
        path.append(key)
        if key in off:
            answer = True
            break
        at = at.above
    known.update(dict.fromkeys(path, answer))
    return answer


def _leading_to_active(rows: Sequence[Row]) -> set[int]:
    """Return the rows that are active, and all above them."""
    found: set[int] = set()
    for row in rows:
        above: Row | None = row if row.active else None
        while above is not None and id(above) not in found:
            found.add(id(above))
            above = above.above
    return found
