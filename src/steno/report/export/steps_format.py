"""A session as `steps.jsonl` and `metadata.json`, in the published format.

A user record is a USER_MESSAGE, or a TOOL_RESULT if it answers a call; an assistant record is an ASSISTANT_MESSAGE, or
a TOOL_CALL if it makes one. Summaries have 200 characters. Records of other types, of sub-agents, and of files without
a session ID are omitted, as the format requires.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.encode import encode, encode_line
from steno.format.paths import JSONL_SUFFIX, is_uuid
from steno.format.records import Record, read_time, time_text
from steno.format.source import BytesSource
from steno.report import clock
from steno.report.export.session_masking import masked_bytes, read_bytes_of
from steno.sanitize.secret_masker import Masker
from steno.session.session import Session
from steno.session.session_status import (
    LIVE_SECONDS,
    Ending,
    StepCounts,
    activity_age,
    count_record,
    is_live,
    is_step_record,
    step_type,
)
from steno.session.transcript import load
from steno.store.discovery import DiscoveredFile
from steno.store.summary import find_ending

STEPS_FILE: Final = "steps.jsonl"
METADATA_FILE: Final = "metadata.json"
STEP_FILES: Final = (STEPS_FILE, METADATA_FILE)
"""In write order: the metadata contains the hash of the steps."""
SYNC_VERSION: Final = 2
"""Increased when the same file results in different steps or metadata, so that all directories are rewritten."""
WRITER: Final = "steno"
_SEAL_KEY: Final = "metadata_sha256"
_SUMMARY_LENGTH: Final = 200
_FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
SkipReason: TypeAlias = Literal[
    "", "empty file", "file name is not a session ID", "transcript of a sub-agent", "no user or assistant records"
]
"""Reason why a file has no steps; empty if it has steps."""


class Source(msgspec.Struct, frozen=True):
    """A session file; `id` and `root_id` are hashes that do not reveal its path."""

    found: DiscoveredFile
    path: str
    id: str
    root_id: str


class SourceState(msgspec.Struct, frozen=True):
    """Content of a session file, as far as it determines the output."""

    size: int
    sha256: str
    session_id: str = ""
    reason: SkipReason = ""
    counts: StepCounts = StepCounts()
    ending: Ending = ""
    last_record: float | None = None
    """Time of the last record in seconds."""


class StepsOutput(msgspec.Struct, frozen=True):
    """Steps of a session as bytes, and their metadata."""

    state: SourceState
    steps: bytes
    metadata: dict[str, Any]

    def files(self, now: float) -> dict[str, bytes]:
        """Return the output files at a time; only the status depends on the time."""
        running = is_running(self.state, now)
        metadata = {
            **self.metadata,
            "ended_at": None if running else self.metadata["ended_at"],
            "status": status_name(running=running),
        }
        return {STEPS_FILE: self.steps, METADATA_FILE: sealed_metadata(metadata)}


def sealed_metadata(metadata: dict[str, Any]) -> bytes:
    """Return the metadata as bytes, with a hash that detects modification."""
    sync = {name: value for name, value in metadata["sync"].items() if name != _SEAL_KEY}
    seal = sha256(encode({**metadata, "sync": sync})).hexdigest()
    return msgspec.json.format(encode({**metadata, "sync": {**sync, _SEAL_KEY: seal}}), indent=2) + b"\n"


def status_name(*, running: bool) -> str:
    """Return the status for the metadata."""
    return "RUNNING" if running else "COMPLETED"


def is_running(state: SourceState, now: float) -> bool:
    """Return whether a session is live: working, or recently waiting for input."""
    return is_live(state.ending, activity_age(now, state.last_record))


def running_until(state: SourceState) -> float:
    """Return the time until which a session counts as running if its file does not change."""
    return (state.last_record or 0.0) + LIVE_SECONDS.get(state.ending, 0.0)


def session_id_of(session: Session) -> str:
    """Return the session ID for the steps; empty if the file is not a session.

    The session ID is the file name. Files in a dialect are named by time and their IDs are not UUIDs; for these it is
    the ID in the records or the file name, whichever is valid as a directory name.
    """
    if is_uuid(session.name):
        return session.name
    if session.transcript.dialect == "claude":
        return ""
    return next((name for name in (session.id, session.name) if _FOLDER_NAME.fullmatch(name)), "")


def session_steps(session: Session) -> list[dict[str, Any]]:
    """Return the steps in file order; an empty list if the file is not a session."""
    session_id = session_id_of(session)
    if not session_id:
        return []
    return [_step_json(number, session_id, record) for number, record in enumerate(_step_records(session), 1)]


def _step_records(session: Session) -> Iterator[Record]:
    transcript = session.transcript
    for node in transcript.nodes:
        if is_step_record(node.type, sidechain=node.sidechain):
            yield transcript.record(node)


def _step_json(number: int, session_id: str, record: Record) -> dict[str, Any]:
    return {
        "step_id": number,
        "session_id": session_id,
        "type": step_type(record),
        "timestamp": _timestamp(record),
        "content_summary": _summary(record),
        "raw_uuid": record.uuid,
        "parent_uuid": record.parent_uuid,
        **_calls_and_results(record),
    }


def _timestamp(record: Record) -> str | None:
    """Return the timestamp of a record; a number is converted to text, which readers expect."""
    if record.timestamp is None or isinstance(record.timestamp, str):
        return record.timestamp
    return None if record.time is None else time_text(record.time)


def step_times(steps: Sequence[dict[str, Any]]) -> list[str]:
    """Return the valid timestamps of steps in order."""
    return [step["timestamp"] for step in steps if read_time(step["timestamp"]) is not None]


def _summary(record: Record) -> str:
    text = record.text
    if not text and record.tool_results:
        text = "\n".join(result.text for result in record.tool_results)
    if not text:
        text = ", ".join(use.name for use in record.tool_uses) or record.thinking
    return text.strip()[:_SUMMARY_LENGTH]


def _calls_and_results(record: Record) -> dict[str, Any]:
    if record.type == "assistant":
        calls = [
            {
                "tool_call_id": use.id,
                "tool_name": use.name,
                "input_summary": encode(use.input).decode("utf-8", "replace")[:_SUMMARY_LENGTH],
            }
            for use in record.tool_uses
        ]
        return {"tool_calls": calls} if calls else {}
    results = [
        {
            "tool_call_id": result.tool_use_id,
            "status": "error" if result.is_error else "success",
            "result_summary": result.text.strip()[:_SUMMARY_LENGTH],
        }
        for result in record.tool_results
    ]
    return {"tool_results": results} if results else {}


def read_steps(source: Source, masker: Masker | None) -> StepsOutput:
    """Read a session file and return its steps, masked if a masker is given.

    Raises:
        Unreadable: The file cannot be read.
    """
    data = read_bytes_of(source.found)
    name = source.path.replace("\\", "/").rpartition("/")[2].removesuffix(JSONL_SUFFIX)
    folder = source.path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2]
    masked = BytesSource(masked_bytes(data, masker, name))
    session = Session(load(masked, keep=True), name=name, folder=folder)
    counts = StepCounts()
    for record in _step_records(session):
        counts = count_record(counts, record)
    ending, last = find_ending(session.transcript.source)
    state = SourceState(
        len(data),
        sha256(data).hexdigest(),
        session_id_of(session),
        _skip_reason(session, counts, empty=not data),
        counts,
        ending,
        # Same precision as in the metadata.
        None if last is None else round(last, 3),
    )
    steps = session_steps(session)
    written = b"".join(encode_line(step) for step in steps)
    metadata = _metadata(source, session, state, steps, masker)
    metadata["sync"]["steps"] = {"size": len(written), "sha256": sha256(written).hexdigest()}
    return StepsOutput(state, written, metadata)


def _skip_reason(session: Session, counts: StepCounts, *, empty: bool) -> SkipReason:
    if empty:
        return "empty file"
    if not session_id_of(session):
        return "file name is not a session ID"
    return "" if counts.records else "no user or assistant records"


def _metadata(
    source: Source, session: Session, state: SourceState, steps: Sequence[dict[str, Any]], masker: Masker | None
) -> dict[str, Any]:
    """Return the metadata; `status` and `ended_at` are set when it is written."""
    times = step_times(steps)
    last = steps[-1] if steps else {}
    return {
        "session_id": state.session_id,
        "agent_type": "claude",
        "project_path": _project_path(session, masker),
        "started_at": times[0] if times else None,
        "ended_at": times[-1] if times else None,
        "last_activity": times[-1] if times else None,
        "status": "",
        "step_count": len(steps),
        "tool_call_count": sum(len(step.get("tool_calls", ())) for step in steps),
        "sync": {
            "writer": WRITER,
            "version": SYNC_VERSION,
            "redacted": masker is not None,
            "source": {
                "path": _shown_path(source.path, masker),
                "id": source.id,
                "root_id": source.root_id,
                "dialect": session.transcript.dialect,
                "size": state.size,
                "sha256": state.sha256,
            },
            "last_step": {"step_id": last.get("step_id"), "raw_uuid": last.get("raw_uuid")},
            "last_record_at": clock.iso_time(state.last_record),
            "ending": state.ending,
            "answered": state.counts.answered,
        },
    }


def _project_path(session: Session, masker: Masker | None) -> str:
    """Return the project; mask a project derived from the directory name, which is not part of the masked file."""
    if session.facts.cwds or masker is None:
        return session.project
    return masker.mask_text(session.project) if session.project else ""


def _shown_path(path: str, masker: Masker | None) -> str:
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text if masker is None else masker.mask_text(text)
