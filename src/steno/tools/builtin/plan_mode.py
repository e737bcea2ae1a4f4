"""EnterPlanMode and ExitPlanMode: planning first, and the user's approval of the plan.

Both ask with `context.ask("plan", {"step": "enter" | "exit", "plan": …, "file": …, "call": …})`; the
answer is `{"approved": bool, "mode": …, "words": …}`. The next permission mode is requested in
`context.plan.permission_mode`; the plan is the file that `context.plan.file` names.
"""

import asyncio
import os
from typing import Any, Final

import msgspec

from steno.store.atomic import write_atomic
from steno.tools.context import ToolContext
from steno.tools.output import error_message
from steno.tools.protocol import ToolFailure, ToolResult, UserAnswer, builtin_spec, parse_input

_MAX_PLAN_SIZE: Final = 1 << 20
_REJECTED_RESULT: Final = "User rejected tool use"


async def _ask_user(context: ToolContext, request: dict[str, Any]) -> UserAnswer:
    answer = await context.ask("plan", request) if context.ask else None
    if answer is None:
        step = "begin with a plan" if request["step"] == "enter" else "agree to the plan"
        raise ToolFailure(f"Nobody is there who could {step}.")
    return answer


def _rejected_result(proposal: str, answer: UserAnswer) -> ToolResult:
    feedback = str(answer.get("words") or "")
    instruction = f"The user said: {feedback}" if feedback else "Stop here, and wait for what the user says."
    return ToolResult(f"The user does not want {proposal}. {instruction}", _REJECTED_RESULT, is_error=True)


class EnterPlanMode:
    """Asks to look and plan first."""

    spec = builtin_spec(
        "EnterPlanMode",
        description=(
            "Asks the user to let you look around and write a plan before anything is changed. "
            "Use it for work with several possible ways, or that touches many files; not for "
            "small, clear changes."
        ),
        schema={"type": "object", "properties": {}},
    )

    async def run(self, _tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Ask."""
        path = context.plan.file
        answer = await _ask_user(context, {"step": "enter", "plan": None, "file": path, "call": call})
        if not answer.get("approved"):
            return _rejected_result("a plan first", answer)
        context.plan.permission_mode = "plan"
        message = "Entered plan mode. Look around and work out how to do it."
        location = f" Write the plan to {path}, the only file you may change." if path else ""
        content = f"{message} Change nothing.{location} When it is ready, call ExitPlanMode."
        return ToolResult(content, {"message": message})


class _ExitPlanInput(msgspec.Struct, frozen=True):
    plan: str | None = None


class ExitPlanMode:
    """Shows the plan, and asks to go on."""

    spec = builtin_spec(
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
                        "properties": {"tool": {"type": "string"}, "prompt": {"type": "string"}},
                        "required": ["tool", "prompt"],
                    },
                }
            },
        },
    )

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Show it and ask."""
        plan_input = parse_input(tool_input, _ExitPlanInput).plan
        path = context.plan.file
        # Older clients have the plan as an input: then the file is ours to write.
        if plan_input and path:
            await asyncio.to_thread(_write_plan, path, plan_input)
        plan = plan_input or (await asyncio.to_thread(_read_plan, path) if path else None)
        request = {"step": "exit", "plan": plan, "file": path, "call": call}
        answer = await _ask_user(context, request)
        if not answer.get("approved"):
            return _rejected_result("to go on with this plan", answer)
        context.plan.permission_mode = str(answer.get("mode") or "default")
        content = "User has approved exiting plan mode. You can now proceed."
        if plan:
            location = f" It is kept in {path}." if path else ""
            content = f"{content}{location}\n\n## Approved plan\n{plan}"
        return ToolResult(content, {"plan": plan, "isAgent": False, "filePath": path})


def _read_plan(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_PLAN_SIZE).strip() or None
    except OSError:
        return None


def _write_plan(path: str, plan: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomic(path, (plan.encode("utf-8", "replace"),), sync=False)
    except OSError as error:
        raise ToolFailure(f"The plan cannot be written to {path}: {error_message(error)}") from error
