"""What the rules find in a built session, in a form that tests can compare."""

from collections.abc import Sequence

from tests.builders import Session

from steno.check.checkup import check
from steno.check.evidence import Evidence, SubagentFileInfo
from steno.format.source import BytesSource

__all__ = ["NAME", "bad", "calls", "ids", "joined", "look", "messages"]

NAME = "aaaaaaaa-0000-4000-8000-000000000001"


def look(made: Session | bytes, name: str = "", agents: Sequence[SubagentFileInfo] | None = None) -> Evidence:
    """Check a session under its own name, or another."""
    if isinstance(made, bytes):
        return check(BytesSource(made), name=name or NAME, agents=agents)
    return check(BytesSource(made.bytes()), name=name or made.session_id, agents=agents)


def calls(made: Session) -> list[str]:
    """Return the ids of a session's tool calls."""
    content = [record["message"]["content"] for record in made.records() if "message" in record]
    blocks = [block for each in content if isinstance(each, list) for block in each]
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def joined(*lines: bytes) -> bytes:
    """Return a file of these lines."""
    return b"".join(line + b"\n" for line in lines)


def ids(evidence: Evidence, family: str) -> list[tuple[str, str, int]]:
    """Return (rule, severity, line) of the findings of a family, in file order."""
    return [
        (finding.id.removeprefix(f"{family}."), finding.severity, finding.location.line)
        for finding in evidence.findings
        if finding.id.startswith(f"{family}.")
    ]


def bad(evidence: Evidence) -> set[str]:
    """Return the ids of the errors and warnings."""
    return {finding.id for finding in evidence.findings if finding.severity != "info"}


def messages(evidence: Evidence, rule: str) -> list[str]:
    """Return what the findings of one rule say."""
    return [finding.message for finding in evidence.findings if finding.id == rule]
