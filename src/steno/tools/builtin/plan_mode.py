"""EnterPlanMode and ExitPlanMode: planning first, with the user's approval of the plan.

Both call `context.ask("plan", {"step": "enter" | "exit", "plan": …, "file": …, "call": …})`; the
answer is `{"approved": bool, "mode": …, "words": …}`. They request the next permission mode in
`context.plan.permission_mode`; the path of the plan is `context.plan.file`.
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
        step = "approve plan mode" if request["step"] == "enter" else "approve the plan"
        raise ToolFailure(f"No user is available to {step}.")
    return answer


def _rejected_result(message: str, answer: UserAnswer) -> ToolResult:
    feedback = str(answer.get("words") or "")
    instruction = f"Feedback: {feedback}" if feedback else "Stop and wait for the user's instructions."
    return ToolResult(f"{message} {instruction}", _REJECTED_RESULT, is_error=True)


class EnterPlanMode:
    """Asks the user for approval to plan before making changes."""

    spec = builtin_spec(
        "EnterPlanMode",
        description=(
            "Asks the user for approval to explore the code and write a plan before changing anything. "
            "Use it for tasks that have several possible approaches or affect many files, not for "
            "small, well-defined changes."
        ),
        schema={"type": "object", "properties": {}},
    )

    async def run(self, _tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Ask for approval and request plan mode."""
        path = context.plan.file
        answer = await _ask_user(context, {"step": "enter", "plan": None, "file": path, "call": call})
        if not answer.get("approved"):
            return _rejected_result("The user declined plan mode.", answer)
        context.plan.permission_mode = "plan"
        message = "Entered plan mode. Explore the code and design an approach."
        location = f" Write the plan to {path}, the only file you may edit." if path else ""
        content = f"{message} Do not change anything.{location} Call ExitPlanMode when the plan is complete."
        return ToolResult(content, {"message": message})


class _ExitPlanInput(msgspec.Struct, frozen=True):
    plan: str | None = None


class ExitPlanMode:
    """Presents the plan to the user for approval."""

    spec = builtin_spec(
        "ExitPlanMode",
        description=(
            "Presents the plan in the plan file to the user for approval. "
            "Use it only in plan mode when the plan is complete, not to answer questions."
        ),
        schema={
            "type": "object",
            "properties": {
                "allowedPrompts": {
                    "type": "array",
                    "description": "Permissions that the plan requires",
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
        """Present the plan, ask for approval, and leave plan mode."""
        plan_input = parse_input(tool_input, _ExitPlanInput).plan
        path = context.plan.file
        # Older versions pass the plan as input, so the tool writes the file.
        if plan_input and path:
            await asyncio.to_thread(_write_plan, path, plan_input)
        plan = plan_input or (await asyncio.to_thread(_read_plan, path) if path else None)
        request = {"step": "exit", "plan": plan, "file": path, "call": call}
        answer = await _ask_user(context, request)
        if not answer.get("approved"):
            return _rejected_result("The user rejected the plan.", answer)
        context.plan.permission_mode = str(answer.get("mode") or "default")
        content = "User has approved exiting plan mode. You can now proceed."
        if plan:
            location = f" The plan is saved in {path}." if path else ""
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
        raise ToolFailure(f"Cannot write the plan to {path}: {error_message(error)}") from error
