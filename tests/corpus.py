"""The shared corpus of real session files, for tests that want all of it."""

from pathlib import Path

__all__ = ["transcripts"]


def transcripts(shared: Path) -> list[Path]:
    """Return every transcript of real clients and public repositories, in a stable order."""
    folders = [shared / "corpus" / name for name in ("real-client", "public", "resume-cases")]
    found = [path for folder in folders for path in folder.rglob("*.jsonl")]
    return sorted(path for path in found if path.name != "history.jsonl")
