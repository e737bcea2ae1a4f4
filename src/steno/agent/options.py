"""What the caller of an agent decides, and who is there."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from steno.agent.calls import Consent
from steno.agent.events import Event
from steno.agent.meter import Limits
from steno.tools.base import Ask

__all__ = ["Options", "People"]


class Options(msgspec.Struct, kw_only=True):
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
    limits: Limits = Limits()
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


class People(msgspec.Struct, kw_only=True):
    """Who is there: to hear events, to be asked for consent, and about other things."""

    emit: Callable[[Event], None]
    consent: Consent | None = None
    ask: Ask | None = None
