"""The leaf: a repaired session goes on from the record that the broken one went on from."""

from steno.check.repair.edits import Drafts
from steno.check.repair.shape import just_after
from steno.format.records import read_time, time_text
from steno.session.nodes import Node
from steno.session.resume.clients import Client
from steno.session.resume.replay import resumed_chain

__all__ = ["mend_leaf"]


def mend_leaf(drafts: Drafts, *, client: Client, goal: str | None) -> None:
    """Name the leaf in a `last-prompt` record, or by its time, if the client would go another way.

    `goal` is the record the session stood at before anything was mended; if that was taken out, it
    goes on from what came before.
    """
    wanted = drafts.left_of(goal or "") or drafts.graph.leaf
    if wanted is None or not wanted.converses:
        return
    missed = not _is_on_the_way(drafts, wanted, client)
    if missed and _is_named(drafts, wanted):
        # The client was told, and has its reasons.
        return
    # Whatever the client goes by, the file should say the same to those that look for the record.
    if not any(node is wanted for node in drafts.graph.chain) or (
        missed and client.obeys_last_prompt
    ):
        _name(drafts, wanted)
    elif missed:
        _make_latest(drafts, wanted, client)


def _is_named(drafts: Drafts, wanted: Node) -> bool:
    """Whether the last word on the leaf is that it is this record, and no other."""
    last = drafts.transcript.last("last-prompt")
    fields = last.fields if last is not None else {}
    return fields.get("leafUuid") == wanted.uuid and fields.get("explicit") is True


def _name(drafts: Drafts, wanted: Node) -> None:
    record = {
        "type": "last-prompt",
        "lastPrompt": "",
        "leafUuid": wanted.uuid,
        "explicit": True,
        "sessionId": drafts.fields(wanted).get("sessionId"),
    }
    what = "say which record the session goes on from"
    drafts.insert(drafts.transcript.nodes[-1], record, "chain.leaf", what)


def _make_latest(drafts: Drafts, wanted: Node, client: Client) -> None:
    """Give the leaf the latest time of all, for a client that goes on from there."""
    others = [node for node in drafts.transcript.nodes if node is not wanted]
    times = [time for node in others if (time := read_time(node.timestamp)) is not None]
    own = read_time(wanted.timestamp)
    latest = max(times, default=own)
    if latest is None or (own is not None and own > latest):
        return
    what = f"give it the latest time: {client.version} goes on from there"
    lost = f"the time of {wanted.uuid}: {wanted.timestamp}"
    fields = {"timestamp": time_text(just_after(latest))}
    drafts.change(wanted, "chain.leaf", what, fields, lost=lost)


def _is_on_the_way(drafts: Drafts, wanted: Node, client: Client) -> bool:
    """Whether the client goes by a record."""
    read = drafts.graph.readings.of(client).chain or []
    if any(node is wanted for node in read):
        return True
    # A reading may leave out notes that lead nowhere; the leaf may be one.
    chain = resumed_chain(drafts.transcript, client) if read and not wanted.is_message else None
    return any(node is wanted for node in chain or [])
