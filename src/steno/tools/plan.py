"""EnterPlanMode and ExitPlanMode: looking first, and going on when the user agrees.

Both ask with `context.ask("plan", {"step": "enter" | "exit", "plan": …, "file": …, "call": …})`; the
answer is `{"approved": bool, "mode": …, "words": …}`. The mode that follows is left as a request in
`context.plan.permission_mode`; the plan is the file that `context.plan.file` names.
"""

import asyncio
import os
from typing import Any, Final

import msgspec

from steno.tools.base import Answer, ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.inputs import taken
from steno.tools.output import put_file
from steno.tools.words import worded

__all__ = ["EnterPlanMode", "ExitPlanMode"]

_LONGEST: Final = 1 << 20
_REJECTED: Final = "User rejected tool use"


async def _ask(context: ToolContext, what: dict[str, Any]) -> Answer:
    answer = await context.ask("plan", what) if context.ask else None
    if answer is None:
        step = "begin with a plan" if what["step"] == "enter" else "agree to the plan"
        raise ToolFailure(f"Nobody is there who could {step}.")
    return answer


def _refused(what: str, answer: Answer) -> ToolResult:
    words = str(answer.get("words") or "")
    said = f"The user said: {words}" if words else "Stop here, and wait for what the user says."
    return ToolResult(f"The user does not want {what}. {said}", _REJECTED, is_error=True)


class EnterPlanMode:
    """Asks to look and plan first."""

    spec = own_spec(
        "EnterPlanMode",
        description=(
            "Asks the user to let you look around and write a plan before anything is changed. "
            "Use it for work with several possible ways, or that touches many files; not for "
            "small, clear changes."
        ),
        schema={"type": "object", "properties": {}},
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Ask."""
        del tool_input
        path = context.plan.file
        answer = await _ask(context, {"step": "enter", "plan": None, "file": path, "call": call})
        if not answer.get("approved"):
            return _refused("a plan first", answer)
        context.plan.permission_mode = "plan"
        message = "Entered plan mode. Look around and work out how to do it."
        where = f" Write the plan to {path}, the only file you may change." if path else ""
        words = f"{message} Change nothing.{where} When it is ready, call ExitPlanMode."
        return ToolResult(words, {"message": message})


class _Exit(msgspec.Struct, frozen=True):
    plan: str | None = None


class ExitPlanMode:
    """Shows the plan, and asks to go on."""

    spec = own_spec(
        "ExitPlanMode",
        description=(
            "Shows the user the plan that you have written to the plan file, and asks to go on "
            "with it. Only in plan mode, when the plan is complete; not to answer a question."
        ),
        schema={
            "type": "object",
            "properties": {
                "allowedPrompts": {
                    "type": "array",
                    "description": "What the plan needs to be allowed",
                    "items": {
                        "type": "object",
                        "properties": {
                            "tool": {"type": "string"},
                            "prompt": {"type": "string"},
                        },
                        "required": ["tool", "prompt"],
                    },
                }
            },
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Show it and ask."""
        said = taken(tool_input, _Exit).plan
        path = context.plan.file
        # Older clients have the plan as an input: then the file is ours to write.
        if said and path:
            await asyncio.to_thread(_write, path, said)
        plan = said or (await asyncio.to_thread(_read, path) if path else None)
        what = {"step": "exit", "plan": plan, "file": path, "call": call}
        answer = await _ask(context, what)
        if not answer.get("approved"):
            return _refused("to go on with this plan", answer)
        context.plan.permission_mode = str(answer.get("mode") or "default")
        words = "User has approved exiting plan mode. You can now proceed."
        if plan:
            where = f" It is kept in {path}." if path else ""
            words = f"{words}{where}\n\n## Approved plan\n{plan}"
        return ToolResult(words, {"plan": plan, "isAgent": False, "filePath": path})


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST).strip() or None
    except OSError:
        return None


def _write(path: str, plan: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        put_file(path, (plan.encode("utf-8", "replace"),))
    except OSError as error:
        raise ToolFailure(f"The plan cannot be written to {path}: {worded(error)}") from error
