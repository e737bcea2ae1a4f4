"""The demo: a few believable weeks of work in four projects, made with the builder."""

from tests.builders.builder import Session
from tests.builders.stories import gravel, invoice, ledger, postgres, tidegauge, trouble

from steno.format.encode import encode, encode_line
from steno.format.paths import slug_for_path

__all__ = ["common", "stories"]

_MEMORY = """# tidegauge

- Levels are in metres above chart datum.
- The storm of 28 October 2026 is the reference for smoothing.
- Tests: `python -m pytest -q`.
"""


def stories() -> list[Session]:
    """Return all sessions of the demo, oldest first."""
    rooms = (tidegauge, ledger, invoice, gravel, trouble, postgres)
    made = [each for room in rooms for each in room.stories()]
    return sorted(made, key=lambda each: each.started)


def common(made: list[Session]) -> dict[str, bytes]:
    """Return the files that belong to no single session."""
    prompts = sorted((entry for each in made for entry in each.history), key=_when)
    settings = {
        "permissions": {"allow": ["Bash(python -m pytest:*)", "Read(~/**)"], "deny": []},
        "cleanupPeriodDays": 30,
    }
    memory = f"projects/{slug_for_path('/home/ada/tidegauge')}/memory/MEMORY.md"
    return {
        "history.jsonl": b"".join(encode_line(entry) for entry in prompts),
        "settings.json": encode(settings) + b"\n",
        memory: _MEMORY.encode(),
    }


def _when(entry: dict[str, object]) -> int:
    return int(str(entry["timestamp"]))
