"""Input that the console handles itself: `!command`, `#memory`, and image paths."""

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any, Final

from steno.agent.events import ToolEnded, ToolStarted
from steno.agent.recorder import new_uuid
from steno.console.dialog import Choice, Dialog
from steno.console.prompt import IMAGE_SUFFIXES
from steno.console.step_lines import StepView, body_lines
from steno.format.tool_catalogue import SHELL
from steno.llm.messages_api import Block
from steno.sanitize.terminal import StyledLine, clean, strip_colours
from steno.tools.file_content import image_result
from steno.tools.protocol import ToolFailure, ToolResult

if TYPE_CHECKING:
    from steno.console.chat import Chat


_IMAGE_PATH: Final = re.compile(
    r"""(?:^|(?<=\s))@?(?:"([^"\n]+\.\w+)"|'([^'\n]+\.\w+)'|((?:\\.|[^\s\\'"])+\.\w+))(?=\s|$)"""
)
_MAX_IMAGE_BYTES: Final = 20 << 20
_MAX_OUTPUT_LINES: Final = 30


def attach_images(text: str, cwd: str) -> tuple[str | list[Block], list[str]]:
    """Return a prompt with the images that its paths name as content blocks, and the names of these images."""
    images: list[Block] = []
    image_names: list[str] = []
    for match in _IMAGE_PATH.finditer(text):
        image_path = (match[1] or match[2] or re.sub(r"\\(.)", r"\1", match[3] or "")).strip()
        path = os.path.join(cwd, os.path.expanduser(image_path))
        if not image_path.lower().endswith(IMAGE_SUFFIXES) or not os.path.isfile(path):
            continue
        try:
            with open(path, "rb") as file:
                result = image_result(path, file.read(_MAX_IMAGE_BYTES))
        except (OSError, ToolFailure):
            # The model still gets the path and can report the problem.
            continue
        if isinstance(result.content, list):
            images += result.content
            image_names.append(os.path.basename(path))
    if not images:
        return text, []
    return [{"type": "text", "text": text}, *images], image_names


async def run_shell_command(chat: "Chat", command: str) -> None:
    """Run a command of the user without approval; the model sees its output in the next turn."""
    session = chat.session
    if session is None:
        return
    agent = session.agent
    tool = agent.executor.tools.find(SHELL)
    if tool is None:
        chat.renderer.print_note("No shell is available")
        return
    call: dict[str, Any] = {"name": SHELL, "id": f"toolu_{new_uuid()}", "input": {"command": command}}
    chat.renderer.begin_turn()
    chat.renderer.handle(ToolStarted(call))
    started_at = asyncio.get_running_loop().time()
    try:
        result = await tool.run(call["input"], agent.executor.context, str(call["id"]))
    except ToolFailure as error:
        result = ToolResult(str(error), is_error=True)
    except asyncio.CancelledError:
        chat.renderer.interrupt_running()
        raise
    finally:
        chat.renderer.turn_started_at = 0.0
    seconds = asyncio.get_running_loop().time() - started_at
    text = result.content if isinstance(result.content, str) else ""
    chat.renderer.handle(ToolEnded(call, ToolResult(text, result.detail, result.is_error), seconds, ""))
    if not result.is_error:
        step = StepView(label=SHELL)
        lines = list(body_lines(call, result, step, chat.screen.width, show_all=True))
        more_text = f"… {len(lines) - _MAX_OUTPUT_LINES} more lines (the model gets all of them)"
        more_lines: list[StyledLine] = [["       ", (more_text, "dim")]]
        chat.renderer.print_block(
            lines if len(lines) <= _MAX_OUTPUT_LINES else [*lines[:_MAX_OUTPUT_LINES], *more_lines], "steps"
        )
    input_text = f"<bash-input>{command}</bash-input>"
    plain_text = strip_colours(text)
    error = plain_text if result.is_error else ""
    stdout = "" if result.is_error else plain_text
    agent.conversation.add_prompt(input_text, typed=agent.conversation.last_prompt)
    agent.conversation.add_prompt(
        f"<bash-stdout>{stdout}</bash-stdout><bash-stderr>{error}</bash-stderr>", typed=agent.conversation.last_prompt
    )
    agent.conversation.end_turn()


async def add_memory(chat: "Chat", text: str) -> None:
    """Add a line to a CLAUDE.md that the user selects."""
    session = chat.session
    if session is None:
        return
    options = chat.agent_setup.options
    choices = (
        Choice("p", "This project, shared", os.path.join(options.cwd, "CLAUDE.md"), "CLAUDE.md"),
        Choice("l", "This project, only you", os.path.join(options.cwd, "CLAUDE.local.md"), "CLAUDE.local.md"),
        Choice(
            "u", "All your projects", os.path.join(options.config, "CLAUDE.md"), "CLAUDE.md in your config directory"
        ),
    )
    reply = await chat.prompt.ask(Dialog("Save memory in", [["  ", clean(text)]], choices))
    if reply is None:
        chat.renderer.print_note("Not saved", "dim")
        return
    await asyncio.to_thread(_append_line, reply.value, text)
    agent = session.agent
    agent.conversation.add_prompt(
        f"<user-memory-input>{text}</user-memory-input>", typed=agent.conversation.last_prompt
    )
    agent.conversation.end_turn()
    chat.renderer.print_note(f"Saved in {reply.value}; takes effect in the next session", "dim")


def _append_line(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        before = file.read()
        file.write(f"{'' if not before or before.endswith(chr(10)) else chr(10)}- {text}\n")
