"""Built sessions and real files, opened as sessions with their sub-agents."""

from pathlib import Path

from tests.builders import Session as Made

from steno.format.encode import encode, encode_line
from steno.format.sidecars import read_agent_meta
from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import load
from steno.session.turns.subagents import SubagentFile

__all__ = ["check_sound", "opened", "opened_file", "sessions_below"]


def opened(made: Made, *, meta: bool = True, custom_title: str = "") -> Session:
    """Open a built session with the sub-agents it has."""
    agents: list[SubagentFile] = []
    for each in made.transcripts:
        data = b"".join(encode_line(record) for record in each.records)
        kept = read_agent_meta(encode(each.meta))[0] if each.meta and meta else None
        name = f"agent-{each.agent_id}.jsonl"
        agents.append(SubagentFile(each.agent_id, load(BytesSource(data)), kept, name))
    transcript = load(BytesSource(made.bytes()))
    return Session(transcript, name=made.session_id, agents=agents, custom_title=custom_title)


def opened_file(path: Path) -> Session:
    """Open a real session with the sub-agents in its folder, or beside it."""
    files = [*path.with_suffix("").glob("subagents/**/agent-*.jsonl")]
    if not path.name.startswith("agent-"):
        named = path.stem.encode()
        beside = path.parent.glob("agent-*.jsonl")
        files += [other for other in beside if named in other.read_bytes()]
    agents: list[SubagentFile] = []
    for file in sorted(files):
        beside_it = file.with_suffix(".meta.json")
        meta = read_agent_meta(beside_it.read_bytes())[0] if beside_it.exists() else None
        name = file.stem.removeprefix("agent-")
        agents.append(SubagentFile(name, load(BytesSource(file.read_bytes())), meta, str(file)))
    return Session(load(BytesSource(path.read_bytes())), name=path.stem, agents=agents)


def sessions_below(folder: Path) -> list[Session]:
    """Open every main session below a folder, in the order of their names."""
    files = sorted(folder.glob("projects/*/*.jsonl"))
    return [opened_file(file) for file in files if not file.name.startswith("agent-")]


def check_sound(session: Session) -> None:
    """Every record with an id is in exactly one turn or one branch."""
    turns = session.turns()
    told = [id(node) for turn in turns for node in turn.nodes]
    left = [id(node) for branch in session.branches for node in branch.nodes]
    assert len(told) == len(set(told))
    assert len(left) == len(set(left))
    assert not set(told) & set(left)
    assert {id(node) for node in session.conversation()} <= set(told)
    named = session.transcript.by_uuid.values()
    assert {id(node) for node in named if not node.sidechain} <= {*told, *left}
    assert [turn.number for turn in turns] == list(range(1, len(turns) + 1))
