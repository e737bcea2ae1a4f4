"""What the agent asked people, plans, skills and commands, and the tools of other programs."""

from typing import Any, Final, cast

import msgspec

from steno.safe.html import Html
from steno.web.bodies.about import Call
from steno.web.bodies.parts import Fact, box, call_doors, clipped, facts, joined, note, prose
from steno.web.bodies.plain import arguments, result
from steno.web.bodies.values import as_fields, as_items, as_text, first_text
from steno.web.paint import part

__all__ = ["mcp", "message", "plan", "questions", "skill"]

_MCP: Final = "mcp__"
_MOST: Final = 100


class _Option(msgspec.Struct, frozen=True):
    label: str
    words: str
    chosen: bool


class _Question(msgspec.Struct, frozen=True):
    header: str
    words: str
    several: bool
    options: list[_Option]
    own: str
    """An answer that is none of the options."""


def questions(call: Call) -> Html:
    """Return questions, what could be answered, and what was."""
    items = as_items(call.fields.get("questions")) or as_items(call.asked.get("questions"))
    answers = as_fields(call.fields.get("answers")) or as_fields(call.asked.get("answers"))
    found = [_question(as_fields(item), answers) for item in items[:_MOST]]
    if not found:
        return Html("")
    body = Html(part("body-questions.html.j2", questions=found))
    doors = call_doors(call)
    made = box(body, doors=doors, plain="Asked")
    return made if answers else joined(made, result(call))


def _question(fields: dict[str, Any], answers: dict[str, Any]) -> _Question:
    words = as_text(fields.get("question"))
    answer = answers.get(words)
    text = as_text(answer) or ", ".join(map(as_text, as_items(answer)))
    labels = [first_text(as_fields(each), "label") or as_text(each) for each in _options(fields)]
    chosen = {label for label in labels if text == label or label in text.split(", ")}
    options = [
        _Option(
            clipped(label), clipped(as_text(as_fields(each).get("description"))), label in chosen
        )
        for label, each in zip(labels, _options(fields), strict=True)
    ]
    own = clipped(text) if text and not chosen else ""
    header = clipped(as_text(fields.get("header")))
    return _Question(header, clipped(words), fields.get("multiSelect") is True, options, own)


def _options(fields: dict[str, Any]) -> list[Any]:
    return as_items(fields.get("options"))[:_MOST]


def plan(call: Call) -> Html:
    """Return a plan, and whether it was taken."""
    kept = call.fields
    text = first_text(kept, "plan") or first_text(call.asked, "plan")
    where = first_text(kept, "filePath") or first_text(call.asked, "planFilePath")
    doors = call_doors(call)
    if not text and not where:
        said = first_text(kept, "message") or call.text
        return (
            box(note(said), plain=call.tool, doors=doors) if said and not call.failed else Html("")
        )
    taken = {"ok": "taken", "denied": "not taken", "failed": "not taken"}.get(call.step.state, "")
    made = prose(text, call.about, offset=call.offset) if text else Html("")
    tags = (taken,) if taken else ()
    shown = box(made, plain="Plan", title=where, tags=tags, doors=doors, kind="page-of")
    return joined(shown, result(call)) if call.failed else shown


def skill(call: Call) -> Html:
    """Return the skill or command that was called up."""
    kept = call.fields
    name = first_text(kept, "commandName") or first_text(call.asked, "skill", "command")
    if not name:
        return Html("")
    tools = ", ".join(map(as_text, as_items(kept.get("allowedTools"))))
    body = facts(
        Fact("name", name),
        Fact("with", first_text(call.asked, "args")),
        Fact("may use", tools),
        Fact("said", "" if call.failed else call.text[:600]),
    )
    doors = call_doors(call)
    made = box(body, plain=call.tool, doors=doors)
    return joined(made, result(call)) if call.failed else made


def message(call: Call) -> Html:
    """Return what one agent said to another."""
    said: Any = call.asked.get("message", call.asked.get("content"))
    text = said if isinstance(said, str) else ""
    if not text or call.step.call is None:
        return Html("")
    to = first_text(call.asked, "to", "recipient")
    body = joined(
        facts(Fact("to", to), Fact("about", first_text(call.asked, "summary"))),
        prose(text, call.about, offset=call.step.call.offset),
    )
    return joined(body, result(call))


def mcp(call: Call) -> Html:
    """Return a call of another program's tool: whose it is, what it was asked, what it said."""
    server, _, tool = call.tool.removeprefix(_MCP).partition("__")
    head = facts(Fact("server", server), Fact("tool", tool))
    return joined(head, arguments(call, title=tool or call.tool), _given(call))


def _given(call: Call) -> Html:
    """Return a result; a list of blocks is what the text and the pictures say already."""
    kept = call.kept
    if isinstance(kept, list) and not _are_blocks(cast("list[Any]", kept)) and not call.text:
        return result(call)
    return (
        result(msgspec.structs.replace(call, kept=None, fields={}))
        if isinstance(kept, list)
        else result(call)
    )


def _are_blocks(items: list[Any]) -> bool:
    return all("type" in as_fields(item) for item in items)
