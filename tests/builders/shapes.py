"""Messages and usage in a generation's own shape and field order."""

from typing import Final

import msgspec
from tests.builders.blocks import Json
from tests.builders.generations import Generation

__all__ = ["Tokens", "message", "record", "synthetic", "usage"]

_HEAD: Final = ("parentUuid", "logicalParentUuid", "isSidechain", "promptId", "agentId")


class Tokens(msgspec.Struct, frozen=True):
    """What one response cost."""

    fresh: int
    written: int
    cached: int
    output: int
    thought: int = 0


def record(gen: Generation, head: Json, body: Json, place: Json) -> Json:
    """Return one chain record: `head` links it, `place` says where and when it was made."""
    if gen.tail:
        links = {key: head[key] for key in _HEAD if key in head}
        late = {key: head[key] for key in ("slug", "forkedFrom") if key in head}
        lineage = {key: head[key] for key in ("session_id",) if key in head}
        return {**links, **body, **lineage, **place, **late}
    links = {key: head[key] for key in _HEAD if key in head and key not in {"promptId", "agentId"}}
    late = {key: head[key] for key in ("agentId", "slug") if key in head}
    return {**links, **place, **late, **body}


def message(gen: Generation, name: tuple[str, str], block: Json, stop: str | None) -> Json:
    """Return an assistant message of one block, without its usage; `name` is model and id."""
    model, message_id = name
    if gen.model_first:
        start = {"model": model, "id": message_id, "type": "message", "role": "assistant"}
    else:
        start = {"id": message_id, "type": "message", "role": "assistant", "model": model}
    return {**start, "content": [block], "stop_reason": stop, "stop_sequence": None}


def usage(gen: Generation, tokens: Tokens, *, final: bool) -> Json:
    """Return a line's usage; the lines before the final one know only the start of the stream."""
    output = tokens.output if final else 1
    five_minutes = tokens.written
    counts = {
        "input_tokens": tokens.fresh,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
    }
    if not gen.tail:
        split = {"ephemeral_5m_input_tokens": five_minutes, "ephemeral_1h_input_tokens": 0}
        return {**counts, "cache_creation": split, "output_tokens": output, "service_tier": "standard"}
    counts["output_tokens"] = output
    details = {"output_tokens_details": {"thinking_tokens": tokens.thought}} if gen.latest else {}
    credit = {"fallback_credit": None} if gen.latest else {}
    return {
        **counts,
        **details,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": five_minutes},
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
        **credit,
    }


def synthetic(gen: Generation, message_id: str, words: str) -> Json:
    """Return a message that the client wrote itself instead of the model."""
    count: Json = {
        "input_tokens": 0,
        "output_tokens": 0,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": None,
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
    }
    if gen.tail:
        count |= {"inference_geo": None, "iterations": None, "speed": None}
    if gen.latest:
        count = {"output_tokens_details": None, **count, "fallback_credit": None}
    details: Json = {"stop_details": None} if gen.tail else {}
    context: Json = {"context_management": None} if gen.version != "1.0.128" else {}
    return {
        **({"diagnostics": None} if gen.latest else {}),
        "id": message_id,
        "container": None,
        "model": "<synthetic>",
        "role": "assistant",
        **details,
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "type": "message",
        "usage": count,
        "content": [{"type": "text", "text": words}],
        **context,
    }
