"""What moves while something goes on: a sign that turns, and a clock."""

from typing import Final

__all__ = ["clock", "spinner"]

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN: Final = "|/-\\"
_SPEED: Final = 4
_MINUTE: Final = 60


def spinner(moment: float, *, unicode: bool) -> str:
    """Return what turns while something goes on."""
    frames = _FRAMES if unicode else _PLAIN
    return frames[int(moment * _SPEED) % len(frames)]


def clock(seconds: float) -> str:
    """Return how long something has been going on: `0:42`."""
    whole = int(seconds)
    return f"{whole // _MINUTE}:{whole % _MINUTE:02}"
