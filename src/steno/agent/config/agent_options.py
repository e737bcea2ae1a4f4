"""The options of an agent, and the callbacks of its front end."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from steno.agent.context.token_usage import TurnLimits
from steno.agent.events import Event
from steno.agent.tool_executor import RequestApproval
from steno.tools.protocol import AskUser


class AgentOptions(msgspec.Struct, kw_only=True):
    """What the caller decides."""

    cwd: str
    config: str
    env: Mapping[str, str]
    key_source: str = "none"
    """The variable that the key of the API is from; `none` for a token."""
    trusted: bool = False
    """Whether the project's own files may have an effect."""
    model: str = ""
    mode: str = ""
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    """The only tools there are; None for all."""
    folders: tuple[str, ...] = ()
    piped: str = ""
    """What was piped in, and stands at the end of the prompt."""
    system: str = ""
    """Another system prompt."""
    more_system: str = ""
    settings: str = ""
    mcp_config: tuple[str, ...] = ()
    strict_mcp: bool = False
    agents: str = ""
    limits: TurnLimits = TurnLimits()
    max_tokens: int = 32_000
    window: int | None = None
    extra_tools: tuple[Any, ...] = ()
    sandbox: bool | None = None
    """Whether commands are confined; None for what the settings say."""
    thinking: str = ""
    """How the model thinks (`enabled`, `adaptive`, `disabled`); empty for what is set."""
    effort: str = ""
    entrypoint: str = "cli"
    """The way in, as records say it: `cli` for a terminal, `sdk-cli` for `-p`, `acp` for editors."""


class AgentCallbacks(msgspec.Struct, kw_only=True):
    """Who is there: to hear events, to be asked for consent, and about other things."""

    emit: Callable[[Event], None]
    request_approval: RequestApproval | None = None
    ask_user: AskUser | None = None
