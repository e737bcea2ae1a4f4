"""A session as it leaves the machine: masked first, and read from what is left.

Whatever is made of it afterwards cannot tell what was masked, because it never saw it.
"""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from steno.errors import Unreadable
from steno.format.source import BytesSource
from steno.safe.masking import Edit, Masker, applied, edits_of
from steno.session.session import Session
from steno.session.story.threads import AgentFile
from steno.session.transcript import Transcript, load
from steno.store.agents import agent_files
from steno.store.archive.opened import opened
from steno.store.found import Found
from steno.store.library import lent_titles
from steno.store.titles import given_title

__all__ = ["Cut", "Leaving", "bytes_of", "cut_of", "masked_bytes", "open_leaving"]


class Leaving(msgspec.Struct, frozen=True):
    """A session on its way out."""

    session: Session
    found: Found
    size: int


def open_leaving(found: Found, masker: Masker | None) -> Leaving:
    """Return a session with its sub-agents; without a masker, as it is.

    Raises:
        Unreadable: it cannot be read.
    """
    name = _stem(found)

    def agent(each: Found) -> Transcript:
        try:
            data = bytes_of(each)
        except Unreadable:
            # The session's own story must not fail for want of a sub-agent's.
            data = b""
        leaving = masked_bytes(data, masker, f"{name}/{each.place.agent_id}")
        return load(BytesSource(leaving), hold=True)

    own = load(BytesSource(masked_bytes(bytes_of(found), masker, name)), hold=True)
    version = next((node.version for node in reversed(own.nodes) if node.version), "")
    session = Session(
        own,
        name=name,
        agents=[_told(each, masker) for each in agent_files(found, opening=agent)],
        custom_title=_said(given_title(found), masker, name),
        summaries=[
            (leaf, _said(title, masker, name)) for leaf, title in lent_titles(found, version)
        ],
    )
    return Leaving(session, found, found.size)


def _stem(found: Found) -> str:
    return found.path.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")


def bytes_of(found: Found) -> bytes:
    """Return all of a file.

    Raises:
        Unreadable: it cannot be read.
    """
    with opened(found) as source:
        return source.read(0, source.size)


def masked_bytes(data: bytes, masker: Masker | None, where: str) -> bytes:
    """Return the bytes of a file as they may leave."""
    return data if masker is None else masker.data(data, where)


def _said(text: str, masker: Masker | None, where: str) -> str:
    return masker.text(text, where) if masker is not None and text else text


def _told(agent: AgentFile, masker: Masker | None) -> AgentFile:
    meta = agent.meta
    if meta is None or masker is None or not meta.description:
        return agent
    said = msgspec.structs.replace(meta, description=masker.text(meta.description))
    return msgspec.structs.replace(agent, meta=said)


class Cut:
    """What of a file is masked: asked for by span, because spans are told as they are."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._ends = [edit.end for edit in edits]

    def of(self, data: bytes, begin: int, end: int) -> bytes:
        """Return a stretch of a file, masked; what goes beyond it is masked on either side."""
        inside: list[Edit] = []
        for number in range(bisect_right(self._ends, begin), len(self._edits)):
            edit = self._edits[number]
            if edit.begin >= end:
                break
            low, high = max(edit.begin, begin) - begin, min(edit.end, end) - begin
            inside.append(msgspec.structs.replace(edit, begin=low, end=high))
        return applied(data[begin:end], inside)


def cut_of(data: bytes, masker: Masker | None, where: str) -> Cut:
    """Return what is to be masked in a file, and note it."""
    if masker is None:
        return Cut(())
    edits = edits_of(data)
    masker.note(data, edits, where)
    return Cut(edits)
