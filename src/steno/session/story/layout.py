"""The reading for people: everything that has an id, and the way through it.

A client leaves out what it cannot use: lines that stand behind damage, messages without a time,
dialects. A story keeps them all.
"""

from collections.abc import Iterable, Iterator

from steno.session.nodes import Node
from steno.session.resume.clients import STENO
from steno.session.resume.gather import gather
from steno.session.resume.leaf import choose_leaf
from steno.session.resume.walk import Loaded, Marker
from steno.session.story.branches import Layout, lay_out
from steno.session.story.compactions import whole_chain
from steno.session.transcript import Transcript

__all__ = ["lay", "story_leaf", "take_all", "through"]


def take_all(transcript: Transcript) -> Loaded:
    """Return every record with an id; of records with one id the last."""
    loaded = Loaded()
    loaded.nodes.update(transcript.by_uuid)
    # From the end on, as only the last of each counts.
    loaded.newest = next(_spoken(loaded, reversed(transcript.nodes)), None)
    mark = next((node for node in reversed(transcript.nodes) if node.type == "last-prompt"), None)
    if mark is not None:
        later = list(_spoken(loaded, transcript.nodes[mark.index + 1 :]))
        if not any(node.is_boundary for node in later):
            envelope = transcript.record(mark).envelope
            loaded.marker = Marker(envelope.leaf_uuid, bool(envelope.explicit), bool(later))
    return loaded


def _spoken(loaded: Loaded, nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield what was said, of records with one id the last."""
    return (node for node in nodes if node.converses and loaded.nodes.get(node.uuid) is node)


def story_leaf(loaded: Loaded) -> Node | None:
    """Return the record the conversation goes on from, in any dialect."""
    return choose_leaf(loaded, STENO)


def through(transcript: Transcript, loaded: Loaded, leaf: Node) -> list[Node]:
    """Return the records from the first to `leaf`, siblings gathered, across every compaction."""
    return gather(loaded, whole_chain(transcript, loaded, leaf))


def lay(transcript: Transcript, loaded: Loaded, leaf: Node | None) -> Layout:
    """Return the conversation up to `leaf` with its dead ends in place, and what is off it."""
    conversation = through(transcript, loaded, leaf) if leaf is not None else []
    return lay_out(transcript, loaded, conversation)
