"""What a recorded session holds for a server to say again: each answer, and what it answered."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from steno.format.values import as_list, as_object
from steno.model.server.minds import Said, own_text, search, text
from steno.session.nodes import Node
from steno.session.session import Session
from steno.session.transcript import Transcript

__all__ = ["Take", "plain", "result_text", "searches_of", "takes_of"]

_SYNTHETIC: Final = "<synthetic>"
_AFTERWORD: Final = "\n\nIf you need specific details"
_REMINDERS: Final = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)

_SERVED: Final = re.compile(r"srvtoolu_\w+")

_Block = dict[str, Any]


class Take(msgspec.Struct, kw_only=True):
    """One recorded answer of the model."""

    thread: str
    """The session's name, or the sub-agent's."""
    number: int
    """Which answer of its thread it is, from 1 on."""
    id: str
    model: str
    words: tuple[str, ...] = ()
    """What the user had said since the answer before."""
    results: dict[str, str] = {}
    """The texts of the tool results since then, by the ids of their calls."""
    blocks: list[_Block] = []
    stop_reason: str = ""
    stop_sequence: str | None = None
    usage: dict[str, Any] = {}
    is_summary: bool = False
    """Whether it is the summary of a compaction, for which no answer is recorded."""
    recap: str = ""
    """The summary that stands before what the user said, where it is the first after one."""
    served: int = 0

    @property
    def said(self) -> str:
        """What the user had said, in one text."""
        return plain("\n".join(self.words))


def plain(text: str) -> str:
    """Return a text without reminders, and with every gap a single blank."""
    return " ".join(_REMINDERS.sub("\n", text).split())


def result_text(block: _Block) -> str:
    """Return what a tool result says, whatever else it holds."""
    content = block.get("content")
    if isinstance(content, str):
        return plain(content)
    items = [as_object(each) or {} for each in as_list(content) or ()]
    words = [str(each.get("text") or f"[{each.get('type')}]") for each in items]
    return plain("\n".join(words))


def takes_of(session: Session) -> Iterator[Take]:
    """Yield the answers of a session's conversation in order, then those of its sub-agents."""
    yield from _takes(session.transcript, session.conversation(), session.id)
    for agent in session.all_agents:
        name = agent.agent_id or agent.call_id or "sub-agent"
        yield from _takes(agent.transcript, agent.nodes, name)
    if session.leaf is None:
        # A sub-agent's own file, served alone.
        yield from _takes(session.transcript, session.transcript.nodes, session.name)


def searches_of(session: Session) -> Iterator[tuple[str, tuple[Said, ...]]]:
    """Yield the searches of the web that a session made, and what each was answered with.

    The request beside the conversation is not recorded, but what it came to is.
    """
    threads = [(session.transcript, session.transcript.nodes)]
    threads += [(agent.transcript, agent.nodes) for agent in session.all_agents]
    for transcript, nodes in threads:
        for node in nodes:
            if node.type != "user" or not node.results:
                continue
            told = as_object(transcript.record(node).fields.get("toolUseResult")) or {}
            query, results = told.get("query"), as_list(told.get("results"))
            if isinstance(query, str) and results is not None:
                yield query, tuple(_searched(query, results))


def _searched(query: str, results: list[Any]) -> Iterator[Said]:
    for result in results:
        found = as_object(result)
        if found is None:
            yield text(str(result))
            continue
        pages = [as_object(each) or {} for each in as_list(found.get("content")) or ()]
        links = ((str(each.get("title")), str(each.get("url"))) for each in pages)
        name = str(found.get("tool_use_id"))
        yield from search(query, *links, tool_id=name if _SERVED.fullmatch(name) else "")


def _takes(transcript: Transcript, nodes: Iterable[Node], thread: str) -> Iterator[Take]:
    takes: list[Take] = []
    open_takes: dict[str, Take] = {}
    heard = _Heard()
    for node in nodes:
        if not node.is_message or not node.has_content:
            continue
        fields = transcript.record(node).fields
        message = as_object(fields.get("message")) or {}
        if node.type == "user" and fields.get("isCompactSummary"):
            takes.append(_summary(message, heard, thread, len(takes) + 1))
            # Results may be kept behind the summary, and are then answered once more.
            heard.words, heard.recap = [], own_text(message)
        elif node.type == "user":
            heard.take_in(message)
        elif node.model != _SYNTHETIC and not node.synthetic_error:
            take = open_takes.get(node.message_id or "")
            if take is None:
                take = _begun(message, heard, thread, len(takes) + 1)
                takes.append(take)
                heard = _Heard()
                if node.message_id:
                    open_takes[node.message_id] = take
            _extend(take, message)
    yield from takes


class _Heard:
    """What came from the user since the last answer."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.results: dict[str, str] = {}
        self.recap = ""

    def take_in(self, message: dict[str, Any]) -> None:
        words = own_text(message)
        if words:
            self.words.append(words)
        for item in as_list(message.get("content")) or ():
            block = as_object(item) or {}
            if block.get("type") == "tool_result":
                self.results[str(block.get("tool_use_id"))] = result_text(block)


def _begun(message: dict[str, Any], heard: _Heard, thread: str, number: int) -> Take:
    return Take(
        thread=thread,
        number=number,
        id=str(message.get("id") or ""),
        model=str(message.get("model") or ""),
        words=tuple(heard.words),
        results=dict(heard.results),
        recap=heard.recap,
    )


def _summary(message: dict[str, Any], heard: _Heard, thread: str, number: int) -> Take:
    take = _begun({}, heard, thread, number)
    # What the client put around the words of the model, it will put around them again.
    told = own_text(message).rpartition("\nSummary:\n")[2].partition(_AFTERWORD)[0].strip()
    take.blocks = [{"type": "text", "text": f"<summary>\n{told}\n</summary>"}]
    take.is_summary = True
    return take


def _extend(take: Take, message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str):
        take.blocks = [*take.blocks, {"type": "text", "text": content}]
    else:
        blocks = [as_object(item) for item in as_list(content) or ()]
        take.blocks = [*take.blocks, *(block for block in blocks if block)]
    # Only the last line of a response has the final figures; older clients leave the reason out.
    take.usage = as_object(message.get("usage")) or take.usage
    reason, sequence = message.get("stop_reason"), message.get("stop_sequence")
    take.stop_reason = reason if isinstance(reason, str) else take.stop_reason
    take.stop_sequence = sequence if isinstance(sequence, str) else take.stop_sequence
