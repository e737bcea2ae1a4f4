from steno._version import __version__
from steno.errors import Ambiguous, BadRequest, NotFound, StenoError, Unreadable
from steno.format.blocks import (
    Block,
    Document,
    Image,
    RedactedThinking,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    UnknownBlock,
)
from steno.format.message import Message, Usage
from steno.format.records import Gap, Piece, Record
from steno.format.spans import Damage, Span
from steno.session.session import Session
from steno.session.story.branches import Branch
from steno.session.story.compactions import Compaction
from steno.session.story.prompts import Prompt
from steno.session.story.steps import Step
from steno.session.story.threads import Thread
from steno.session.story.turns import Turn
from steno.session.story.usage import Totals
from steno.store.library import SessionFile, find, read, sessions
from steno.store.library import open_session as open

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
