"""The beginning: a conversation that would begin with an answer gets a prompt before it."""

from typing import Final

from steno.check.repair.edits import Drafts, new_uuid
from steno.check.repair.records import envelope_of
from steno.session.nodes import Node
from steno.session.resume.clients import Client
from steno.session.resume.replay import as_resumed
from steno.session.resume.valid import BEGINNING

__all__ = ["mend_beginning"]

# What tells of commands; some clients leave it out.
_NOT_SENT: Final = "<"


def mend_beginning(drafts: Drafts, *, client: Client) -> None:
    """Say that the beginning is missing: the API wants the user to speak first."""
    if drafts.hides_records or _begins_with_prompt(drafts, client):
        return
    sent = as_resumed(drafts.transcript, client)
    if not sent or sent[0]["role"] == "user":
        return
    # Where records are of a type that the client does not know, its way may begin earlier.
    first = next((node for node in _taken_in(drafts, client) if node.type == "assistant"), None)
    if first is None:
        return
    record = {
        "parentUuid": None if _is_below_itself(drafts, first) else first.parent,
        "isSidechain": False,
        **envelope_of(drafts.fields(first)),
        "type": "user",
        "message": {"role": "user", "content": BEGINNING},
        "uuid": new_uuid("beginning", first.uuid),
        "timestamp": first.timestamp,
    }
    what = "put a prompt before it: a conversation cannot begin with an answer"
    drafts.insert(first, record, "chain.headless", what, before=True)
    what = "hang it behind that prompt"
    drafts.change(first, "chain.headless", what, {"parentUuid": record["uuid"]})


def _is_below_itself(drafts: Drafts, first: Node) -> bool:
    """Whether the parents of a record lead round in a circle."""
    seen: set[str | None] = set()
    node: Node | None = first
    while node is not None and node.uuid not in seen:
        seen.add(node.uuid)
        node = drafts.graph.parent(node)
    return node is not None


def _taken_in(drafts: Drafts, client: Client) -> list[Node]:
    """Return the messages that the client goes by, in its order."""
    chain = drafts.graph.readings.of(client).chain or []
    return [node for node in chain if node.is_message]


def _begins_with_prompt(drafts: Drafts, client: Client) -> bool:
    """Whether the conversation begins with words of the user's, which every client sends.

    Most do; then nothing needs to be put together to see it.
    """
    first = next(iter(drafts.graph.messages), None)
    if first is not next(iter(_taken_in(drafts, client)), None):
        return False
    if first is None or first.type != "user" or first.results or drafts.graph.lost(client) != []:
        return False
    text = drafts.transcript.record(first).text
    return bool(text.strip()) and not text.startswith(_NOT_SENT)
