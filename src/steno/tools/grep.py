"""Grep: searches the contents of files, with ripgrep or without it (`grep_stand_in`)."""

import asyncio
import os
from typing import Any, Final

import msgspec

from steno.tools.base import ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.grep_results import show_counts, show_files, show_lines
from steno.tools.grep_search import LONGEST, WRONG, Job, Search
from steno.tools.inputs import taken
from steno.tools.programs import FLAGS, Finder, Ran, ripgrep, run_program, run_self
from steno.tools.texts import place, settled
from steno.tools.words import shown

__all__ = ["Grep"]

_DESCRIPTION: Final = """\
Searches the contents of files for a regular expression (ripgrep's syntax).

- `output_mode`: "files_with_matches" (the default) names the files, the newest first; "content" \
shows the lines; "count" counts them.
- Narrow it with `path`, `glob` ("*.ts", "src/**/*.{js,jsx}") or `type` ("py", "rust", …). What git \
ignores is left out.
- Braces and the like must be escaped to be meant literally: `interface\\{\\}`.
- To find what goes over several lines, set `multiline`.
"""
_NUMBER: Final = {"type": "number"}
_SWITCH: Final = {"type": "boolean"}


def _said(kind: dict[str, Any], words: str) -> dict[str, Any]:
    return {**kind, "description": words}


_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "pattern": _said({"type": "string"}, "The regular expression to look for"),
        "path": _said(
            {"type": "string"}, "The file or folder to search; else the working directory"
        ),
        "glob": _said({"type": "string"}, "Only files whose paths fit this pattern"),
        "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]},
        "-B": _said(_NUMBER, "Lines to show before each match (content)"),
        "-A": _said(_NUMBER, "Lines to show after each match (content)"),
        "-C": _said(_NUMBER, "Lines to show before and after each match (content)"),
        "context": _said(_NUMBER, "The same as -C"),
        "-n": _said(_SWITCH, "Show line numbers (content); true unless said otherwise"),
        "-i": _said(_SWITCH, "Take capital and small letters for the same"),
        "-o": _said(_SWITCH, "Show only what matched, not whole lines (content)"),
        "type": _said({"type": "string"}, "Only files of this type, as ripgrep knows them"),
        "head_limit": _said(_NUMBER, "At most so many lines or files; 250 by default, 0 for all"),
        "offset": _said(_NUMBER, "Leave out so many lines or files first"),
        "multiline": _said(_SWITCH, "Let the expression go over lines, with . for line ends too"),
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


class Grep:
    """The tool."""

    spec = own_spec("Grep", description=_DESCRIPTION, schema=_SCHEMA)

    def __init__(self, find: Finder | None = None) -> None:
        self._find = find or ripgrep

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Search."""
        asked = taken(tool_input, Search)
        job = await asyncio.to_thread(_job, asked, context, call)
        program = self._find(context.project, context.cwd, *context.folders)
        if program is None:
            given_on = msgspec.json.encode(asked)
            ran = await run_self("steno.tools.grep_stand_in", job.real, job.name, given=given_on)
        else:
            ran = await run_program(_command(program, job), job.real, env=context.env)
        _refuse(ran, asked)
        shapes = {"content": show_lines, "count": show_counts, "files_with_matches": show_files}
        outcome = await asyncio.to_thread(shapes[asked.output_mode], ran.out, job, context)
        note = ""
        if ran.is_late or ran.is_cut:
            why = "it took too long" if ran.is_late else "there was too much"
            note = f"\n\n(The search was ended early, as {why}: narrow it.)"
        return ToolResult(f"{outcome.content}{note}", outcome.detail)


def _job(asked: Search, context: ToolContext, call: str) -> Job:
    for words in (asked.pattern, asked.glob or "", asked.type or ""):
        if "\0" in words or words.encode("utf-8", "replace").decode("utf-8") != words:
            raise ToolFailure(f"{shown(words)} cannot be looked for")
    path = place(asked.path or ".", context)
    real = settled(path, context, call)
    if os.path.isdir(real):
        return Job(asked, path, "", real)
    if os.path.isfile(real):
        folder, name = os.path.split(real)
        return Job(asked, folder, name, folder)
    if os.path.lexists(path):
        raise ToolFailure(f"{shown(path)} is neither a file nor a folder")
    raise ToolFailure(
        f"{shown(path)} does not exist. The working directory is {shown(context.cwd)}."
    )


def _command(program: str, job: Job) -> list[str]:
    asked = job.asked
    command = [program, *FLAGS, "--null", "--with-filename", "--no-heading", "--crlf"]
    command += [f"--max-columns={LONGEST}", "--max-columns-preview"]
    if asked.output_mode == "files_with_matches":
        command.append("--files-with-matches")
    elif asked.output_mode == "count":
        command.append("--count")
    else:
        before, after = asked.around
        command.append("--line-number" if asked.numbers else "--no-line-number")
        command += [f"--before-context={before}", f"--after-context={after}"]
        command += ["--only-matching"] * asked.only
    command += ["--ignore-case"] * asked.ignore_case
    command += ["--multiline", "--multiline-dotall"] * asked.multiline
    command += [f"--type={asked.type}"] * bool(asked.type)
    command += [f"--glob={glob}" for glob in asked.globs]
    # The last one counts: a pattern that fits everything must not bring back what belongs to git.
    command.append("--glob=!.git")
    return [*command, f"--regexp={asked.pattern}", "--", f"./{job.name}"]


def _refuse(ran: Ran, asked: Search) -> None:
    """Say what is wrong with the search, when there is nothing to show for it."""
    if ran.out:
        return
    if ran.is_late:
        raise ToolFailure("the search took too long: narrow it with `path`, `glob` or `type`")
    if ran.code == WRONG and ran.err:
        words = ran.err.strip().removeprefix("rg: ")
        hint = ""
        if not asked.multiline and "multiline" in words:
            words, hint = words.split("\n")[0], " (set `multiline` for that)"
        raise ToolFailure(f"the search makes no sense: {words}{hint}")
