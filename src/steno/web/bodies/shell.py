"""Commands: what was run, what it printed, how it ended."""

import re
from typing import Final

from steno.report import words as say
from steno.safe.html import Html, escaped
from steno.web.bodies.about import Call
from steno.web.bodies.parts import Fact, box, call_doors, joined, printed
from steno.web.bodies.plain import pictures
from steno.web.bodies.values import Fields, as_fields, as_number, as_text, first_text
from steno.web.paint import duration

__all__ = ["bash", "task_output"]

_EXIT: Final = re.compile(r"\A(?:Error: )?Exit code (-?\d+)\n?")
_SAVED: Final = re.compile(r"<persisted-output>\n?(?P<said>.*?)\n\nPreview[^\n]*\n", re.DOTALL)
_WHERE: Final = re.compile(r"saved to: (?P<path>[^\n]{1,2000})")
_BEGIN: Final = "<persisted-output>"
_END: Final = "</persisted-output>"
_PICTURE: Final = "data:image/"


def bash(call: Call) -> Html:
    """Return a command and what it printed."""
    kept = call.fields
    out, err = as_text(kept.get("stdout")), as_text(kept.get("stderr"))
    said, saved, code = call.text, "", ""
    if not out and not err:
        found = _EXIT.match(said)
        code = found[1] if found else ""
        out, saved = _saved(said[found.end() :] if found else said)
    else:
        _, saved = _saved(said)
    hidden = out.startswith(_PICTURE) or kept.get("isImage") is True
    if hidden:
        out = ""
    node = call.step.result
    offset = node.offset if node is not None else None
    failed = call.step.state == "failed"
    body, shown, over = printed(out, call.about, command=_command(call), offset=offset, tail=failed)
    if err.strip():
        errors, rest, more = printed(err, call.about, offset=offset, tail=True)
        cut = f'<p class="dim small">{escaped(rest.said)}</p>' if rest.said else ""
        body = Html(f'{body}<div class="err"><h4>stderr</h4>{errors}{cut}</div>')
        over += more
    if hidden or call.has_pictures:
        body = joined(body, pictures(call))
    foot = _ending(call, kept, code)
    if call.step.state != "unknown":
        foot += tuple(_footing(kept, saved, over, out or err))
    return box(
        body,
        plain=as_text(call.asked.get("description")),
        tags=_tags(call),
        doors=call_doors(call),
        foot=foot,
        shown=shown,
    )


def _command(call: Call) -> str:
    return (
        first_text(call.asked, "command") or call.step.command or first_text(call.fields, "command")
    )


def _tags(call: Call) -> tuple[str, ...]:
    asked = call.asked
    behind = ("in background",) if asked.get("run_in_background") is True else ()
    loose = ("without sandbox",) if asked.get("dangerouslyDisableSandbox") is True else ()
    return behind + loose


def _saved(text: str) -> tuple[str, str]:
    """Return an output, and where the whole of it was put if this is only its beginning."""
    found = _SAVED.search(text) if _BEGIN in text else None
    if found is None:
        return text, ""
    where = _WHERE.search(found["said"])
    preview = text[found.end() :].strip().removesuffix(_END).strip("\n").removesuffix("\n...")
    return preview, where["path"] if where else "a file"


def _ending(call: Call, kept: Fields, code: str) -> tuple[Fact, ...]:
    """Return how it ended."""
    seconds = duration(call.step.duration) if call.step.duration is not None else ""
    state = call.step.state
    if state == "interrupted" or kept.get("interrupted") is True:
        return Fact("", "interrupted", "warn"), Fact("", seconds)
    if state == "denied":
        return (Fact("", "not run", "warn"),)
    if state == "open":
        return (Fact("", "no result yet"),)
    if state == "unknown":
        return (Fact("", call.step.outcome),)
    if kept.get("backgroundTaskId"):
        return (Fact("", f"went on in the background as {as_text(kept['backgroundTaskId'])}"),)
    if state == "failed":
        return Fact("", f"exit {code}" if code else "failed", "bad"), Fact("", seconds)
    meaning = as_text(kept.get("returnCodeInterpretation"))
    return Fact("", meaning or "exit 0"), Fact("", seconds)


def _footing(kept: Fields, saved: str, over: int, said: str) -> list[Fact]:
    made: list[Fact] = []
    if not said or said.isspace():
        made.append(Fact("", "no output"))
    if over:
        made.append(Fact("", f"{say.count(over, 'line')} printed over"))
    if where := as_text(kept.get("persistedOutputPath")) or saved:
        size = as_number(kept.get("persistedOutputSize"))
        whole = f", {say.size(size)}" if size is not None else ""
        made.append(Fact("", f"whole output{whole} kept in {where}"))
    return made


def task_output(call: Call) -> Html:
    """Return what a command in the background, or another task, printed meanwhile."""
    node = call.step.result
    kept = call.fields
    task = as_fields(kept.get("task")) or kept
    out = first_text(task, "stdout", "output", "result") or ("" if kept else call.text)
    if node is None or (not task and not out):
        return Html("")
    command = first_text(task, "command", "description")
    body, shown, over = printed(out, call.about, command=command, offset=node.offset)
    made = [body]
    err = first_text(task, "stderr", "error")
    if err:
        errors = printed(err, call.about, offset=node.offset)[0]
        made.append(Html(f'<div class="err"><h4>stderr</h4>{errors}</div>'))
    code = as_number(task.get("exitCode"))
    foot = (
        Fact("", first_text(task, "status") or first_text(kept, "retrieval_status", "message")),
        Fact("exit", "" if code is None else str(code), "bad" if code else ""),
        Fact("", f"{say.count(over, 'line')} printed over" if over else ""),
        Fact("", "" if out or err else "no output"),
    )
    title = first_text(task, "task_id", "shellId", "shell_id") or first_text(
        call.asked, "task_id", "bash_id", "shell_id"
    )
    doors = call_doors(call)
    return box(joined(*made), title=title, doors=doors, foot=foot, shown=shown)
