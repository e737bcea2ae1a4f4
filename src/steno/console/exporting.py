"""A conversation as Markdown: what was said, and one line for each step."""

from steno.safe.secrets import MASK, hide_secrets
from steno.session.session import Session
from steno.session.transcript import load
from steno.store.read import FileSource

__all__ = ["as_markdown"]


def as_markdown(path: str, *, redacted: bool) -> tuple[str, int]:
    """Return a session as Markdown, and how many places in it were masked."""
    session = Session(load(FileSource(path)))
    parts = [f"# Session {session.id[:8]}"]
    for turn in session.turns():
        prompt = turn.prompt.text if turn.prompt is not None else ""
        quoted = "\n".join(f"> {line}" for line in prompt.strip().split("\n"))
        steps = [
            f"- **{step.verb}** `{' '.join(step.subject.replace('`', chr(39)).split())}` {step.outcome}".rstrip()
            for step in turn.steps
            if step.kind in ("tool", "agent")
        ]
        parts += [f"## {turn.number}", quoted, "\n".join(steps), turn.answer or ""]
    text = "\n\n".join(part for part in parts if part) + "\n"
    if not redacted:
        return text, 0
    hidden = hide_secrets(text)
    return hidden, hidden.count(MASK) - text.count(MASK)
