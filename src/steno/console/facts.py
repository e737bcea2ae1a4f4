"""What a status line command is told, as Claude Code tells it."""

from typing import TYPE_CHECKING, Any, Final

from steno.agent.recorder import VERSION
from steno.report import words

if TYPE_CHECKING:
    from steno.agent.started import Started

__all__ = ["facts_of"]

_MICRO: Final = 1_000_000


def facts_of(started: "Started") -> dict[str, Any]:
    """Return the facts of a session at this moment."""
    agent = started.agent
    context, recorder, meter = agent.caller.context, agent.talk.recorder, agent.meter
    window = started.compactor.window(agent)
    share = round(100 * meter.context / window) if window else 0
    return {
        "hook_event_name": "Status",
        "session_id": recorder.session_id,
        "transcript_path": recorder.path,
        "cwd": context.cwd,
        "model": {
            "id": agent.course.model,
            "display_name": words.model_name(agent.course.model),
        },
        "workspace": {"current_dir": context.cwd, "project_dir": context.project},
        "version": VERSION,
        "output_style": {"name": started.settings.output_style or "default"},
        "permission_mode": started.mode(),
        "git_branch": recorder.compose.place.git_branch,
        "cost": {"total_cost_usd": meter.spent / _MICRO},
        "context_window": {
            "total_input_tokens": meter.usage.get("input_tokens", 0),
            "total_output_tokens": meter.usage.get("output_tokens", 0),
            "context_window_size": window,
            "used_percentage": share,
            "remaining_percentage": 100 - share,
        },
    }
