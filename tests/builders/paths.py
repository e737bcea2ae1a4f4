"""Where the client keeps the files that tests make."""

from steno.format.paths import file_history_name


def dialect_session_path(project: str, stamp: str) -> str:
    """Return where the `conversations/` dialect keeps a session."""
    return f"conversations/{project}/{stamp}.jsonl"


def agent_path(
    project: str, session_id: str, agent_id: str, *, workflow: str = "", next_to_session: bool = False
) -> str:
    """Return where a sub-agent's transcript is kept; `next_to_session` as 2.0.x did."""
    if next_to_session:
        return f"projects/{project}/agent-{agent_id}.jsonl"
    run = f"workflows/{workflow}/" if workflow else ""
    return f"projects/{project}/{session_id}/subagents/{run}agent-{agent_id}.jsonl"


def file_history_path(session_id: str, path: str, version: int) -> str:
    """Return where the backup of the file at an absolute path is kept."""
    return f"file-history/{session_id}/{file_history_name(path, version)}"


def todo_name(session_id: str, agent_id: str = "") -> str:
    """Return the name of a to-do list below `todos/`; without an agent, the session's own."""
    return f"{session_id}-agent-{agent_id or session_id}.json"


def task_path(session_id: str, number: int) -> str:
    """Return where one task of a session is kept."""
    return f"tasks/{session_id}/{number}.json"
