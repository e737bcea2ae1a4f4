"""What can be typed besides prompts: `!command`, `#memory`, and paths of images."""

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any, Final

from steno.agent.events import ToolEnded, ToolStarted
from steno.agent.recorder import new_id
from steno.console.dialog import Choice, Dialog
from steno.console.steps import Told, body_lines
from steno.format.tool_catalogue import SHELL
from steno.model.wire import Block
from steno.safe.terminal import Line, clean, without_colours
from steno.tools.base import ToolFailure, ToolResult
from steno.tools.images import show_image

if TYPE_CHECKING:
    from steno.console.talk import Talk

__all__ = ["keep_memory", "run_shell", "with_images"]

_IMAGE: Final = re.compile(
    r"""(?:^|(?<=\s))@?(?:"([^"\n]+\.\w+)"|'([^'\n]+\.\w+)'|((?:\\.|[^\s\\'"])+\.\w+))(?=\s|$)"""
)
_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_LARGEST: Final = 20 << 20
_SHOWN: Final = 30


def with_images(text: str, cwd: str) -> tuple[str | list[Block], list[str]]:
    """Return a prompt with the images that it names beside its words, and their names."""
    images: list[Block] = []
    named: list[str] = []
    for found in _IMAGE.finditer(text):
        given = (found[1] or found[2] or re.sub(r"\\(.)", r"\1", found[3] or "")).strip()
        path = os.path.join(cwd, os.path.expanduser(given))
        if not given.lower().endswith(_ENDINGS) or not os.path.isfile(path):
            continue
        try:
            with open(path, "rb") as file:
                outcome = show_image(path, file.read(_LARGEST))
        except (OSError, ToolFailure):
            # The model is told the path all the same, and can say what is wrong with it.
            continue
        if isinstance(outcome.content, list):
            images += outcome.content
            named.append(os.path.basename(path))
    if not images:
        return text, []
    return [{"type": "text", "text": text}, *images], named


async def run_shell(talk: "Talk", command: str) -> None:
    """Run a command of the user's, who is not asked for leave; the model reads of it later."""
    started = talk.started
    if started is None:
        return
    agent = started.agent
    tool = agent.caller.tools.find(SHELL)
    if tool is None:
        talk.stream.note("there is no shell here")
        return
    call: dict[str, Any] = {
        "name": SHELL,
        "id": f"toolu_{new_id()}",
        "input": {"command": command},
    }
    talk.stream.begin()
    talk.stream.take(ToolStarted(call))
    began = asyncio.get_running_loop().time()
    try:
        outcome = await tool.run(call["input"], agent.caller.context, str(call["id"]))
    except ToolFailure as error:
        outcome = ToolResult(str(error), is_error=True)
    except asyncio.CancelledError:
        talk.stream.break_off()
        raise
    finally:
        talk.stream.began = 0.0
    seconds = asyncio.get_running_loop().time() - began
    text = outcome.content if isinstance(outcome.content, str) else ""
    talk.stream.take(
        ToolEnded(call, ToolResult(text, outcome.detail, outcome.is_error), seconds, "")
    )
    if not outcome.is_error:
        step = Told(verb=SHELL)
        lines = list(body_lines(call, outcome, step, talk.screen.width, whole=True))
        left = f"… {len(lines) - _SHOWN} more lines; the model reads all of them"
        more: list[Line] = [["       ", (left, "dim")]]
        talk.stream.block(lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], *more], "steps")
    said = f"<bash-input>{command}</bash-input>"
    printed = without_colours(text)
    error = printed if outcome.is_error else ""
    out = "" if outcome.is_error else printed
    agent.talk.prompt(said, typed=agent.talk.last_prompt)
    agent.talk.prompt(
        f"<bash-stdout>{out}</bash-stdout><bash-stderr>{error}</bash-stderr>",
        typed=agent.talk.last_prompt,
    )
    agent.talk.end_turn()


async def keep_memory(talk: "Talk", text: str) -> None:
    """Add a line to what the model always knows, where the user says."""
    started = talk.started
    if started is None:
        return
    options = talk.ready.options
    places = (
        Choice(
            "p", "this project, for everybody", os.path.join(options.cwd, "CLAUDE.md"), "CLAUDE.md"
        ),
        Choice(
            "l",
            "this project, for you",
            os.path.join(options.cwd, "CLAUDE.local.md"),
            "CLAUDE.local.md",
        ),
        Choice(
            "u",
            "all your projects",
            os.path.join(options.config, "CLAUDE.md"),
            "CLAUDE.md of your own",
        ),
    )
    reply = await talk.prompt.ask(
        Dialog("Where should this be kept?", [["  ", clean(text)]], places)
    )
    if reply is None:
        talk.stream.note("nothing was kept", "dim")
        return
    await asyncio.to_thread(_append, reply.value, text)
    agent = started.agent
    agent.talk.prompt(
        f"<user-memory-input>{text}</user-memory-input>", typed=agent.talk.last_prompt
    )
    agent.talk.end_turn()
    talk.stream.note(f"kept in {reply.value}; the model reads it from the next session on", "dim")


def _append(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        before = file.read()
        file.write(f"{'' if not before or before.endswith(chr(10)) else chr(10)}- {text}\n")
