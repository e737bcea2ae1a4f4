"""API messages as one short string each, the form in which the resume cases are written down."""

import json
from typing import Any

__all__ = ["PROMPT", "notation", "without_prompt"]

PROMPT = "SCN:more GO-ON"


def notation(messages: list[dict[str, Any]]) -> list[str]:
    """Return each message as `u:` or `a:` and its blocks; system messages are left out."""
    return [_message(message) for message in messages if message["role"] != "system"]


def _message(message: dict[str, Any]) -> str:
    content = message.get("content") or []
    if isinstance(content, str):
        return f"{message['role'][0]}:{content[:70]}"
    words = [word for block in content if (word := _block(block))]
    return f"{message['role'][0]}:{' + '.join(words)}"


def _block(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            reminder = block["text"].lstrip().startswith("<system-reminder>")
            return "" if reminder else block["text"][:70]
        case "tool_use":
            return f"USE({block['id']})"
        case "tool_result":
            content = block.get("content")
            text = content if isinstance(content, str) else json.dumps(content)
            error = " ERR" if block.get("is_error") else ""
            return f"RES({block['tool_use_id']}:{(text or '')[:60]}{error})"
        case other:
            return f"<{other}>"


def without_prompt(messages: list[str] | None) -> list[str]:
    """Return the conversation as it was before the new prompt, which also brings reminders."""
    if not messages:
        return []
    head, last = messages[:-1], messages[-1]
    merged = last.removesuffix(PROMPT).removesuffix(" + ")
    if merged in ("u:", ""):
        return head
    before, reminder, rest = merged.partition("\n\n<system-reminder>\n# Environment")
    error = " ERR" if rest.endswith(" ERR)") else ""
    return [*head, f"{before}{error})" if reminder else merged.rstrip("\n")]
