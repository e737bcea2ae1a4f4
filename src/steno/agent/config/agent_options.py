"""The options of an agent and the callbacks of its front end."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from steno.agent.context.token_usage import TurnLimits
from steno.agent.events import Event
from steno.agent.tool_executor import RequestApproval
from steno.tools.protocol import AskUser


class AgentOptions(msgspec.Struct, kw_only=True):
    """Options of an agent."""

    cwd: str
    config: str
    env: Mapping[str, str]
    key_source: str = "none"
    """Name of the variable with the API key; `none` for a token."""
    trusted: bool = False
    """Whether configuration files of the project are used."""
    model: str = ""
    mode: str = ""
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    """Names of the only available tools; None for all."""
    folders: tuple[str, ...] = ()
    piped: str = ""
    """Piped input, appended to the prompt."""
    system: str = ""
    """System prompt that replaces the default."""
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
    """Whether commands are sandboxed; None for the value in the settings."""
    thinking: str = ""
    """Thinking mode (`enabled`, `adaptive`, `disabled`); empty for the value in the settings."""
    effort: str = ""
    entrypoint: str = "cli"
    """Entry point in records: `cli` for a terminal, `sdk-cli` for `-p`, `acp` for editors."""


class AgentCallbacks(msgspec.Struct, kw_only=True):
    """Callbacks of a front end: for events, approvals and questions."""

    emit: Callable[[Event], None]
    request_approval: RequestApproval | None = None
    ask_user: AskUser | None = None
