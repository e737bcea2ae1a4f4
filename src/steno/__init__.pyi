from steno._version import __version__
from steno.errors import Ambiguous, BadRequest, NotFound, StenoError, Unreadable
from steno.format.message import (
    Block,
    Document,
    Image,
    Message,
    RedactedThinking,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    UnknownBlock,
    Usage,
)
from steno.format.records import Gap, Piece, Record
from steno.format.source import Damage, Span
from steno.session.session import Session
from steno.session.turns.branches import Branch
from steno.session.turns.compactions import Compaction
from steno.session.turns.prompts import Prompt
from steno.session.turns.steps import Step
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn
from steno.session.turns.usage import Totals
from steno.store.session_lookup import SessionFile, find, read, sessions
from steno.store.session_lookup import open_session as open

__all__ = [
    "Ambiguous",
    "BadRequest",
    "Block",
    "Branch",
    "Compaction",
    "Damage",
    "Document",
    "Gap",
    "Image",
    "Message",
    "NotFound",
    "Piece",
    "Prompt",
    "Record",
    "RedactedThinking",
    "ServerToolUse",
    "Session",
    "SessionFile",
    "Span",
    "StenoError",
    "Step",
    "Text",
    "Thinking",
    "Thread",
    "ToolReference",
    "ToolResult",
    "ToolUse",
    "Totals",
    "Turn",
    "UnknownBlock",
    "Unreadable",
    "Usage",
    "__version__",
    "find",
    "open",
    "read",
    "sessions",
]
