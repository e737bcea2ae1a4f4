"""What is inside an opened step, a record, a gap: for every kind there is.

about      whose it is, how much of it is wanted; what the records say of a tool call
parts      boxes, facts, tables, stretches of long texts
tidy       any JSON value, folded
pictures   pictures inside records
plain      any tool: arguments and result
files changes shell found boards agents asked   tools by family
notes hooks errors attached                     what is no tool call
raw        a record or a gap just as it stands in its file

Whatever a client wrote, something is shown: a shape that is not known is shown as tidy JSON.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from steno.format.tool_catalogue import View, facts_of
from steno.safe.html import Html
from steno.web.bodies.about import About, Call, call_of
from steno.web.bodies.agents import agent, brief_of, report_of
from steno.web.bodies.asked import mcp, message, plan, questions, skill
from steno.web.bodies.attached import attachment
from steno.web.bodies.boards import tasks, todos
from steno.web.bodies.changes import changes
from steno.web.bodies.errors import error
from steno.web.bodies.files import read
from steno.web.bodies.found import fetched, globbed, grepped, listed, searched, tools_found
from steno.web.bodies.hooks import hook
from steno.web.bodies.notes import queued, said, system, thought, unknown, user_note
from steno.web.bodies.parts import joined
from steno.web.bodies.plain import permission, plain_tool, refusal
from steno.web.bodies.raw import gap_view, record_view
from steno.web.bodies.shell import bash, task_output

if TYPE_CHECKING:
    from steno.session.story.steps import Step

__all__ = ["About", "body_of", "brief_of", "gap_view", "record_view", "report_of"]

_VIEWS: Final[dict[View, Callable[[Call], Html]]] = {
    "plain": plain_tool,
    "changes": changes,
    "command": bash,
    "file": read,
    "files": globbed,
    "listing": listed,
    "matches": grepped,
    "message": message,
    "output": task_output,
    "page": fetched,
    "plan": plan,
    "questions": questions,
    "skill": skill,
    "tasks": tasks,
    "todos": todos,
    "tools": tools_found,
    "web_search": searched,
}
_MCP: Final = "mcp__"
_NOT_DONE: Final = ("denied", "interrupted")


def body_of(step: "Step", about: About) -> Html:
    """Return what is inside a step."""
    made = _KINDS[step.kind](step, about)
    if made and not made.isspace():
        return made
    nodes = [node for node in (step.call, step.result) if node is not None]
    records = [about.transcript.record(node) for node in nodes]
    return joined(*(record_view(record, about) for record in records))


def _tool(step: "Step", about: About) -> Html:
    call = call_of(step, about)
    maker = mcp if call.tool.startswith(_MCP) else _VIEWS[facts_of(call.tool).view]
    made = maker(call)
    if not made or made.isspace():
        made = plain_tool(call)
    if step.state in _NOT_DONE:
        made = joined(refusal(call), made)
    if call.record is not None and call.record.envelope.permission_decision:
        made = joined(made, permission(call, call.record))
    return made


def _note(step: "Step", about: About) -> Html:
    if step.call is None:
        return Html("")
    record = about.transcript.record(step.call)
    if record.type == "attachment":
        return attachment(record, about)
    if record.type == "system":
        return system(record, about, step.result)
    return user_note(record, about)


_KINDS: Final[dict[str, Callable[["Step", About], Html]]] = {
    "tool": _tool,
    "agent": agent,
    "thought": thought,
    "words": said,
    "queued": queued,
    "hook": hook,
    "error": error,
    "note": _note,
    "unknown": unknown,
}
