"""A chain of nodes → entries: who says what, in API blocks, before anything is merged or mended."""

import json
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias, cast

from steno.session.nodes import Node
from steno.session.resume.clients import Client
from steno.session.transcript import Transcript

__all__ = [
    "Blocks",
    "Entry",
    "Origin",
    "entries_of",
    "has_results",
    "only_thinking",
    "text_block",
    "without_thinking",
]

Json: TypeAlias = dict[str, Any]
Blocks: TypeAlias = list[Json]
Origin: TypeAlias = Literal["message", "command", "reminder", "synthetic"]
_COMMANDS: Final = (
    "Caveat: ",
    "<local-command-",
    "<command-name>",
    "<bash-input>",
    "<bash-stdout>",
)
_SYNTHETIC: Final = "<synthetic>"
_THINKING: Final = ("thinking", "redacted_thinking")
_QUEUED: Final = (
    "<system-reminder>\nThe user sent a new message while you were working:\n{}\n</system-reminder>"
)
_CALLED: Final = (
    "<system-reminder>\nCalled the Read tool with the following input: {}\n</system-reminder>"
)
_READ: Final = frozenset({"file", "directory"})
"""What is told as if the model had looked at it."""
_RESULT: Final = "<system-reminder>\nResult of calling the Read tool:\n{}\n</system-reminder>"


class Entry:
    """One contribution to the conversation.

    `group` is the response an assistant entry belongs to; an entry that is `alone` takes nothing
    in behind it; `error` marks what the client itself wrote in place of an answer.
    """

    __slots__ = ("alone", "blocks", "error", "group", "kind", "leading", "role")

    def __init__(
        self,
        role: str,
        blocks: Blocks,
        *,
        kind: Origin = "message",
        group: object = None,
        error: bool = False,
        alone: bool = False,
    ) -> None:
        self.role = role
        self.blocks = blocks
        self.kind: Origin = kind
        self.group = group
        self.error = error
        self.alone = alone
        self.leading: int | None = None

    def take_in(self, blocks: Blocks, *, newline: bool) -> None:
        """Merge blocks into this entry, results first; text before more text ends in a newline."""
        if self.leading is None:
            self.leading = self._results_first()
        mine, theirs = self.blocks[-1:], blocks[:1]
        if newline and mine and theirs and mine[0].get("type") == theirs[0].get("type") == "text":
            self.blocks[-1] = {**mine[0], "text": f"{mine[0].get('text', '')}\n"}
        results = [block for block in blocks if block.get("type") == "tool_result"]
        self.blocks[self.leading : self.leading] = results
        self.leading += len(results)
        self.blocks.extend(block for block in blocks if block.get("type") != "tool_result")

    def _results_first(self) -> int:
        results = [block for block in self.blocks if block.get("type") == "tool_result"]
        others = [block for block in self.blocks if block.get("type") != "tool_result"]
        self.blocks = [*results, *others]
        return len(results)

    @property
    def brings_results(self) -> bool:
        """Whether it is a user entry with tool results."""
        return self.role == "user" and has_results(self.blocks)

    @property
    def calls(self) -> list[str]:
        """The ids of the tool calls in it."""
        return [str(block.get("id")) for block in self.blocks if block.get("type") == "tool_use"]


def has_results(blocks: Blocks) -> bool:
    """Whether any block is a tool result."""
    return any(block.get("type") == "tool_result" for block in blocks)


def only_thinking(blocks: Blocks) -> bool:
    """Whether there is nothing but reasoning."""
    return all(block.get("type") in _THINKING for block in blocks)


def without_thinking(blocks: Blocks) -> Blocks:
    """Return the blocks that are no reasoning."""
    return [block for block in blocks if block.get("type") not in _THINKING]


def text_block(text: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": text}


def entries_of(transcript: Transcript, chain: list[Node], client: Client) -> Iterator[Entry]:
    """Yield what each record of the chain contributes; most contribute nothing."""
    system_turns = client.system_turns and any(_is_snapshot(transcript, node) for node in chain)
    model = _model_for(chain, client)
    for node in chain:
        if node.is_message:
            if node.has_content:
                entry = _message(transcript, node, client)
                if model and node.type == "assistant" and node.model not in (model, _SYNTHETIC):
                    entry.blocks = without_thinking(entry.blocks)
                yield entry
        elif node.type == "attachment":
            yield from _attachment(transcript, node, client, system_turns=system_turns)
        elif node.subtype == "local_command" and client.sends_local_commands:
            fields = transcript.record(node).fields
            content = fields.get("content")
            if isinstance(content, str) and content and not fields.get("isDisplayOnly"):
                yield Entry("user", [text_block(content)], kind="command")


def _model_for(chain: list[Node], client: Client) -> str:
    """Return the model whose thinking is sent back; nothing when all of it is."""
    if not client.default_model:
        return ""
    models = (node.model for node in reversed(chain) if node.type == "assistant")
    last = next((model for model in models if model not in ("", _SYNTHETIC)), "")
    return client.model_for(last)


def _message(transcript: Transcript, node: Node, client: Client) -> Entry:
    blocks = _blocks(transcript.record(node).fields.get("message"))
    if node.type == "user":
        return Entry("user", blocks, kind="command" if _is_command(blocks) else "message")
    nameless = node.message_id is None and not node.model and not client.merges_nameless
    group = node if nameless else node.message_id
    return Entry("assistant", blocks, group=group, error=node.synthetic_error)


def _is_command(blocks: Blocks) -> bool:
    """Whether it tells of a command that ran without the model."""
    text = str(blocks[0].get("text", "")) if len(blocks) == 1 else ""
    return text.startswith(_COMMANDS)


def _blocks(message: Any) -> Blocks:
    """Return the blocks of a message; what has no type, or calls without a name, is left out."""
    fields = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    content = fields.get("content")
    if isinstance(content, str):
        return [text_block(content)]
    return [sound for block in _objects(content) if (sound := _sound(block)) is not None]


def _sound(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return a block that can be dealt with, None for one without a type or an id."""
    match block.get("type"):
        case "tool_use":
            return block if isinstance(block.get("id"), str) else None
        case "tool_result" if isinstance(block.get("tool_use_id"), str):
            content = block.get("content")
            if content is None or isinstance(content, str):
                return block
            inner = [sound for each in _objects(content) if (sound := _sound(each)) is not None]
            return {**block, "content": inner}
        case "tool_result":
            return None
        case kind:
            return block if isinstance(kind, str) else None


def _objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _is_snapshot(transcript: Transcript, node: Node) -> bool:
    """Whether the client noted here what it had told the model besides the conversation."""
    return (
        node.type == "attachment" and transcript.record(node).kind == "attachment/prompt_snapshot"
    )


def _attachment(
    transcript: Transcript, node: Node, client: Client, *, system_turns: bool
) -> Iterator[Entry]:
    fields = transcript.record(node).fields
    body = fields.get("attachment")
    attachment = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    rendered = fields.get("rendered")
    apart = client.tells_reads_apart and str(attachment.get("type")) in _READ
    if isinstance(rendered, list) and client.sends_rendered:
        role = "system" if system_turns and fields.get("renderedRole") == "system" else "user"
        for place, item in enumerate(cast("list[Any]", rendered)):
            content = (
                cast("dict[str, Any]", item).get("content") if isinstance(item, dict) else None
            )
            if isinstance(content, str):
                yield _reminder(content, role, alone=apart and not place)
    elif attachment.get("type") == "file":
        yield from _file(attachment, alone=apart)
    elif attachment.get("type") == "queued_command":
        yield _reminder(_QUEUED.format(attachment.get("prompt", "")))


def _file(attachment: dict[str, Any], *, alone: bool) -> Iterator[Entry]:
    """Yield a mentioned file as the client tells the model about it: as if it had been read."""
    content = attachment.get("content")
    inner = cast("dict[str, Any]", content).get("file") if isinstance(content, dict) else None
    if not isinstance(inner, dict):
        return
    file = cast("dict[str, Any]", inner)
    name = {"file_path": attachment.get("filename")}
    path = json.dumps(name, separators=(",", ":"), ensure_ascii=False)
    yield _reminder(_CALLED.format(path), alone=alone)
    if isinstance(file.get("base64"), str) and cast("Json", content).get("type") == "image":
        source = {"type": "base64", "media_type": file.get("type"), "data": file["base64"]}
        yield Entry("user", [{"type": "image", "source": source}], kind="reminder")
        return
    first = file.get("startLine")
    start = first if isinstance(first, int) else 1
    lines = str(file.get("content", "")).split("\n")
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, start))
    yield _reminder(_RESULT.format(numbered))


def _reminder(text: str, role: str = "user", *, alone: bool = False) -> Entry:
    if role == "system":
        text = text.removeprefix("<system-reminder>\n").removesuffix("\n</system-reminder>")
    return Entry(role, [text_block(text)], kind="reminder", alone=alone)
