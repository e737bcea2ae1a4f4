"""Content: what the API would refuse is taken out of the messages that a resume sends."""

from typing import Any, Final

from steno.check.graph import Graph
from steno.check.repair.edits import Drafts, new_uuid
from steno.check.repair.records import message_of
from steno.check.responses import misnamed, nameless
from steno.format.encode import encode
from steno.format.values import as_list, as_object, shown
from steno.session.nodes import Node
from steno.session.resume.rules import block_flaw, fixed_block, is_blank, result_flaws

__all__ = ["mend_content"]

_Block = dict[str, Any]
_NOTHING: Final = "(no content)"
_THINKING: Final = ("thinking", "redacted_thinking")
_FINDINGS: Final = {
    "text": "message.empty-text",
    "thinking": "message.unsigned-thinking",
    "redacted_thinking": "message.unsigned-thinking",
    "image": "message.image",
    "document": "message.image",
    "tool_use": "tools.input",
    "server_tool_use": "tools.input",
}


def mend_content(drafts: Drafts) -> None:
    """Mend the messages of the conversation, block by block."""
    graph = drafts.graph
    _name_responses(drafts, graph)
    telling = {node.message_id for node in graph.messages if _says_something(drafts, node)} - {None}
    for node in graph.messages:
        # A blank line of an answer that says more is dropped by every client, and harms nobody.
        if node.type == "user" or node.message_id not in telling or _says_something(drafts, node):
            _mend_message(drafts, node)


def _says_something(drafts: Drafts, node: Node) -> bool:
    """Whether an answer's line is more than blank text, if only more trouble."""
    if node.type != "assistant":
        return False
    content = message_of(drafts, node).get("content")
    if isinstance(content, str):
        return bool(content.strip())
    items = as_list(content)
    return not items or any(not is_blank(item) for item in items)


# Responses


def _name_responses(drafts: Drafts, graph: Graph) -> None:
    """Let each line say which response it belongs to, so that no client tears or merges them."""
    for run, name in nameless(graph.conversation):
        new = name or _new_name(run[0])
        for node in run:
            _rename(drafts, node, new, "message.no-id", "give the line the name of its response")
    other: dict[str | None, str] = {}
    for node, name in misnamed(graph):
        new = name or other.setdefault(node.message_id, _new_name(node))
        what = "give the line the name of the response it stands in"
        _rename(drafts, node, new, "message.mixed", what)
        if name:
            _unthink(drafts, node)


def _new_name(node: Node) -> str:
    """Return a name for the response of a line, and not the one that it has."""
    names = (
        f"msg_{new_uuid(*parts).replace('-', '')[:24]}"
        for parts in ((node.uuid,), (node.uuid, node.message_id))
    )
    return next(name for name in names if name != node.message_id)


def _rename(drafts: Drafts, node: Node, name: str, finding: str, what: str) -> None:
    message = {**message_of(drafts, node), "id": name}
    drafts.change(node, finding, what, {"message": message})


def _unthink(drafts: Drafts, node: Node) -> None:
    """Take the thinking out of a line that went into another response.

    The API wants the thinking of a response as it was signed, and nobody else's beside it.
    """
    message = message_of(drafts, node)
    blocks = as_list(message.get("content")) or []
    kept = [block for block in blocks if (as_object(block) or {}).get("type") not in _THINKING]
    if len(kept) == len(blocks):
        return
    what = "take out thinking that was signed for another response"
    if kept:
        fields = {"message": {**message, "content": kept}}
        lost = f"in {node.type} {node.uuid}: thinking that was signed for another response"
        drafts.change(node, "message.mixed", what, fields, lost=lost)
    else:
        drafts.set_aside(node, "message.mixed", f"set the record aside: {what}")


# Blocks


def _mend_message(drafts: Drafts, node: Node) -> None:
    message = message_of(drafts, node)
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        return
    items = as_list(content)
    blocks = [_as_block(item) for item in ([content] if items is None else items)]
    bad = [(block, flaw) for block in blocks if (flaw := block_flaw(block, node.type))]
    if blocks and blocks == items and not bad:
        return
    kept = [good for block in blocks if (good := fixed_block(block, node.type)) is not None]
    finding = _finding(*bad[0]) if bad else _form(items)
    said = [_words(block, flaw) for block, flaw in bad] or ["write its content as blocks"]
    what = "; ".join(dict.fromkeys(said))
    losses = "; ".join(dict.fromkeys(loss for each in bad if (loss := _loss(*each))))
    lost = f"in {node.type} {node.uuid}: {losses}" if losses else ""
    if not kept and node.type == "assistant":
        drafts.set_aside(node, finding, f"set the record aside: {bad[0][1] if bad else 'empty'}")
        return
    if not kept:
        kept = [{"type": "text", "text": _NOTHING}]
        what = "put words in place of a message of which nothing can be sent"
    drafts.change(node, finding, what, {"message": {**message, "content": kept}}, lost=lost)


def _as_block(item: Any) -> _Block:
    """Return a block as it is, and anything else as text."""
    block = as_object(item)
    if block is not None:
        return block
    text = "" if item is None else encode(item).decode("utf-8", "replace")
    return {"type": "text", "text": item if isinstance(item, str) else text}


def _form(items: list[Any] | None) -> str:
    """Return what is wrong with content that holds no bad block."""
    if items is None:
        return "message.no-content"
    return "message.unknown-block" if items else "message.empty-text"


def _finding(block: _Block, _flaw: str) -> str:
    kind = str(block.get("type"))
    if kind == "tool_result":
        kind = next(result_flaws(block), (kind, ""))[0]
    return _FINDINGS.get(kind, "message.unknown-block")


def _words(block: _Block, flaw: str) -> str:
    match block.get("type"):
        case "text":
            return "take out empty text"
        case "thinking" | "redacted_thinking":
            return "take out thinking without a signature, which the API refuses"
        case "image" | "document" | "tool_result":
            return f"put a note in place of what the API refuses: {flaw}"
        case "tool_use" if as_object(block.get("input")) is None:
            return "make the input of a call an object"
        case "tool_use":
            return "give a call an id and a name"
        case _:
            return f"take out {flaw}, which the API refuses"


def _loss(block: _Block, flaw: str) -> str:
    """Return what the mended message no longer holds of a block, or nothing."""
    match block.get("type"):
        case "text":
            text = block.get("text")
            return "" if isinstance(text, str | None) else f"text that was none: {shown(text)}"
        case "tool_use":
            name = block.get("name")
            return "" if isinstance(name, str | None) else f"the name of a call: {shown(name)}"
        case "tool_result" if all(kind == "text" for kind, _ in result_flaws(block)):
            return ""
        case _:
            return _words(block, flaw)
