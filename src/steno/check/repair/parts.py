"""Part of a file: up to a record, or one session of several."""

from collections.abc import Iterable

from steno.check.repair.edits import Drafts, Edit
from steno.errors import NotFound
from steno.format.records import Gap
from steno.session.nodes import Node
from steno.session.transcript import Transcript

__all__ = ["keep_session", "keep_until", "named", "sessions_in"]


def keep_until(drafts: Drafts, *, uuid: str) -> None:
    """Leave out what was written after a record: the session as it was at that moment.

    Raises:
        NotFound: no record has that id.
    """
    node = named(drafts.transcript, uuid)
    behind = len(drafts.transcript.nodes) - node.index - 1
    if not behind:
        return
    what = f"end the session here; {behind:,} later records are left out"
    edit = Edit("", "remove", drafts.line(node), node.uuid or "", what, f"{behind:,} later records")
    drafts.keep_only(lambda offset: offset <= node.offset, edit)


def named(transcript: Transcript, uuid: str) -> Node:
    """Return the record with an id, or with the only one that begins like that.

    Raises:
        NotFound: no record has that id, or several have.
    """
    found = {name for name in transcript.by_uuid if name.startswith(uuid)} if uuid else set[str]()
    if uuid in found:
        found = {uuid}
    if len(found) != 1:
        said = f"{len(found)} records begin with" if found else "no record is called"
        raise NotFound(f"{said} {uuid!r}", hint="`steno show S --records` lists them")
    return transcript.by_uuid[found.pop()]


def sessions_in(transcript: Transcript) -> dict[str, list[Node]]:
    """Return the records by the session they name; one that names none goes with the one before."""
    found: dict[str, list[Node]] = {}
    waiting: list[Node] = []
    name = ""
    for node in transcript.nodes:
        name = node.session or name
        if name:
            found.setdefault(name, []).extend([*waiting, node])
            waiting = []
        else:
            waiting.append(node)
    return found


def keep_session(drafts: Drafts, *, name: str) -> None:
    """Leave out the records of every other session in the file."""
    parts = sessions_in(drafts.transcript)
    others = sum(len(nodes) for other, nodes in parts.items() if other != name)
    if not others:
        return
    records = len(parts.get(name, ()))
    what = f"keep the {records:,} records of session {name}; {others:,} are of others"
    edit = Edit("ids.several-sessions", "remove", 1, "", what)
    drafts.keep_only(_with_gaps(drafts.transcript, parts.get(name, ())).__contains__, edit)


def _with_gaps(transcript: Transcript, nodes: Iterable[Node]) -> set[int]:
    """Return where records lie, and the gaps behind them: what is no record is dealt with later."""
    kept = {node.offset for node in nodes}
    wanted = not transcript.nodes or transcript.nodes[0].offset in kept
    for piece in transcript.pieces():
        if isinstance(piece, Gap):
            kept |= {piece.offset} if wanted else set()
        else:
            wanted = piece.offset in kept
    return kept
