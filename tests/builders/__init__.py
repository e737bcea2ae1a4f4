"""The builders of test sessions, at a short name: `from tests.builders import session, text`."""

from tests.builders.builder import (
    START,
    VERSION,
    ZERO,
    Answer,
    Json,
    Session,
    answer,
    document,
    image,
    pdf,
    png,
    raw,
    redacted_thinking,
    server_tool,
    session,
    text,
    thinking,
    tool,
    tool_reference,
)
from tests.builders.generations import GENERATIONS

VERSIONS = tuple(generation.version for generation in GENERATIONS)

__all__ = [
    "START",
    "VERSION",
    "VERSIONS",
    "ZERO",
    "Answer",
    "Json",
    "Session",
    "answer",
    "document",
    "image",
    "pdf",
    "png",
    "raw",
    "redacted_thinking",
    "server_tool",
    "session",
    "text",
    "thinking",
    "tool",
    "tool_reference",
]
