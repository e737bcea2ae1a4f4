"""Commands about going back: earlier prompts, files as they were, what a session has changed."""

import asyncio
import os
from typing import TYPE_CHECKING, Final, cast

from steno.agent.checkpoints import Checkpoints
from steno.console.commands import Command
from steno.console.dialog import Choice, Dialog
from steno.console.steps import diff_lines
from steno.errors import NotFound, StenoError
from steno.report import words
from steno.safe.terminal import Line, one_line
from steno.tools.patch import structured_patch

if TYPE_CHECKING:
    from steno.console.talk import Talk

__all__ = ["COMMANDS"]

_WHAT: Final = (
    Choice("c", "conversation", "conversation", "files stay as they are"),
    Choice("f", "files", "files", "the conversation goes on"),
    Choice("b", "both", "both", "as if it had never been said"),
)
_ROWS: Final = 14
_PREVIEWED: Final = 5
_LARGEST: Final = 1 << 20


def _points(talk: "Talk") -> Checkpoints | None:
    keeping = talk.started.agent.caller.keeping if talk.started is not None else None
    return keeping if isinstance(keeping, Checkpoints) else None


def _prompts(talk: "Talk") -> list[tuple[str, str]]:
    from steno.agent.sessions import prompts

    started = talk.started
    path = started.agent.talk.recorder.path if started is not None else ""
    try:
        return prompts(path) if os.path.exists(path) else []
    except NotFound:
        return []


async def _rewind(talk: "Talk", arguments: str) -> None:
    """Go back to before a prompt: the conversation, the files, or both."""
    del arguments
    said = await asyncio.to_thread(_prompts, talk)
    points = _points(talk)
    if not said or points is None:
        talk.stream.note("there is nothing to go back to yet", "dim")
        return
    choices = [
        Choice("", one_line(text) or "(nothing typed)", name, f"prompt {at}")
        for at, (name, text) in reversed(list(enumerate(said, 1)))
    ]
    dialog = Dialog(
        "Go back to before which prompt?",
        (),
        choices,
        search=True,
    )
    dialog.preview = lambda name: _plan_lines(talk, points, name)[:_PREVIEWED]
    reply = await talk.prompt.ask(dialog)
    if reply is None:
        return
    body = _plan_lines(talk, points, reply.value)
    what = await talk.prompt.ask(Dialog("Take back what?", body, _WHAT))
    if what is None:
        return
    if what.value in ("files", "both"):
        await _restore(talk, points, reply.value)
    if what.value in ("conversation", "both"):
        await _take_back(talk, reply.value, dict(said)[reply.value])


def _plan_lines(talk: "Talk", points: Checkpoints, prompt: str) -> list[Line]:
    """Return what taking files back to a prompt would change, as a diff."""
    try:
        plan = [each for each in points.plan(prompt) if each.action != "unchanged"]
    except StenoError:
        return [[("  no files are kept of it", "dim")]]
    lines: list[Line] = []
    for each in plan:
        note = each.obstacle or ("changed by somebody else since" if each.foreign else "")
        lines.append(
            [
                "  ",
                (one_line(os.path.relpath(each.path, points.project)), "bold"),
                (f"  {note}", "yellow"),
            ]
        )
        lines += _change(points, prompt, each.path, talk.screen.width - 4, back=True)
    if len(lines) > _ROWS:
        lines = [*lines[:_ROWS], [(f"    … {len(lines) - _ROWS} more lines", "dim")]]
    return lines or [[("  no file has changed since", "dim")]]


def _change(points: Checkpoints, prompt: str, path: str, columns: int, *, back: bool) -> list[Line]:
    """Return how a file differs from what it was at a prompt."""
    try:
        kept = points.content(prompt, path)
    except StenoError:
        return []
    before, now = _text(kept), _text(_read(path))
    if before is None or now is None:
        return [[("    not a text", "dim")]]
    patch = structured_patch(now, before) if back else structured_patch(before, now)
    most = _ROWS if back else None
    return list(diff_lines(cast("list[object]", patch), columns, most=most, wrapped=not back))


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return None


def _text(data: bytes | None) -> str | None:
    if data is None:
        return ""
    return None if b"\0" in data else data.decode("utf-8", "replace")


async def _restore(talk: "Talk", points: Checkpoints, prompt: str) -> None:
    plan = points.plan(prompt)
    force = False
    foreign = [each.path for each in plan if each.foreign and not each.obstacle]
    if foreign:
        body: list[Line] = [["  ", one_line(path)] for path in foreign[:_ROWS]]
        choices = (Choice("y", "yes, take them back as well", "yes"), Choice("n", "no", "no"))
        reply = await talk.prompt.ask(
            Dialog("Changed by somebody else since. Go on?", body, choices)
        )
        if reply is None or reply.value != "yes":
            return
        force = True
    done = await asyncio.to_thread(lambda: points.restore(prompt, force=force))
    for each in done.left:
        talk.stream.note(f"left as it is: {each.path} ({each.obstacle})")
    talk.kept["undo"] = done.undo or talk.kept.get("undo", "")
    back = " /undo takes that back" if done.undo else ""
    talk.stream.note(f"{words.count(len(done.done), 'file')} taken back.{back}", "dim")


async def _take_back(talk: "Talk", prompt: str, text: str) -> None:
    from steno.agent.sessions import rewind

    started = talk.started
    if started is None:
        return
    path, cwd = started.agent.talk.recorder.path, talk.ready.options.cwd
    await talk.reenter(lambda: rewind(path, cwd, prompt), tell=False)
    talk.prompt.put(text)
    talk.stream.note("back before that prompt; what came after it is kept as a branch", "dim")


async def _undo(talk: "Talk", arguments: str) -> None:
    """Take back what the last prompt changed; once more, and it is there again."""
    del arguments
    points = _points(talk)
    last = str(talk.kept.pop("undo", "") or "")
    if points is None or not (last or points.prompts):
        talk.stream.note("there is nothing to take back", "dim")
        return
    prompt = last or points.prompts[-1]
    body = _plan_lines(talk, points, prompt)
    choices = (Choice("y", "yes", "yes"), Choice("n", "no", "no"))
    reply = await talk.prompt.ask(Dialog("Take the files back to this?", body, choices))
    if reply is not None and reply.value == "yes":
        await _restore(talk, points, prompt)


async def _diff(talk: "Talk", arguments: str) -> None:
    """Show what was changed since the session began."""
    del arguments
    points = _points(talk)
    lines = _changes(points, talk.screen.width - 2) if points is not None else []
    talk.stream.block(lines or [[("  nothing was changed", "dim")]], "diff")


def _changes(points: Checkpoints, columns: int) -> list[Line]:
    lines: list[Line] = []
    if not points.prompts:
        return lines
    first = points.prompts[0]
    for each in points.plan(first):
        if each.action != "unchanged":
            lines.append(["  ", (one_line(os.path.relpath(each.path, points.project)), "bold")])
            lines += _change(points, first, each.path, columns, back=False)
    return lines


COMMANDS: Final = (
    Command(
        name="rewind",
        help="go back to an earlier prompt: conversation, files, both",
        run=_rewind,
        aliases=("checkpoint",),
    ),
    Command(name="diff", help="what was changed since the session began", run=_diff, anytime=True),
    Command(name="undo", help="take back what the last prompt changed in files", run=_undo),
)
