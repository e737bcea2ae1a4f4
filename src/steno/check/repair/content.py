"""Content: what the API would refuse is taken out of the messages that a resume sends."""

from typing import Any, Final, cast

from steno.check.repair.edits import Drafts, new_uuid
from steno.check.responses import misnamed, nameless
from steno.format.values import as_object
from steno.session.nodes import Node
from steno.session.resume.rules import block_flaw, fixed_block

__all__ = ["mend_content"]

_Blocks = list[dict[str, Any]]
_NOTHING: Final = "(no content)"
_FINDINGS: Final = {
    "text": "message.empty-text",
    "thinking": "message.unsigned-thinking",
    "redacted_thinking": "message.unsigned-thinking",
    "image": "message.image",
    "document": "message.image",
    "tool_use": "tools.input",
    "server_tool_use": "tools.input",
    "tool_result": "message.image",
}


def mend_content(drafts: Drafts) -> None:
    """Mend the messages of the conversation, block by block."""
    graph = drafts.graph
    _name_responses(drafts, graph.conversation)
    telling = {node.message_id for node in graph.messages if _says_something(drafts, node)}
    for node in graph.messages:
        # A blank line of an answer that says more is dropped by every client, and harms nobody.
        if node.type == "user" or node.message_id not in telling or _says_something(drafts, node):
            _mend_message(drafts, node)


def _says_something(drafts: Drafts, node: Node) -> bool:
    """Whether an answer's line holds more than blank text."""
    if node.type != "assistant":
        return False
    content = _message(drafts, node).get("content")
    if not isinstance(content, list):
        return isinstance(content, str) and bool(content.strip())
    return any(not _is_blank(block) for block in cast("list[Any]", content))


def _is_blank(block: Any) -> bool:
    fields = as_object(block) or {}
    return fields.get("type") == "text" and not str(fields.get("text") or "").strip()


def _name_responses(drafts: Drafts, conversation: list[Node]) -> None:
    """Let each line say which response it belongs to, so that no client tears or merges them."""
    for run, name in nameless(conversation):
        new = name or _new_name(run[0])
        for node in run:
            _rename(drafts, node, new, "message.no-id", "give the line the name of its response")
    other: dict[str | None, str] = {}
    for node, name in misnamed(conversation):
        new = name or other.setdefault(node.message_id, _new_name(node))
        what = "give the line the name of the response it stands in"
        _rename(drafts, node, new, "message.mixed", what)


def _new_name(node: Node) -> str:
    return f"msg_{new_uuid(node.uuid).replace('-', '')[:24]}"


def _rename(drafts: Drafts, node: Node, name: str, finding: str, what: str) -> None:
    message = {**_message(drafts, node), "id": name}
    drafts.change(node, finding, what, {"message": message})


def _mend_message(drafts: Drafts, node: Node) -> None:
    message = _message(drafts, node)
    content = message.get("content")
    if isinstance(content, str):
        if not content.strip():
            _fill(drafts, node, message)
        return
    if not isinstance(content, list):
        return
    blocks = [
        cast("dict[str, Any]", item) if isinstance(item, dict) else {"type": "text", "text": item}
        for item in cast("list[Any]", content)
    ]
    bad = [(block, flaw) for block in blocks if (flaw := block_flaw(block, node.type))]
    if not bad and blocks:
        return
    kept = [good for block in blocks if (good := fixed_block(block, node.type)) is not None]
    finding = _finding(bad[0][0]) if bad else "message.empty-text"
    if kept:
        what = "; ".join(dict.fromkeys(_words(block, flaw) for block, flaw in bad))
        lost = "" if _is_empty(bad) else f"in {node.type} {node.uuid}: {what}"
        drafts.change(node, finding, what, {"message": {**message, "content": kept}}, lost=lost)
    elif node.type == "user":
        what = "; ".join(dict.fromkeys(_words(block, flaw) for block, flaw in bad))
        lost = "" if _is_empty(bad) else f"in {node.type} {node.uuid}: {what}"
        _fill(drafts, node, message, finding, lost)
    else:
        drafts.set_aside(node, finding, f"set the record aside: {bad[0][1] if bad else 'empty'}")


def _fill(
    drafts: Drafts,
    node: Node,
    message: dict[str, Any],
    finding: str = "message.empty-text",
    lost: str = "",
) -> None:
    blocks: _Blocks = [{"type": "text", "text": _NOTHING}]
    what = "put words in place of a message of which nothing can be sent"
    drafts.change(node, finding, what, {"message": {**message, "content": blocks}}, lost=lost)


def _finding(block: dict[str, Any]) -> str:
    return _FINDINGS.get(str(block.get("type")), "message.unknown-block")


def _words(block: dict[str, Any], flaw: str) -> str:
    match block.get("type"):
        case "text":
            return "take out empty text"
        case "thinking" | "redacted_thinking":
            return "take out thinking without a signature, which the API refuses"
        case "image" | "tool_result":
            return f"put a note in place of what the API refuses: {flaw}"
        case "tool_use":
            return "make the input of a call an object"
        case _:
            return f"take out {flaw}, which the API refuses"


def _is_empty(bad: list[tuple[dict[str, Any], str]]) -> bool:
    return all(block.get("type") == "text" for block, _ in bad)


def _message(drafts: Drafts, node: Node) -> dict[str, Any]:
    message = drafts.fields(node).get("message")
    return cast("dict[str, Any]", message) if isinstance(message, dict) else {}
