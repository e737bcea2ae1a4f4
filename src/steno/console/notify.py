"""Lets the user know that something waits: a bell, or a message where the terminal shows some."""

from collections.abc import Mapping
from typing import Final

from steno.safe.terminal import one_line

__all__ = ["sequence_for"]

_BELL: Final = "\a"
_SHOWING: Final = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty", "WarpTerminal"})
"""Terminals that show the message of OSC 9."""
_LONGEST: Final = 120


def sequence_for(words: str, channel: str, env: Mapping[str, str]) -> str:
    """Return what to send to the terminal; `channel` is `preferredNotifChannel` of the settings."""
    shown = f"\x1b]9;{one_line(words, _LONGEST)}\x1b\\"
    match channel:
        case "notifications_disabled":
            return ""
        case "terminal_bell":
            return _BELL
        case "iterm2":
            return shown
        case "iterm2_with_bell":
            return shown + _BELL
        case _:
            return shown if env.get("TERM_PROGRAM") in _SHOWING else _BELL
