"""Commands about the conversation: clear, compact, model, mode, going back, leaving."""

import asyncio
import os
from typing import TYPE_CHECKING, Final

import msgspec

from steno.console.commands import Command
from steno.console.dialog import Choice, Dialog
from steno.console.status import MODES
from steno.errors import BadRequest, StenoError
from steno.report import words

if TYPE_CHECKING:
    from steno.console.talk import Talk

__all__ = ["COMMANDS"]

_MODELS: Final = (("o", "opus"), ("s", "sonnet"), ("h", "haiku"))


async def _clear(talk: "Talk", arguments: str) -> None:
    """Begin a new session; the one before it stays on disk."""
    del arguments
    from steno.agent.sessions import new

    started = talk.started
    if started is None:
        return
    before = started.agent.talk.recorder.session_id
    options = talk.ready.options
    await talk.enter(new(options.config, options.cwd), "clear")
    if talk.started is not None:
        await talk.started.slash.cleared()
    talk.stream.note(f"a new session; /resume {before[:8]} goes back", "dim")


async def _compact(talk: "Talk", arguments: str) -> None:
    """Let a summary take the place of the conversation."""
    started = talk.started
    if started is None:
        return
    talk.stream.begin()
    await started.hear(f"/compact {arguments}".strip())


async def _model(talk: "Talk", arguments: str) -> None:
    from steno.agent.models import model_named

    started = talk.started
    if started is None:
        return
    now = started.agent.course.model
    wanted = arguments.strip()
    if not wanted:
        choices = [Choice(key, name, name, model_named(name)) for key, name in _MODELS]
        dialog = Dialog(
            f"Model, now {words.model_name(now)}", (), choices, words="another one by its name"
        )
        reply = await talk.prompt.ask(dialog)
        if reply is None:
            return
        wanted = (reply.words if reply.value == "words" else reply.value).strip()
    name = model_named(wanted)
    if not name:
        raise BadRequest("there is no model without a name", hint="such as /model sonnet")
    agent = started.agent
    agent.course = msgspec.structs.replace(agent.course, model=name)
    talk.ready.options.model = wanted
    talk.stream.note(f"{name} from now on{await _lasts('model', wanted)}", "dim")


async def _mode(talk: "Talk", arguments: str) -> None:
    started = talk.started
    if started is None:
        return
    wanted = arguments.strip()
    known = [mode for mode in MODES if mode != "bypassPermissions" or _may_bypass(talk)]
    if not wanted:
        keys = {
            "default": "d",
            "acceptEdits": "e",
            "plan": "p",
            "dontAsk": "n",
            "bypassPermissions": "b",
        }
        choices = [Choice(keys[mode], mode, mode, MODES[mode]) for mode in known]
        reply = await talk.prompt.ask(Dialog(f"Mode, now {started.mode()}", (), choices))
        if reply is None:
            return
        wanted = reply.value
    if wanted not in known:
        raise BadRequest(f"there is no mode {wanted!r} here", hint=f"one of {', '.join(known)}")
    talk.set_mode(wanted)
    talk.stream.note(f"{wanted}: {MODES[wanted]}", "dim")


def _may_bypass(talk: "Talk") -> bool:
    """Whether nothing has to be asked about: only where the program was started so."""
    return talk.ready.options.mode == "bypassPermissions"


async def _lasts(key: str, value: str) -> str:
    """Keep a choice for the next time; return a word on it where that cannot be done."""
    from steno.store.config_set import set_config

    try:
        await asyncio.to_thread(set_config, "console", key, value)
    except StenoError as error:
        return f"; until you leave, for {error}"
    return ""


async def _vim(talk: "Talk", arguments: str) -> None:
    del arguments
    from prompt_toolkit.enums import EditingMode

    app = talk.prompt.app
    vi = app.editing_mode != EditingMode.VI
    app.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
    keys = "vi" if vi else "emacs"
    talk.stream.note(f"{keys} keys{await _lasts('keys', keys)}", "dim")


async def _theme(talk: "Talk", arguments: str) -> None:
    """Choose how it looks; which colours there are is the terminal's own affair."""
    screen = talk.screen
    looks = {
        "colour": "the colours of your terminal",
        "plain": "no colours",
        "reader": "plain lines, nothing moves",
    }
    wanted = arguments.strip()
    if not wanted:
        choices = [Choice(name[0], name, name, about) for name, about in looks.items()]
        reply = await talk.prompt.ask(Dialog("Look", (), choices))
        if reply is None:
            return
        wanted = reply.value
    if wanted not in looks:
        raise BadRequest(f"there is no look {wanted!r}", hint=f"one of {', '.join(looks)}")
    screen.paint.colour = wanted == "colour"
    screen.reader = wanted == "reader"
    talk.stream.note(f"{wanted}: {looks[wanted]}{await _lasts('theme', wanted)}", "dim")


async def _paste(talk: "Talk", arguments: str) -> None:
    """Put the picture that is in the clipboard into the prompt."""
    del arguments
    from steno.console.clipboard import pasted_picture

    path = await pasted_picture(os.environ)
    talk.prompt.buffer.insert_text(talk.prompt.pastes.picture(path))
    talk.screen.refresh()


async def _exit(talk: "Talk", arguments: str) -> None:
    del arguments
    talk.leave()


COMMANDS: Final = (
    Command(name="clear", help="begin a new session", run=_clear, aliases=("new", "reset")),
    Command(
        name="compact",
        help="a summary in place of the conversation",
        takes="[what matters]",
        run=_compact,
    ),
    Command(name="model", help="ask another model", takes="[NAME]", run=_model),
    Command(name="mode", help="what is allowed without asking", takes="[MODE]", run=_mode),
    Command(name="paste", help="the clipboard's picture into the prompt", run=_paste, anytime=True),
    Command(name="vim", help="vi keys, or emacs keys again", run=_vim, anytime=True),
    Command(name="theme", help="colours, none, or for a screen reader", takes="[LOOK]", run=_theme),
    Command(name="exit", help="leave", run=_exit, aliases=("quit",), anytime=True),
)
