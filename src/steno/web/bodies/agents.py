"""Sub-agents: what one was told, what it took, what it reported."""

from typing import Any, Final

from steno.format.blocks import Text, read_blocks
from steno.report import words as say
from steno.safe.html import Html
from steno.session.story.prompts import inside
from steno.session.story.steps import Step
from steno.web.bodies.about import About, Call, call_of
from steno.web.bodies.notes import words_of_record
from steno.web.bodies.parts import (
    Door,
    Fact,
    call_doors,
    door_row,
    facts,
    joined,
    note,
    prose,
    raw_doors,
)
from steno.web.bodies.plain import result
from steno.web.bodies.values import as_fields, as_number, as_text, first_text
from steno.web.paint import duration

__all__ = ["agent", "brief_of", "report_of"]

_THOUSAND: Final = 1000
_TAIL: Final = "agentId:"
_SHORT: Final = 400


def agent(step: Step, about: About) -> Html:
    """Return a sub-agent's brief, its figures and its report."""
    return joined(brief_of(step, about), report_of(step, about)) or Html("")


def brief_of(step: Step, about: About) -> Html:
    """Return what a sub-agent was told."""
    if _is_notice(step):
        return Html("")
    call = call_of(step, about)
    brief = first_text(call.asked, "prompt") or first_text(call.fields, "prompt")
    if not brief and step.agent is not None:
        brief = step.agent.prompt
    told = prose(brief, about, kind="think", offset=call.offset) if brief else Html("")
    asked = facts(
        Fact(
            "kind", first_text(call.asked, "subagent_type") or first_text(call.fields, "agentType")
        ),
        Fact(
            "for", first_text(call.asked, "description") or first_text(call.fields, "description")
        ),
        Fact("model", first_text(call.asked, "model") or first_text(call.fields, "resolvedModel")),
        Fact("runs", "in background" if _background(call) else ""),
        Fact("in", first_text(call.asked, "isolation")),
        Fact("team", first_text(call.asked, "team_name")),
    )
    return joined(asked, told)


def report_of(step: Step, about: About) -> Html:
    """Return what a sub-agent took and what it reported; also why it has not."""
    if _is_notice(step):
        return _notice(step, about)
    call = call_of(step, about)
    kept = call.fields
    figures = _figures(call)
    words = _report(call)
    made = [figures]
    if call.failed or (step.result is not None and not words and not kept):
        made.append(result(call))
    elif words:
        made.append(Html('<h4 class="part">Report</h4>'))
        made.append(prose(words, about, offset=call.offset))
    elif step.result is None:
        made.append(note("There is no report.", icon="clock"))
    return joined(*made, _doors(step, about, call))


def _background(call: Call) -> bool:
    return call.asked.get("run_in_background") is True or call.fields.get("isAsync") is True


def _figures(call: Call) -> Html:
    kept = call.fields
    steps, used = as_number(kept.get("totalToolUseCount")), as_number(kept.get("totalTokens"))
    took = as_number(kept.get("totalDurationMs"))
    usage = as_fields(kept.get("usage"))
    out = as_number(usage.get("output_tokens"))
    return facts(
        Fact("ended", first_text(kept, "status")),
        Fact("steps", f"{steps:,}" if steps is not None else ""),
        Fact("tokens", say.tokens(used) if used is not None else ""),
        Fact("out", say.tokens(out) if out is not None else ""),
        Fact("time", duration(took / _THOUSAND) if took is not None else ""),
        Fact("output", first_text(kept, "outputFile")),
    )


def _report(call: Call) -> str:
    """Return the words of the report; without what the client says to the model about it."""
    content: Any = call.fields.get("content")
    blocks = read_blocks(content)
    words = [block.text for block in blocks if isinstance(block, Text)]
    if words:
        return "\n\n".join(words)
    told = [block.text for block in call.blocks if isinstance(block, Text)]
    kept = [text for text in told if not text.lstrip().startswith(_TAIL)]
    return "\n\n".join(kept or told)


def _doors(step: Step, about: About, call: Call) -> Html:
    doors = list(call_doors(call))
    thread = step.agent
    if thread is not None and thread.agent_id and not thread.inline:
        doors.insert(0, Door("Its own page", about.links.agent(about.key, thread.agent_id)))
    return door_row(*doors)


# Reports of those in the background


def _is_notice(step: Step) -> bool:
    return not step.call_id


def _notice(step: Step, about: About) -> Html:
    if step.call is None:
        return Html("")
    record = about.transcript.record(step.call)
    text = words_of_record(record)
    report = inside(text, "result") or inside(text, "summary") or text
    said = facts(
        Fact("status", inside(text, "status")),
        Fact("task", inside(text, "task-id")),
        Fact("summary", inside(text, "summary")[:_SHORT]),
        Fact("output", inside(text, "output-file")),
    )
    shown = prose(as_text(report), about, offset=record.offset)
    return joined(said, shown, door_row(*raw_doors(about, record.offset)))
