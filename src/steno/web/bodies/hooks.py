"""Hooks: what ran, on which event, what it printed and what it decided."""

from typing import Any, Final

from steno.format.loose import loose
from steno.format.records import Record
from steno.report import words as say
from steno.safe.html import Html
from steno.session.nodes import Node
from steno.session.story.steps import Step
from steno.web.bodies.about import About
from steno.web.bodies.notes import user_note
from steno.web.bodies.parts import (
    Fact,
    Window,
    box,
    clipped,
    facts,
    joined,
    note,
    printed,
    raw_doors,
    table,
)
from steno.web.bodies.plain import described
from steno.web.bodies.values import Fields, as_fields, as_items, as_number, as_text, first_text
from steno.web.paint import duration

__all__ = ["hook"]

_THOUSAND: Final = 1000
_KNOWN: Final = frozenset(
    (
        "blockingError",
        "command",
        "content",
        "durationMs",
        "exitCode",
        "hookEvent",
        "hookName",
        "stderr",
        "stdout",
        "toolUseID",
        "type",
    )
)
_OUTCOMES: Final = {
    "hook_success": "ran",
    "hook_blocking_error": "blocked",
    "hook_non_blocking_error": "failed",
    "hook_cancelled": "cancelled",
    "hook_progress": "began",
    "hook_additional_context": "added to the context",
    "hook_system_message": "said",
    "hook_stopped_continuation": "stopped the turn",
    "hook_permission_decision": "decided",
}
_BAD: Final = frozenset(("hook_blocking_error", "hook_non_blocking_error"))


def hook(step: Step, about: About) -> Html:
    """Return a hook's run, and the summary that may follow it."""
    first, last = step.call, step.result
    made = _told_of(first, about) if first is not None else Html("")
    if last is None or last is first:
        return made
    return joined(made, _told_of(last, about))


def _told_of(node: Node, about: About) -> Html:
    record = about.transcript.record(node)
    if record.type == "system":
        return _summary(record, about)
    return user_note(record, about) if record.role == "user" else _run(record, about)


def _run(record: Record, about: About) -> Html:
    envelope = record.envelope
    raw = envelope.attachment or envelope.data
    data = as_fields(loose(raw)) if raw else {}
    kind = as_text(data.get("type"))
    command, out = as_text(data.get("command")), as_text(data.get("stdout"))
    told = _told(data.get("content"))
    blocking = ""
    if "blockingError" in data:
        block = as_fields(data["blockingError"])
        command = command or as_text(block.get("command"))
        blocking = first_text(block, "blockingError") or as_text(data["blockingError"])
    shown = Window("")
    inside = ""
    if command or out.strip():
        inside, shown, _ = printed(out, about, command=command, offset=record.offset)
    for words, text in (("stderr", as_text(data.get("stderr"))), ("blocked", blocking)):
        if text and not text.isspace():
            said = printed(text, about, offset=record.offset)[0]
            inside += f'<div class="err"><h4>{words}</h4>{said}</div>'
    if told and told.strip() not in ("", out.strip()):
        said = printed(told, about, offset=record.offset)[0]
        inside += f'<div class="told"><h4>told the model</h4>{said}</div>'
    made = box(
        Html(inside),
        plain=first_text(data, "hookName", "hookEvent") or "Hook",
        end=as_text(data.get("hookEvent")),
        doors=raw_doors(about, record.offset),
        foot=_foot(data, kind),
        shown=shown,
    )
    rest = Html("")
    if not data.keys() <= _KNOWN:
        rest = described(data, about, offset=record.offset, leave=_KNOWN)
    return joined(made, _decision(out), rest)


def _foot(data: Fields, kind: str) -> list[Fact]:
    code, took = as_number(data.get("exitCode")), as_number(data.get("durationMs"))
    ended = _OUTCOMES.get(kind) or kind.replace("_", " ")
    made = [Fact("", ended, "bad" if kind in _BAD else "")]
    if code is not None:
        made.append(Fact("exit", str(code), "bad" if code else ""))
    if took is not None:
        made.append(Fact("", duration(took / _THOUSAND)))
    return made


def _told(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(map(as_text, as_items(content)))


def _decision(out: str) -> Html:
    """Return what a hook decided, where it printed that as JSON."""
    if not out.lstrip().startswith("{"):
        return Html("")
    value = as_fields(loose(out.strip().encode("utf-8", "replace")))
    own = as_fields(value.get("hookSpecificOutput"))
    decision = first_text(own, "permissionDecision") or first_text(value, "decision")
    stopped = "stop" if value.get("continue") is False else ""
    return facts(
        Fact("decision", decision or stopped),
        Fact(
            "because",
            first_text(own, "permissionDecisionReason")
            or first_text(value, "reason", "stopReason"),
        ),
        Fact("added", first_text(own, "additionalContext")),
        Fact("message", first_text(value, "systemMessage")),
    )


def _summary(record: Record, about: About) -> Html:
    """Return the summary of the hooks that ran when the turn ended."""
    fields = record.fields
    infos = [as_fields(info) for info in as_items(fields.get("hookInfos"))]
    rows = [
        (clipped(as_text(info.get("command"))), _took(info.get("durationMs")))
        for info in infos[:100]
    ]
    shown = table(("Command", "Time"), rows, numbers=(1,)) if rows else Html("")
    count = as_number(fields.get("hookCount"))
    made = [
        box(
            shown,
            plain=say.count(count if count is not None else len(infos), "hook") + " at the end",
            doors=raw_doors(about, record.offset),
            foot=(
                Fact("", "the turn went on" if fields.get("preventedContinuation") else ""),
                Fact("because", as_text(fields.get("stopReason"))),
            ),
        )
    ]
    errors = as_items(fields.get("hookErrors"))
    made += [note(as_text(error) or str(error)[:2_000], "bad", "warn") for error in errors[:20]]
    added = [as_text(each) for each in as_items(fields.get("hookAdditionalContext"))]
    made += [note(each) for each in added[:20] if each]
    return joined(*made)


def _took(value: Any) -> str:
    number = as_number(value)
    return duration(number / _THOUSAND) if number is not None else ""
